package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// TestAGuardedWriteKeepsItsMeaning runs each statement twice: straight at the
// server, and through the proxy by the holder, on tables alike. What the client
// can see afterwards must not differ.
func TestAGuardedWriteKeepsItsMeaning(t *testing.T) {
	statements := []string{
		"UPDATE runs SET status = 'done' WHERE id = 1",
		"UPDATE runs SET status = 'running' WHERE id <= 3",
		"UPDATE runs SET n = n + 1, status = CONCAT(n, status) WHERE id <= 3",
		"UPDATE runs SET status = 'last' ORDER BY id DESC LIMIT 1",
		"UPDATE IGNORE runs SET n = 20 WHERE id <= 3",
		"UPDATE runs SET n = 20 WHERE id = 1",
		"UPDATE runs SET n = 'twelve' WHERE id = 1",
		"UPDATE runs AS r JOIN notes ON notes.id = r.id SET r.status = 'joined', notes.text = 'x'",
		"DELETE FROM runs WHERE id = 2",
		"DELETE FROM runs ORDER BY id LIMIT 2",
		"DELETE r FROM runs AS r JOIN notes ON notes.id = r.id",
		"DELETE FROM runs WHERE id = 3 RETURNING id, status",
		"INSERT INTO runs (status, n) VALUES ('one', 41)",
		"INSERT INTO runs (status, n) VALUES ('one', 41), ('two', 42), ('three', 43)",
		"INSERT INTO runs SET status = DEFAULT, n = 44",
		"INSERT INTO runs (n) VALUES (20)",
		"INSERT IGNORE INTO runs (n) VALUES (20), (45)",
		"INSERT INTO runs (id, n) VALUES (1, 10) ON DUPLICATE KEY UPDATE status = 'again'",
		"INSERT INTO runs (status, n) SELECT text, 46 FROM notes",
		"INSERT INTO runs (status, n) VALUES ('r', 47) RETURNING id, status",
		"INSERT INTO runs VALUES (NULL, 'all', 48)",
		"REPLACE INTO runs (id, status, n) VALUES (1, 'replaced', 10)",
		"REPLACE INTO runs (id, status, n) VALUES (1, 'replaced', 20)",
		"INSERT INTO runs (status, n) VALUES (REPEAT('x', 100), 49)",
		"INSERT INTO runs (status, n) VALUES (NULL, 50)",
		"UPDATE runs SET nosuch = 1",
		"UPDATE runs SET status 'syntax'",
	}
	for _, mode := range []string{"STRICT_TRANS_TABLES", ""} {
		for _, parameters := range []string{"", "clientFoundRows=true"} {
			for _, begin := range []string{"DO 0", "START TRANSACTION"} {
				t.Run(fmt.Sprintf("mode %q %s %s", mode, parameters, begin), func(t *testing.T) {
					f := setup(t)
					claim := f.acquire(time.Minute)
					through := f.worker(claim, parameters)
					plain := f.connectTo(server.Addr(), parameters)
					for _, c := range []*client{through, plain} {
						c.exec("SET sql_mode = '" + mode + "'")
					}
					for _, statement := range statements {
						compare(t, f, through, plain, begin, statement)
					}
				})
			}
		}
	}
}

func compare(t *testing.T, f *fixture, through, plain *client, begin, statement string) {
	t.Helper()
	for _, prepared := range []bool{false, true} {
		got := f.observe(through, begin, statement, prepared)
		want := f.observe(plain, begin, statement, prepared)
		if got != want {
			t.Errorf("%s (prepared %v)\nthrough the proxy:\n%s\ndirectly:\n%s", statement, prepared, got, want)
		}
	}
}

// observe runs statement on fresh rows and writes down all that a client sees.
func (f *fixture) observe(c *client, begin, statement string, prepared bool) string {
	f.t.Helper()
	mustExec(f.t, f.direct, `DELETE FROM runs; ALTER TABLE runs AUTO_INCREMENT = 100;
		INSERT INTO runs (id, status, n) VALUES (1,'running',10),(2,'running',20),(3,'running',30);
		DELETE FROM notes; INSERT INTO notes (id, text) VALUES (1, 'first')`)
	c.exec(begin)
	var seen strings.Builder
	seen.WriteString(c.outcome(statement, prepared))
	for _, question := range []string{"SELECT ROW_COUNT()", "SHOW WARNINGS", "SELECT LAST_INSERT_ID(), @@in_transaction, @@autocommit"} {
		seen.WriteString(c.outcome(question, false))
	}
	c.exec("COMMIT")
	rows := &client{t: f.t, conn: mustConn(f)}
	seen.WriteString(rows.outcome("SELECT * FROM "+f.schema+".runs ORDER BY id", false))
	return seen.String()
}

func mustConn(f *fixture) *sql.Conn {
	f.t.Helper()
	conn, err := f.direct.Conn(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// outcome runs a statement and tells all of its answer: rows, affected rows,
// insert id, or error.
func (c *client) outcome(statement string, prepared bool) string {
	c.t.Helper()
	var out strings.Builder
	err := c.conn.Raw(func(dc any) error {
		return describe(&out, dc, statement, prepared)
	})
	var e *mysql.MySQLError
	switch {
	case err == nil:
	case asMySQL(err, &e):
		fmt.Fprintf(&out, "  error %d (%s) %s\n", e.Number, e.SQLState[:], e.Message)
	default:
		c.t.Fatalf("%s: %v", statement, err)
	}
	return out.String()
}

func TestRowCountAfterABracketNamesItsColumn(t *testing.T) {
	f := setup(t)
	c := f.worker(f.acquire(time.Minute))
	c.exec("INSERT INTO runs (n) VALUES (41), (42)")
	rows, err := c.conn.QueryContext(context.Background(), "SELECT ROW_COUNT(), 'ROW_COUNT()' AS text")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil || strings.Join(columns, "|") != "ROW_COUNT()|text" {
		t.Errorf("columns %v, %v", columns, err)
	}
	var n int
	var text string
	if !rows.Next() || rows.Scan(&n, &text) != nil || n != 2 || text != "ROW_COUNT()" {
		t.Errorf("ROW_COUNT() is %d, text %q", n, text)
	}
}
