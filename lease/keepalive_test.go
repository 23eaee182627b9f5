package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/lease"
)

func TestKeepAliveOutlivesTheTTL(t *testing.T) {
	s := newStore(t, open(t, server.DSN("")))
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
	db := open(t, server.DSN(""))
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
			<-alive.Done()
			if cause := context.Cause(alive); !errors.Is(cause, tt.want) {
				t.Errorf("cause %v, want %v", cause, tt.want)
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
	s := newStore(t, open(t, paused.DSN("")))
	start := time.Now()
	l := acquire(t, s, "paused", 2*time.Second)
	paused.Pause()
	defer paused.Resume()
	alive, stop := s.KeepAlive(t.Context(), l)
	defer stop()
	<-alive.Done()
	if cause := context.Cause(alive); !errors.Is(cause, lease.ErrUnconfirmed) {
		t.Errorf("cause %v", cause)
	}
	if took := time.Since(start); took >= 2*time.Second {
		t.Errorf("ended after %v, the lease had expired", took)
	}
}

func TestKeepAliveSurvivesARestartOfTheDatabase(t *testing.T) {
	restarted := dbtest.New(t)
	if err := prepare(restarted); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, open(t, restarted.DSN("")))
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
	s := newStore(t, open(t, server.DSN("")))
	l := acquire(t, s, randomName(), time.Minute)
	ctx, cancel := context.WithCancelCause(t.Context())
	alive, stop := s.KeepAlive(ctx, l)
	defer stop()
	why := errors.New("the program ends")
	cancel(why)
	<-alive.Done()
	if cause := context.Cause(alive); !errors.Is(cause, why) {
		t.Errorf("cause %v", cause)
	}
}
