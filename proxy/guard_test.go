package proxy_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/proxy"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// writes are one statement of each plan. Each changes or makes a row with
// status 'done'.
var writes = []struct{ name, text, prepared string }{
	{"update", "UPDATE runs SET status = 'done' WHERE id = 1", "UPDATE runs SET status = ? WHERE id = 1"},
	{"update with a limit", "UPDATE runs SET status = 'done' WHERE id = 1 LIMIT 1", "UPDATE runs SET status = ? WHERE id = 1 LIMIT 1"},
	{"insert", "INSERT INTO runs (status, n) VALUES ('done', 99)", "INSERT INTO runs (status, n) VALUES (?, 99)"},
	{"replace", "REPLACE INTO runs (id, status, n) VALUES (1, 'done', 10)", "REPLACE INTO runs (id, status, n) VALUES (1, ?, 10)"},
	{"upsert", "INSERT INTO runs (id, n) VALUES (1, 10) ON DUPLICATE KEY UPDATE status = 'done'", "INSERT INTO runs (id, n) VALUES (1, 10) ON DUPLICATE KEY UPDATE status = ?"},
}

func (f *fixture) done() int {
	f.t.Helper()
	var n int
	if err := f.direct.QueryRow("SELECT COUNT(*) FROM runs WHERE status = 'done'").Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

func TestOnlyTheHolderWrites(t *testing.T) {
	f := setup(t)
	for _, w := range writes {
		for _, protocol := range []string{"text", "prepared"} {
			run := func(c *client) error {
				if protocol == "text" {
					return c.try(w.text)
				}
				return c.try(w.prepared, "done")
			}
			t.Run(w.name+"/"+protocol, func(t *testing.T) {
				mustExec(t, f.direct, "DELETE FROM runs; INSERT INTO runs (id, status, n) VALUES (1, 'running', 10)")
				a := f.acquire(time.Minute)
				worker := f.worker(a)
				if err := run(worker); err != nil || f.done() != 1 {
					t.Fatalf("the holder's write: %v, %d rows done", err, f.done())
				}
				mustExec(t, f.direct, "UPDATE runs SET status = 'running', n = id * 10")
				b := f.takeOver(a)
				err := run(worker)
				wantRejected(t, err, f.schema+".runs", fmt.Sprintf("stale token %d", a.Token), fmt.Sprintf("at token %d", b.Token), b.Owner)
				if f.done() != 0 {
					t.Errorf("the stale write landed")
				}
				if err := f.leases.Release(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func TestEachReasonIsToldToTheClientAndTheLog(t *testing.T) {
	f := setup(t)
	a := f.acquire(time.Minute)
	tests := []struct {
		name, reason, message string
		prepare               func(c *client)
	}{
		{"no identity", "unfenced", "no identity", func(*client) {}},
		{"owner without token", "unfenced", "@fence_token is not", func(c *client) { c.exec("SET @fence_owner = 'A'") }},
		{"token that is no number", "unfenced", "not an integer", func(c *client) { c.exec("SET @fence_owner = 'A', @fence_token = 'seven'") }},
		{"another token", "stale_token", "stale token 99", func(c *client) { c.exec("SET @fence_owner = '" + a.Owner + "', @fence_token = 99") }},
		{"another owner", "wrong_owner", "mallory", func(c *client) { c.exec(fmt.Sprintf("SET @fence_owner = 'mallory', @fence_token = %d", a.Token)) }},
		{"expired", "expired", "expired", func(c *client) {
			c.exec(fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token))
			mustExec(t, f.direct, "UPDATE fenced_job_leases SET leased_until = CURRENT_TIMESTAMP(3) - INTERVAL 1 SECOND")
		}},
		{"no lease", "no_lease", leaseName, func(c *client) {
			c.exec(fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token))
			mustExec(t, f.direct, "DELETE FROM fenced_job_leases")
		}},
		{"a statement that cannot be guarded", "unsupported", "", func(c *client) {
			b := f.acquire(time.Minute)
			c.exec(fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", b.Owner, b.Token))
		}},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := f.connect()
			tt.prepare(c)
			statement := "UPDATE runs SET status = 'secret-literal' WHERE id = 1"
			if tt.reason == "unsupported" {
				statement = "TRUNCATE TABLE runs"
			}
			wantRejected(t, c.try(statement), f.schema+".runs", tt.message)
			entries := f.logs.rejections(t)
			if len(entries) != i+1 {
				t.Fatalf("%d rejections logged, want %d", len(entries), i+1)
			}
			entry := entries[i]
			if entry["reason"] != tt.reason {
				t.Errorf("logged reason %v, want %s", entry["reason"], tt.reason)
			}
			if entry["user"] != "root" || entry["lease"] != leaseName || entry["table"] != f.schema+".runs" {
				t.Errorf("log entry %v", entry)
			}
			if strings.Contains(fmt.Sprint(entry), "secret-literal") {
				t.Errorf("the log has a literal of the statement: %v", entry)
			}
			if f.status(1) != "running" {
				t.Errorf("the row changed to %q", f.status(1))
			}
		})
	}
}

func TestZeroRowsOfTheHolderIsTheTruth(t *testing.T) {
	f := setup(t)
	c := f.worker(f.acquire(time.Minute))
	for _, query := range []string{
		"UPDATE runs SET status = 'done' WHERE id = 77",
		"UPDATE runs SET status = status WHERE id = 1",
		"DELETE FROM runs WHERE id = 77",
		"DELETE FROM runs WHERE id = 77 LIMIT 1",
		"UPDATE runs SET status = 'done' WHERE 1 = 0",
	} {
		if n, _ := c.exec(query).RowsAffected(); n != 0 {
			t.Errorf("%s affected %d rows", query, n)
		}
	}
}

// TestRaces plays the two races of the design: a guarded write that waits on a
// row lock while its lease expires and another takes over, and a transaction
// whose snapshot is older than the takeover.
func TestRaces(t *testing.T) {
	kinds := []struct{ name, write, block string }{
		{"update", "UPDATE runs SET status = 'done' WHERE id = 1", "SELECT * FROM runs WHERE id = 1 FOR UPDATE"},
		{"update by exists", "UPDATE runs SET status = 'done' WHERE id = 1 LIMIT 1", "SELECT * FROM runs WHERE id = 1 FOR UPDATE"},
		{"delete", "DELETE FROM runs WHERE id = 1", "SELECT * FROM runs WHERE id = 1 FOR UPDATE"},
		{"insert", "INSERT INTO runs (id, status, n) VALUES (9, 'done', 90)", "INSERT INTO runs (id, status, n) VALUES (9, 'blocker', 91)"},
	}
	for _, isolation := range []string{"REPEATABLE READ", "READ COMMITTED"} {
		for _, k := range kinds {
			t.Run(isolation+"/"+k.name+"/row lock", func(t *testing.T) { raceOnRowLock(t, isolation, k.write, k.block) })
			t.Run(isolation+"/"+k.name+"/old snapshot", func(t *testing.T) { raceOnSnapshot(t, isolation, k.write) })
		}
	}
}

func raceOnRowLock(t *testing.T, isolation, write, block string) {
	f := setup(t)
	a := f.acquire(2 * time.Second)
	worker := f.worker(a)
	worker.exec("SET SESSION TRANSACTION ISOLATION LEVEL " + isolation)

	blocker, err := f.direct.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, blocker, block)

	wrote := make(chan error, 1)
	go func() { wrote <- worker.try(write) }()
	dbtest.WaitForLockWait(t, f.direct, "runs")
	waitUntilExpired(t, f)

	took := make(chan error, 1)
	go func() {
		_, err := f.leases.Acquire(t.Context(), leaseName, time.Minute)
		took <- err
	}()
	// Either the takeover commits while the write still waits, or it waits for
	// the write's lock on the lease row. Which one the engine chooses is not
	// the point; a stale write after a committed takeover is.
	takenFirst := false
	select {
	case err := <-took:
		if err != nil {
			t.Fatal(err)
		}
		takenFirst = true
	case <-lockWait(t, f, "fenced_job_leases"):
	}
	if err := blocker.Rollback(); err != nil {
		t.Fatal(err)
	}
	err = <-wrote
	if !takenFirst {
		if e := <-took; e != nil {
			t.Fatal(e)
		}
	}
	if takenFirst {
		wantRejected(t, err, "stale token")
		if n := f.done(); n != 0 || f.status(1) == "" {
			t.Errorf("stale write after a committed takeover: %d rows done, row 1 %q", n, f.status(1))
		}
		return
	}
	if err != nil {
		t.Errorf("the write was first, yet: %v", err)
	}
}

// waitUntilExpired returns when the server's clock has passed the lease's end.
func waitUntilExpired(t *testing.T, f *fixture) {
	t.Helper()
	mustExec(t, f.direct, "DO SLEEP(GREATEST(0, (SELECT UNIX_TIMESTAMP(leased_until) FROM fenced_job_leases WHERE lease_name = '"+leaseName+"') - UNIX_TIMESTAMP(SYSDATE(6))) + 0.005)")
}

// lockWait tells when a statement that contains text waits for a lock.
func lockWait(t *testing.T, f *fixture, text string) <-chan struct{} {
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		for range 200 {
			_, _ = f.direct.Exec("DO SLEEP(0.11)") // InnoDB refreshes the table after 100 ms without a reader
			var n int
			err := f.direct.QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE ?", "INSERT%"+text+"%").Scan(&n)
			if err != nil || n > 0 {
				return
			}
		}
	}()
	return waits
}

func raceOnSnapshot(t *testing.T, isolation, write string) {
	f := setup(t)
	a := f.acquire(time.Minute)
	worker := f.worker(a)
	worker.exec("SET SESSION TRANSACTION ISOLATION LEVEL " + isolation)
	worker.exec("START TRANSACTION WITH CONSISTENT SNAPSHOT")
	worker.value("SELECT owner_token FROM fenced_job_leases")
	f.takeOver(a)
	wantRejected(t, worker.try(write), "stale token")
	if err := worker.try("COMMIT"); err == nil {
		t.Error("COMMIT succeeded after the rejection")
	}
	if n := f.done(); n != 0 || f.status(1) != "running" {
		t.Errorf("the stale write landed: %d rows done, row 1 %q", n, f.status(1))
	}
}

func TestAnOpenTransactionIsRolledBackAtOnceAndRefusedUntilItEnds(t *testing.T) {
	for _, begin := range []string{"START TRANSACTION", "SET autocommit = 0"} {
		for _, write := range []string{writes[0].text, writes[2].text} {
			t.Run(begin+"/"+write[:6], func(t *testing.T) {
				f := setup(t)
				a := f.acquire(time.Minute)
				c := f.worker(a)
				c.exec(begin)
				c.exec("INSERT INTO notes (text) VALUES ('part of the transaction')")
				c.exec("UPDATE runs SET status = 'half' WHERE id = 2")
				// The open transaction holds the lease row: the takeover is
				// made by hand once it has let go.
				c.exec("ROLLBACK")
				c.exec(strings.Replace(begin, "SET autocommit = 0", "DO 0", 1))
				c.exec("INSERT INTO notes (text) VALUES ('part of the transaction')")
				b := f.takeOver(a)
				wantRejected(t, c.try(write), "stale token")

				// The new owner is not blocked by the failed guard's lock.
				if _, err := f.leases.Renew(t.Context(), b, time.Minute); err != nil {
					t.Errorf("the new owner's renewal: %v", err)
				}
				wantRejected(t, c.try("INSERT INTO notes (text) VALUES ('goes on')"), "rolled back")
				wantRejected(t, c.try("SELECT 1"), "rolled back")
				wantRejected(t, c.try("INSERT INTO notes (text) VALUES (?)", "goes on"), "rolled back")
				wantRejected(t, c.try("ROLLBACK TO SAVEPOINT s"), "rolled back")
				wantRejected(t, c.try("COMMIT"), "stale token")
				c.exec("INSERT INTO notes (text) VALUES ('after')")
				c.exec("COMMIT")
				var notes string
				if err := f.direct.QueryRow("SELECT GROUP_CONCAT(text) FROM notes").Scan(&notes); err != nil || notes != "after" {
					t.Errorf("notes are %q, %v; want only the one after the transaction", notes, err)
				}
			})
		}
	}
}

func TestRollbackEndsAnAbortedTransaction(t *testing.T) {
	f := setup(t)
	a := f.acquire(time.Minute)
	c := f.worker(a)
	f.takeOver(a)
	c.exec("BEGIN")
	wantRejected(t, c.try(writes[0].text))
	c.exec("ROLLBACK")
	if got := c.value("SELECT 'usable'"); got != "usable" {
		t.Error(got)
	}
	c.exec("BEGIN")
	wantRejected(t, c.try(writes[0].prepared, "done"))
	wantRejected(t, c.try("CREATE TABLE implicit (id INT)"), "stale token")
	c.exec("CREATE TABLE implicit (id INT)")
}

func TestOnRejectZeroRows(t *testing.T) {
	f := setup(t, func(r *rewrite.Rule, _ *proxy.Options) { r.OnReject = rewrite.RejectZeroRows })
	a := f.acquire(time.Minute)
	c := f.worker(a)
	f.takeOver(a)
	for _, w := range writes {
		for _, r := range []sql.Result{c.exec(w.text), c.exec(w.prepared, "done")} {
			if n, _ := r.RowsAffected(); n != 0 {
				t.Errorf("%s affected %d rows", w.name, n)
			}
		}
	}
	if f.done() != 0 {
		t.Error("a stale write landed")
	}
	if n := len(f.logs.rejections(t)); n != 2*len(writes) {
		t.Errorf("%d rejections logged, want %d", n, 2*len(writes))
	}
	wantRejected(t, c.try("TRUNCATE TABLE runs"))
}

func TestObserveChangesNothingAndReports(t *testing.T) {
	f := setup(t, func(r *rewrite.Rule, _ *proxy.Options) { r.Mode = rewrite.Observe })
	a := f.acquire(time.Minute)
	current := f.worker(a)
	current.exec(writes[0].text)
	if n := len(f.logs.rejections(t)); n != 0 {
		t.Fatalf("%d rejections logged for the holder", n)
	}
	stale := f.worker(a)
	f.takeOver(a)
	unfenced := f.connect()
	steps := []struct {
		c              *client
		query, reason  string
		arguments      []any
		wantRowsInRuns int
	}{
		{stale, writes[2].text, "stale_token", nil, 4},
		{stale, "UPDATE runs SET status = ? WHERE id = 2", "stale_token", []any{"done"}, 4},
		{unfenced, "DELETE FROM runs WHERE id = 3", "unfenced", nil, 3},
		{stale, "TRUNCATE TABLE runs", "unsupported", nil, 0},
	}
	for i, s := range steps {
		s.c.exec(s.query, s.arguments...)
		entries := f.logs.rejections(t)
		if len(entries) != i+1 || entries[i]["reason"] != s.reason {
			t.Fatalf("%s: logged %v, want one more with reason %s", s.query, entries, s.reason)
		}
		var n int
		if err := f.direct.QueryRow("SELECT COUNT(*) FROM runs").Scan(&n); err != nil || n != s.wantRowsInRuns {
			t.Errorf("%s: %d rows, want %d", s.query, n, s.wantRowsInRuns)
		}
	}
}

func TestOnUnfenced(t *testing.T) {
	tests := []struct {
		name   string
		policy rewrite.OnUnfenced
		lands  bool
		logged int
	}{
		{"reject", rewrite.UnfencedReject, false, 2},
		{"allow", rewrite.UnfencedAllow, true, 0},
		{"observe", rewrite.UnfencedObserve, true, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := setup(t, func(r *rewrite.Rule, _ *proxy.Options) { r.OnUnfenced = tt.policy })
			c := f.connect()
			errText := c.try("UPDATE runs SET status = 'done' WHERE id = 1")
			errPrepared := c.try("UPDATE runs SET status = ? WHERE id = 2", "done")
			if tt.lands {
				if errText != nil || errPrepared != nil || f.done() != 2 {
					t.Errorf("unfenced writes: %v, %v, %d rows done", errText, errPrepared, f.done())
				}
			} else {
				wantRejected(t, errText, "no identity")
				wantRejected(t, errPrepared, "no identity")
			}
			if n := len(f.logs.rejections(t)); n != tt.logged {
				t.Errorf("%d rejections logged, want %d", n, tt.logged)
			}
			// With an identity the same session is guarded all the same.
			a := f.acquire(time.Minute)
			c.exec(fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token))
			c.exec("UPDATE runs SET status = 'held' WHERE id = 3")
			f.takeOver(a)
			wantRejected(t, c.try("UPDATE runs SET status = 'late' WHERE id = 3"), "stale token")
			wantRejected(t, c.try("UPDATE runs SET status = ? WHERE id = 3", "late"), "stale token")
		})
	}
}

func TestALeaseHeldByTheSession(t *testing.T) {
	f := setup(t, func(r *rewrite.Rule, _ *proxy.Options) { r.Lease = "" })
	a := f.acquire(time.Minute)
	c := f.worker(a)
	wantRejected(t, c.try(writes[0].text), "@fence_lease is not set")
	c.exec("SET @fence_lease = '" + leaseName + "'")
	c.exec(writes[0].text)
	f.takeOver(a)
	wantRejected(t, c.try("UPDATE runs SET status = 'late' WHERE id = 1"), "stale token", leaseName)
}

func TestXATransactions(t *testing.T) {
	f := setup(t)
	a := f.acquire(time.Minute)
	c := f.worker(a)
	c.exec("XA START 'x'")
	c.exec("UPDATE runs SET status = 'xa' WHERE id = 1")
	c.exec("INSERT INTO runs (status) VALUES ('xa')")
	c.exec("XA END 'x'")
	c.exec("XA COMMIT 'x' ONE PHASE")
	if got := f.status(1); got != "xa" {
		t.Errorf("status %q", got)
	}

	b := f.takeOver(a)
	c.exec("XA START 'y'")
	c.exec("INSERT INTO notes (text) VALUES ('in the branch')")
	wantRejected(t, c.try("UPDATE runs SET status = 'late' WHERE id = 1"), "stale token")
	// Only XA statements end such a transaction, so the session is ended.
	if err := c.try("XA END 'y'"); err == nil {
		t.Error("the session goes on")
	}
	if _, err := f.leases.Renew(t.Context(), b, time.Minute); err != nil {
		t.Errorf("the new owner's renewal: %v", err)
	}
	var notes int
	if err := f.direct.QueryRow("SELECT COUNT(*) FROM notes").Scan(&notes); err != nil || notes != 0 {
		t.Errorf("%d rows of the branch are left, %v", notes, err)
	}
}

func TestABracketLeavesLockedTablesLocked(t *testing.T) {
	f := setup(t)
	c := f.worker(f.acquire(time.Minute))
	const insert = "INSERT INTO runs (status) VALUES ('x')"
	c.exec("LOCK TABLES notes WRITE")
	var e *mysql.MySQLError
	if err := c.try(insert); !errors.As(err, &e) || e.Number != 1100 {
		t.Errorf("got %v, want error 1100 as without the proxy", err)
	}
	other := make(chan error, 1)
	go func() {
		_, err := f.direct.Exec("INSERT INTO notes (text) VALUES ('waits')")
		other <- err
	}()
	waitFor(t, "the other session to wait for the table", func() bool {
		var n int
		err := f.direct.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'").Scan(&n)
		return err == nil && n == 1
	})
	c.exec("UNLOCK TABLES")
	if err := <-other; err != nil {
		t.Error(err)
	}
	c.exec(insert)
	if got := c.value("SELECT @@in_transaction"); got != "0" {
		t.Error("a transaction is left open")
	}
}

// TestXAPrepareUnderAGuardIsRefused: XA PREPARE lets go of the lease row's lock,
// and XA COMMIT would then land a write under a later holder.
func TestXAPrepareUnderAGuardIsRefused(t *testing.T) {
	f := setup(t)
	claim := f.acquire(time.Minute)
	c := f.worker(claim)
	for _, write := range []string{"INSERT INTO runs (status) VALUES ('xa')", "UPDATE runs SET status = 'xa' WHERE id = 1"} {
		c.exec("XA START 'x'")
		c.exec(write)
		c.exec("XA END 'x'")
		wantRejected(t, c.try("XA PREPARE 'x'"), "ONE PHASE")
		c = f.worker(claim) // the rejection ended the session
	}
	// A branch that wrote nothing protected is prepared as ever.
	c.exec("XA START 'y'")
	c.exec("INSERT INTO notes (text) VALUES ('xa')")
	c.exec("XA END 'y'")
	c.exec("XA PREPARE 'y'")
	c.exec("XA COMMIT 'y'")
}
