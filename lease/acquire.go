package lease

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Lease is a lease that was acquired here.
type Lease struct {
	Claim
	TTL time.Duration
	// LeasedUntil is its end by the database's clock.
	LeasedUntil time.Time
	// deadline is when local trust in it ends: the TTL after the start of the
	// attempt that confirmed it, on the local monotonic clock.
	deadline time.Time
}

// Option changes what Acquire stores.
type Option func(*options)

type options struct {
	owner    string
	metadata sql.NullString
}

// WithOwner gives the owner token; without it, it is 128 random bits. Two
// processes must never use the same.
func WithOwner(owner string) Option { return func(o *options) { o.owner = owner } }

// WithMetadata stores text for people beside the lease, up to 255 characters.
func WithMetadata(text string) Option {
	return func(o *options) { o.metadata = sql.NullString{String: text, Valid: true} }
}

const (
	// acquireTries is how often one Acquire tries: again when the server picks it
	// as a deadlock's victim, as it does when several insert a new name at once,
	// and when another was faster and may have released the lease since.
	acquireTries = 5
	// notTaken is the insert id when the lease is held by another. A token cannot
	// come to it by counting.
	notTaken = ^uint64(0)
)

// acquireStatement takes the lease in one statement. LAST_INSERT_ID() tells
// afterwards what happened: 0 for a new row, the token of a takeover, or
// notTaken. It does so whatever the connection's flags make of affected rows, and
// where a trigger on the table inserts a row of its own, which clears the insert
// id in the statement's answer. The assignments of ON DUPLICATE KEY UPDATE run
// from left to right, and each asks whether the lease has expired, so
// leased_until comes last.
const acquireStatement = "INSERT INTO %[1]s (lease_name, owner_token, fence_token, acquired_at, renewed_at, renewals, metadata, leased_until)" +
	" VALUES (?, ?, 1, CURRENT_TIMESTAMP(3), CURRENT_TIMESTAMP(3), 0, ?, CURRENT_TIMESTAMP(3) + INTERVAL ? MICROSECOND)" +
	" ON DUPLICATE KEY UPDATE" +
	" fence_token = IF(LAST_INSERT_ID(IF(%[2]s, fence_token + 1, 18446744073709551615)) = 18446744073709551615, fence_token, fence_token + 1)," +
	" owner_token = IF(%[2]s, VALUES(owner_token), owner_token)," +
	" acquired_at = IF(%[2]s, VALUES(acquired_at), acquired_at)," +
	" renewed_at = IF(%[2]s, VALUES(renewed_at), renewed_at)," +
	" renewals = IF(%[2]s, 0, renewals)," +
	" metadata = IF(%[2]s, VALUES(metadata), metadata)," +
	" leased_until = IF(%[2]s, VALUES(leased_until), leased_until)"

const expiredCondition = "leased_until <= CURRENT_TIMESTAMP(3)"

// Acquire tries once to take the lease called name for ttl, rounded down to
// milliseconds. Every takeover, also of an owner's own expired lease, raises the
// fence token by one.
//
// While another holds the lease, it returns a *HeldError and waits for no lock:
// the guards of the holder's transactions have the row locked. A takeover does
// wait for them, as it must, but for a second at most, so that a statement which
// nobody waits for any more cannot take the lease much later; the error is then a
// *HeldError too.
//
// An Acquire that ends with its context or its connection may have taken the
// lease all the same. Nobody uses it then, and it runs out after ttl.
func (s *Store) Acquire(ctx context.Context, name string, ttl time.Duration, opts ...Option) (*Lease, error) {
	o, err := newOptions(name, ttl, opts)
	if err != nil {
		return nil, err
	}
	for range acquireTries {
		var current Info
		current, err = s.read(ctx, name)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			break
		}
		if current.Held() {
			return nil, &HeldError{Info: current}
		}
		var l *Lease
		if l, err = s.take(ctx, name, ttl, o); err == nil {
			return l, nil
		}
		if isServerError(err, lockWaitTimeout) && current.Name != "" {
			return nil, &HeldError{Info: current}
		}
		if !mayTryAgain(err) {
			break
		}
	}
	return nil, fmt.Errorf("acquire lease '%s': %w", name, err)
}

// errOutrun: another took the lease between the look at it and the statement.
var errOutrun = fmt.Errorf("%w: another was faster", ErrHeld)

// mayTryAgain tells that a failed attempt has not left the lease with us. It may
// have had it until now: with a short TTL, it can expire while the statement
// waits for the row's lock.
func mayTryAgain(err error) bool {
	return errors.Is(err, errOutrun) || errors.Is(err, ErrExpired) || errors.Is(err, ErrLost) ||
		isServerError(err, deadlock) || isServerError(err, lockWaitTimeout)
}

// Error numbers of the server.
const (
	lockWaitTimeout = 1205
	deadlock        = 1213
)

func isServerError(err error, number uint16) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == number
}

func newOptions(name string, ttl time.Duration, opts []Option) (options, error) {
	o := options{owner: randomOwner()}
	for _, opt := range opts {
		opt(&o)
	}
	return o, errors.Join(ValidName(name), validOwner(o.owner), validTTL(ttl))
}

func randomOwner() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// read reads a lease without a lock, or returns sql.ErrNoRows.
func (s *Store) read(ctx context.Context, name string) (Info, error) {
	return scanInfo(s.db.QueryRowContext(ctx, "SELECT "+columns+" FROM "+s.table+" WHERE lease_name = ?", name))
}

// take runs the statement, and reads what it stored.
func (s *Store) take(ctx context.Context, name string, ttl time.Duration, o options) (*Lease, error) {
	start := time.Now()
	var token uint64
	var current Info
	err := s.in(ctx, acquiring, func(conn *sql.Conn) error {
		statement := fmt.Sprintf(acquireStatement, s.table, expiredCondition)
		if _, err := conn.ExecContext(ctx, statement, name, o.owner, o.metadata, ttl.Milliseconds()*1000); err != nil {
			return err
		}
		var err error
		current, err = scanInfo(conn.QueryRowContext(ctx, "SELECT CAST(LAST_INSERT_ID() AS UNSIGNED), "+columns+" FROM "+s.table+" WHERE lease_name = ?", name), &token)
		return err
	})
	if err != nil {
		return nil, err
	}
	switch token {
	case 0:
		token = 1
	case notTaken:
		return nil, errOutrun
	}
	l := &Lease{Claim: Claim{Name: name, Owner: o.owner, Token: token}, TTL: ttl, LeasedUntil: current.LeasedUntil, deadline: start.Add(ttl)}
	f := Finding{
		Found: true, TokenMatches: current.Token == token, OwnerMatches: current.Owner == o.owner,
		Expired: !current.Held(), Current: current,
	}
	return l, f.err(l.Claim)
}

const (
	// A waiter looks again when the lease is due to expire, and at least this
	// often: the holder may release it sooner.
	longestPause  = time.Second
	shortestPause = 20 * time.Millisecond
)

// AcquireWait tries until it has the lease or ctx ends; the error is then ctx's,
// and ErrHeld too if the lease was seen to be held. Pauses are jittered, so that
// waiters do not come in step.
func (s *Store) AcquireWait(ctx context.Context, name string, ttl time.Duration, opts ...Option) (*Lease, error) {
	var seen error // why the latest attempt that ran to its end did not get it
	for {
		l, err := s.Acquire(ctx, name, ttl, opts...)
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, ErrHeld), mayTryAgain(err):
			seen = err
		case ctx.Err() != nil:
			return nil, errors.Join(seen, err)
		default:
			return nil, err
		}
		timer := time.NewTimer(waiterPause(seen))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(seen, ctx.Err())
		case <-timer.C:
		}
	}
}

// waiterPause is how long a waiter pauses before it looks again.
func waiterPause(seen error) time.Duration {
	pause := shortestPause
	var held *HeldError
	if errors.As(seen, &held) {
		left := time.Duration(held.SecondsLeft * float64(time.Second))
		pause = min(max(left, shortestPause), longestPause)
	}
	return pause/2 + mathrand.N(pause/2+1)
}
