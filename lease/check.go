package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Finding is a claim held against the lease, as the guard of a write does it.
type Finding struct {
	Found        bool // there is a lease of that name; the rest is false without
	TokenMatches bool
	OwnerMatches bool
	Expired      bool
	Current      Info
}

// Holds tells that the claim's lease was current when it was read.
func (f Finding) Holds() bool { return f.Found && f.TokenMatches && f.OwnerMatches && !f.Expired }

// err is nil if the claim holds, and else says what became of it.
func (f Finding) err(c Claim) error {
	switch {
	case !f.Found:
		return fmt.Errorf("%w: '%s'", ErrNoLease, c.Name)
	case !f.TokenMatches || !f.OwnerMatches:
		return &LostError{Claim: c, CurrentOwner: f.Current.Owner, CurrentToken: f.Current.Token}
	case f.Expired:
		return &ExpiredError{Claim: c, SecondsAgo: -f.Current.SecondsLeft}
	default:
		return nil
	}
}

// Check reads the newest committed state of the claim's lease, without a lock.
// The comparisons are the server's, and come out as those of Guard. By the time
// it returns, the lease may be lost; one that is lost stays so for this claim.
func (s *Store) Check(ctx context.Context, c Claim) (Finding, error) {
	var f Finding
	row := s.db.QueryRowContext(ctx,
		"SELECT owner_token = ?, fence_token = ?, "+untilMS+" <= "+nowMS+", "+columns+" FROM "+s.table+" WHERE lease_name = ?",
		c.Owner, c.Token, c.Name)
	var err error
	f.Current, err = scanInfo(row, &f.OwnerMatches, &f.TokenMatches, &f.Expired)
	if errors.Is(err, sql.ErrNoRows) {
		return Finding{}, nil
	}
	if err != nil {
		return Finding{}, fmt.Errorf("check lease '%s': %w", c.Name, err)
	}
	f.Found = true
	return f, nil
}

// IsHeld tells that the claim's lease is current. A program that asks this
// before a write still races with a takeover: guard the write itself.
func (s *Store) IsHeld(ctx context.Context, c Claim) (bool, error) {
	f, err := s.Check(ctx, c)
	return f.Holds(), err
}
