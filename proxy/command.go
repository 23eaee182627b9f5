package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/fenceproxy/fenceproxy/proxy/wire"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Error numbers of the command phase, as the server gives them.
const (
	numberPacketTooLarge   = 1153
	numberUnknownStatement = 1243
)

// serveCommand reads one command and answers it.
func (s *session) serveCommand() error {
	s.client.SetSequence(0)
	if err := s.awaitCommand(); err != nil {
		return err
	}
	_, first, err := s.client.Peek(1)
	if err != nil {
		return clientError{err}
	}
	if len(first) == 0 {
		return &wire.Error{Number: numberUnknownCommand, State: "08S01", Message: "fenceproxy: empty command packet"}
	}
	s.backend.SetSequence(0)
	if err := s.dispatch(wire.Command(first[0])); err != nil {
		return s.endBadPacket(err)
	}
	return nil
}

// endBadPacket gives a client whose packet cannot be read an error to show.
func (s *session) endBadPacket(err error) error {
	switch {
	case errors.Is(err, wire.ErrTooLong):
		return &wire.Error{Number: numberPacketTooLarge, State: "08S01", Message: fmt.Sprintf("fenceproxy: the statement is longer than limits.max_statement_bytes (%d)", s.srv.MaxStatement)}
	case isSequenceError(err) && !errors.As(err, new(backendError)):
		return &wire.Error{Number: 1156, State: "08S01", Message: "Got packets out of order"}
	default:
		return err
	}
}

func (s *session) dispatch(command wire.Command) error {
	before := s.rowCount
	if command != wire.ComStmtClose {
		s.rowCount = rowCount{}
	}
	switch command {
	case wire.ComQuit:
		_ = s.forwardUp()
		_ = s.flushBackend()
		return errQuit
	case wire.ComQuery:
		return s.query(before)
	case wire.ComStmtPrepare:
		return s.prepare()
	case wire.ComStmtExecute:
		return s.execute()
	case wire.ComStmtFetch:
		return s.fetch()
	case wire.ComStmtSendLongData:
		return s.passSilent()
	case wire.ComStmtClose:
		return s.closeStatement()
	case wire.ComStmtReset, wire.ComPing, wire.ComRefresh, wire.ComDebug, wire.ComShutdown, wire.ComProcessKill:
		return s.passCommand()
	case wire.ComInitDB:
		s.facts.stale = true
		return s.passUnlessAborted()
	case wire.ComProcessInfo:
		return s.passUnlessAborted()
	case wire.ComFieldList:
		return s.passForRows()
	case wire.ComStatistics:
		return s.statistics()
	case wire.ComSetOption:
		return s.setOption()
	case wire.ComResetConnection:
		return s.resetConnection()
	case wire.ComChangeUser:
		return s.changeUser()
	case wire.ComBinlogDump, wire.ComBinlogDumpGTID, wire.ComRegisterSlave, wire.ComTableDump,
		wire.ComStmtBulkExecute, wire.ComMulti:
		return s.refuseCommand(command)
	default:
		return s.refuseCommand(command)
	}
}

// refuseCommand answers a command whose reply, or whose effect, the proxy does
// not know. Its payload is read, so that the session can go on.
func (s *session) refuseCommand(command wire.Command) error {
	if err := s.client.Discard(); err != nil {
		return clientError{err}
	}
	return s.sendError(&wire.Error{Number: numberUnknownCommand, State: "08S01", Message: fmt.Sprintf("fenceproxy: %s is not supported", command)})
}

// passCommand relays a command and its answer.
func (s *session) passCommand() error {
	if err := s.passSilent(); err != nil {
		return err
	}
	return s.relay()
}

// passSilent relays a command that the server does not answer.
func (s *session) passSilent() error {
	if err := s.forwardUp(); err != nil {
		return err
	}
	return s.flushBackend()
}

func (s *session) passUnlessAborted() error {
	if s.aborted != nil {
		return s.refuseAborted(s.discardCommand)
	}
	return s.passCommand()
}

func (s *session) discardCommand() error {
	if err := s.client.Discard(); err != nil {
		return clientError{err}
	}
	return nil
}

// passForRows relays a command whose answer is rows alone, up to an EOF.
func (s *session) passForRows() error {
	if s.aborted != nil {
		return s.refuseAborted(s.discardCommand)
	}
	if err := s.passSilent(); err != nil {
		return err
	}
	f, err := s.relayRows()
	if err != nil {
		return err
	}
	return s.finish(f)
}

// statistics relays COM_STATISTICS, whose answer is a bare string.
func (s *session) statistics() error {
	if err := s.passSilent(); err != nil {
		return err
	}
	if err := s.forwardDown(); err != nil {
		return err
	}
	if err := s.client.Flush(); err != nil {
		return clientError{err}
	}
	return nil
}

// setOption relays COM_SET_OPTION. Once a session could send several statements
// in a packet, the proxy goes on reading its packets so: a reset may turn the
// option on again unseen, and reading a lone statement so loses nothing.
func (s *session) setOption() error {
	s.facts.session.MultiStatements = true
	return s.passCommand()
}

func (s *session) resetConnection() error {
	if err := s.passSilent(); err != nil {
		return err
	}
	f, err := s.readFinal()
	if err != nil {
		return err
	}
	if f.failed() {
		return s.finish(f)
	}
	s.forget()
	return s.finishLogin(f)
}

// query answers COM_QUERY. before is what ROW_COUNT() is to say, if the proxy's
// own COMMIT came between it and the statement that it speaks of.
func (s *session) query(before rowCount) error {
	start := time.Now()
	packet, err := s.client.ReadPacket(s.srv.MaxStatement)
	if err != nil {
		return clientError{err}
	}
	sql := packet[1:]
	original := func() error { return s.toBackend(packet) }
	if s.aborted != nil {
		return s.whileAborted(string(sql), original, nothingLeft)
	}
	if before.known && bytes.Contains(bytes.ToLower(sql), []byte("row_count")) {
		if text, ok := rewrite.RestoreRowCount(s.facts.session, string(sql), before.n); ok {
			packet = append([]byte{byte(wire.ComQuery)}, text...)
			sql = packet[1:]
		}
	}
	s.noteLasting(rewrite.MayLast(sql))
	mentions := s.srv.Rules.Mentions(sql)
	changes := rewrite.MayChangeFacts(sql)
	if !mentions {
		s.facts.stale = s.facts.stale || changes
		return s.passOn(original)
	}
	if err := s.refreshFacts(); err != nil {
		return s.sendServerError(err)
	}
	text := string(sql)
	plan := s.srv.Rules.Plan(s.facts.session, text)
	s.facts.stale = s.facts.stale || changes
	return s.carryOut(operation{
		start:    start,
		sql:      text,
		plan:     plan,
		original: original,
		guarded:  func() error { return s.toBackend(append([]byte{byte(wire.ComQuery)}, plan.Text...)) },
		discard:  nothingLeft,
	})
}

// noteLasting takes note of what a statement may do that lasts, and that the
// server does not tell. Tables stay locked until any of several statements, which
// are not followed: what is bracketed finds out.
func (s *session) noteLasting(locksTables, setsClock bool) {
	s.tablesLocked = s.tablesLocked || locksTables
	s.clockSet = s.clockSet || setsClock
	s.facts.stale = s.facts.stale || setsClock
}

// nothingLeft is the discard of a command that was read whole.
func nothingLeft() error { return nil }

// sendServerError answers the client with an error that the server gave to a
// statement of the proxy's own; any other error ends the session.
func (s *session) sendServerError(err error) error {
	var fromServer *wire.Error
	if errors.As(err, &fromServer) {
		return s.sendError(fromServer)
	}
	return err
}
