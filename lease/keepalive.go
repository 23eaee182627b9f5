package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// renewals happen every third of the TTL, so that two may fail.
	renewalsPerTTL = 3
	// Local trust ends a tenth of the TTL before the lease can have expired:
	// time for a program to stop.
	marginsPerTTL = 10
	// retriesPerTTL is how often a renewal that failed is tried again, but with a
	// long TTL at least every longestRetry.
	retriesPerTTL = 20
	longestRetry  = 10 * time.Second
)

// KeepAlive renews l at a third of its TTL until ctx ends or stop is called. The
// context that it returns ends with the lease: its cause (context.Cause) is
// ErrLost, ErrExpired or ErrNoLease as soon as the database says so, and
// ErrUnconfirmed a tenth of the TTL before the lease could expire unrenewed,
// counted on the local monotonic clock from the start of the attempt that
// confirmed it last. The database is the authority; the local clock can only end
// the context sooner. A program that was suspended finds it ended when it goes
// on, or soon after: only the guard of a write is never too late.
//
// A renewal needs a connection of the Store's pool, and waits for transactions
// that the lease guards: they must be shorter than half the TTL.
//
// stop waits until no renewal is under way. It does not release the lease.
func (s *Store) KeepAlive(ctx context.Context, l *Lease) (alive context.Context, stop func()) {
	alive, cancel := context.WithCancelCause(ctx)
	k := &keeper{store: s, claim: l.Claim, ttl: l.TTL}
	// Apart from the renewals: one that hangs must not keep trust alive.
	k.watch = time.AfterFunc(k.trustLeft(l.deadline), func() { cancel(k.unconfirmed()) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer k.watch.Stop()
		cancel(k.keep(alive, l.deadline))
	}()
	return alive, func() {
		cancel(context.Canceled)
		<-done
	}
}

type keeper struct {
	store *Store
	claim Claim
	ttl   time.Duration
	watch *time.Timer // ends trust

	mu      sync.Mutex
	failure error // of the latest renewal
}

// trustLeft is how long a lease that can expire at deadline is to be trusted.
func (k *keeper) trustLeft(deadline time.Time) time.Duration {
	return time.Until(deadline) - k.ttl/marginsPerTTL
}

// keep renews until the lease is lost or ctx ends, and returns why.
func (k *keeper) keep(ctx context.Context, deadline time.Time) error {
	// Counted from when the lease was confirmed, however long ago that was.
	timer := time.NewTimer(time.Until(deadline) - k.ttl + k.ttl/renewalsPerTTL)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		start := time.Now()
		_, err := k.store.Renew(ctx, k.claim, k.ttl)
		switch {
		case err == nil:
			k.watch.Reset(k.trustLeft(start.Add(k.ttl)))
			timer.Reset(time.Until(start.Add(k.ttl / renewalsPerTTL)))
		case errors.Is(err, ErrLost), errors.Is(err, ErrExpired), errors.Is(err, ErrNoLease):
			return err
		default:
			timer.Reset(min(k.ttl/retriesPerTTL, longestRetry))
		}
		k.setFailure(err)
	}
}

func (k *keeper) setFailure(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failure = err
}

func (k *keeper) unconfirmed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure == nil {
		// The renewal hangs, or this process did not run for that long.
		return fmt.Errorf("%w: '%s': no answer to a renewal in time", ErrUnconfirmed, k.claim.Name)
	}
	return fmt.Errorf("%w: '%s': %w", ErrUnconfirmed, k.claim.Name, k.failure)
}
