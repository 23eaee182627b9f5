package proxy

import (
	"errors"
	"time"

	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/monitor"
	"github.com/fenceproxy/fenceproxy/proxy/wire"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// abort is the state between a rejection inside a transaction, which the proxy
// rolled back at once, and the client's end of that transaction.
type abort struct{ err *wire.Error }

// judge decides about a statement that wrote nothing: its lease is current, and
// the answer is the truth (held), or it is not, and the write is rejected. zero
// is the server's own answer, nil when the statement was not sent.
//
// The diagnosis is exact in the direction that matters: a lease once lost stays
// lost for its token, so a lease that is current now was current for the guard.
func (s *session) judge(op operation, claim lease.Claim, zero []byte) (held bool, err error) {
	finding, err := s.check(claim)
	if err != nil {
		s.log.Error("lease cannot be checked", "lease", claim.Name, "err", err)
		return false, s.answerRejected(&wire.Error{
			Number: 1105, State: "HY000",
			Message: "fenceproxy: the write changed no row, and whether its lease is current could not be checked (see the proxy's log)",
		})
	}
	if finding.Holds() && zero != nil {
		return true, nil
	}
	r := s.rejection(op, reasonOf(finding), claim)
	r.setFinding(finding)
	return false, s.reject(op, r.Rejection, zero)
}

// reasonOf names what is wrong with a claim. A guard that failed while the
// lease looks current names the expiry: the claim's own lease cannot come back.
func reasonOf(f lease.Finding) rewrite.Reason {
	switch {
	case !f.Found:
		return rewrite.NoLease
	case !f.TokenMatches:
		return rewrite.StaleToken
	case !f.OwnerMatches:
		return rewrite.WrongOwner
	default:
		return rewrite.Expired
	}
}

// report is a rejection in the making.
type report struct{ monitor.Rejection }

func (r *report) setFinding(f lease.Finding) {
	if !f.Found {
		return
	}
	r.HasLease = true
	r.CurrentOwner = f.Current.Owner
	r.CurrentToken = f.Current.Token
	r.LeasedUntil = f.Current.LeasedUntil
}

func (s *session) rejection(op operation, reason rewrite.Reason, claim lease.Claim) report {
	text, digest := rewrite.Digest(s.facts.session, op.sql)
	return report{monitor.Rejection{
		Time:      time.Now(),
		Session:   s.id,
		Client:    s.client.RemoteAddr().String(),
		User:      s.user,
		Program:   s.program,
		Database:  s.facts.session.Database,
		Table:     op.plan.Write.Table,
		Lease:     claim.Name,
		RuleLease: op.plan.Write.Lease,
		Owner:     claim.Owner,
		Token:     s.facts.identity.token,
		Plan:      op.plan.Kind,
		Reason:    reason,
		Statement: text,
		Digest:    digest,
	}}
}

// unfenced decides about a write by a session without identity.
func (s *session) unfenced(op operation, claim lease.Claim, problem string) error {
	r := s.rejection(op, rewrite.Unfenced, claim)
	r.Detail = problem
	switch op.plan.Write.OnUnfenced {
	case rewrite.UnfencedAllow:
		s.srv.Monitor.Unfenced(op.plan.Write)
		return s.passOn(op.original)
	case rewrite.UnfencedObserve:
		r.Observed = true
		s.srv.Monitor.Reject(r.Rejection)
		return s.passOn(op.original)
	case rewrite.UnfencedReject:
	}
	return s.dropAndReject(op, r)
}

// refuse rejects a statement that cannot be guarded, or that is forbidden.
func (s *session) refuse(op operation, claim lease.Claim) error {
	r := s.rejection(op, op.plan.Reason, claim)
	r.Detail = op.plan.Why
	return s.dropAndReject(op, r)
}

// refuseUnnamed rejects a statement that belongs to no protected table: one that
// would break the fence itself, or that may write any table. While all rules only
// observe, it is reported and runs.
func (s *session) refuseUnnamed(op operation) error {
	if s.srv.Rules.AnyEnforced() {
		return s.refuse(op, lease.Claim{})
	}
	s.observe(op, lease.Claim{}, "")
	return s.passOn(op.original)
}

// refuseRevoked rejects a write whose binding has lost its lease, whatever the
// database says by now.
func (s *session) refuseRevoked(op operation, claim lease.Claim) error {
	finding, err := s.check(claim)
	if err != nil {
		s.log.Error("lease cannot be checked", "lease", claim.Name, "err", err)
	}
	r := s.rejection(op, rewrite.Expired, claim)
	if err == nil {
		r.Reason = reasonOf(finding)
		r.setFinding(finding)
	}
	return s.dropAndReject(op, r)
}

// observe reports what enforce mode would have rejected. It neither changes
// nor delays the session's own statement by more than the look at the lease.
func (s *session) observe(op operation, claim lease.Claim, problem string) {
	r := s.rejection(op, op.plan.Reason, claim)
	r.Observed = true
	switch {
	case problem != "":
		r.Reason = rewrite.Unfenced
		r.Detail = problem
	case op.plan.Kind == rewrite.Refuse:
		r.Detail = op.plan.Why
	default:
		finding, err := s.check(claim)
		if err != nil {
			s.log.Error("lease cannot be checked", "lease", claim.Name, "err", err)
			return
		}
		if finding.Holds() {
			return
		}
		r.Reason = reasonOf(finding)
		r.setFinding(finding)
	}
	s.srv.Monitor.Reject(r.Rejection)
}

func (s *session) dropAndReject(op operation, r report) error {
	if err := op.discard(); err != nil {
		return err
	}
	return s.reject(op, r.Rejection, nil)
}

// reject reports the rejection and answers the client, as the table's on_reject
// says. A statement that was refused for what it is always gets an error: "no
// row" would be no answer to a TRUNCATE.
func (s *session) reject(op operation, r monitor.Rejection, zero []byte) error {
	s.srv.Monitor.Reject(r)
	refused := r.Reason == rewrite.Unsupported || r.Reason == rewrite.Forbidden
	if op.plan.Write.OnReject == rewrite.RejectZeroRows && !refused {
		if zero == nil {
			zero = wire.AppendOK(nil, wire.OK{Status: s.status}, s.capabilities)
		}
		return s.send(zero)
	}
	return s.answerRejected(&wire.Error{Number: monitor.ErrorNumber, State: monitor.SQLState, Message: r.Message()})
}

// answerRejected sends e. Inside a transaction it first rolls back: a failed
// guard holds its lock on the lease row, which would block the new owner's
// renewals for as long as this session idles. What follows is refused until the
// client ends the transaction; otherwise a program that ignores errors would go
// on in autocommit.
func (s *session) answerRejected(e *wire.Error) error {
	if s.inTransaction() {
		err := s.rollback()
		if errors.As(err, new(*wire.Error)) {
			// An XA transaction ends by XA statements alone. The end of the
			// session rolls it back as well; e is its last word.
			return e
		}
		if err != nil {
			return err
		}
		s.aborted = &abort{err: e}
	}
	return s.sendError(e)
}

// whileAborted answers a statement of an aborted transaction: ROLLBACK ends it,
// COMMIT and what commits implicitly ends it with the rejection once more, and
// everything else is refused.
func (s *session) whileAborted(sql string, original, discard func() error) error {
	session := s.facts.session
	session.Autocommit = s.status&wire.StatusAutocommit != 0
	switch rewrite.EndOf(session, sql) {
	case rewrite.EndRollback:
		s.aborted = nil
		s.backend.SetSequence(0)
		if err := original(); err != nil {
			return err
		}
		return s.relay()
	case rewrite.EndCommit:
		if err := discard(); err != nil {
			return err
		}
		e := s.aborted.err
		s.aborted = nil
		return s.sendError(e)
	case rewrite.NoEnd:
	}
	return s.refuseAborted(discard)
}

// refuseAborted refuses a command of an aborted transaction after dropping it.
func (s *session) refuseAborted(discard func() error) error {
	if err := discard(); err != nil {
		return err
	}
	e := *s.aborted.err
	e.Message += "; the transaction was rolled back, end it with ROLLBACK"
	return s.sendError(&e)
}
