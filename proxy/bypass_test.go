package proxy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/proxy"
	"github.com/fenceproxy/fenceproxy/proxy/wire"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

const lateUpdate = "UPDATE runs SET status = 'late'"

// TestAStaleClientThatSpeaksTheProtocolFindsNoWayIn: each attempt is a client that is
// the holder until it calls lose. None may change the protected table afterwards,
// and each is told.
func TestAStaleClientThatSpeaksTheProtocolFindsNoWayIn(t *testing.T) {
	prepared := func(statement, flags string) func(*rawClient, func()) error {
		return func(c *rawClient, lose func()) error {
			id, _ := c.preparedStatement(statement)
			lose()
			return c.execute(id, flags)
		}
	}
	aborted := func(then func(c *rawClient)) func(*rawClient, func()) error {
		return func(c *rawClient, lose func()) error {
			lose()
			err := c.text("BEGIN", lateUpdate)
			then(c)
			return errors.Join(err, c.text("COMMIT", lateUpdate))
		}
	}
	attempts := map[string]func(c *rawClient, lose func()) error{
		"a joined update, prepared by the holder":  prepared(lateUpdate, noCursor),
		"an update by EXISTS, prepared":            prepared("UPDATE runs SET status = 'late', n = n + 1", noCursor),
		"an update of several tables, prepared":    prepared("UPDATE runs JOIN notes SET status = 'late'", noCursor),
		"a delete, prepared":                       prepared("DELETE FROM runs", noCursor),
		"a delete from several tables, prepared":   prepared("DELETE r FROM runs r JOIN notes", noCursor),
		"an insert, prepared":                      prepared("INSERT INTO runs (status) VALUES ('late')", noCursor),
		"a replace, prepared":                      prepared("REPLACE INTO runs (id, status) VALUES (1, 'late')", noCursor),
		"SET STATEMENT, prepared":                  prepared("SET STATEMENT max_statement_time = 9 FOR "+lateUpdate, noCursor),
		"an update with a cursor":                  prepared(lateUpdate, readOnlyCursor),
		"an insert with a cursor":                  prepared("INSERT INTO runs (status) VALUES ('late')", readOnlyCursor),
		"an insert that returns rows, by a cursor": prepared("INSERT INTO runs (status) VALUES ('late') RETURNING id", readOnlyCursor),
		"executed by the id of the last one": func(c *rawClient, lose func()) error {
			c.preparedStatement(lateUpdate)
			lose()
			return c.execute("\xff\xff\xff\xff", noCursor)
		},
		"executed under another default database": func(c *rawClient, lose func()) error {
			id, _ := c.preparedStatement(lateUpdate)
			lose()
			_ = c.say(wire.ComInitDB, "mysql")
			return c.execute(id, noCursor)
		},
		"executed in a transaction that began before": func(c *rawClient, lose func()) error {
			id, _ := c.preparedStatement(lateUpdate)
			_ = c.text("START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT * FROM runs")
			lose()
			return errors.Join(c.execute(id, noCursor), c.execute(id, noCursor), c.text("COMMIT"), c.execute(id, noCursor))
		},
		"executed after its reset": func(c *rawClient, lose func()) error {
			id, _ := c.preparedStatement(lateUpdate)
			lose()
			return errors.Join(c.say(wire.ComStmtReset, id), c.execute(id, noCursor))
		},
		"long data and execution in one go": func(c *rawClient, lose func()) error {
			id, _ := c.preparedStatement("UPDATE runs SET status = ?")
			lose()
			c.silent(wire.ComStmtSendLongData, id+"\x00\x00late")
			return c.execute(id, noCursor+executeTail+"\x00\x01\xfc\x00")
		},
		"all commands in one go": func(c *rawClient, lose func()) error {
			lose()
			return errors.Join(c.pipeline(query("BEGIN"), query(lateUpdate), query("COMMIT"), query(lateUpdate), query("ROLLBACK"), query("INSERT INTO runs (n) VALUES (77)"))...)
		},
		"a character set changed in one go with the write": func(c *rawClient, lose func()) error {
			lose()
			return errors.Join(c.pipeline(query("SET NAMES gbk"), query("UPDATE runs SET status = 'late' WHERE '\xbf\\' <> '' -- '"))...)
		},
		"big5, hidden behind a string": func(c *rawClient, lose func()) error {
			lose()
			return errors.Join(c.text("SET NAMES big5"), c.text("SELECT '\xa5\\'; "+lateUpdate+" -- '"))
		},
		"several statements, allowed later": func(c *rawClient, lose func()) error {
			lose()
			return errors.Join(c.say(wire.ComSetOption, "\x00\x00"), c.text("DO 1; "+lateUpdate))
		},
		"after COM_RESET_CONNECTION": func(c *rawClient, lose func()) error {
			lose()
			return errors.Join(c.say(wire.ComResetConnection, ""), c.text(lateUpdate))
		},
		"prepared before COM_RESET_CONNECTION": func(c *rawClient, lose func()) error {
			id, _ := c.preparedStatement(lateUpdate)
			lose()
			return errors.Join(c.say(wire.ComResetConnection, ""), c.execute(id, noCursor), c.text(lateUpdate))
		},
		"a reset that ends the aborted transaction": aborted(func(c *rawClient) { _ = c.say(wire.ComResetConnection, "") }),
		"another database within it":                aborted(func(c *rawClient) { _ = c.say(wire.ComInitDB, "mysql") }),
		"prepared and executed within it": aborted(func(c *rawClient) {
			id, _ := c.preparedStatement("INSERT INTO runs (status) VALUES ('late')")
			_ = c.execute(id, noCursor)
		}),
		"a new transaction chained to it": aborted(func(c *rawClient) { _ = c.text("ROLLBACK AND CHAIN", lateUpdate) }),
		"ended, with a write behind":      aborted(func(c *rawClient) { _ = c.text("ROLLBACK -- \n; " + lateUpdate) }),
		"ended in a comment":              aborted(func(c *rawClient) { _ = c.text("/*! ROLLBACK */; " + lateUpdate) }),
		"autocommit turned off within it": aborted(func(c *rawClient) { _ = c.text("SET autocommit = 0", lateUpdate, "SET autocommit = 1") }),
		"a NUL byte behind it":            func(c *rawClient, lose func()) error { lose(); return c.text(lateUpdate + "\x00") },
		"a semicolon before it":           func(c *rawClient, lose func()) error { lose(); return c.text(";"+lateUpdate, lateUpdate) },
		"behind a megabyte of comment": func(c *rawClient, lose func()) error {
			lose()
			return c.text("/*" + strings.Repeat(" ", 1<<20) + "*/ " + lateUpdate)
		},
		"a no-break space for a space": func(c *rawClient, lose func()) error {
			lose()
			return errors.Join(c.text("SET NAMES latin1"), c.text("UPDATE\xa0runs SET\xa0status = 'late'"), c.text(lateUpdate))
		},
		"a mode that an expression sets": func(c *rawClient, lose func()) error {
			lose()
			return c.text("SET @@session.sql_mode := CONCAT('ANSI', '_QUOTES')", `UPDATE "runs" SET status = 'late'`)
		},
		"a temporary table of its name": func(c *rawClient, lose func()) error {
			lose()
			return errors.Join(c.text("CREATE TEMPORARY TABLE runs (id INT, status TEXT)"), c.text("DROP TEMPORARY TABLE IF EXISTS runs", lateUpdate))
		},
	}
	f := setup(t)
	mustExec(t, f.direct, "INSERT INTO notes (text) VALUES ('a')")
	for name, attempt := range attempts {
		t.Run(name, func(t *testing.T) {
			a := f.acquire(time.Hour)
			c, _ := f.login(0, "fence_owner", a.Owner, "fence_token", fmt.Sprint(a.Token))
			c.t = t
			mustExec(t, f.direct, "DELETE FROM runs; INSERT INTO runs (id, status, n) VALUES (1,'running',10),(2,'running',20)")
			want := f.rowsOfRuns()
			var b lease.Claim
			err := attempt(c, func() { b = f.takeOver(a) })
			_ = c.text("COMMIT")
			if got := f.rowsOfRuns(); got != want {
				t.Errorf("the table changed to\n%s", got)
			}
			if err == nil || !strings.Contains(err.Error(), "fenceproxy") {
				t.Errorf("the client was told: %v", err)
			}
			if err := f.leases.Release(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// rowsOfRuns is the protected table, read straight from the server.
func (f *fixture) rowsOfRuns() string {
	f.t.Helper()
	conn := mustConn(f)
	defer func() { _ = conn.Close() }()
	return (&client{t: f.t, conn: conn}).outcome("SELECT * FROM runs ORDER BY id", false)
}

// TestATextIsJudgedForEveryTimeThatItIsRead: the server reads a prepared text again
// when a table has changed, in the character set of that time. In gbk the backslash
// belongs to the character before it, so that the string ends and names runs.
func TestATextIsJudgedForEveryTimeThatItIsRead(t *testing.T) {
	const text = "UPDATE notes n JOIN (SELECT \"\u4e2d\\\" AS a) x JOIN runs r SET n.text = 1, r.status = 'late' -- \" AS a) y SET n.text = 2"
	prepare := map[string]func(c *rawClient) (execute func() error){
		"by the binary protocol": func(c *rawClient) func() error {
			id, _ := c.preparedStatement(text)
			return func() error { return c.execute(id, noCursor) }
		},
		"by PREPARE": func(c *rawClient) func() error {
			_ = c.text("PREPARE s FROM '" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(text) + "'")
			return func() error { return c.text("EXECUTE s") }
		},
	}
	for name, prepare := range prepare {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			mustExec(t, f.direct, "INSERT INTO notes (text) VALUES ('a')")
			c, _ := f.login(0)
			execute := prepare(c)
			_ = c.text("SET NAMES gbk")
			for _, change := range []string{"ADD COLUMN more INT", "DROP COLUMN more"} {
				mustExec(t, f.direct, "ALTER TABLE notes "+change)
				_ = execute()
			}
			if got := f.status(1); got != "running" {
				t.Errorf("status %q", got)
			}
		})
	}
}

// TestAGuardedBranchIsNotPreparedForLater: XA PREPARE lets go of the guard's shared lock and
// keeps what was written, so that a takeover could come before XA COMMIT.
func TestAGuardedBranchIsNotPreparedForLater(t *testing.T) {
	ways := map[string]func(c *rawClient) error{
		"as text":           func(c *rawClient) error { return c.text("XA PREPARE 'x'") },
		"in a packet":       func(c *rawClient) error { return c.text("XA END 'x'; XA PREPARE 'x'") },
		"EXECUTE IMMEDIATE": func(c *rawClient) error { return c.text("EXECUTE IMMEDIATE 'XA PREPARE ''x'''") },
		"in a comment":      func(c *rawClient) error { return c.text("XA /*! PREPARE */ 'x'") },
		"prepared": func(c *rawClient) error {
			id, _ := c.preparedStatement("XA PREPARE 'x'")
			return c.execute(id, noCursor)
		},
	}
	for name, way := range ways {
		for _, write := range []string{lateUpdate, "INSERT INTO runs (status) VALUES ('late')"} {
			t.Run(name+", "+write, func(t *testing.T) {
				f := setup(t)
				a := f.acquire(time.Hour)
				c, _ := f.login(0, "fence_owner", a.Owner, "fence_token", fmt.Sprint(a.Token))
				if err := c.text("XA START 'x'", write); err != nil {
					t.Fatal(err)
				}
				if name != "in a packet" {
					_ = c.text("XA END 'x'")
				}
				if err := way(c); err == nil || !strings.Contains(err.Error(), "fenceproxy") {
					t.Fatalf("got %v, want a refusal", err)
				}
				c.wantClosed() // only XA statements could have ended the branch
				f.takeOver(a)
				var branches int
				if err := f.direct.QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx").Scan(&branches); err != nil || f.done() != 0 {
					t.Errorf("%d branches, %v", branches, err)
				}
			})
		}
	}
}

// TestACountOfTheStatementBeforeIsNotReplacedByTheGuards: ROW_COUNT() and
// FOUND_ROWS() in a guarded write would speak of the guard.
func TestACountOfTheStatementBeforeIsNotReplacedByTheGuards(t *testing.T) {
	f := setup(t)
	c := f.worker(f.acquire(time.Minute))
	mustExec(t, f.direct, "INSERT INTO notes (text) VALUES ('a'), ('b')")
	for _, count := range []string{"ROW_COUNT()", "FOUND_ROWS ( )", "row_count/**/()"} {
		for _, write := range []string{"INSERT INTO runs (n) VALUES (%s)", "UPDATE runs SET n = %s WHERE id = 1"} {
			c.exec("SELECT * FROM notes")
			wantRejected(t, c.try(fmt.Sprintf(write, count)), "ROW_COUNT()", "into a variable")
		}
	}
	c.exec("ALTER TABLE notes ADD row_count INT")
	c.exec("INSERT INTO runs (status) SELECT 'row_count(' FROM notes WHERE row_count IS NULL LIMIT 1")

	for question, statement := range map[string]string{
		"SELECT ROW_COUNT() AS runs":  "UPDATE notes SET text = CONCAT(text, 'x')",
		"SELECT FOUND_ROWS() AS runs": "SELECT id FROM notes",
	} {
		c.exec("SET NAMES utf8mb4") // the proxy must ask for the session's facts again
		c.exec(statement)
		if got := c.value(question); got != "2" {
			t.Errorf("%s after %s: %s", question, statement, got)
		}
	}
	c.exec("UPDATE notes SET text = 'y'")
	c.exec("SET @n = ROW_COUNT()")
	c.exec("INSERT INTO runs (n) VALUES (1000 + @n)")
	if got := c.value("SELECT MAX(n) FROM runs"); got != "1002" {
		t.Errorf("n is %s", got)
	}
}

// TestAStatementPreparedWithoutIdentityIsFencedWithOne: on_unfenced lets sessions without an
// identity write; the same prepared statement is guarded once the session has one.
func TestAStatementPreparedWithoutIdentityIsFencedWithOne(t *testing.T) {
	for _, policy := range []rewrite.OnUnfenced{rewrite.UnfencedAllow, rewrite.UnfencedObserve} {
		for _, text := range []string{"UPDATE runs SET status = 'x' WHERE id = 1", "INSERT INTO runs (status) VALUES ('x')"} {
			t.Run(fmt.Sprint(policy, " ", text), func(t *testing.T) {
				f := setup(t, func(r *rewrite.Rule, _ *proxy.Options) { r.OnUnfenced = policy })
				a := f.acquire(time.Minute)
				f.takeOver(a)
				c, _ := f.login(0)
				id, _ := c.preparedStatement(text)
				if err := c.execute(id, noCursor); err != nil {
					t.Fatal(err)
				}
				want := f.rowsOfRuns()
				_ = c.text(fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token))
				if err := c.execute(id, noCursor); err == nil || !strings.Contains(err.Error(), "stale token") {
					t.Errorf("got %v", err)
				}
				if got := f.rowsOfRuns(); got != want {
					t.Errorf("the table changed to\n%s", got)
				}
			})
		}
	}
}
