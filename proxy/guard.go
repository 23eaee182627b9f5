package proxy

import (
	"context"
	"time"

	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/proxy/wire"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// operation is one statement that the client wants carried out, by text or by
// the binary protocol.
type operation struct {
	start time.Time // when the proxy began to work on it
	sql   string
	plan  rewrite.Plan
	// original sends the client's own command to the backend, guarded the one
	// with Plan.Text; discard drops what of it was not read yet, in place of
	// both.
	original func() error
	guarded  func() error
	discard  func() error
}

// passOn sends a statement as it is.
func (s *session) passOn(original func() error) error {
	s.srv.Monitor.Passed()
	s.backend.SetSequence(0)
	if err := original(); err != nil {
		return err
	}
	return s.relay()
}

// carryOut does with the statement what its plan, its rule and the session's
// identity demand, and answers the client.
func (s *session) carryOut(op operation) error {
	w := op.plan.Write
	if op.plan.Kind == rewrite.Pass {
		return s.passOn(op.original)
	}
	if w.Table == (rewrite.Table{}) {
		return s.refuseUnnamed(op)
	}
	claim, problem, err := s.claim(w)
	if err != nil {
		if discardErr := op.discard(); discardErr != nil {
			return discardErr
		}
		return s.sendServerError(err)
	}
	if w.Mode == rewrite.Observe {
		s.observe(op, claim, problem)
		return s.passOn(op.original)
	}
	if problem != "" {
		return s.unfenced(op, claim, problem)
	}
	if op.plan.Kind == rewrite.Refuse {
		return s.refuse(op, claim)
	}
	if s.binding.isRevoked() {
		return s.refuseRevoked(op, claim)
	}
	if op.plan.Kind == rewrite.Bracket {
		return s.bracket(op, claim)
	}
	return s.sendGuarded(op, claim)
}

// claim reads the session's identity towards the lease of w. Where the rule
// lets sessions without identity write, having none is not taken from memory:
// a function may have set the variables unseen.
func (s *session) claim(w rewrite.Write) (claim lease.Claim, problem string, err error) {
	claim, problem = s.facts.identity.claim(w)
	if problem == "" || w.OnUnfenced == rewrite.UnfencedReject {
		return claim, problem, nil
	}
	stale := s.facts.stale
	if err := s.askFacts(); err != nil {
		return claim, problem, err
	}
	s.facts.stale = stale
	claim, problem = s.facts.identity.claim(w)
	return claim, problem, nil
}

// sendGuarded sends a statement that carries its guard within (join, exists).
func (s *session) sendGuarded(op operation, claim lease.Claim) error {
	s.facts.session.HoldsGuard = true
	s.backend.SetSequence(0)
	sent := time.Now()
	if err := op.guarded(); err != nil {
		return err
	}
	f, err := s.relayUntilFinal()
	if err != nil {
		return err
	}
	answered := time.Now()
	if f.failed() || touchedRows(f.ok) {
		s.srv.Monitor.Guarded(op.plan.Write, op.plan.Kind, time.Since(op.start)-answered.Sub(sent))
		return s.finish(f)
	}
	s.follow(f.ok.Status)
	held, err := s.judge(op, claim, f.packet)
	if err != nil || !held {
		return err
	}
	s.srv.Monitor.Guarded(op.plan.Write, op.plan.Kind, time.Since(op.start)-answered.Sub(sent))
	return s.finish(f)
}

// touchedRows tells that the statement found a row to write, which it can only
// while its guard holds. An UPDATE that changes nothing still matches.
func touchedRows(ok wire.OK) bool {
	matched, _ := wire.RowsMatched(ok.Info)
	return ok.AffectedRows > 0 || matched > 0
}

// bracket runs the statement as it is, after a guard that locks the lease row
// in the same transaction. Outside a transaction of the client's it opens one
// for the statement, and answers the client only once it has committed.
func (s *session) bracket(op operation, claim lease.Claim) error {
	// START TRANSACTION would release the client's LOCK TABLES. Without it the
	// guard fails under them with error 1100, as the statement itself would.
	own := !s.inTransaction() && !s.tablesLocked
	guard, err := s.runGuard(op.plan.Guard, own)
	if err == nil && !own && s.status&wire.StatusInTransaction == 0 && !guard.failed() {
		// The transaction had ended unseen, and the guard's lock with it; or the
		// tables were unlocked again.
		own = true
		guard, err = s.runGuard(op.plan.Guard, own)
	}
	if err != nil {
		return err
	}
	if guard.failed() || guard.rows == 0 {
		return s.missed(op, claim, guard, own)
	}
	s.facts.session.HoldsGuard = true
	s.backend.SetSequence(0)
	sent := time.Now()
	if err := op.original(); err != nil {
		return err
	}
	f, err := s.relayUntilFinal()
	if err != nil {
		return err
	}
	answered := time.Now()
	if own {
		f, err = s.endBracket(f.clone())
		if err != nil {
			return err
		}
	}
	s.srv.Monitor.Guarded(op.plan.Write, rewrite.Bracket, time.Since(op.start)-answered.Sub(sent))
	return s.finish(f)
}

// runGuard runs the bracket's guard, in a transaction of its own when own.
func (s *session) runGuard(guard string, own bool) (result, error) {
	if own {
		if err := s.queue(rewrite.BeginStatement); err != nil {
			return result{}, err
		}
	}
	if err := s.queue(guard); err != nil {
		return result{}, err
	}
	if err := s.flushBackend(); err != nil {
		return result{}, err
	}
	if !own {
		return s.readResult()
	}
	begun, err := s.readResult()
	if err != nil {
		return result{}, err
	}
	r, err := s.readResult()
	if err != nil || !begun.failed() {
		return r, err
	}
	// Without the transaction the guard's lock was gone at once.
	return begun, nil
}

// missed answers a bracketed statement whose guard did not hold, or failed. The
// statement itself was not sent.
func (s *session) missed(op operation, claim lease.Claim, guard result, own bool) error {
	fromServer := guard.err
	if own {
		if err := s.rollback(); err != nil {
			return err
		}
	}
	if err := op.discard(); err != nil {
		return err
	}
	if fromServer != nil {
		s.facts.stale = true
		return s.sendError(fromServer)
	}
	_, err := s.judge(op, claim, nil)
	return err
}

// endBracket ends the bracket's own transaction, and returns what the client is
// to be told: f, the statement's own answer, or the error of the COMMIT.
func (s *session) endBracket(f final) (final, error) {
	s.rowCount = rowCount{known: true, n: f.rowCount()}
	if f.failed() {
		// As in autocommit, where a failed statement leaves nothing behind.
		return f, s.rollback()
	}
	r, err := s.exec(rewrite.CommitStatement)
	if err != nil {
		return f, err
	}
	if r.failed() {
		return r.final.clone(), nil
	}
	if err := f.setStatus(f.ok.Status &^ wire.StatusInTransaction); err != nil {
		return f, backendError{err}
	}
	return f, nil
}

// rowCount is what ROW_COUNT() would say, had the proxy's COMMIT not come after
// the statement that it speaks of.
type rowCount struct {
	known bool
	n     int64
}

// rollback rolls the session's transaction back. A *wire.Error is the server's
// refusal to.
func (s *session) rollback() error {
	r, err := s.exec(rewrite.RollbackStatement)
	if err != nil {
		return err
	}
	if r.failed() {
		return r.err
	}
	return nil
}

// checkTimeout limits the look at the lease on the control connection.
const checkTimeout = 5 * time.Second

// check reads who holds the lease now: newest committed state, on the proxy's
// own connection, so that the session's state stays as it is.
func (s *session) check(claim lease.Claim) (lease.Finding, error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	return s.srv.Leases.Check(ctx, claim)
}
