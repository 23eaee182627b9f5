package lease

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// holds is the condition that a claim is current, for three arguments, in a
// session whose time zone is UTC.
const holds = " WHERE lease_name = ? AND owner_token = ? AND fence_token = ? AND leased_until > CURRENT_TIMESTAMP(3)"

// Renew extends the claim's lease to ttl from now, rounded down to milliseconds,
// and returns its new end by the database's clock. The lease must still be
// current: renewing an expired one fails with ErrExpired even if nobody has
// taken it, so that a token which a guard has found expired never comes back.
// It waits for the locks of guarded transactions, the holder's own included; a
// renewal that began before the expiry succeeds all the same.
func (s *Store) Renew(ctx context.Context, c Claim, ttl time.Duration) (leasedUntil time.Time, err error) {
	if err := validTTL(ttl); err != nil {
		return time.Time{}, err
	}
	// Counting makes sure that the row changes, whatever the clock's resolution:
	// affected rows are 0 for an UPDATE that changes nothing.
	err = s.change(ctx, "renew", "renewals = renewals + 1, renewed_at = CURRENT_TIMESTAMP(3), leased_until = CURRENT_TIMESTAMP(3) + INTERVAL ? MICROSECOND", c, ttl.Milliseconds()*1000)
	if err != nil {
		return time.Time{}, err
	}
	f, err := s.Check(ctx, c)
	if err != nil {
		return time.Time{}, err
	}
	return f.Current.LeasedUntil, f.err(c)
}

// Release ends the claim's lease now, so that another can take it at once. The
// row and its token stay. Errors are as for Renew.
func (s *Store) Release(ctx context.Context, c Claim) error {
	return s.change(ctx, "release", "leased_until = CURRENT_TIMESTAMP(3)", c)
}

// change updates the claim's row if the claim is current.
func (s *Store) change(ctx context.Context, verb, set string, c Claim, args ...any) error {
	var changed int64
	err := s.in(ctx, utc, func(conn *sql.Conn) error {
		result, err := conn.ExecContext(ctx, "UPDATE "+s.table+" SET "+set+holds, append(args, c.Name, c.Owner, c.Token)...)
		if err != nil {
			return err
		}
		changed, err = result.RowsAffected()
		return err
	})
	if err != nil {
		return fmt.Errorf("%s lease '%s': %w", verb, c.Name, err)
	}
	if changed > 0 {
		return nil
	}
	f, err := s.Check(ctx, c)
	if err != nil {
		return err
	}
	if err := f.err(c); err != nil {
		return err
	}
	return fmt.Errorf("%s lease '%s': %w", verb, c.Name, ErrUnconfirmed)
}
