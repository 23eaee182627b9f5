package rewrite

import "fmt"

// Reason says why a write was rejected. The set is closed: the error that the
// client sees, the log key and the metric label are all made from it.
type Reason uint8

const (
	NoReason Reason = iota
	// Unfenced: the session has no fence identity.
	Unfenced
	// StaleToken: the lease is at another fence token than the session's.
	StaleToken
	// WrongOwner: the token matches and the owner does not.
	WrongOwner
	// Expired: owner and token match, but the lease has run out.
	Expired
	// NoLease: there is no lease row of that name.
	NoLease
	// Unsupported: the statement cannot be guarded soundly.
	Unsupported
	// RowToken: the row belongs to another generation.
	RowToken
	// Forbidden: the statement would forge or break the fence itself.
	Forbidden
)

var reasonNames = [...]string{
	NoReason: "none", Unfenced: "unfenced", StaleToken: "stale_token", WrongOwner: "wrong_owner",
	Expired: "expired", NoLease: "no_lease", Unsupported: "unsupported", RowToken: "row_token", Forbidden: "forbidden",
}

// Reasons are all reasons for a rejection, in order.
func Reasons() []Reason {
	return []Reason{Unfenced, StaleToken, WrongOwner, Expired, NoLease, Unsupported, RowToken, Forbidden}
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", r)
}
