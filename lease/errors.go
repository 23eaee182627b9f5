package lease

import (
	"errors"
	"fmt"
)

// The kinds of failure, for errors.Is. Errors that know more wrap them.
var (
	// ErrHeld: another holds the lease (*HeldError, unless it changed hands while
	// it was tried).
	ErrHeld = errors.New("lease is held")
	// ErrLost: the lease has another owner or token by now (*LostError).
	ErrLost = errors.New("lease is lost")
	// ErrExpired: the lease ran out, and nobody has taken it since
	// (*ExpiredError). It cannot be renewed all the same.
	ErrExpired = errors.New("lease has expired")
	// ErrNoLease: there is no lease of that name.
	ErrNoLease = errors.New("no such lease")
	// ErrUnconfirmed: KeepAlive could not renew the lease in time, so that the
	// database may have let it expire.
	ErrUnconfirmed = errors.New("lease could not be confirmed before its expiry")
	// ErrName, ErrOwner, ErrTTL and ErrTable: an argument is not valid.
	ErrName  = errors.New("bad lease name")
	ErrOwner = errors.New("bad lease owner")
	ErrTTL   = errors.New("bad lease TTL")
	ErrTable = errors.New("bad lease table")
)

// HeldError says who holds the lease, and for how long by the database's clock.
// The time is not positive where the lease has expired, but a transaction with
// the holder's guard is still open and has its row locked.
type HeldError struct{ Info }

func (e *HeldError) Error() string {
	if !e.Held() {
		return fmt.Sprintf("lease '%s' of %s (token %d) has expired, but an open transaction still has its row locked", e.Name, e.Owner, e.Token)
	}
	return fmt.Sprintf("lease '%s' is held by %s (token %d) for another %.3f s", e.Name, e.Owner, e.Token, e.SecondsLeft)
}

func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// LostError says who has the lease in the claim's place.
type LostError struct {
	Claim
	CurrentOwner string
	CurrentToken uint64
}

func (e *LostError) Error() string {
	return fmt.Sprintf("lease '%s' with token %d is lost: it is at token %d (owner %s)", e.Name, e.Token, e.CurrentToken, e.CurrentOwner)
}

func (e *LostError) Is(target error) bool { return target == ErrLost }

// ExpiredError names the claim whose lease ran out.
type ExpiredError struct {
	Claim
	// SecondsAgo is how long ago, by the database's clock.
	SecondsAgo float64
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("lease '%s' with token %d expired %.3f s ago; acquire it again", e.Name, e.Token, e.SecondsAgo)
}

func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }
