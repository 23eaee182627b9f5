package rewrite

import "fmt"

// Kind says how a statement is sent to the server.
type Kind uint8

const (
	// Pass sends the statement as it is: it writes no protected table.
	Pass Kind = iota
	// Join sends Plan.Text: the UPDATE joined to its lease row.
	Join
	// Exists sends Plan.Text: the statement with a locking EXISTS in its WHERE.
	Exists
	// Bracket runs Plan.Guard in the statement's transaction and, while the
	// guard's row is locked, the statement itself, byte for byte.
	Bracket
	// Refuse sends nothing: the statement cannot be guarded soundly, or is
	// forbidden. Plan.Reason tells which and Plan.Why tells a person.
	Refuse
)

var kindNames = [...]string{Pass: "pass", Join: "join", Exists: "exists", Bracket: "bracket", Refuse: "refuse"}

// Kinds are all plan kinds, in order.
func Kinds() []Kind { return []Kind{Pass, Join, Exists, Bracket, Refuse} }

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// Plan is what becomes of one statement.
type Plan struct {
	Kind Kind
	// Write is the protected write, with the policy of every protected table
	// that the statement writes merged into the strictest. Zero for Pass, and
	// for a Refuse that names no protected table.
	Write Write
	// Text is what is sent in the statement's place (Join and Exists).
	Text string
	// Guard is the locking SELECT that precedes the statement (Bracket). It
	// returns one row while the lease is current, and none otherwise.
	Guard string
	// Reason is Unsupported or Forbidden for Refuse, and NoReason otherwise.
	Reason Reason
	// Why is one sentence for a person: why this plan and not a cheaper one.
	Why string
	// unlocks tells that the statement lets go of its transaction's locks on rows
	// that were only read, while what was written waits to be committed.
	unlocks bool
}

// guarded tells that the plan is to send the statement with a guard.
func (p Plan) guarded() bool { return p.Kind == Join || p.Kind == Exists || p.Kind == Bracket }

// Under is the plan as it is when the statement is executed in s: a statement may
// have been prepared before the session got there.
func (p Plan) Under(s Session) Plan {
	switch {
	case p.guarded() && s.ForgedClock:
		return Plan{Kind: Refuse, Write: p.Write, Reason: Forbidden, Why: "SET timestamp has changed the session's clock, by which the lease would be judged; SET timestamp = DEFAULT first"}
	case p.unlocks && s.HoldsGuard:
		return Plan{Kind: Refuse, Reason: Unsupported, Why: "XA PREPARE lets go of the lock that guards the branch's writes, which would be committed under a later holder; use XA COMMIT … ONE PHASE"}
	default:
		return p
	}
}

// Write is the policy for one guarded statement.
type Write struct {
	Table Table
	// Lease is the lease's name, or "" for the session's @fence_lease.
	Lease      string
	Mode       Mode
	OnUnfenced OnUnfenced
	OnReject   OnReject
}
