package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/lease"
)

// cause waits until alive has ended, and tells why.
func cause(t *testing.T, alive context.Context) error {
	t.Helper()
	select {
	case <-alive.Done():
		return context.Cause(alive)
	case <-time.After(20 * time.Second):
		t.Fatal("the context has not ended")
		return nil
	}
}

func TestKeepAliveOutlivesTheTTL(t *testing.T) {
	s := newStore(t, server.Open(t, ""))
	l := acquire(t, s, randomName(), time.Second)
	alive, stop := s.KeepAlive(t.Context(), l)
	defer stop()
	select {
	case <-alive.Done():
		t.Fatalf("ended: %v", context.Cause(alive))
	case <-time.After(2500 * time.Millisecond): // the time that must pass is what is tested
	}
	f, err := s.Check(t.Context(), l.Claim)
	if err != nil || !f.Holds() || f.Current.Renewals < 4 {
		t.Errorf("%+v, %v", f, err)
	}
	stop()
	if !errors.Is(context.Cause(alive), context.Canceled) {
		t.Errorf("stopped with cause %v", context.Cause(alive))
	}
}

func TestKeepAliveEndsWhenTheLeaseIsLost(t *testing.T) {
	db := server.Open(t, "")
	s := newStore(t, db)
	for name, tt := range map[string]struct {
		lose func(l *lease.Lease)
		want error
	}{
		"taken over": {func(l *lease.Lease) {
			expire(t, db, l.Name)
			acquire(t, s, l.Name, time.Minute)
		}, lease.ErrLost},
		"expired": {func(l *lease.Lease) { expire(t, db, l.Name) }, lease.ErrExpired},
		"deleted": {func(l *lease.Lease) {
			if _, err := db.Exec("DELETE FROM "+table+" WHERE lease_name = ?", l.Name); err != nil {
				t.Fatal(err)
			}
		}, lease.ErrNoLease},
	} {
		t.Run(name, func(t *testing.T) {
			l := acquire(t, s, randomName(), 3*time.Second)
			alive, stop := s.KeepAlive(t.Context(), l)
			defer stop()
			start := time.Now()
			tt.lose(l)
			if err := cause(t, alive); !errors.Is(err, tt.want) {
				t.Errorf("cause %v, want %v", err, tt.want)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("noticed after %v, want the next renewal", took)
			}
		})
	}
}

func TestKeepAliveEndsBeforeTheExpiryWhenTheDatabaseHangs(t *testing.T) {
	paused := dbtest.New(t)
	if err := prepare(paused); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, paused.Open(t, ""))
	start := time.Now()
	l := acquire(t, s, "paused", 2*time.Second)
	paused.Pause()
	defer paused.Resume()
	alive, stop := s.KeepAlive(t.Context(), l)
	defer stop()
	if err := cause(t, alive); !errors.Is(err, lease.ErrUnconfirmed) {
		t.Errorf("cause %v", err)
	}
	if took := time.Since(start); took >= 2*time.Second {
		t.Errorf("ended after %v, the lease had expired", took)
	}
}

func TestKeepAliveEndsBeforeTheExpiryWhenARenewalHangs(t *testing.T) {
	db := server.Open(t, "app")
	s := newStore(t, db)
	l := acquire(t, s, randomName(), 2*time.Second)
	guarded(t, db, s, l.Claim) // stays open: renewals wait for it
	alive, stop := s.KeepAlive(t.Context(), l)
	defer stop()
	if err := cause(t, alive); !errors.Is(err, lease.ErrUnconfirmed) {
		t.Errorf("cause %v", err)
	}
	if f, err := s.Check(t.Context(), l.Claim); err != nil || !f.Holds() {
		t.Errorf("ended after the expiry: %v s left, %v", f.Current.SecondsLeft, err)
	}
}

// A program may have done much between the two calls.
func TestKeepAliveThatBeginsLateRenewsAtOnce(t *testing.T) {
	db := server.Open(t, "")
	s := newStore(t, db)
	const ttl = 3 * time.Second
	l := acquire(t, s, randomName(), ttl)
	start := time.Now()
	for late := false; !late; {
		f, err := s.Check(t.Context(), l.Claim)
		if err != nil {
			t.Fatal(err)
		}
		late = f.Current.SecondsLeft < 1
	}
	alive, stop := s.KeepAlive(t.Context(), l)
	defer stop()
	select {
	case <-alive.Done():
		t.Fatalf("ended: %v", context.Cause(alive))
	case <-time.After(time.Until(start.Add(ttl + ttl/3))): // the first TTL must be over
	}
	if held, err := s.IsHeld(t.Context(), l.Claim); !held || err != nil {
		t.Errorf("held %v, %v", held, err)
	}
}

func TestKeepAliveThatBeginsTooLateEndsAtOnce(t *testing.T) {
	db := server.Open(t, "")
	s := newStore(t, db)
	l := acquire(t, s, randomName(), time.Second)
	untilExpired(t, db, s, l.Claim)
	alive, stop := s.KeepAlive(t.Context(), l)
	defer stop()
	if err := cause(t, alive); !errors.Is(err, lease.ErrUnconfirmed) && !errors.Is(err, lease.ErrExpired) {
		t.Errorf("cause %v", err)
	}
}

func TestKeepAliveSurvivesARestartOfTheDatabase(t *testing.T) {
	restarted := dbtest.New(t)
	if err := prepare(restarted); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, restarted.Open(t, ""))
	l := acquire(t, s, "restarted", 6*time.Second)
	alive, stop := s.KeepAlive(t.Context(), l)
	defer stop()
	restarted.Kill()
	if err := restarted.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-alive.Done():
		t.Fatalf("ended: %v", context.Cause(alive))
	case <-time.After(4 * time.Second): // two renewals fall into it
	}
	if held, err := s.IsHeld(t.Context(), l.Claim); !held || err != nil {
		t.Errorf("held %v, %v", held, err)
	}
}

func TestKeepAliveEndsWithItsContext(t *testing.T) {
	s := newStore(t, server.Open(t, ""))
	l := acquire(t, s, randomName(), time.Minute)
	ctx, cancel := context.WithCancelCause(t.Context())
	alive, stop := s.KeepAlive(ctx, l)
	defer stop()
	why := errors.New("the program ends")
	cancel(why)
	if err := cause(t, alive); !errors.Is(err, why) {
		t.Errorf("cause %v", err)
	}
}
