package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// TestAStaleSessionFindsNoWayIn: each attempt is a list of statements of a session
// whose lease was taken over. Some end in an error and some do not; none may
// change the protected table.
func TestAStaleSessionFindsNoWayIn(t *testing.T) {
	f := setup(t)
	mustExec(t, f.direct, "CREATE TABLE staging LIKE runs; INSERT INTO staging (id, status) VALUES (77, 'staged')")
	a := f.acquire(time.Hour)
	b := f.takeOver(a)
	const late = "UPDATE runs SET status = 'late'"
	schema := f.schema
	// Where a backslash escapes nothing, the second table is not in a comment.
	const hidden = "UPDATE notes n JOIN (SELECT \"\\\\\" AS a) x JOIN runs r SET n.text = 1, r.status = ''late'' -- \" AS a) y SET n.text = 2"
	attempts := map[string][]string{
		"text read in swe7":           {"SET collation_connection = swe7_swedish_ci", "PREPARE s FROM '" + hidden + "'", "EXECUTE s"},
		"immediate text in swe7":      {"SET collation_connection = swe7_swedish_ci", "EXECUTE IMMEDIATE '" + hidden + "'"},
		"text under another mode":     {"SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES' FOR PREPARE s FROM '" + hidden + "'", "EXECUTE s"},
		"immediate, another mode":     {"SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES' FOR EXECUTE IMMEDIATE '" + hidden + "'"},
		"plain":                       {late},
		"qualified":                   {"UPDATE " + schema + ".runs SET status = 'late'"},
		"quoted":                      {"UPDATE `" + schema + "` . `runs` SET status = 'late'"},
		"comments":                    {"/* a */ UPDATE -- b\n runs # c\n SET status = 'late' /* d */"},
		"executable comment":          {"UPDATE runs SET /*!50000 status = 'late' */ /*!999999 , n = 1 */"},
		"executable verb":             {"/*!50000 UPDATE */ runs SET status = 'late'"},
		"MariaDB's own comment":       {"UPDATE /*M!100000 runs */ SET status = 'late'"},
		"another default database":    {"USE mysql", "UPDATE " + schema + ".runs SET status = 'late'"},
		"back to the database":        {"USE mysql", "USE " + schema, late},
		"ANSI quotes":                 {"SET sql_mode = 'ANSI_QUOTES'", `UPDATE "runs" SET status = 'late'`},
		"no backslash escapes":        {"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", `UPDATE runs SET status = 'late', n = LENGTH('\')`},
		"gbk":                         {"SET NAMES gbk", "UPDATE runs SET status = 'late' WHERE '\xbf\\' <> ''"},
		"gbk, hidden behind a string": {"SET NAMES gbk", "SELECT '\xbf\\'; " + late + " -- '"},
		"sjis":                        {"SET NAMES sjis", "UPDATE runs SET status = 'late' WHERE '\x83\\' <> ''"},
		"several statements":          {"DO 1; " + late},
		"several, behind a string":    {"SELECT 'a\\'; -- '; " + late},
		"SQL-level prepare":           {"PREPARE s FROM \"" + late + "\"", "EXECUTE s"},
		"prepare from a variable":     {"SET @s = CONCAT('UPDATE ru', 'ns SET status = ''late''')", "PREPARE s FROM @s", "EXECUTE s"},
		"prepare, then another base":  {"USE mysql", "PREPARE s FROM 'UPDATE runs SET status = 1'", "USE " + schema, "EXECUTE s"},
		"execute immediate":           {"EXECUTE IMMEDIATE CONCAT('UPDATE ru', 'ns SET status = ''late''')"},
		"compound statement":          {"BEGIN NOT ATOMIC " + late + "; END"},
		"compound, built":             {"BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT('UPDATE ru', 'ns SET status = ''late'''); END"},
		"SET STATEMENT":               {"SET STATEMENT max_statement_time = 9 FOR " + late},
		"SET STATEMENT timestamp":     {"SET STATEMENT timestamp = 1 FOR " + late},
		"forged clock":                {"SET timestamp = 1", late},
		"forged select limit":         {"SET sql_select_limit = 0", "INSERT INTO runs (status) VALUES ('late')"},
		"analyze":                     {"ANALYZE " + late},
		"forged lease table":          {"CREATE TEMPORARY TABLE fenced_job_leases LIKE fenced_job_leases"},
		"insert":                      {"INSERT INTO runs (status) VALUES ('late')"},
		"insert from a table":         {"INSERT INTO runs (status) SELECT 'late' FROM staging"},
		"insert and return":           {"INSERT INTO runs (status) VALUES ('late') RETURNING id"},
		"upsert":                      {"INSERT INTO runs (id) VALUES (1) ON DUPLICATE KEY UPDATE status = 'late'"},
		"replace":                     {"REPLACE INTO runs (id, status) VALUES (1, 'late')"},
		"delete":                      {"DELETE FROM runs"},
		"delete and return":           {"DELETE FROM runs RETURNING id"},
		"delete through a join":       {"DELETE r FROM runs r JOIN staging s"},
		"update through a join":       {"UPDATE staging s JOIN runs r SET r.status = 'late'"},
		"truncate":                    {"TRUNCATE runs"},
		"drop":                        {"DROP TABLE runs"},
		"rename over":                 {"RENAME TABLE runs TO gone, staging TO runs"},
		"exchange":                    {"ALTER TABLE staging RENAME TO runs"},
		"create or replace":           {"CREATE OR REPLACE TABLE runs (id INT)"},
		"drop the database":           {"DROP DATABASE " + schema},
		"in a transaction":            {"BEGIN", late, "COMMIT"},
		"after the rejection":         {"BEGIN", late, late, "INSERT INTO runs (status) VALUES ('late')", "COMMIT", late},
		"end and write in a batch":    {"BEGIN", late, "ROLLBACK; " + late},
		"through a savepoint":         {"BEGIN", "SAVEPOINT s", late, "ROLLBACK TO s", late, "COMMIT"},
		"without autocommit":          {"SET autocommit = 0", late, "SET autocommit = 1", late},
		"read uncommitted":            {"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "BEGIN", late, "COMMIT"},
		"serializable":                {"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN", late, "COMMIT"},
		"locked tables":               {"LOCK TABLES runs WRITE", late, "UNLOCK TABLES"},
		"locked with the lease":       {"LOCK TABLES runs WRITE, fenced_job_leases READ, fenced_job_leases AS __fence READ", late, "UNLOCK TABLES"},
		"binlog event":                {"BINLOG 'runs'"},
		"assigned while it is asked":  {fmt.Sprintf("UPDATE runs SET status = 'late' WHERE (@fence_token := %d) AND (@fence_owner := '%s') = '%s'", b.Token, a.Owner, a.Owner)},
	}
	rows := func() string {
		t.Helper()
		plain := &client{t: t, conn: mustConn(f)}
		return plain.outcome("SELECT * FROM runs ORDER BY id", false)
	}
	want := rows()
	for name, statements := range attempts {
		for _, prepared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, prepared %v", name, prepared), func(t *testing.T) {
				c := f.worker(a, "multiStatements=true")
				rejected := false
				for _, s := range statements {
					err := c.attempt(s, prepared)
					var e *mysql.MySQLError
					rejected = rejected || asMySQL(err, &e) && strings.Contains(e.Message, "fenceproxy")
				}
				_ = c.try("COMMIT")
				if got := rows(); got != want {
					t.Fatalf("the table changed to\n%s", got)
				}
				if !rejected && !strings.HasPrefix(name, "prepare, then") && !strings.HasPrefix(name, "several, behind") {
					t.Error("the client was not told")
				}
			})
		}
	}
}

// attempt runs a statement by either protocol, whatever it returns.
func (c *client) attempt(statement string, prepared bool) error {
	if !prepared {
		return c.try(statement)
	}
	st, err := c.conn.PrepareContext(context.Background(), statement)
	if err != nil {
		// What the server does not prepare is sent as text.
		return c.try(statement)
	}
	defer func() { _ = st.Close() }()
	_, err = st.ExecContext(context.Background())
	return err
}

func TestAClockForgedAfterThePreparationCounts(t *testing.T) {
	f := setup(t)
	c := f.worker(f.acquire(time.Hour))
	ctx := context.Background()
	for _, text := range []string{"UPDATE runs SET status = 'late' WHERE id = ?", "INSERT INTO runs (n) VALUES (?)"} {
		st, err := c.conn.PrepareContext(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		mustExec(t, f.direct, "UPDATE fenced_job_leases SET leased_until = CURRENT_TIMESTAMP(3) - INTERVAL 1 SECOND")
		c.exec("SET timestamp = 1")
		_, err = st.ExecContext(ctx, 1)
		wantRejected(t, err, "SET timestamp")
		c.exec("SET timestamp = DEFAULT")
		_, err = st.ExecContext(ctx, 1)
		wantRejected(t, err, "expired")
	}
	if got := f.status(1); got != "running" {
		t.Errorf("status %q", got)
	}
}
