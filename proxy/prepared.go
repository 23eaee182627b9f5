package proxy

import (
	"fmt"
	"time"

	"github.com/fenceproxy/fenceproxy/proxy/wire"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// statement is a prepared statement. Its plan was made with the facts of its
// preparation, as the server binds its names then; Plan.Under adds what counts at
// its execution.
type statement struct {
	sql          string
	plan         rewrite.Plan
	changesFacts bool
	locksTables  bool
	setsClock    bool
}

// prepare answers COM_STMT_PREPARE. Nothing is refused here: whether a write is
// rejected depends on the identity at its execution.
func (s *session) prepare() error {
	packet, err := s.client.ReadPacket(s.srv.MaxStatement)
	if err != nil {
		return clientError{err}
	}
	st := &statement{sql: string(packet[1:]), changesFacts: rewrite.MayChangeFacts(packet[1:])}
	st.locksTables, st.setsClock = rewrite.MayLast(packet[1:])
	if s.srv.Rules.Mentions(packet[1:]) {
		if err := s.refreshFacts(); err != nil {
			return s.sendServerError(err)
		}
		st.plan = preparedPlan(s.srv.Rules.PlanPrepared(s.facts.session, st.sql))
	}
	if st.plan.Text != "" {
		packet = append([]byte{byte(wire.ComStmtPrepare)}, st.plan.Text...)
	}
	s.backend.SetSequence(0)
	if err := s.toBackend(packet); err != nil {
		return err
	}
	return s.relayPrepared(st)
}

// preparedPlan is the plan of a statement that is prepared once, while each of
// its executions may or may not be guarded: where the rule lets some pass as
// they are, the statement is prepared as it is and guarded by the bracket.
func preparedPlan(p rewrite.Plan) rewrite.Plan {
	always := p.Write.Mode == rewrite.Enforce && p.Write.OnUnfenced == rewrite.UnfencedReject
	if always || p.Text == "" {
		return p
	}
	p.Kind = rewrite.Bracket
	p.Text = ""
	return p
}

// relayPrepared relays the answer to COM_STMT_PREPARE: parameter and column
// definitions follow its first packet.
func (s *session) relayPrepared(st *statement) error {
	_, first, err := s.peekBackend()
	if err != nil {
		return err
	}
	if first == wire.HeaderERR {
		return s.relay()
	}
	packet, err := s.backend.ReadPacket(maxFinal)
	if err != nil {
		return backendError{err}
	}
	prepared, err := wire.DecodePrepareOK(packet)
	if err != nil {
		return backendError{err}
	}
	s.statements[prepared.StatementID] = st
	s.lastID = prepared.StatementID
	if err := s.client.WritePacket(packet); err != nil {
		return clientError{err}
	}
	for _, count := range []uint16{prepared.Params, prepared.Columns} {
		if err := s.relayDefinitions(count); err != nil {
			return err
		}
	}
	if err := s.client.Flush(); err != nil {
		return clientError{err}
	}
	return nil
}

func (s *session) relayDefinitions(count uint16) error {
	if count == 0 {
		return nil
	}
	packets := int(count)
	if s.capabilities&wire.ClientDeprecateEOF == 0 {
		packets++
	}
	for range packets {
		if err := s.forwardDown(); err != nil {
			return err
		}
	}
	return nil
}

// find returns the statement that the client's next packet is about. A
// statement that the proxy did not see prepared is unknown, whatever the server
// says: SQL-level PREPARE hands out ids of the same kind.
func (s *session) find() (*statement, error) {
	_, first, err := s.client.Peek(5)
	if err != nil {
		return nil, clientError{err}
	}
	id, err := wire.DecodeStatementID(first)
	if err != nil {
		return nil, &wire.Error{Number: numberUnknownCommand, State: "08S01", Message: "fenceproxy: the packet is too short for a statement id"}
	}
	if id == wire.LastPrepared {
		id = s.lastID
	}
	return s.statements[id], nil
}

// execute answers COM_STMT_EXECUTE. The packet stays unread until it is known
// what becomes of it: its parameters may be large.
func (s *session) execute() error {
	start := time.Now()
	st, err := s.find()
	if err != nil {
		return err
	}
	if st == nil {
		return s.refuseUnknownStatement("mysqld_stmt_execute")
	}
	if s.aborted != nil {
		return s.whileAborted(st.sql, s.passSilent, s.discardCommand)
	}
	s.noteLasting(st.locksTables, st.setsClock)
	if st.plan.Under(s.facts.session).Kind == rewrite.Pass {
		s.facts.stale = s.facts.stale || st.changesFacts
		return s.passOn(s.passSilent)
	}
	if err := s.refreshFacts(); err != nil {
		if discardErr := s.discardCommand(); discardErr != nil {
			return discardErr
		}
		return s.sendServerError(err)
	}
	s.facts.stale = s.facts.stale || st.changesFacts
	return s.carryOut(operation{
		start:    start,
		sql:      st.sql,
		plan:     st.plan.Under(s.facts.session),
		original: s.forwardExecute,
		guarded:  s.forwardExecute,
		discard:  s.discardCommand,
	})
}

// forwardExecute sends the waiting COM_STMT_EXECUTE as a command of its own: the
// proxy's statements may have used the backend connection since.
func (s *session) forwardExecute() error {
	s.backend.SetSequence(0)
	return s.passSilent()
}

func (s *session) refuseUnknownStatement(function string) error {
	if err := s.discardCommand(); err != nil {
		return err
	}
	return s.sendError(&wire.Error{Number: numberUnknownStatement, State: "HY000", Message: fmt.Sprintf("Unknown prepared statement handler (0) given to %s", function)})
}

// fetch answers COM_STMT_FETCH: rows, and an EOF.
func (s *session) fetch() error {
	st, err := s.find()
	if err != nil {
		return err
	}
	if st == nil {
		return s.refuseUnknownStatement("mysqld_stmt_fetch")
	}
	return s.passForRows()
}

// closeStatement relays COM_STMT_CLOSE, which has no answer.
func (s *session) closeStatement() error {
	packet, err := s.client.ReadPacket(maxLogin)
	if err != nil {
		return clientError{err}
	}
	id, err := wire.DecodeStatementID(packet)
	if err != nil {
		return nil // as the server: a bad close is not answered
	}
	if id == wire.LastPrepared {
		id = s.lastID
	}
	delete(s.statements, id)
	return s.toBackend(packet)
}
