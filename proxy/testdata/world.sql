-- The tables and programs of testdata/statements.txt, one definition a paragraph.
-- Protected are runs, steps, parts, rates, ledger and `monthly runs` under one
-- lease, and jobs under another.

DROP TABLE IF EXISTS runs, notes

CREATE TABLE runs (id INT PRIMARY KEY AUTO_INCREMENT, status VARCHAR(40) NOT NULL DEFAULT 'new', n INT UNIQUE) ENGINE=InnoDB

CREATE TABLE parts (id INT PRIMARY KEY, status VARCHAR(40)) ENGINE=InnoDB
PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN MAXVALUE)

CREATE TABLE rates (id INT, amount INT, since DATE, until DATE, PERIOD FOR valid (since, until)) ENGINE=InnoDB

CREATE TABLE ledger (id INT PRIMARY KEY, amount INT) ENGINE=InnoDB WITH SYSTEM VERSIONING

CREATE TABLE `monthly runs` (id INT PRIMARY KEY, status VARCHAR(40)) ENGINE=InnoDB

CREATE TABLE jobs (id INT PRIMARY KEY, status VARCHAR(40)) ENGINE=InnoDB

CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(200)) ENGINE=InnoDB

-- Names that look like a protected one.

CREATE TABLE runs_archive (id INT PRIMARY KEY, status VARCHAR(40), n INT) ENGINE=InnoDB

CREATE TABLE other (id INT PRIMARY KEY, runs VARCHAR(40)) ENGINE=InnoDB

-- Foreign keys: regions cascade to batches and those to steps.

CREATE TABLE regions (id INT PRIMARY KEY, name VARCHAR(40)) ENGINE=InnoDB

CREATE TABLE batches (id INT PRIMARY KEY, region INT, name VARCHAR(40),
  FOREIGN KEY (region) REFERENCES regions (id) ON DELETE CASCADE ON UPDATE CASCADE) ENGINE=InnoDB

CREATE TABLE teams (id INT PRIMARY KEY, name VARCHAR(40)) ENGINE=InnoDB

CREATE TABLE kinds (id INT PRIMARY KEY, name VARCHAR(40)) ENGINE=InnoDB

CREATE TABLE steps (id INT PRIMARY KEY, batch INT, team INT, kind INT, status VARCHAR(40),
  FOREIGN KEY (batch) REFERENCES batches (id) ON DELETE CASCADE ON UPDATE CASCADE,
  FOREIGN KEY (team) REFERENCES teams (id) ON DELETE SET NULL,
  FOREIGN KEY (kind) REFERENCES kinds (id)) ENGINE=InnoDB

-- Triggers: an insert into inbox, and a delete from outbox, writes runs.

CREATE TABLE inbox (id INT PRIMARY KEY, text VARCHAR(40)) ENGINE=InnoDB

CREATE TRIGGER inbox_insert AFTER INSERT ON inbox FOR EACH ROW UPDATE runs SET status = NEW.text WHERE id = NEW.id

CREATE TABLE outbox (id INT PRIMARY KEY, text VARCHAR(40)) ENGINE=InnoDB

CREATE TRIGGER outbox_delete BEFORE DELETE ON outbox FOR EACH ROW DELETE FROM runs WHERE id = OLD.id

CREATE TRIGGER outbox_update AFTER UPDATE ON outbox FOR EACH ROW INSERT INTO notes (id, text) VALUES (NEW.id + 50, NEW.text)

CREATE TABLE relay (id INT PRIMARY KEY, text VARCHAR(40)) ENGINE=InnoDB

CREATE TRIGGER relay_insert AFTER INSERT ON relay FOR EACH ROW INSERT INTO inbox (id, text) VALUES (NEW.id, NEW.text)

CREATE TABLE queue (id INT PRIMARY KEY, text VARCHAR(40)) ENGINE=InnoDB

CREATE TABLE ticks (id INT PRIMARY KEY, text VARCHAR(40)) ENGINE=InnoDB

-- A tree whose branches go with their root.

CREATE TABLE tree (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES tree (id) ON DELETE CASCADE) ENGINE=InnoDB

-- A change of a portion of time inserts what is left of the row.

CREATE TABLE spans (id INT, name VARCHAR(40), since DATE, until DATE, PERIOD FOR valid (since, until)) ENGINE=InnoDB

CREATE TRIGGER spans_insert AFTER INSERT ON spans FOR EACH ROW UPDATE runs SET status = 'spanned' WHERE id = NEW.id

-- Procedures.

CREATE PROCEDURE mark(i INT) UPDATE runs SET status = 'marked' WHERE id = i

CREATE PROCEDURE mark_through(i INT) CALL mark(i)

CREATE PROCEDURE mark_and_tell(i INT, OUT was VARCHAR(40)) BEGIN
  SELECT status INTO was FROM runs WHERE id = i;
  UPDATE runs SET status = 'told' WHERE id = i;
  SELECT was;
END

CREATE PROCEDURE mark_by_view(i INT) UPDATE open_runs SET status = 'viewed' WHERE id = i

CREATE PROCEDURE mark_by_trigger(i INT) INSERT INTO inbox (id, text) VALUES (i, 'posted')

CREATE PROCEDURE mark_by_function(i INT) SELECT bump(i)

CREATE PROCEDURE drop_batch(i INT) DELETE FROM batches WHERE id = i

CREATE PROCEDURE count_down(i INT) BEGIN
  IF i > 0 THEN
    UPDATE runs SET status = 'counted' WHERE id = i;
  END IF;
  IF i > 1 THEN
    CALL count_down(i - 1);
  END IF;
END

CREATE PROCEDURE mark_in_a_loop() BEGIN
  FOR one IN (SELECT id FROM notes) DO
    UPDATE runs SET status = 'looped' WHERE id = one.id;
  END FOR;
END

CREATE PROCEDURE mark_by_a_cursor() BEGIN
  DECLARE done INT DEFAULT 0;
  DECLARE i INT;
  DECLARE c CURSOR FOR SELECT id FROM notes;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1;
  OPEN c;
  REPEAT
    FETCH c INTO i;
    IF NOT done THEN
      UPDATE runs SET status = 'fetched' WHERE id = i;
    END IF;
  UNTIL done END REPEAT;
  CLOSE c;
END

CREATE PROCEDURE mark_and_commit(i INT) BEGIN
  UPDATE runs SET status = 'marked' WHERE id = i;
  COMMIT;
END

CREATE PROCEDURE commit_and_mark(i INT) BEGIN
  COMMIT;
  UPDATE runs SET status = 'marked' WHERE id = i;
END

CREATE PROCEDURE mark_in_transaction(i INT) BEGIN
  START TRANSACTION;
  UPDATE runs SET status = 'marked' WHERE id = i;
  COMMIT;
END

CREATE PROCEDURE define_and_mark(i INT) BEGIN
  CREATE OR REPLACE TABLE made (id INT);
  UPDATE runs SET status = 'marked' WHERE id = i;
END

CREATE PROCEDURE mark_or_go_on(i INT) BEGIN
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @failed = 1;
  UPDATE notes SET text = 'tried' WHERE id = 1;
  UPDATE runs SET status = 'marked' WHERE id = i;
END

CREATE PROCEDURE truncate_runs() TRUNCATE TABLE runs

CREATE PROCEDURE run_text(statement TEXT) EXECUTE IMMEDIATE statement

CREATE PROCEDURE prepare_mark() BEGIN
  PREPARE p FROM 'UPDATE runs SET status = ''marked'' WHERE id = 1';
  EXECUTE p;
END

CREATE PROCEDURE note(content VARCHAR(200)) INSERT INTO notes (id, text) VALUES (70, content)

CREATE PROCEDURE note_and_commit(content VARCHAR(200)) BEGIN
  INSERT INTO notes (id, text) VALUES (71, content);
  COMMIT;
END

CREATE PROCEDURE note_the_runs() BEGIN
  DECLARE done INT DEFAULT 0;
  DECLARE s VARCHAR(40);
  DECLARE c CURSOR FOR SELECT status FROM runs WHERE id = 1;
  OPEN c;
  FETCH c INTO s;
  CLOSE c;
  INSERT INTO notes (id, text) VALUES (72, s);
END

CREATE PROCEDURE note_a_write() INSERT INTO notes (id, text) VALUES (74, 'UPDATE runs SET n = 0') -- DELETE FROM runs

CREATE PROCEDURE count_runs() SELECT COUNT(*) FROM runs

CREATE TRIGGER queue_insert AFTER INSERT ON queue FOR EACH ROW CALL mark(NEW.id)

-- Functions.

CREATE FUNCTION bump(i INT) RETURNS INT MODIFIES SQL DATA BEGIN
  UPDATE runs SET n = n + 1 WHERE id = i;
  RETURN (SELECT n FROM runs WHERE id = i);
END

CREATE FUNCTION peek(i INT) RETURNS VARCHAR(40) READS SQL DATA RETURN (SELECT status FROM runs WHERE id = i)

CREATE FUNCTION noted(content VARCHAR(40)) RETURNS INT MODIFIES SQL DATA BEGIN
  INSERT INTO notes (id, text) VALUES (73, content);
  RETURN 73;
END

CREATE FUNCTION bump_always(i INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN
  UPDATE runs SET n = n + 1 WHERE id = i;
  RETURN 1;
END

CREATE FUNCTION bump_through(i INT) RETURNS INT MODIFIES SQL DATA RETURN bump(i) + 1000

CREATE TRIGGER ticks_insert BEFORE INSERT ON ticks FOR EACH ROW SET NEW.text = bump(NEW.id)

-- Packages.

SET sql_mode = 'ORACLE'

CREATE PACKAGE tools AS
  PROCEDURE mark(i INT);
  FUNCTION bump(i INT) RETURN INT;
END

CREATE PACKAGE BODY tools AS
  PROCEDURE mark(i INT) AS BEGIN UPDATE runs SET status = 'packed' WHERE id = i; END;
  FUNCTION bump(i INT) RETURN INT AS BEGIN UPDATE runs SET n = n + 1 WHERE id = i; RETURN i; END;
END

SET sql_mode = DEFAULT

-- Views.

CREATE VIEW open_runs AS SELECT id, status, n FROM runs WHERE id < 100

CREATE VIEW first_runs AS SELECT id, status, n FROM open_runs WHERE id < 50

CREATE VIEW noted_runs AS SELECT r.id, r.status, t.text FROM runs r JOIN notes t ON t.id = r.id

CREATE VIEW open_notes AS SELECT id, text FROM notes WHERE id < 100

CREATE VIEW run_counts AS SELECT status, COUNT(*) AS runs FROM runs GROUP BY status

CREATE VIEW bumped AS SELECT id, bump(id) AS n FROM notes

CREATE VIEW posts AS SELECT id, text FROM inbox

CREATE VIEW named_batches AS SELECT id, name FROM batches
