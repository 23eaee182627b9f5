package proxy

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fenceproxy/fenceproxy/proxy/wire"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// facts is what the proxy knows of the session's state on the server. It is
// asked for just before a statement that may write a protected table, and only
// when something may have changed it since: that statement's own outcome then
// replaces the diagnostics (warnings, ROW_COUNT) that asking disturbs.
type facts struct {
	stale    bool
	session  rewrite.Session
	identity identity
}

// factsQuery asks for everything at once. Its text is plain ASCII without
// quotes, and its strings come back as binary, so that no sql_mode or character
// set of the session changes how either reads. A user variable's own character
// set is converted; CURRENT_TIMESTAMP obeys SET timestamp, SYSDATE does not.
const factsQuery = "SELECT CAST(DATABASE() AS BINARY), CAST(@@sql_mode AS BINARY), CAST(@@character_set_client AS BINARY)," +
	" CAST(@@lower_case_table_names AS BINARY)," +
	" CAST(CONVERT(@fence_lease USING utf8mb4) AS BINARY), CAST(CONVERT(@fence_owner USING utf8mb4) AS BINARY)," +
	" CAST(CONVERT(@fence_token USING utf8mb4) AS BINARY)," +
	" CAST(UNIX_TIMESTAMP(CURRENT_TIMESTAMP(6)) - UNIX_TIMESTAMP(SYSDATE(6)) AS BINARY)," +
	" CAST(@@character_set_connection AS BINARY)," +
	" CAST(@@sql_safe_updates OR NOT @@sql_big_selects AS BINARY) LIMIT 1"

// forgedClockSeconds is how far a statement's clock may be from the server's
// before it counts as set by hand. The two are read microseconds apart; the
// margin is for a server that was stopped in between.
const forgedClockSeconds = 1.0

// refreshFacts asks the server, if anything may have changed. A *wire.Error is
// the server's refusal to answer.
func (s *session) refreshFacts() error {
	if !s.facts.stale {
		return nil
	}
	return s.askFacts()
}

func (s *session) askFacts() error {
	r, err := s.exec(factsQuery)
	if err != nil {
		return err
	}
	if r.failed() {
		return r.err
	}
	if len(r.row) != 10 {
		return backendError{fmt.Errorf("asked for the session's state, got %d columns", len(r.row))}
	}
	lowerCase, err := strconv.Atoi(r.row[3].text)
	if err != nil {
		return backendError{fmt.Errorf("lower_case_table_names: %w", err)}
	}
	drift, err := strconv.ParseFloat(r.row[7].text, 64)
	if err != nil {
		return backendError{fmt.Errorf("session clock: %w", err)}
	}
	s.facts.session = rewrite.Session{
		Database:            r.row[0].text,
		SQLMode:             parseSQLMode(r.row[1].text),
		Charset:             strings.ToLower(r.row[2].text),
		ConnectionCharset:   strings.ToLower(r.row[8].text),
		LowerCaseTableNames: lowerCase,
		LimitsJoins:         r.row[9].text == "1",
		MultiStatements:     s.facts.session.MultiStatements,
		HoldsGuard:          s.facts.session.HoldsGuard,
		ForgedClock:         math.Abs(drift) > forgedClockSeconds,
	}
	s.facts.identity = identity{
		lease: r.row[4].text,
		owner: r.row[5].text, hasOwner: !r.row[5].null,
		token: r.row[6].text, hasToken: !r.row[6].null,
	}
	// A clock that was set may stand still: it is off only later.
	s.facts.stale = s.clockSet
	return nil
}

func parseSQLMode(text string) rewrite.SQLMode {
	var mode rewrite.SQLMode
	for name := range strings.SplitSeq(text, ",") {
		switch name {
		case "ANSI_QUOTES":
			mode |= rewrite.ANSIQuotes
		case "NO_BACKSLASH_ESCAPES":
			mode |= rewrite.NoBackslashEscapes
		case "PIPES_AS_CONCAT":
			mode |= rewrite.PipesAsConcat
		case "IGNORE_SPACE":
			mode |= rewrite.IgnoreSpace
		case "ORACLE":
			mode |= rewrite.Oracle
		}
	}
	return mode
}

// result is the server's answer to a statement of the proxy's own.
type result struct {
	final
	rows int
	row  []value // the first row
}

type value struct {
	text string
	null bool
}

// exec runs a statement of the proxy's own on the session's backend connection;
// the client sees nothing of it. The session's status flags follow it.
func (s *session) exec(statement string) (result, error) {
	if err := s.queue(statement); err != nil {
		return result{}, err
	}
	if err := s.flushBackend(); err != nil {
		return result{}, err
	}
	return s.readResult()
}

// queue writes a COM_QUERY to the backend without sending it yet. Several can
// be sent at once: the server reads one after the other. Each answer is then
// read by readResult.
func (s *session) queue(statement string) error {
	s.backend.SetSequence(0)
	packet := append([]byte{byte(wire.ComQuery)}, statement...)
	if err := s.backend.WritePacket(packet); err != nil {
		return backendError{err}
	}
	return nil
}

// maxOwnRow is the longest row in bytes of an answer to the proxy's own
// statements: user variables may be large, an identity is not.
const maxOwnRow = 1 << 20

// readResult reads the answer to one queued statement.
func (s *session) readResult() (result, error) {
	s.backend.SetSequence(1)
	packet, err := s.backend.ReadPacket(maxFinal)
	if err != nil {
		return result{}, backendError{err}
	}
	if len(packet) == 0 {
		return result{}, backendError{wire.ErrShort}
	}
	if packet[0] == wire.HeaderOK || packet[0] == wire.HeaderERR {
		return s.endResult(result{}, packet)
	}
	columns, err := wire.DecodeColumnCount(packet)
	if err != nil {
		return result{}, backendError{err}
	}
	definitions := columns
	if s.capabilities&wire.ClientDeprecateEOF == 0 {
		definitions++
	}
	for range definitions {
		if err := s.backend.Discard(); err != nil {
			return result{}, backendError{err}
		}
	}
	return s.readRows(columns)
}

func (s *session) readRows(columns int) (result, error) {
	var r result
	for {
		packet, err := s.backend.ReadPacket(maxOwnRow)
		if err != nil {
			return result{}, backendError{err}
		}
		if len(packet) == 0 {
			return result{}, backendError{wire.ErrShort}
		}
		if isEnd(len(packet), packet[0]) {
			return s.endResult(r, packet)
		}
		r.rows++
		if r.rows > 1 {
			continue
		}
		r.row, err = decodeRow(packet, columns)
		if err != nil {
			return result{}, backendError{err}
		}
	}
}

func decodeRow(packet []byte, columns int) ([]value, error) {
	c := wire.NewCursor(packet)
	row := make([]value, columns)
	for i := range row {
		text, ok := c.NullableString()
		row[i] = value{text: string(text), null: !ok}
	}
	return row, c.Err()
}

func (s *session) endResult(r result, packet []byte) (result, error) {
	f, err := s.decodeFinal(packet)
	if err != nil {
		return result{}, err
	}
	r.final = f
	if !f.failed() {
		s.follow(f.ok.Status)
	}
	return r, nil
}
