package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/lease"
)

// contentionServer is a server whose lease table records, by triggers and thus
// at the database's own instants, each change of hands: the new token and owner,
// and whether the lease that it ended had expired. A team's audit may do the same,
// with an AUTO_INCREMENT column too, and acquisitions must not mind.
func contentionServer(t *testing.T) *sql.DB {
	t.Helper()
	own := dbtest.New(t)
	if err := prepare(own); err != nil {
		t.Fatal(err)
	}
	db := own.Open(t, "app")
	for _, statement := range []string{
		"CREATE TABLE hands (id INT AUTO_INCREMENT PRIMARY KEY, fence_token BIGINT UNSIGNED, owner_token VARCHAR(128), expired BOOLEAN)",
		"CREATE TRIGGER made AFTER INSERT ON fenced_job_leases FOR EACH ROW" +
			" INSERT INTO hands (fence_token, owner_token, expired) VALUES (NEW.fence_token, NEW.owner_token, TRUE)",
		"CREATE TRIGGER changed AFTER UPDATE ON fenced_job_leases FOR EACH ROW" +
			" INSERT INTO hands (fence_token, owner_token, expired)" +
			" SELECT NEW.fence_token, NEW.owner_token, UNIX_TIMESTAMP(OLD.leased_until) <= UNIX_TIMESTAMP(SYSDATE(6)) FROM DUAL" +
			" WHERE NEW.owner_token <> OLD.owner_token OR NEW.fence_token <> OLD.fence_token",
		"CREATE TABLE work (id INT PRIMARY KEY, fence_token BIGINT UNSIGNED NOT NULL)",
		"INSERT INTO work VALUES (1, 0)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return db
}

// TestContenders lets 32 workers fight for one lease until it has changed hands
// 1,000 times. Each holder writes its token under the guard, and then releases
// the lease, or stalls until it has expired.
func TestContenders(t *testing.T) {
	const workers, takeovers = 32, 1000
	db := contentionServer(t)
	db.SetMaxOpenConns(2 * workers)
	db.SetMaxIdleConns(2 * workers)
	s := newStore(t, db)
	var mu sync.Mutex
	holder := "" // who holds it now, as far as the holders know
	acquired := 0
	enter := func(l *lease.Lease) (n int) {
		mu.Lock()
		defer mu.Unlock()
		if holder != "" {
			t.Errorf("%s acquired while %s holds", l.Owner, holder)
		}
		holder = l.Owner
		acquired++
		return acquired
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for {
				l, err := s.AcquireWait(ctx, "contended", 10*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				n := enter(l)
				guard, args := s.Guard(l.Claim).Exists()
				r, err := db.Exec("UPDATE work SET fence_token = ? WHERE id = 1 AND "+guard, append([]any{l.Token}, args...)...)
				if err != nil {
					t.Error(err)
					return
				}
				if written, _ := r.RowsAffected(); written != 1 {
					t.Errorf("token %d: the holder's write changed %d rows", l.Token, written)
				}
				mu.Lock()
				holder = ""
				mu.Unlock()
				if n%10 == 0 {
					expire(t, db, "contended")
				} else if err := s.Release(t.Context(), l.Claim); err != nil {
					t.Errorf("token %d: release: %v", l.Token, err)
				}
				if n >= takeovers {
					return
				}
			}
		})
	}
	wait.Wait()
	rows, err := db.Query("SELECT fence_token, expired FROM hands ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	changes := 0
	for rows.Next() {
		var token int
		var expired bool
		if err := rows.Scan(&token, &expired); err != nil {
			t.Fatal(err)
		}
		changes++
		if token != changes || !expired {
			t.Fatalf("change of hands %d: token %d, the lease before had expired: %v", changes, token, expired)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if changes != acquired || acquired < takeovers {
		t.Errorf("%d changes of hands in the database, %d acquisitions", changes, acquired)
	}
}

// A connection of the pool remembers an insert id of the program's own, or of the
// attempt before.
func TestAnEarlierInsertIDIsNotTakenForAToken(t *testing.T) {
	db := server.Open(t, "app")
	db.SetMaxOpenConns(1)
	s := newStore(t, db)
	for _, id := range []string{"41", "18446744073709551615"} {
		if _, err := db.Exec("DO LAST_INSERT_ID(" + id + ")"); err != nil {
			t.Fatal(err)
		}
		if l := acquire(t, s, "insert-id-"+id, time.Minute); l.Token != 1 {
			t.Errorf("after %s: token %d", id, l.Token)
		}
	}
}

func TestABrandNewNameIsTakenByExactlyOne(t *testing.T) {
	s := newStore(t, server.Open(t, ""))
	for round := range 20 {
		name := fmt.Sprintf("new-%d", round)
		got := make(chan error, 16)
		for range cap(got) {
			go func() {
				_, err := s.Acquire(t.Context(), name, time.Minute)
				got <- err
			}()
		}
		winners := 0
		for range cap(got) {
			if err := <-got; err == nil {
				winners++
			} else if !errors.Is(err, lease.ErrHeld) {
				t.Error(err)
			}
		}
		if winners != 1 {
			t.Fatalf("%s: %d winners", name, winners)
		}
	}
}

// guarded opens a transaction with the claim's guard passed: it has the lease's
// row locked.
func guarded(t *testing.T, db *sql.DB, s *lease.Store, c lease.Claim) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	text, args := s.Guard(c).Exists()
	var passes int
	if err := tx.QueryRow("SELECT COUNT(*) FROM (SELECT 1) AS o WHERE "+text, args...).Scan(&passes); err != nil || passes != 1 {
		t.Fatalf("the holder's guard: %d, %v", passes, err)
	}
	return tx
}

// untilExpired returns once the claim's lease has expired by itself.
func untilExpired(t *testing.T, db *sql.DB, s *lease.Store, c lease.Claim) {
	t.Helper()
	for {
		held, err := s.IsHeld(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !held {
			return
		}
		if _, err := db.Exec("DO SLEEP(0.02)"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAHeldLeaseIsRefusedWithoutWaitingForItsGuards(t *testing.T) {
	db := server.Open(t, "app")
	s := newStore(t, db)
	a := acquire(t, s, "locked", time.Minute)
	guarded(t, db, s, a.Claim)
	start := time.Now()
	var held *lease.HeldError
	if _, err := s.Acquire(t.Context(), "locked", time.Minute); !errors.As(err, &held) || held.Owner != a.Owner {
		t.Errorf("a contender: %v", err)
	}
	if took := time.Since(start); took > 500*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

func TestARenewalWaitsForTheHoldersOwnTransaction(t *testing.T) {
	db := server.Open(t, "app")
	s := newStore(t, db)
	a := acquire(t, s, "renewed-in-time", time.Second)
	tx := guarded(t, db, s, a.Claim)
	renewed := make(chan error, 1)
	go func() {
		_, err := s.Renew(t.Context(), a.Claim, time.Minute)
		renewed <- err
	}()
	dbtest.WaitForLockWait(t, db, "renewals + 1")
	untilExpired(t, db, s, a.Claim)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; err != nil {
		t.Errorf("it began before the expiry, and: %v", err)
	}
}

func TestATakeoverWaitsForTheGuardsOfTheExpiredHolder(t *testing.T) {
	db := server.Open(t, "app")
	s := newStore(t, db)
	a := acquire(t, s, "locked-expired", time.Second)
	tx := guarded(t, db, s, a.Claim)
	untilExpired(t, db, s, a.Claim)

	start := time.Now()
	var held *lease.HeldError
	_, err := s.Acquire(t.Context(), "locked-expired", time.Second)
	if !errors.As(err, &held) || held.Owner != a.Owner || !strings.Contains(err.Error(), "has its row locked") {
		t.Errorf("tried while the transaction is open: %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("one attempt took %v", took)
	}
	got := make(chan *lease.Lease, 1)
	go func() {
		l, err := s.AcquireWait(t.Context(), "locked-expired", time.Second)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	dbtest.WaitForLockWait(t, db, "INSERT INTO")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if l := <-got; l == nil || l.Token != a.Token+1 {
		t.Errorf("the takeover got %+v", l)
	}
}

func TestAcquireWaitEndsWithItsContextOrTheLease(t *testing.T) {
	s := newStore(t, server.Open(t, ""))
	a := acquire(t, s, "waited", time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.AcquireWait(ctx, "waited", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("context ended: %v", err)
	}
	short, cancelShort := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancelShort()
	if _, err := s.AcquireWait(short, "waited", time.Minute); !errors.Is(err, lease.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waited in vain: %v", err)
	}
	got := make(chan *lease.Lease, 1)
	go func() {
		l, err := s.AcquireWait(t.Context(), "waited", time.Minute)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	if err := s.Release(t.Context(), a.Claim); err != nil {
		t.Fatal(err)
	}
	if l := <-got; l == nil || l.Token != 2 {
		t.Errorf("waited for %+v", l)
	}
}
