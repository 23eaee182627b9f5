package rewrite

// Table names a table. Both parts are as the server stores them.
type Table struct{ Schema, Name string }

func (t Table) String() string { return t.Schema + "." + t.Name }

// Mode says whether a rule's rejections take effect.
type Mode uint8

const (
	// Enforce rejects what the guard does not let through.
	Enforce Mode = iota
	// Observe runs every statement as it is and reports what Enforce would
	// have rejected.
	Observe
)

// OnUnfenced says what becomes of a write by a session without an identity.
type OnUnfenced uint8

const (
	UnfencedReject OnUnfenced = iota
	UnfencedObserve
	UnfencedAllow
)

// OnReject says how a rejection reaches the client.
type OnReject uint8

const (
	// RejectError answers with an error packet.
	RejectError OnReject = iota
	// RejectZeroRows answers with an OK that affected no row.
	RejectZeroRows
)

// Rule protects one table.
type Rule struct {
	Table Table
	// Lease is the lease's name, or "" for the session's @fence_lease.
	Lease      string
	Mode       Mode
	OnUnfenced OnUnfenced
	OnReject   OnReject
}
