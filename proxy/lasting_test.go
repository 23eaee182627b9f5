package proxy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/lease"
)

// TestAClockThatStandsStillCounts: a clock that is set to the time of day is off only
// after a while, and would keep a lease current for ever.
func TestAClockThatStandsStillCounts(t *testing.T) {
	for name, stop := range map[string]func(c *rawClient) error{
		"SET": func(c *rawClient) error { return c.text("SET timestamp = UNIX_TIMESTAMP(NOW(6))") },
		"PREPARE": func(c *rawClient) error {
			return c.text("PREPARE s FROM 'SET timestamp = UNIX_TIMESTAMP(NOW(6))'", "EXECUTE s")
		},
		"a prepared statement": func(c *rawClient) error {
			id, _ := c.preparedStatement("SET timestamp = UNIX_TIMESTAMP(NOW(6))")
			return c.execute(id, noCursor)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			a := f.acquire(lease.MinTTL)
			c, _ := f.login(0, "fence_owner", a.Owner, "fence_token", fmt.Sprint(a.Token))
			if err := errors.Join(stop(c), c.text("UPDATE runs SET status = 'early'")); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the lease to have been over for a second", func() bool {
				var over bool
				err := f.direct.QueryRow("SELECT leased_until < NOW(3) - INTERVAL 1 SECOND FROM fenced_job_leases").Scan(&over)
				return err == nil && over
			})
			if err := c.text(lateUpdate); err == nil || !strings.Contains(err.Error(), "SET timestamp") {
				t.Errorf("got %v", err)
			}
			if got := f.status(1); got != "early" {
				t.Errorf("status %q", got)
			}
			if err := c.text("SET timestamp = DEFAULT", lateUpdate); err == nil || !strings.Contains(err.Error(), "expired") {
				t.Errorf("with the server's clock again: %v", err)
			}
		})
	}
}

// TestTablesStayLockedHoweverTheyWereLocked: the bracket's START TRANSACTION would
// unlock them.
func TestTablesStayLockedHoweverTheyWereLocked(t *testing.T) {
	f := setup(t)
	a := f.acquire(time.Hour)
	for _, lock := range []string{"LOCK TABLES notes WRITE", "/* c */ LOCK\tTABLE notes WRITE", "DO 1; LOCK TABLES notes WRITE", "FLUSH TABLES notes WITH READ LOCK", "EXECUTE IMMEDIATE 'LOCK TABLES notes WRITE'"} {
		for _, prepared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, prepared %v", lock, prepared), func(t *testing.T) {
				c := f.worker(a, "multiStatements=true")
				if err := c.attempt(lock, prepared); err != nil {
					t.Fatal(err)
				}
				for _, statement := range []string{"INSERT INTO runs (status) VALUES ('x')", "SELECT * FROM runs"} {
					var e *mysql.MySQLError
					if err := c.try(statement); !errors.As(err, &e) || e.Number != 1100 {
						t.Errorf("%s: got %v, want error 1100 as without the proxy", statement, err)
					}
				}
				c.exec("UNLOCK TABLES")
				c.exec("INSERT INTO runs (status) VALUES ('x')")
			})
		}
	}
}
