# UPDATE of one table
UPDATE runs SET status = 'done' WHERE id = 42
UPDATE runs SET status = 'done'
update `runs` as r set r.status='done' where r.id=42
UPDATE app.runs SET app.runs.status = 'x' WHERE app.runs.id = 1
UPDATE `app`.`runs` SET status = -1.5, n = 0x1F, m = b'01'
UPDATE LOW_PRIORITY runs SET status = 'x'
UPDATE runs PARTITION (p0) SET status = 'x'
UPDATE runs USE INDEX (i) SET status = 'x' WHERE a = 1 OR b = 2
UPDATE runs /* before */ SET /* in */ status = 'a''b\'c' -- after
UPDATE runs SET status = 'x' WHERE id = 1;
UPDATE runs SET status = 'x' WHERE id = 1; -- only a comment follows
UPDATE runs SET status = 'SET x WHERE y LIMIT 1' WHERE note = "ORDER BY"
UPDATE runs SET n = n + 1 WHERE id = 1
UPDATE runs SET a = a + 1, b = a
UPDATE runs SET status = ? WHERE id = ?
UPDATE runs SET status = NULL
UPDATE runs SET status = DEFAULT WHERE id = 1
UPDATE runs SET status = NOW() WHERE id = 1
UPDATE runs SET status = 'x' ORDER BY id LIMIT 3
UPDATE runs SET status = 'x' WHERE a = 1 OR b = 2 ORDER BY id DESC
UPDATE runs SET status = 'x' LIMIT 1
UPDATE IGNORE runs SET status = 'x' WHERE id = 1
UPDATE runs SET owner_token = 'x'
UPDATE runs SET status = 'x' WHERE fence_token = 7
UPDATE runs SET runs.owner_token = 'x' WHERE runs.lease_name = 'y'
UPDATE runs SET status = 'x' WHERE id IN (SELECT id FROM other)
UPDATE runs SET status = (SELECT MAX(x) FROM runs) WHERE id = 1
UPDATE runs SET a = 1, a = 2
UPDATE runs SET status = 'x' WHERE runs.order = 1 AND runs.limit = 2
UPDATE runs SET status = 'x' WHERE id = 1 RETURNING id
UPDATE runs SET status = 'x' WHERE (a = 1 OR (b = 2 AND c IN (3, 4)))
UPDATE runs SET status = 'x' WHERE id = @fence_token
UPDATE runs SET status = 'x' WHERE id = (@fence_token := 9)
UPDATE runs AS __fence SET status = 'x'
UPDATE other SET status = 'runs'
UPDATE other SET runs = 1
UPDATE other.runs SET status = 'x'
UPDATE Runs SET status = 'x'
UPDATE runs_archive SET status = 'x'
UPDATE runs SET status 'syntax error'
UPDATE runs FOR PORTION OF p FROM '2026-01-01' TO '2026-02-01' SET status = 'x'
UPDATE fenced_job_leases SET leased_until = NOW()
# several tables
UPDATE runs r JOIN other o ON o.id = r.id SET r.status = o.status
UPDATE runs r, other o SET o.status = 'x' WHERE o.id = r.id
UPDATE runs r, other o SET status = 'x' WHERE o.id = r.id
UPDATE other o LEFT JOIN runs r USING (id) SET r.a = 1, o.b = 2 WHERE r.id > 3
UPDATE other o JOIN (SELECT id FROM runs) AS d ON d.id = o.id SET o.status = 'x'
UPDATE runs r JOIN fenced_job_leases l ON l.lease_name = r.name SET r.status = 'x'
UPDATE runs r JOIN fenced_job_leases l SET r.status = 'x', l.owner_token = 'y'
UPDATE runs r JOIN plans p ON p.id = r.id SET r.a = 1, p.b = 2
UPDATE runs r JOIN jobs j ON j.id = r.id SET r.a = 1, j.b = 2
WITH c AS (SELECT 1 AS id) UPDATE runs JOIN c USING (id) SET runs.status = 'x'
WITH runs AS (SELECT 1 AS id) SELECT * FROM runs
# DELETE
DELETE FROM runs
DELETE FROM runs WHERE id = 1 OR id = 2
DELETE LOW_PRIORITY QUICK IGNORE FROM runs WHERE id = 1
DELETE FROM runs ORDER BY id LIMIT 1
DELETE FROM runs WHERE id = 1 LIMIT 1 -- done
DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE x = 1)
DELETE FROM runs AS r WHERE r.id = 1
DELETE FROM runs WHERE id = 1 RETURNING *
DELETE runs FROM runs JOIN other ON other.id = runs.id WHERE other.x = 1
DELETE r, o FROM runs AS r JOIN other AS o ON o.id = r.id
DELETE o FROM runs AS r JOIN other AS o ON o.id = r.id
DELETE FROM o USING runs AS r JOIN other AS o ON o.id = r.id
DELETE FROM r USING runs AS r JOIN other AS o ON o.id = r.id WHERE r.x = 1
DELETE app.runs FROM app.runs, other WHERE other.id = app.runs.id
DELETE FROM other WHERE id IN (SELECT id FROM runs)
DELETE HISTORY FROM runs
WITH c AS (SELECT 1) DELETE FROM runs WHERE id IN (SELECT * FROM c)
# INSERT and REPLACE
INSERT INTO runs VALUES (1, 'a')
INSERT INTO runs (id, status) VALUES (1, 'a'), (2, DEFAULT)
insert runs set id = 1
INSERT IGNORE INTO app.runs (id) VALUES (1)
INSERT INTO runs (id) SELECT id FROM other WHERE x = 1
INSERT INTO runs (id) TABLE other
INSERT INTO runs (id) VALUES (1) ON DUPLICATE KEY UPDATE status = VALUES(status)
INSERT INTO runs (id) VALUES (1) AS new ON DUPLICATE KEY UPDATE status = new.status
INSERT INTO runs (id) VALUES (1) RETURNING id
INSERT DELAYED INTO runs (id) VALUES (1)
REPLACE INTO runs VALUES (1, 'a')
REPLACE runs SET id = 1
INSERT INTO other SELECT * FROM runs
INSERT INTO other VALUES ('UPDATE runs SET x = 1')
INSERT INTO other (runs) VALUES (1)
INSERT INTO fenced_job_leases (lease_name) VALUES ('a')
LOAD DATA LOCAL INFILE 'f' INTO TABLE runs (status)
LOAD DATA INFILE 'f' REPLACE INTO TABLE app.runs FIELDS TERMINATED BY ','
LOAD XML INFILE 'f' INTO TABLE runs
LOAD DATA INFILE 'runs' INTO TABLE other
# what only reads
SELECT * FROM runs WHERE id = 1 FOR UPDATE
SELECT 'UPDATE runs SET x = 1'
(SELECT * FROM runs) UNION (SELECT * FROM other)
TABLE runs
SHOW CREATE TABLE runs
DESCRIBE runs
EXPLAIN UPDATE runs SET status = 'x'
DO (SELECT COUNT(*) FROM runs)
HANDLER runs OPEN
CHECK TABLE runs
ANALYZE TABLE runs
FLUSH TABLES runs
GRANT SELECT ON runs TO someone
SET @n = (SELECT COUNT(*) FROM runs)
LOCK TABLES runs READ, other WRITE
SELECT fence_token INTO @fence_token FROM fenced_job_leases
CALL maintain('runs')
# what executes another statement
EXPLAIN ANALYZE UPDATE runs SET status = 'x'
ANALYZE UPDATE runs SET status = 'x'
ANALYZE FORMAT=JSON DELETE FROM runs
ANALYZE SELECT * FROM runs
SET STATEMENT max_statement_time = 1 FOR UPDATE runs SET status = 'x'
SET STATEMENT max_statement_time = 1 FOR SELECT * FROM runs
SET STATEMENT max_statement_time = 1 FOR TRUNCATE runs
PREPARE s FROM 'UPDATE runs SET status = 1'
PREPARE s FROM 'SELECT * FROM runs'
PREPARE s FROM 'INSERT INTO other VALUES (?)'
PREPARE s FROM @text
PREPARE s FROM CONCAT('UPDATE ru', 'ns SET x = 1')
EXECUTE s USING @a
EXECUTE IMMEDIATE 'UPDATE runs SET status = 1'
EXECUTE IMMEDIATE 'UPDATE other SET status = 1'
EXECUTE IMMEDIATE @text
EXECUTE IMMEDIATE CONCAT('UPDATE ru', 'ns SET x = 1')
BEGIN NOT ATOMIC UPDATE runs SET status = 'x'; END
BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT('UPDATE ru', 'ns SET x = 1'); END
BINLOG 'runs'
# definitions
TRUNCATE TABLE runs
TRUNCATE runs
DROP TABLE IF EXISTS runs
DROP TABLE other, runs
ALTER TABLE runs ADD COLUMN x INT
ALTER TABLE other RENAME TO runs
ALTER TABLE other EXCHANGE PARTITION p WITH TABLE runs
RENAME TABLE other TO x, runs TO y
CREATE TABLE runs (id INT)
CREATE OR REPLACE TABLE runs (id INT)
CREATE TABLE copy AS SELECT * FROM runs
CREATE TABLE child (id INT, FOREIGN KEY (id) REFERENCES runs (id))
CREATE INDEX i ON runs (id)
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW UPDATE runs SET status = 'x'
CREATE PROCEDURE p() UPDATE runs SET status = 'x'
CREATE VIEW v AS SELECT * FROM runs
CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM runs
CREATE TABLE runs_archive LIKE other
LOCK TABLES runs WRITE
LOCK TABLES fenced_job_leases READ
DROP DATABASE app
DROP SCHEMA IF EXISTS `app`
DROP DATABASE other
CREATE TEMPORARY TABLE fenced_job_leases (lease_name INT)
CREATE TEMPORARY TABLE app.fenced_job_leases LIKE other
ALTER TABLE fenced_job_leases ADD COLUMN x INT
RENAME TABLE x TO fenced_job_leases
CREATE VIEW v AS SELECT * FROM fenced_job_leases
# executable comments
UPDATE runs SET status = 'x' /*! WHERE id = 1 */
UPDATE runs SET status = 'x' /*M! WHERE id = 1 */
UPDATE runs SET status = 'x' /*T! WHERE id = 1 */
/*!50000 UPDATE */ runs SET status = 'x'
/*!50000 TRUNCATE */ runs
SELECT 1 /*! FROM runs */
SELECT 1 /*!; UPDATE runs SET status = 'x' */
INSERT /*! INTO */ runs VALUES (1)
INSERT INTO other VALUES (1) /*! ON DUPLICATE KEY UPDATE x = 1 */
UPDATE/**/runs/**/SET status='x'
UPDATE runs SET status = 'unterminated
# several statements
SELECT 1; SELECT * FROM runs
SELECT 1; UPDATE runs SET status = 'x'
UPDATE other SET x = 1; DELETE FROM runs
USE other; UPDATE runs SET status = 'x'
SET sql_mode = 'ANSI_QUOTES'; SELECT "runs"
SET @fence_owner = 'A', @fence_token = 7; SELECT * FROM runs
DROP DATABASE app; SELECT 1
;
# session: sql_mode=ANSI_QUOTES
UPDATE "runs" SET "status" = 'x' WHERE "id" = 1
UPDATE "other" SET status = 'UPDATE "runs" SET x'
DELETE FROM "app"."runs" WHERE a = 'b"c'
# session: sql_mode=NO_BACKSLASH_ESCAPES
UPDATE runs SET status = 'x\' WHERE id = 1
UPDATE other SET status = 'x\'; -- UPDATE runs SET y = '
# session: sql_mode=ORACLE
UPDATE runs SET status = 'x'
# session: database=other
UPDATE runs SET status = 'x'
UPDATE app.runs SET status = 'x'
UPDATE app . runs SET status = 'x'
INSERT INTO .runs VALUES (1)
# session: database=
UPDATE runs SET status = 'x'
DELETE FROM app.runs
# session: lower_case_table_names=1
UPDATE RUNS SET status = 'x'
DELETE FROM `App`.`Runs`
# session: charset=gbk
UPDATE runs SET status = 'plain'
UPDATE runs SET status = '縗' WHERE id = 1
SELECT '縗', runs FROM other
TRUNCATE runs -- 縗
# session: clock=forged
UPDATE runs SET status = 'x'
INSERT INTO runs VALUES (1)
SELECT * FROM runs
UPDATE other SET x = 1
# the lease of the session, and another table
UPDATE held SET x = 1
INSERT INTO held VALUES (1)
UPDATE runs r JOIN plans p ON p.id = r.id SET r.a = 1, p.b = 2
