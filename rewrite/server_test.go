package rewrite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// The plans are right only if the server reads statements as this package does.
// These tests ask one.

// world is a server with the protected table app.runs, others, and a lease.
type world struct {
	server *dbtest.Server
	admin  *sql.DB
	rules  *rewrite.Rules
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	w := &world{server: dbtest.New(t, args...)}
	w.admin = w.server.Open(t, "")
	for _, statement := range []string{
		"CREATE DATABASE app", "CREATE DATABASE elsewhere",
		`CREATE TABLE app.fenced_job_leases (
			lease_name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY,
			owner_token VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
			fence_token BIGINT UNSIGNED NOT NULL, leased_until TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3))`,
		`CREATE TABLE app.runs (id INT PRIMARY KEY, a INT NOT NULL DEFAULT 5, b INT, s VARCHAR(5), u INT UNIQUE, k INT, KEY (k),
			g INT AS (a + 1) VIRTUAL, e ENUM('p', 'q'), d DATE,
			touched TIMESTAMP(6) DEFAULT '2020-01-01' ON UPDATE CURRENT_TIMESTAMP(6)) CHARACTER SET utf8mb4`,
		"CREATE TABLE app.other (id INT PRIMARY KEY, a INT)",
		"CREATE TABLE elsewhere.runs (id INT PRIMARY KEY, a INT)",
		"CREATE TABLE app.log (x INT AUTO_INCREMENT PRIMARY KEY, m VARCHAR(100))",
		"CREATE TRIGGER app.t BEFORE UPDATE ON app.runs FOR EACH ROW INSERT INTO app.log (m) VALUES (CONCAT(OLD.id, ':', OLD.a, '->', NEW.a))",
	} {
		w.exec(t, statement)
	}
	var err error
	w.rules, err = rewrite.NewRules(leaseTable, []rewrite.Rule{{Table: rewrite.Table{Schema: "app", Name: "runs"}, Lease: "job"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := w.admin.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// reset puts the rows and the lease back.
func (w *world) reset(t *testing.T) {
	t.Helper()
	for _, statement := range []string{
		"DELETE FROM app.runs", "DELETE FROM app.other", "DELETE FROM elsewhere.runs", "DELETE FROM app.log",
		`INSERT INTO app.runs (id, a, b, s, u, k, e, touched) VALUES (1, 1, 1, 'x', 1, 1, 'p', '2020-01-01'),
			(2, 2, 2, 'y', 2, 1, 'q', '2020-01-01'), (3, 3, 3, 'z', 3, 2, 'p', '2020-01-01'), (4, 4, 4, 'zz', 4, 2, 'p', '2020-01-01')`,
		"INSERT INTO app.other VALUES (1, 10), (2, 20), (9, 90)",
		"INSERT INTO elsewhere.runs VALUES (1, 1), (2, 2)",
		"REPLACE INTO app.fenced_job_leases VALUES ('job', 'A', 7, NOW(3) + INTERVAL 1 DAY)",
	} {
		w.exec(t, statement)
	}
}

// conn is a session in schema app; the holder's if token is 7.
func (w *world) conn(t *testing.T, parameters string, token int, settings ...string) *sql.Conn {
	t.Helper()
	db := w.server.Open(t, "app"+parameters)
	db.SetMaxIdleConns(-1) // Close ends the session
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, statement := range append(settings, fmt.Sprintf("SET @fence_owner = 'A', @fence_token = %d", token)) {
		if _, err := c.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return c
}

// TestWhatTheServerWritesNeverPasses runs statements straight at a server. Where
// the protected table has changed, the plan must not have been to pass.
func TestWhatTheServerWritesNeverPasses(t *testing.T) {
	type attempt struct {
		settings string // SQL that the session runs before
		facts    rewrite.Session
		sql      string
	}
	usual := rewrite.Session{Database: "app", Charset: "utf8mb4", MultiStatements: true, Autocommit: true}
	with := func(change func(*rewrite.Session)) rewrite.Session {
		s := usual
		change(&s)
		return s
	}
	latin1 := with(func(s *rewrite.Session) { s.Charset = "latin1" })
	gbk := with(func(s *rewrite.Session) { s.Charset = "gbk" })
	ansi := with(func(s *rewrite.Session) { s.SQLMode = rewrite.ANSIQuotes })
	literal := with(func(s *rewrite.Session) { s.SQLMode = rewrite.NoBackslashEscapes })
	oracle := with(func(s *rewrite.Session) { s.SQLMode = rewrite.Oracle | rewrite.ANSIQuotes | rewrite.PipesAsConcat })
	away := with(func(s *rewrite.Session) { s.Database = "elsewhere" })
	attempts := []attempt{
		{"SET NAMES latin1", latin1, "UPDATE\xa0runs SET a = 50"},
		{"SET NAMES latin1", latin1, "INSERT\xa0INTO\xa0runs\xa0(id) VALUES (50)"},
		{"SET NAMES latin1", latin1, "UPDATE other SET a = '\xe9'; UPDATE runs SET a = 50 -- '"},
		{"SET NAMES gbk", gbk, "UPDATE other SET a = LENGTH('\xbf\x5c'); DELETE FROM runs WHERE 'x' = 'x' -- '"},
		{"SET NAMES gbk", gbk, "SELECT '\xbf\x5c'; UPDATE runs SET a = 50 -- '"},
		{"SET sql_mode = 'ANSI_QUOTES'", ansi, `UPDATE "runs" SET a = 50`},
		{"SET sql_mode = 'ANSI_QUOTES'", ansi, `SELECT "a\" FROM other; UPDATE runs SET a = 50`},
		{"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", literal, `SELECT '\'; UPDATE runs SET a = 50 -- '`},
		{"SET sql_mode = 'ORACLE'", oracle, "BEGIN UPDATE runs SET a = 50; END"},
		{"SET sql_mode = 'ORACLE'", oracle, "DECLARE x INT; BEGIN UPDATE runs SET a = 50; END"},
		{"USE elsewhere", away, "UPDATE app.runs SET a = 50"},
		{"USE elsewhere", away, "USE app; UPDATE runs SET a = 50"},
		{"USE elsewhere", away, "CREATE OR REPLACE PROCEDURE app.p() UPDATE runs SET a = 50; CALL app.p()"},
	}
	for _, statement := range []string{
		"UPDATE .runs SET a = 50", "UPDATE/**/.runs SET a = 50", "UPDATE app . runs SET a = 50", "UPDATE app./* c */runs SET a = 50",
		"UPDATE (runs) SET a = 50", "UPDATE {oj runs LEFT JOIN other ON other.id = runs.id} SET runs.a = 50",
		"UPDATE other, runs SET runs.a = 50 WHERE runs.id = other.id", "UPDATE other JOIN runs USING (id) SET b = 50",
		"UPDATE runs AS r JOIN other AS runs ON r.id = runs.id SET r.a = 50",
		"UPDATE`runs`SET a=1e1WHERE id=1", "UPDATE runs SET a = 50 WHERE id=1e0ORDER BY id",
		"UPDATE runs SET a = 50 --\x01 c", "UPDATE runs SET a = 50 --\x7f WHERE id = 0", "UPDATE runs # c\n SET a = 50",
		"/*! UPDATE */ runs SET a = 50", "/*!99999 SELECT 1; */ UPDATE runs SET a = 50", "/*M!100000 UPDATE runs SET a = 50 */",
		"/*M!999999 SELECT 1; */ UPDATE runs SET a = 50", "UPDATE /*!99999 other SET a = 1 -- */ runs SET a = 50",
		"SELECT '/*' ; UPDATE runs SET a = 50 -- */", "SELECT 1 /*/ ; UPDATE runs SET a = 50; /*/", "SELECT 1 /* /* */ ; UPDATE runs SET a = 50 -- */",
		"SELECT 1 /*!99999 /* */ ; UPDATE runs SET a = 50 -- */ */", "SELECT 1 /*! /* */ ; UPDATE runs SET a = 50 -- */ */",
		"SELECT 1--1; UPDATE runs SET a = 50", "SELECT 1 -- 1; UPDATE runs SET a = 50\n; UPDATE runs SET a = 50",
		"SELECT 'a''' ; UPDATE runs SET a = 50 -- '", `SELECT 'a\'' ; UPDATE runs SET a = 50 -- '`, `SELECT "a\\" ; UPDATE runs SET a = 50 -- "`,
		"SELECT 1 AS `a``b`; UPDATE runs SET a = 50 -- `", "SELECT @`a;`, @'b;', @\"c;\"; UPDATE runs SET a = 50",
		"DELETE FROM .runs", "DELETE runs FROM runs", "DELETE r FROM runs r JOIN other o ON o.id = r.id", "DELETE FROM r USING runs r",
		"DELETE runs.* FROM runs, other WHERE runs.id = other.id", "DELETE app.runs FROM runs", "DELETE FROM runs LIMIT 1 RETURNING id",
		"INSERT .runs (id) VALUES (50)", "INSERT runs SET id = 50", "INSERT IGNORE runs (id) VALUES (50)", "REPLACE runs (id) VALUES (50)",
		"INSERT LOW_PRIORITY INTO runs (id) SELECT 50", "REPLACE LOW_PRIORITY INTO app.runs (id) VALUES (50)", "INSERT INTO runs (id) VALUES (50) RETURNING id",
		"INSERT INTO runs (id) WITH c AS (SELECT 50) SELECT * FROM c", "INSERT INTO runs (id) VALUES (1) ON DUPLICATE KEY UPDATE a = 50",
		"SET STATEMENT max_statement_time = 10 FOR UPDATE runs SET a = 50", "SET STATEMENT max_statement_time = 10, sort_buffer_size = 100000 FOR DELETE FROM runs",
		"SET STATEMENT max_statement_time = 10 FOR EXECUTE IMMEDIATE 'UPDATE runs SET a = 50'",
		"ANALYZE UPDATE runs SET a = 50", "ANALYZE FORMAT=JSON DELETE FROM runs",
		"EXECUTE IMMEDIATE 'UPDATE runs SET a = 50'", `EXECUTE IMMEDIATE 'UPDATE r\uns SET a = 50'`, "EXECUTE IMMEDIATE CONCAT('UPDATE ru', 'ns SET a = 50')",
		"EXECUTE IMMEDIATE 'UPDATE ru' 'ns SET a = 50'", "SET @x = CONCAT('UPDATE ru', 'ns SET a = 50'); PREPARE s FROM @x; EXECUTE s",
		"PREPARE s FROM 'UPDATE runs SET a = 50'; EXECUTE s", "SELECT 1; EXECUTE IMMEDIATE CONCAT('UPDATE ru', 'ns SET a = 50')",
		"BEGIN NOT ATOMIC UPDATE runs SET a = 50; END", "BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT('UPDATE ru', 'ns SET a = 50'); END",
		"IF 1 THEN UPDATE runs SET a = 50; END IF", "l: LOOP UPDATE runs SET a = 50; LEAVE l; END LOOP", "CASE WHEN 1 THEN DELETE FROM runs; END CASE",
		"FOR i IN 1..2 DO UPDATE runs SET a = 50; END FOR", "WHILE (SELECT MAX(a) FROM runs) < 50 DO UPDATE runs SET a = 50; END WHILE",
		"SET sql_mode = 'ANSI_QUOTES'; UPDATE \"runs\" SET a = 50", "TRUNCATE runs", "ALTER TABLE runs MODIFY b BIGINT, ADD COLUMN z INT DEFAULT 50",
	} {
		attempts = append(attempts, attempt{"DO 0", usual, statement})
	}
	w := newWorld(t)
	changed := 0
	for _, a := range attempts {
		w.reset(t)
		before := w.contents(t, "app.runs")
		c := w.conn(t, "?multiStatements=true", 7, a.settings)
		_, runErr := c.ExecContext(t.Context(), a.sql)
		if w.contents(t, "app.runs") == before {
			t.Logf("not written by %q: %v", a.sql, runErr)
			continue
		}
		changed++
		if p := w.rules.Plan(a.facts, a.sql); p.Kind == rewrite.Pass {
			t.Errorf("%q writes app.runs, and its plan is to pass: %s", a.sql, p.Why)
		}
		if !w.rules.Mentions([]byte(a.sql)) {
			t.Errorf("%q writes app.runs, and passes unread", a.sql)
		}
	}
	if changed < 55 {
		t.Errorf("only %d of %d statements wrote anything: is the list still right?", changed, len(attempts))
	}
}

// TestFoldedNamesAreTheServers: with lower_case_table_names=1 the server folds
// more than ASCII.
func TestFoldedNamesAreTheServers(t *testing.T) {
	w := newWorld(t, "--lower-case-table-names=1")
	w.exec(t, "CREATE TABLE app.kicks (id INT)")
	rules, err := rewrite.NewRules(leaseTable, []rewrite.Rule{{Table: rewrite.Table{Schema: "app", Name: "kicks"}, Lease: "job"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := w.conn(t, "?charset=utf8mb4", 7)
	s := rewrite.Session{Database: "app", Charset: "utf8mb4", LowerCaseTableNames: 1}
	for _, name := range []string{"kicks", "KICKS", "\u212aicks", "k\u0130cks", "k\u0131cks", "k\u00edcks", "kick\u017f", "APP.Kicks", "`kicks`"} {
		statement := "INSERT INTO " + name + " VALUES (1)"
		_, err := c.ExecContext(t.Context(), statement)
		if exists, guarded := err == nil, rules.Plan(s, statement).Kind != rewrite.Pass; exists && !guarded {
			t.Errorf("%q is the protected table to the server, and not to the plan", name)
		}
		if err == nil && !rules.Mentions([]byte(statement)) {
			t.Errorf("%q is the protected table to the server, and passes unread", name)
		}
	}
}

// contents are a table's rows and columns as text.
func (w *world) contents(t *testing.T, table string) string {
	t.Helper()
	rows, err := w.admin.Query("SELECT * FROM " + table + " ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := rowsText(rows)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// rowsText is the text of the rows of a result, with its columns.
func rowsText(rows *sql.Rows) (string, error) {
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintln(&b, strings.Join(columns, "|"))
	values := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return "", err
		}
		for _, v := range values {
			switch {
			case !v.Valid:
				b.WriteString("NULL|")
			case strings.HasPrefix(v.String, "20") && len(v.String) > len("2020-01-01 00:00:00") && !strings.HasPrefix(v.String, "2020-01-01"):
				b.WriteString("now|")
			default:
				b.WriteString(v.String + "|")
			}
		}
		b.WriteByte('\n')
	}
	return b.String(), rows.Err()
}

// TestASplicedGuardKeepsTheMeaning runs statements as they are, and as their plan
// has them by the lease's holder: affected rows, errors, warnings, rows, triggers
// and variables must be the same.
func TestASplicedGuardKeepsTheMeaning(t *testing.T) {
	statements := []string{
		"UPDATE runs SET a = 9 WHERE id = 1", "UPDATE runs SET a = 9", "UPDATE runs SET s = 'abc', u = 77 WHERE id = 2", "UPDATE runs SET b = 3",
		"UPDATE runs SET a = 7.5, s = 12345 WHERE id < 4", "UPDATE runs SET s = '' WHERE k = 1", "UPDATE runs SET k = 9 WHERE k = 1",
		"UPDATE runs SET u = 4 WHERE u < 4", "UPDATE runs SET s = 'toolong' WHERE id <= 3", "UPDATE runs SET e = 'zzz' WHERE id > 1",
		"UPDATE runs SET d = '2020-01-01 10:11:12' WHERE id < 3", "UPDATE runs AS r SET r.a = 9 WHERE r.id = 1", "UPDATE app.runs SET app.runs.a = 9",
		"UPDATE runs USE INDEX (k) SET b = 3 WHERE k = 1", "UPDATE LOW_PRIORITY runs SET b = 3", "UPDATE runs SET b = 3 WHERE nosuch = 1",
		"UPDATE runs SET b = 1 WHERE s LIKE 'z%' OR id = 1", "UPDATE runs SET touched = '2020-01-01' WHERE id = 1",
		"UPDATE runs SET a = NULL", "UPDATE runs SET a = NULL WHERE id <= 3", "UPDATE runs SET a = NULLIF(a, 2)", "UPDATE runs SET a = 1/0 WHERE id < 3",
		"UPDATE runs SET a = a + 1, b = a", "UPDATE runs SET a = 5, b = g", "UPDATE runs SET a = 1, a = 9 WHERE id = 1", "UPDATE runs SET a = DEFAULT, b = DEFAULT(a)",
		"UPDATE runs SET b = (@n := COALESCE(@n, 0) + 1)", "UPDATE runs SET b = (@n := COALESCE(@n, 0) + 1) WHERE k > 0 ORDER BY id DESC",
		"UPDATE runs SET k = k + 1 WHERE k >= 1", "UPDATE runs SET id = id + 1", "UPDATE runs SET id = id + 1 ORDER BY id DESC", "UPDATE runs SET g = 3 WHERE id = 1",
		"UPDATE runs SET b = 3 ORDER BY id DESC LIMIT 2", "UPDATE runs SET b = 3 LIMIT 0", "UPDATE IGNORE runs SET u = 4 WHERE id < 3",
		"UPDATE runs SET b = (SELECT MAX(b) + 1 FROM runs) WHERE id = 1", "UPDATE runs SET b = 9 WHERE id IN (SELECT id FROM other)",
		"UPDATE runs SET b = LAST_INSERT_ID(b + 5) WHERE id = 2", "UPDATE runs SET b = 1 WHERE fence_token = 7",
		"UPDATE runs, other SET runs.a = other.a + 1, other.a = 9 WHERE runs.id = other.id", "UPDATE runs JOIN other USING (id) SET runs.a = NULL",
		"UPDATE runs LEFT JOIN other ON other.id = runs.id SET runs.b = COALESCE(other.a, 0)", "UPDATE IGNORE runs JOIN other USING (id) SET runs.u = 4",
		"DELETE FROM runs", "DELETE FROM runs WHERE id = 1 OR id = 2", "DELETE FROM runs ORDER BY id DESC LIMIT 2", "DELETE FROM runs WHERE nosuch = 1",
		"DELETE FROM runs WHERE id = (SELECT MAX(id) FROM runs)", "DELETE IGNORE FROM runs WHERE id IN (SELECT id FROM other)",
		"DELETE runs FROM runs JOIN other USING (id)", "DELETE runs, other FROM runs JOIN other USING (id) WHERE runs.id > 1",
		"DELETE FROM r USING runs AS r JOIN other AS o ON r.id = o.id WHERE r.a = 1 OR o.a = 20", "DELETE QUICK FROM runs WHERE k = 1",
	}
	w := newWorld(t)
	s := rewrite.Session{Database: "app", Charset: "utf8mb4", Autocommit: true}
	for _, mode := range []string{"STRICT_TRANS_TABLES", ""} {
		for _, parameters := range []string{"", "?clientFoundRows=true"} {
			for _, statement := range statements {
				p := w.rules.Plan(s, statement)
				if p.Text == "" {
					t.Errorf("%s: %v, %s", statement, p.Kind, p.Why)
					continue
				}
				mode := "SET sql_mode = '" + mode + "'"
				got, want := w.observe(t, parameters, mode, p.Text), w.observe(t, parameters, mode, statement)
				if p.Kind == rewrite.Join {
					// Errors name the temporary table of a multi-table UPDATE.
					got = strings.ReplaceAll(got, "``.`(temporary)`.", "`app`.`runs`.")
				}
				if got != want {
					t.Errorf("%s %s as %s\n%s\nis\n%s\nnot\n%s", mode, parameters, p.Kind, statement, got, want)
				}
			}
		}
	}
}

// observe runs a statement on fresh rows and writes down all that it did.
func (w *world) observe(t *testing.T, parameters, mode, statement string) string {
	t.Helper()
	w.reset(t)
	c := w.conn(t, parameters, 7, mode)
	var b strings.Builder
	result, err := c.ExecContext(t.Context(), statement)
	var fromServer *mysql.MySQLError
	switch {
	case errors.As(err, &fromServer):
		fmt.Fprintln(&b, fromServer)
	case err != nil:
		t.Fatalf("%s: %v", statement, err)
	default:
		affected, _ := result.RowsAffected()
		id, _ := result.LastInsertId()
		fmt.Fprintf(&b, "%d rows, id %d\n", affected, id)
	}
	for _, question := range []string{"SHOW WARNINGS", "SELECT ROW_COUNT(), LAST_INSERT_ID(), @n"} {
		rows, err := c.QueryContext(t.Context(), question)
		if err != nil {
			t.Fatal(err)
		}
		text, err := rowsText(rows)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(text)
	}
	for _, table := range []string{"app.runs", "app.other"} {
		b.WriteString(w.contents(t, table))
	}
	b.WriteString(w.logged(t))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// logged is what the trigger wrote, in order.
func (w *world) logged(t *testing.T) string {
	t.Helper()
	rows, err := w.admin.Query("SELECT m FROM app.log ORDER BY x")
	if err != nil {
		t.Fatal(err)
	}
	text, err := rowsText(rows)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAGuardHoldsTheLeaseUntilTheTransactionEnds: whatever the form and the
// isolation level, a takeover waits for a transaction whose guard has passed, and
// a statement of a stale session changes nothing.
func TestAGuardHoldsTheLeaseUntilTheTransactionEnds(t *testing.T) {
	statements := []string{
		"UPDATE runs SET a = 9 WHERE id = 1", "UPDATE runs SET a = 9", "UPDATE runs SET a = a + 1 WHERE id = 1", "UPDATE runs SET a = a + 1",
		"UPDATE runs SET a = 9 ORDER BY id LIMIT 1", "UPDATE IGNORE runs SET a = 9 WHERE k = 1",
		"UPDATE runs JOIN other USING (id) SET runs.a = 9", "UPDATE runs LEFT JOIN other USING (id) SET runs.a = 9, other.a = 9", "UPDATE IGNORE runs, other SET runs.a = 9",
		"UPDATE runs SET b = (SELECT MAX(a) FROM other) WHERE id IN (SELECT id FROM other)",
		"DELETE FROM runs WHERE id = 1", "DELETE FROM runs", "DELETE FROM runs ORDER BY id DESC LIMIT 1", "DELETE IGNORE FROM runs LIMIT 1",
		"DELETE runs FROM runs JOIN other USING (id)", "DELETE r FROM runs AS r", "DELETE FROM r USING runs AS r LEFT JOIN other o ON o.id = r.id WHERE o.id IS NULL",
		"INSERT INTO runs (id) VALUES (50)",
	}
	w := newWorld(t)
	for _, level := range []string{"REPEATABLE READ", "READ COMMITTED"} {
		for _, statement := range statements {
			t.Run(level+" "+statement, func(t *testing.T) {
				w.holds(t, level, statement)
				w.isStale(t, level, statement)
			})
		}
	}
}

func (w *world) holds(t *testing.T, level, statement string) {
	t.Helper()
	w.reset(t)
	holder := w.conn(t, "", 7, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
	defer func() { _ = holder.Close() }()
	tx, err := holder.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.send(t, tx, statement); n == 0 {
		t.Fatal("the holder's statement changed nothing")
	}
	takenOver := make(chan error, 1)
	go func() {
		_, err := w.admin.Exec("UPDATE app.fenced_job_leases SET fence_token = 8 /* takeover */")
		takenOver <- err
	}()
	dbtest.WaitForLockWait(t, w.admin, "takeover")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-takenOver; err != nil {
		t.Fatal(err)
	}
}

// isStale lets the session read the lease first, so that it has an old snapshot.
func (w *world) isStale(t *testing.T, level, statement string) {
	t.Helper()
	w.reset(t)
	stale := w.conn(t, "", 7, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
	defer func() { _ = stale.Close() }()
	tx, err := stale.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var token int
	if err := tx.QueryRow("SELECT fence_token FROM app.fenced_job_leases").Scan(&token); err != nil || token != 7 {
		t.Fatalf("token %d, %v", token, err)
	}
	w.exec(t, "UPDATE app.fenced_job_leases SET fence_token = 8")
	before := w.contents(t, "app.runs")
	if n := w.send(t, tx, statement); n != 0 {
		t.Errorf("the stale statement changed %d rows", n)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if after := w.contents(t, "app.runs"); after != before {
		t.Errorf("a stale write landed:\n%s", after)
	}
}

// send carries out the plan of a statement, and tells how many rows it changed.
func (w *world) send(t *testing.T, tx *sql.Tx, statement string) int64 {
	t.Helper()
	p := w.rules.Plan(rewrite.Session{Database: "app", Charset: "utf8mb4"}, statement)
	text := p.Text
	switch p.Kind {
	case rewrite.Join, rewrite.Exists:
	case rewrite.Bracket:
		var one int
		if err := tx.QueryRow(p.Guard).Scan(&one); errors.Is(err, sql.ErrNoRows) {
			return 0
		} else if err != nil {
			t.Fatal(err)
		}
		text = statement
	case rewrite.Pass, rewrite.Refuse:
		t.Fatalf("%v: %s", p.Kind, p.Why)
	}
	result, err := tx.ExecContext(context.Background(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestEndOfAgreesWithTheServer runs statements in an open transaction and looks
// whether it is still open.
func TestEndOfAgreesWithTheServer(t *testing.T) {
	w := newWorld(t)
	w.exec(t, "CREATE TABLE app.victim (id INT)")
	for _, statement := range []string{
		"COMMIT", "COMMIT WORK", "commit and no chain", "ROLLBACK", "ROLLBACK WORK", "ROLLBACK AND NO CHAIN", "ROLLBACK TO SAVEPOINT s", "ROLLBACK WORK TO s",
		"SAVEPOINT t", "RELEASE SAVEPOINT s", "SELECT 1", "INSERT INTO other VALUES (77, 1)", "UPDATE other SET a = 1", "DELETE FROM other", "REPLACE INTO other VALUES (1, 1)",
		"CREATE TABLE x1 (id INT)", "CREATE OR REPLACE TABLE x2 (id INT)", "CREATE TEMPORARY TABLE x3 (id INT)", "CREATE OR REPLACE TEMPORARY TABLE x4 (id INT)",
		"DROP TABLE IF EXISTS nosuch", "DROP TEMPORARY TABLE IF EXISTS nosuch", "ALTER TABLE victim ADD COLUMN b INT", "TRUNCATE victim", "RENAME TABLE victim TO victim",
		"CREATE INDEX i ON victim (id)", "DROP INDEX i ON victim", "CREATE OR REPLACE VIEW v AS SELECT 1", "DROP VIEW IF EXISTS v",
		"CREATE OR REPLACE PROCEDURE p1() SELECT 1", "DROP PROCEDURE IF EXISTS p1", "CREATE DATABASE IF NOT EXISTS x", "DROP DATABASE IF EXISTS x",
		"CREATE OR REPLACE USER u", "DROP USER u", "GRANT SELECT ON app.victim TO CURRENT_USER", "SET PASSWORD = ''",
		"LOCK TABLES victim READ", "UNLOCK TABLES", "FLUSH TABLES", "FLUSH STATUS", "ANALYZE TABLE victim", "OPTIMIZE TABLE victim", "CHECK TABLE victim", "REPAIR TABLE victim",
		"ANALYZE SELECT 1", "ANALYZE UPDATE other SET a = 3", "CHECKSUM TABLE victim", "SET autocommit = 1", "SET SESSION autocommit = ON", "SET autocommit = 0", "SET @x = 1", "SET sql_mode = ''",
		"PREPARE q FROM 'SELECT 1'", "DEALLOCATE PREPARE q2", "DO 1", "SHOW TABLES", "USE app", "DESC victim", "EXPLAIN SELECT 1", "HANDLER victim OPEN",
		"CACHE INDEX victim IN default", "KILL QUERY 999999", "BEGIN NOT ATOMIC SELECT 1; END", "CALL nosuch()", "LOAD DATA INFILE '/nosuch' INTO TABLE victim", "RESET QUERY CACHE",
	} {
		for _, autocommit := range []bool{true, false} {
			// A session that is not in autocommit mode opens a transaction with its
			// next read or write, so that only a row tells.
			w.reset(t)
			c := w.conn(t, "", 7, fmt.Sprintf("SET autocommit = %v", autocommit), "START TRANSACTION", "INSERT INTO other VALUES (50, 50)", "SAVEPOINT s")
			_, runErr := c.ExecContext(t.Context(), statement)
			var visible bool
			if err := w.admin.QueryRow("SELECT EXISTS (SELECT 1 FROM app.other WHERE id = 50)").Scan(&visible); err != nil {
				t.Fatal(err)
			}
			var here bool
			if _, err := c.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
				t.Fatal(err)
			}
			if err := c.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT 1 FROM app.other WHERE id = 50)").Scan(&here); err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			want := rewrite.NoEnd
			switch {
			case visible:
				want = rewrite.EndCommit
			case !here && !strings.HasPrefix(statement, "DELETE"):
				want = rewrite.EndRollback
			}
			s := rewrite.Session{Database: "app", Charset: "utf8mb4", Autocommit: autocommit}
			if got := rewrite.EndOf(s, statement); got != want {
				t.Errorf("%s (autocommit %v) is %d to EndOf, and %d to the server (%v)", statement, autocommit, got, want, runErr)
			}
		}
	}
}

// TestARestoredRowCountNamesColumnsAsTheServerDoes runs both texts.
func TestARestoredRowCountNamesColumnsAsTheServerDoes(t *testing.T) {
	w := newWorld(t)
	c := w.conn(t, "", 7)
	s := rewrite.Session{Database: "app", Charset: "utf8mb4"}
	for _, statement := range []string{
		"SELECT ROW_COUNT()", "select row_count ( )", "SELECT ROW_COUNT() AS n, 1", "SELECT ROW_COUNT() n", "SELECT row_count() +  1, 'x'",
		"SELECT (SELECT ROW_COUNT())", "SELECT * FROM (SELECT ROW_COUNT(), 1) AS d", "SELECT /* a */ ROW_COUNT() /* b */ , 2 -- c",
		"SELECT ROW_COUNT() UNION SELECT ROW_COUNT()", "SELECT IF(ROW_COUNT() > 0, 'é', 'b') FROM DUAL", "SELECT DISTINCT ROW_COUNT() LIMIT 1", "SELECT `a`.* , ROW_COUNT() FROM other AS a LIMIT 1",
		"SELECT ROW_COUNT() = 0 OR 1", "SELECT CONCAT('`', ROW_COUNT())", "(SELECT ROW_COUNT())", "SELECT 1 WHERE ROW_COUNT() < 5", "WITH d AS (SELECT ROW_COUNT()) SELECT * FROM d",
		"SELECT ROW_COUNT() FROM other GROUP BY id HAVING ROW_COUNT() < 5 ORDER BY ROW_COUNT() LIMIT 1", "SELECT COUNT(*), ROW_COUNT() FROM other",
	} {
		text, ok := rewrite.RestoreRowCount(s, statement, 3)
		if !ok || strings.Contains(strings.ToLower(strings.ReplaceAll(text, "`", "")), "as n, row_count") {
			t.Errorf("%s: %q, %v", statement, text, ok)
			continue
		}
		if got, want := columnsOf(t, c, text), columnsOf(t, c, statement); got != want {
			t.Errorf("%s\nas %s has the columns %s, not %s", statement, text, got, want)
		}
	}
}

func columnsOf(t *testing.T, c *sql.Conn, statement string) string {
	t.Helper()
	rows, err := c.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	defer func() { _ = rows.Close() }()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, column := range types {
		fmt.Fprintf(&b, "%q %s ", column.Name(), column.DatabaseTypeName())
	}
	return b.String()
}
