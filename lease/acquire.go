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
	// deadlockTries is how often an acquisition is tried when the server picks
	// it as a deadlock's victim: new names are inserted by several at once.
	deadlockTries = 5
	// notTaken is what the statement reports as its insert id when the lease is
	// held by another. A token cannot come to it by counting.
	notTaken = ^uint64(0)
)

// acquireStatement takes the lease in one statement. The insert id of its answer
// tells what happened, whatever the connection's flags make of affected rows: 0
// for a new row, the token of a takeover, or notTaken. The assignments of ON
// DUPLICATE KEY UPDATE run from left to right, and each asks whether the lease
// has expired, so leased_until comes last.
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
// fence token by one. It returns a *HeldError while another holds the lease, and
// then waits for no lock: the guards of the holder's transactions have the row
// locked. A takeover does wait for them, as it must.
//
// An Acquire whose answer is lost with the connection may have taken the lease
// all the same; nobody knows its owner then, and it runs out after ttl.
func (s *Store) Acquire(ctx context.Context, name string, ttl time.Duration, opts ...Option) (*Lease, error) {
	o, err := newOptions(name, ttl, opts)
	if err != nil {
		return nil, err
	}
	if err := s.free(ctx, name); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		l, err := s.take(ctx, name, ttl, o)
		if !isDeadlock(err) || try == deadlockTries {
			return l, err
		}
	}
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

// free returns a *HeldError while somebody holds the lease. It takes no lock.
func (s *Store) free(ctx context.Context, name string) error {
	i, err := scanInfo(s.db.QueryRowContext(ctx, "SELECT "+columns+" FROM "+s.table+" WHERE lease_name = ?", name))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("acquire lease '%s': %w", name, err)
	}
	if i.Held() {
		return &HeldError{Info: i}
	}
	return nil
}

func (s *Store) take(ctx context.Context, name string, ttl time.Duration, o options) (*Lease, error) {
	start := time.Now()
	statement := fmt.Sprintf(acquireStatement, s.table, expiredCondition)
	result, err := s.write(ctx, statement, name, o.owner, o.metadata, ttl.Milliseconds()*1000)
	if err != nil {
		return nil, fmt.Errorf("acquire lease '%s': %w", name, err)
	}
	id, err := result.LastInsertId()
	if err != nil {
		return nil, fmt.Errorf("acquire lease '%s': %w", name, err)
	}
	token := uint64(id)
	switch token {
	case 0:
		token = 1
	case notTaken:
		return nil, s.heldAfterAll(ctx, name)
	}
	l := &Lease{Claim: Claim{Name: name, Owner: o.owner, Token: token}, TTL: ttl, deadline: start.Add(ttl)}
	f, err := s.Check(ctx, l.Claim)
	if err != nil {
		return nil, err
	}
	if err := f.err(l.Claim); err != nil {
		return nil, err
	}
	l.LeasedUntil = f.Current.LeasedUntil
	return l, nil
}

// heldAfterAll says who was faster. The one may have released it since.
func (s *Store) heldAfterAll(ctx context.Context, name string) error {
	if err := s.free(ctx, name); err != nil {
		return err
	}
	return &HeldError{Info: Info{Name: name, Owner: "another, which has released it since"}}
}

func isDeadlock(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1213
}

const (
	// A waiter looks again when the lease is due to expire, and at least this
	// often: the holder may release it sooner.
	longestPause  = time.Second
	shortestPause = 20 * time.Millisecond
)

// AcquireWait tries until it has the lease or ctx ends; the error is then both
// ErrHeld and ctx's. Pauses are jittered, so that waiters do not come in step.
func (s *Store) AcquireWait(ctx context.Context, name string, ttl time.Duration, opts ...Option) (*Lease, error) {
	for {
		l, err := s.Acquire(ctx, name, ttl, opts...)
		var held *HeldError
		if !errors.As(err, &held) {
			return l, err
		}
		pause := time.Duration(held.SecondsLeft * float64(time.Second))
		pause = min(max(pause, shortestPause), longestPause)
		pause = pause/2 + mathrand.N(pause/2+1)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(err, ctx.Err())
		case <-timer.C:
		}
	}
}
