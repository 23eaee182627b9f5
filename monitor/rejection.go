package monitor

import (
	"time"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Rejection is one rejected write, or one that observe mode would have
// rejected. The error packet, the log line and the metrics are made from it.
type Rejection struct {
	Time time.Time
	// Session is the proxy's number for the session; Client its address.
	Session uint64
	Client  string
	User    string
	// Program is the connection attribute program_name, "" when not sent.
	Program  string
	Database string
	Table    rewrite.Table
	// Lease is the lease that the session claims, and RuleLease what the table's
	// rule says of it: the same, or "" where the rule takes the session's. Metrics
	// are labelled by RuleLease, since sessions could make up names without end.
	Lease     string
	RuleLease string
	// Owner and Token are the session's, "" when it has none.
	Owner string
	Token string
	// CurrentOwner, CurrentToken and LeasedUntil are the lease row's; HasLease
	// is false when there is no such row, or it was not looked at.
	HasLease     bool
	CurrentOwner string
	CurrentToken uint64
	LeasedUntil  time.Time
	Plan         rewrite.Kind
	Reason       rewrite.Reason
	// Detail is a sentence for Unsupported and Forbidden, and for an identity
	// that cannot be read.
	Detail string
	// Statement is the statement with its literals taken out; Digest its hash.
	Statement string
	Digest    string
	// Observed tells that the write was let through all the same.
	Observed bool
}
