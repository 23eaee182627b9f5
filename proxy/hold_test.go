package proxy_test

import (
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
)

// TestAGuardHoldsTheLeaseUntilTheTransactionEnds: a takeover must wait for every
// form of the guard, at each isolation level, and for none once it is over.
func TestAGuardHoldsTheLeaseUntilTheTransactionEnds(t *testing.T) {
	forms := []struct {
		name, text string
		args       []any
	}{
		{"join", "UPDATE runs SET status = 'x' WHERE id = 1", nil},
		{"join without a match", "UPDATE runs SET status = 'x' WHERE id = 77", nil},
		{"exists", "UPDATE runs SET n = n + 1 WHERE id = 3", nil},
		{"exists with a limit", "UPDATE runs SET status = 'x' ORDER BY id LIMIT 1", nil},
		{"exists, ignore", "UPDATE IGNORE runs SET n = 20 WHERE id = 1", nil},
		{"exists, several tables", "UPDATE runs r JOIN notes ON notes.id = r.id SET r.status = 'x'", nil},
		{"exists, a list of tables", "UPDATE runs, notes SET runs.status = 'x' WHERE notes.id = runs.id", nil},
		{"delete", "DELETE FROM runs WHERE id = 2", nil},
		{"delete without a condition", "DELETE FROM runs", nil},
		{"delete with a limit", "DELETE FROM runs ORDER BY id LIMIT 1", nil},
		{"delete, several tables", "DELETE r FROM runs AS r JOIN notes ON notes.id = r.id", nil},
		{"bracket", "INSERT INTO runs (n) VALUES (91)", nil},
		{"prepared", "UPDATE runs SET status = ? WHERE id = 1", []any{"x"}},
		{"prepared exists", "UPDATE runs SET n = n + ? WHERE id = 3", []any{1}},
		{"prepared exists, several tables", "UPDATE runs r JOIN notes ON notes.id = r.id SET r.status = ?", []any{"x"}},
		{"prepared delete", "DELETE FROM runs WHERE id = ?", []any{2}},
		{"prepared delete, several tables", "DELETE r FROM runs AS r JOIN notes ON notes.id = r.id WHERE r.id = ?", []any{1}},
		{"prepared bracket", "INSERT INTO runs (n) VALUES (?)", []any{92}},
	}
	for _, isolation := range []string{"READ COMMITTED", "REPEATABLE READ"} {
		f := setup(t)
		mustExec(t, f.direct, "INSERT INTO notes (id, text) VALUES (1, 'one')")
		claim := f.acquire(time.Hour)
		c := f.worker(claim)
		c.exec("SET SESSION TRANSACTION ISOLATION LEVEL " + isolation)
		for _, form := range forms {
			t.Run(isolation+"/"+form.name, func(t *testing.T) {
				c.exec("BEGIN")
				c.exec(form.text, form.args...)
				renewed := make(chan error, 1)
				go func() {
					_, err := f.leases.Renew(t.Context(), claim, time.Hour)
					renewed <- err
				}()
				// The change of the lease row waits, whoever makes it.
				dbtest.WaitForLockWait(t, f.direct, "renewals + 1")
				c.exec("ROLLBACK")
				if err := <-renewed; err != nil {
					t.Error(err)
				}
			})
			t.Run(isolation+"/"+form.name+" in autocommit", func(t *testing.T) {
				c.exec(form.text, form.args...)
				if _, err := f.direct.Exec("SET innodb_lock_wait_timeout = 1"); err != nil {
					t.Fatal(err)
				}
				if _, err := f.leases.Renew(t.Context(), claim, time.Hour); err != nil {
					t.Errorf("a lock is left: %v", err)
				}
				mustExec(t, f.direct, "DELETE FROM runs; INSERT INTO runs (id, status, n) VALUES (1,'running',10),(2,'running',20),(3,'running',30)")
			})
		}
	}
}
