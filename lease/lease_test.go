package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/migrations"
)

const table = "app.fenced_job_leases"

// server is shared by the tests, which use different lease names; those that
// pause it start their own.
var server *dbtest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = dbtest.Start(context.Background(), dbtest.Options{}); err == nil {
		err = prepare(server)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = server.Stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func prepare(s *dbtest.Server) error {
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("CREATE DATABASE app"); err != nil {
		return err
	}
	_, err = migrations.Up(context.Background(), db, table)
	return err
}

func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func newStore(t testing.TB, db *sql.DB) *lease.Store {
	t.Helper()
	s, err := lease.New(db, table)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func acquire(t testing.TB, s *lease.Store, name string, ttl time.Duration, opts ...lease.Option) *lease.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), name, ttl, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// expire moves the lease's end into the past, as time would.
func expire(t testing.TB, db *sql.DB, name string) {
	t.Helper()
	if _, err := db.Exec("UPDATE "+table+" SET leased_until = CURRENT_TIMESTAMP(3) - INTERVAL 2 SECOND WHERE lease_name = ?", name); err != nil {
		t.Fatal(err)
	}
}

func TestAHeldLeaseIsRefusedAndAReleasedOneGetsTheNextToken(t *testing.T) {
	s := newStore(t, open(t, server.DSN("")))
	a := acquire(t, s, "held", time.Minute)
	if a.Token != 1 || len(a.Owner) != 32 {
		t.Errorf("first lease %+v", a)
	}
	_, err := s.Acquire(t.Context(), "held", time.Minute)
	var held *lease.HeldError
	if !errors.As(err, &held) || !errors.Is(err, lease.ErrHeld) || held.Owner != a.Owner || held.Token != 1 || held.SecondsLeft < 50 || held.SecondsLeft > 60 {
		t.Errorf("while held: %v", err)
	}
	if _, err := s.Acquire(t.Context(), "held", time.Minute, lease.WithOwner(a.Owner)); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("the same owner again: %v", err)
	}
	if err := s.Release(t.Context(), a.Claim); err != nil {
		t.Fatal(err)
	}
	b := acquire(t, s, "held", time.Minute, lease.WithOwner("B"), lease.WithMetadata("host b"))
	if b.Token != 2 || b.Owner != "B" {
		t.Errorf("after the release %+v", b)
	}
	f, err := s.Check(t.Context(), b.Claim)
	if err != nil || !f.Holds() || f.Current.Metadata != "host b" || !f.Current.LeasedUntil.Equal(b.LeasedUntil) {
		t.Errorf("check %+v, %v", f, err)
	}
}

func TestTakeoverMakesTheOldOwnersCallsFail(t *testing.T) {
	db := open(t, server.DSN(""))
	s := newStore(t, db)
	a := acquire(t, s, "takeover", time.Minute, lease.WithOwner("A"))
	expire(t, db, "takeover")
	b := acquire(t, s, "takeover", time.Minute, lease.WithOwner("B"))
	if b.Token != a.Token+1 {
		t.Errorf("token %d after %d", b.Token, a.Token)
	}
	_, renewErr := s.Renew(t.Context(), a.Claim, time.Minute)
	for what, err := range map[string]error{"renew": renewErr, "release": s.Release(t.Context(), a.Claim)} {
		var lost *lease.LostError
		if !errors.As(err, &lost) || !errors.Is(err, lease.ErrLost) || lost.CurrentToken != b.Token || lost.CurrentOwner != "B" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if held, err := s.IsHeld(t.Context(), a.Claim); held || err != nil {
		t.Errorf("the old owner: held %v, %v", held, err)
	}
	if held, err := s.IsHeld(t.Context(), b.Claim); !held || err != nil {
		t.Errorf("the new owner: held %v, %v", held, err)
	}
	// The right owner with the old token, and the other way round.
	for _, c := range []lease.Claim{{"takeover", "B", a.Token}, {"takeover", "A", b.Token}} {
		if _, err := s.Renew(t.Context(), c, time.Minute); !errors.Is(err, lease.ErrLost) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestAnExpiredLeaseCannotBeRenewedEvenIfNobodyTookIt(t *testing.T) {
	db := open(t, server.DSN(""))
	s := newStore(t, db)
	a := acquire(t, s, "expired", time.Minute)
	expire(t, db, "expired")
	_, err := s.Renew(t.Context(), a.Claim, time.Minute)
	var expired *lease.ExpiredError
	if !errors.As(err, &expired) || !errors.Is(err, lease.ErrExpired) || expired.SecondsAgo < 1.9 || expired.SecondsAgo > 20 {
		t.Errorf("renew: %v", err)
	}
	if err := s.Release(t.Context(), a.Claim); !errors.Is(err, lease.ErrExpired) {
		t.Errorf("release: %v", err)
	}
	if again := acquire(t, s, "expired", time.Minute, lease.WithOwner(a.Owner)); again.Token != a.Token+1 {
		t.Errorf("the same owner's takeover has token %d, want %d", again.Token, a.Token+1)
	}
}

func TestRenewExtendsAndCounts(t *testing.T) {
	for _, parameters := range []string{"", "?clientFoundRows=true"} {
		s := newStore(t, open(t, server.DSN("")+parameters))
		name := "renew" + fmt.Sprint(len(parameters))
		a := acquire(t, s, name, time.Second)
		for range 20 { // faster than the clock's resolution: a renewal must not look like a loss
			if _, err := s.Renew(t.Context(), a.Claim, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		f, err := s.Check(t.Context(), a.Claim)
		if err != nil || f.Current.SecondsLeft < 3590 || f.Current.SecondsLeft > 3600 || f.Current.Renewals != 20 || f.Current.Token != 1 {
			t.Errorf("%+v, %v", f.Current, err)
		}
		if _, err := s.Acquire(t.Context(), name, time.Second); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("with%s: %v", parameters, err)
		}
	}
}

func TestBadArguments(t *testing.T) {
	s := newStore(t, open(t, server.DSN("")))
	for _, name := range []string{"", "a b", "a'b", `a\b`, "a;b", "a`b", "é", strings.Repeat("x", 129)} {
		if _, err := s.Acquire(t.Context(), name, time.Minute); !errors.Is(err, lease.ErrName) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for _, ttl := range []time.Duration{0, time.Second - 1, 24*time.Hour + 1, -time.Hour} {
		if _, err := s.Acquire(t.Context(), "ttl", ttl); !errors.Is(err, lease.ErrTTL) {
			t.Errorf("TTL %v: %v", ttl, err)
		}
		if _, err := s.Renew(t.Context(), lease.Claim{}, ttl); !errors.Is(err, lease.ErrTTL) {
			t.Errorf("renew with TTL %v: %v", ttl, err)
		}
	}
	if _, err := s.Acquire(t.Context(), "owner", time.Minute, lease.WithOwner("")); !errors.Is(err, lease.ErrOwner) {
		t.Errorf("empty owner: %v", err)
	}
	if _, err := lease.New(nil, "leases"); !errors.Is(err, lease.ErrTable) {
		t.Errorf("table without schema: %v", err)
	}
	if err := s.Release(t.Context(), lease.Claim{Name: "nobody", Owner: "A", Token: 1}); !errors.Is(err, lease.ErrNoLease) {
		t.Errorf("no lease: %v", err)
	}
}

// TestContenders lets 32 workers fight for one lease until it has changed hands
// 1,000 times. Each holder writes its token into a row under the guard, checks
// that it is alone, and then releases, or stalls until it has expired.
func TestContenders(t *testing.T) {
	const workers, takeovers = 32, 1000
	db := open(t, server.DSN(""))
	db.SetMaxOpenConns(workers + 8)
	s := newStore(t, db)
	var mu sync.Mutex
	holder := ""        // who holds it now, as far as the holders know
	var tokens []uint64 // in the order of acquisition
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for {
				l, err := s.AcquireWait(t.Context(), "contended", 10*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if holder != "" {
					t.Errorf("%s acquired while %s holds", l.Owner, holder)
				}
				holder = l.Owner
				tokens = append(tokens, l.Token)
				n := len(tokens)
				mu.Unlock()
				if held, err := s.IsHeld(t.Context(), l.Claim); err != nil || !held {
					t.Errorf("the holder is told %v, %v", held, err)
				}
				mu.Lock()
				holder = ""
				if n%10 == 0 {
					expire(t, db, "contended")
				} else if err := s.Release(t.Context(), l.Claim); err != nil {
					t.Errorf("worker %d: release: %v", w, err)
				}
				mu.Unlock()
				if n >= takeovers {
					return
				}
			}
		})
	}
	wait.Wait()
	for i, token := range tokens {
		if token != uint64(i+1) {
			t.Fatalf("acquisition %d has token %d", i+1, token)
		}
	}
	if len(tokens) < takeovers {
		t.Errorf("%d acquisitions", len(tokens))
	}
}

func TestABrandNewNameIsTakenByExactlyOne(t *testing.T) {
	s := newStore(t, open(t, server.DSN("")))
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

// TestAHeldLeaseIsRefusedWithoutWaiting: the guard of an open transaction has
// the lease row locked.
func TestAHeldLeaseIsRefusedWithoutWaiting(t *testing.T) {
	db := open(t, server.DSN("app"))
	s := newStore(t, db)
	a := acquire(t, s, "locked", time.Minute)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, args := s.Guard(a.Claim).Exists()
	var one int
	if err := tx.QueryRow("SELECT 1 FROM DUAL WHERE "+text, args...).Scan(&one); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), "locked", time.Minute); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("a contender: %v", err)
	}
	// A takeover, though, waits until the guarded transaction has ended.
	renewed := make(chan error, 1)
	go func() {
		_, err := s.Renew(t.Context(), a.Claim, time.Minute)
		renewed <- err
	}()
	dbtest.WaitForLockWait(t, db, "renewals + 1")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; err != nil {
		t.Error(err)
	}
}

func TestAnySessionSettingsGiveTheSameTimes(t *testing.T) {
	root := open(t, server.DSN("app"))
	for i, settings := range []map[string]string{
		{"time_zone": "'+13:00'"},
		{"time_zone": "'-11:30'"},
		{"sql_mode": "''"},
		{"sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"},
		{"sql_mode": "'TRADITIONAL'"},
		{"sql_mode": "'ORACLE'"},
		{"character_set_client": "latin1", "collation_connection": "latin1_german1_ci"},
	} {
		for _, driver := range []string{"parseTime=true&loc=Asia%2FTokyo", "clientFoundRows=true", "interpolateParams=true"} {
			dsn := server.DSN("") + "?" + driver
			for name, value := range settings {
				dsn += "&" + name + "=" + url.QueryEscape(value)
			}
			db := open(t, dsn)
			db.SetMaxOpenConns(1)
			s := newStore(t, db)
			name := fmt.Sprintf("settings-%d-%d", i, len(driver))
			before := one(t, db, "SELECT @@time_zone")
			l := acquire(t, s, name, 90*time.Second)
			left := one(t, root, "SELECT TIMESTAMPDIFF(SECOND, CURRENT_TIMESTAMP(3), leased_until) FROM fenced_job_leases WHERE lease_name = '"+name+"'")
			if left != "89" && left != "90" {
				t.Errorf("%v %s: %s s left on the server", settings, driver, left)
			}
			if d := time.Until(l.LeasedUntil); d < 80*time.Second || d > 91*time.Second {
				t.Errorf("%v %s: %v left here", settings, driver, d)
			}
			if until, err := s.Renew(t.Context(), l.Claim, time.Hour); err != nil || time.Until(until) < 59*time.Minute {
				t.Errorf("%v %s: renewed until %v, %v", settings, driver, until, err)
			}
			if err := s.Release(t.Context(), l.Claim); err != nil {
				t.Errorf("%v %s: %v", settings, driver, err)
			}
			if after := one(t, db, "SELECT @@time_zone"); after != before {
				t.Errorf("%v %s: the session's time zone became %s", settings, driver, after)
			}
		}
	}
}

func one(t testing.TB, db *sql.DB, query string) string {
	t.Helper()
	var v string
	if err := db.QueryRow(query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// TestTheAmbiguousHour: in the hour that daylight saving repeats, local times
// compare wrongly. 2026-10-25 01:50:00 UTC is the second 02:50 in Prague; the
// first was 00:50 UTC.
func TestTheAmbiguousHour(t *testing.T) {
	t.Setenv("TZ", "Europe/Prague") // mariadbd takes SYSTEM from its environment
	local, err := dbtest.Start(t.Context(), dbtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = local.Stop() }()
	if err := prepare(local); err != nil {
		t.Fatal(err)
	}
	for _, minute := range []string{"1792975800", "1792979400"} { // 00:50 and 01:50 UTC
		db := open(t, local.DSN("")+"?timestamp="+minute)
		s := newStore(t, db)
		l := acquire(t, s, "hour-"+minute, 30*time.Minute)
		if got := l.LeasedUntil.Unix(); fmt.Sprint(got-1800) != minute {
			t.Errorf("at %s the lease ends at %d, want 1800 s later", minute, got)
		}
		f, err := s.Check(t.Context(), l.Claim)
		if err != nil || !f.Holds() || f.Current.SecondsLeft != 1800 {
			t.Errorf("at %s: %+v, %v", minute, f, err)
		}
	}
}

func TestAcquireWaitEndsWithItsContextOrTheLease(t *testing.T) {
	s := newStore(t, open(t, server.DSN("")))
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

func TestListShowsEveryLease(t *testing.T) {
	db := open(t, server.DSN(""))
	s := newStore(t, db)
	for _, name := range []string{"list-b", "list-a"} {
		acquire(t, s, name, time.Minute, lease.WithOwner("owner-of-"+name))
	}
	expire(t, db, "list-b")
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, i := range all {
		if strings.HasPrefix(i.Name, "list-") {
			seen = append(seen, fmt.Sprintf("%s %s %d held=%v", i.Name, i.Owner, i.Token, i.Held()))
		}
	}
	want := "[list-a owner-of-list-a 1 held=true list-b owner-of-list-b 1 held=false]"
	if fmt.Sprint(seen) != want {
		t.Errorf("got %v, want %v", seen, want)
	}
}

func TestTheGuardFencesAProgramsOwnWrites(t *testing.T) {
	db := open(t, server.DSN("app"))
	s := newStore(t, db)
	if _, err := db.Exec("CREATE OR REPLACE TABLE runs (id INT PRIMARY KEY, n INT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO runs VALUES (1, 0)"); err != nil {
		t.Fatal(err)
	}
	a := acquire(t, s, "guarded", time.Minute)
	write := func(c lease.Claim) (affected int64) {
		g := s.Guard(c)
		join, joinArgs := g.Join()
		exists, existsArgs := g.Exists()
		for query, args := range map[string][]any{
			"UPDATE runs " + join + " SET runs.n = runs.n + 1 WHERE runs.id = 1": joinArgs,
			"UPDATE runs SET n = n + 1 WHERE id = 1 AND " + exists:               existsArgs,
		} {
			r, err := db.Exec(query, args...)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := r.RowsAffected()
			affected += n
		}
		return affected
	}
	if n := write(a.Claim); n != 2 {
		t.Errorf("the holder changed %d rows", n)
	}
	if err := s.Release(t.Context(), a.Claim); err != nil {
		t.Fatal(err)
	}
	if n := write(a.Claim); n != 0 {
		t.Errorf("after the release %d rows were changed", n)
	}
	if got := one(t, db, "SELECT n FROM runs"); got != "2" {
		t.Errorf("n is %s", got)
	}
}

func randomName() string { return fmt.Sprintf("random-%d", rand.Int()) }
