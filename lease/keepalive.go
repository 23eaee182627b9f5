package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// renewals happen every third of the TTL, so that two may fail.
	renewalsPerTTL = 3
	// Local trust ends a tenth of the TTL before the lease can have expired:
	// time for a program to stop.
	marginsPerTTL = 10
	// retriesPerTTL is how often a renewal that failed is tried again.
	retriesPerTTL = 20
)

// KeepAlive renews l at a third of its TTL until ctx ends or stop is called. The
// context that it returns ends with the lease: its cause (context.Cause) is
// ErrLost, ErrExpired or ErrNoLease as soon as the database says so, and
// ErrUnconfirmed a tenth of the TTL before the lease could expire unrenewed,
// counted on the local monotonic clock from the start of the attempt that
// confirmed it last. The database is the authority; the local clock can only end
// the context sooner.
//
// stop waits until no renewal is under way. It does not release the lease.
func (s *Store) KeepAlive(ctx context.Context, l *Lease) (alive context.Context, stop func()) {
	alive, cancel := context.WithCancelCause(ctx)
	k := &keeper{store: s, claim: l.Claim, ttl: l.TTL, deadline: l.deadline}
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(k.keep(alive))
	}()
	return alive, func() {
		cancel(context.Canceled)
		<-done
	}
}

type keeper struct {
	store    *Store
	claim    Claim
	ttl      time.Duration
	deadline time.Time // when the lease can have expired
	failure  error     // of the latest renewal
}

// keep renews until the lease is lost, and returns why.
func (k *keeper) keep(ctx context.Context) error {
	timer := time.NewTimer(k.ttl / renewalsPerTTL)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		trust := k.deadline.Add(-k.ttl / marginsPerTTL)
		if !time.Now().Before(trust) {
			return k.unconfirmed()
		}
		if err := k.renew(ctx, trust); err != nil {
			return err
		}
		pause := k.ttl / renewalsPerTTL
		if k.failure != nil {
			pause = min(k.ttl/retriesPerTTL, time.Until(k.deadline.Add(-k.ttl/marginsPerTTL)))
		}
		timer.Reset(pause)
	}
}

// renew tries once, until trust ends. Its error is final; one that may pass is
// kept in failure.
func (k *keeper) renew(ctx context.Context, trust time.Time) error {
	attempt, cancel := context.WithDeadline(ctx, trust)
	defer cancel()
	start := time.Now()
	_, err := k.store.Renew(attempt, k.claim, k.ttl)
	k.failure = err
	switch {
	case err == nil:
		k.deadline = start.Add(k.ttl)
		return nil
	case errors.Is(err, ErrLost), errors.Is(err, ErrExpired), errors.Is(err, ErrNoLease):
		return err
	default:
		return nil
	}
}

func (k *keeper) unconfirmed() error {
	if k.failure == nil {
		// This process did not run for that long.
		return fmt.Errorf("%w: '%s' was not renewed in time", ErrUnconfirmed, k.claim.Name)
	}
	return fmt.Errorf("%w: '%s': %w", ErrUnconfirmed, k.claim.Name, k.failure)
}
