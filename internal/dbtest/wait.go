package dbtest

import (
	"database/sql"
	"testing"
	"time"
)

// pollStatement pauses between two looks. InnoDB refreshes its tables in
// information_schema only when nobody has read them for 100 ms.
const pollStatement = "DO SLEEP(0.11)"

// lockWaitTimeout is longer than any wait that a test means to see.
const lockWaitTimeout = 20 * time.Second

// WaitForLockWait returns once a statement that contains text waits for an
// InnoDB lock, and fails the test when none does.
func WaitForLockWait(t testing.TB, db *sql.DB, text string) {
	t.Helper()
	deadline := time.Now().Add(lockWaitTimeout)
	for time.Now().Before(deadline) {
		// The pause comes first: an earlier look, by another test, may still be
		// what the table shows.
		if _, err := db.Exec(pollStatement); err != nil {
			t.Fatal(err)
		}
		var waiting int
		err := db.QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE CONCAT('%', ?, '%')", text).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if waiting > 0 {
			return
		}
	}
	t.Fatalf("no statement that contains %q waits for a lock", text)
}
