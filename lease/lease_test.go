package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
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

// newStore makes a store, whose leases end with the test: the next one, or the
// same again, begins with token 1.
func newStore(t testing.TB, db *sql.DB) *lease.Store {
	t.Helper()
	s, err := lease.New(db, table)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DELETE FROM " + table); err != nil {
			t.Errorf("delete the leases: %v", err)
		}
	})
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

func one(t testing.TB, db *sql.DB, query string) string {
	t.Helper()
	var v string
	if err := db.QueryRow(query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func randomName() string { return fmt.Sprintf("random-%d", rand.Int()) }

func TestAHeldLeaseIsRefusedAndAReleasedOneGetsTheNextToken(t *testing.T) {
	s := newStore(t, server.Open(t, ""))
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
	db := server.Open(t, "")
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
	db := server.Open(t, "")
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
		s := newStore(t, server.Open(t, parameters))
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
	s := newStore(t, server.Open(t, ""))
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

func TestListShowsEveryLease(t *testing.T) {
	db := server.Open(t, "")
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
