package proxy

import (
	"errors"
	"fmt"

	"github.com/fenceproxy/fenceproxy/proxy/wire"
)

// final is the last packet of a response, read from the backend and not yet
// sent to the client. Its packet is valid until the next read from the backend.
type final struct {
	packet []byte
	form   form
	ok     wire.OK
	err    *wire.Error // nil but for form errPacket
}

// form is how a final packet is laid out.
type form uint8

const (
	okPacket  form = iota // OK, or OK with the header 0xfe at the end of rows
	eofPacket             // EOF as before CLIENT_DEPRECATE_EOF
	errPacket
)

func (f final) failed() bool { return f.form == errPacket }

// more tells that another result follows in the same response.
func (f final) more() bool { return !f.failed() && f.ok.Status&wire.StatusMoreResults != 0 }

// rowCount is what ROW_COUNT() says after the response: -1 after an error or a
// result set (manual: "ROW_COUNT()").
func (f final) rowCount() int64 {
	if f.packet[0] == wire.HeaderOK {
		return int64(f.ok.AffectedRows)
	}
	return -1
}

// clone copies the packet, so that it outlives the next read.
func (f final) clone() final {
	f.packet = append([]byte(nil), f.packet...)
	return f
}

// setStatus changes the status flags that the client will see.
func (f *final) setStatus(status uint16) error {
	f.ok.Status = status
	switch f.form {
	case okPacket:
		return wire.SetStatus(f.packet, status)
	case eofPacket:
		return wire.SetEOFStatus(f.packet, status)
	case errPacket:
	}
	return nil
}

// isEnd tells that a packet of length bytes in the place of a row ends the rows.
func isEnd(length int, first byte) bool {
	// A row whose first value is 16 MB or longer begins with 0xfe as well; its
	// packet is full.
	return first == wire.HeaderERR || first == wire.HeaderEOF && length < wire.MaxPayload
}

// eofSize is the length in bytes of an EOF packet; an OK packet with the same
// header is longer.
const eofSize = 5

// decodeFinal reads packet as the end of a response or of rows.
func (s *session) decodeFinal(packet []byte) (final, error) {
	f := final{packet: packet}
	var err error
	switch {
	case packet[0] == wire.HeaderERR:
		f.form = errPacket
		f.err, err = wire.DecodeError(packet)
	case packet[0] == wire.HeaderEOF && len(packet) <= eofSize:
		f.form = eofPacket
		f.ok, err = wire.DecodeEOF(packet)
	default:
		f.ok, err = wire.DecodeOK(packet, s.capabilities)
	}
	if err != nil {
		return f, backendError{err}
	}
	return f, nil
}

// maxFinal is the longest final packet in bytes: OK packets carry the session
// state that changed, which may hold large variables.
const maxFinal = 1 << 24

func (s *session) readFinal() (final, error) {
	packet, err := s.backend.ReadPacket(maxFinal)
	if err != nil {
		return final{}, backendError{err}
	}
	if len(packet) == 0 {
		return final{}, backendError{wire.ErrShort}
	}
	return s.decodeFinal(packet)
}

// peekBackend returns the length and first byte of the backend's next packet.
func (s *session) peekBackend() (length int, first byte, err error) {
	if s.backend.Buffered() == 0 {
		if err := s.client.Flush(); err != nil {
			return 0, 0, clientError{err}
		}
	}
	length, start, err := s.backend.Peek(1)
	if err != nil {
		return 0, 0, backendError{err}
	}
	if length == 0 {
		return 0, 0, backendError{wire.ErrShort}
	}
	return length, start[0], nil
}

// toBackend sends packet to the backend at once.
func (s *session) toBackend(packet []byte) error {
	if err := s.backend.WritePacket(packet); err != nil {
		return backendError{err}
	}
	return s.flushBackend()
}

func (s *session) flushBackend() error {
	if err := s.backend.Flush(); err != nil {
		return backendError{err}
	}
	return nil
}

// forwardUp moves the client's next packet to the backend, forwardDown the
// other way; the error tells which side failed.
func (s *session) forwardUp() error {
	err := s.client.Forward(s.backend)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wire.ErrWrite):
		return backendError{err}
	default:
		return clientError{err}
	}
}

func (s *session) forwardDown() error {
	err := s.backend.Forward(s.client)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wire.ErrWrite):
		return clientError{err}
	default:
		return backendError{err}
	}
}

// relay passes a whole response to the client.
func (s *session) relay() error {
	f, err := s.relayUntilFinal()
	if err != nil {
		return err
	}
	return s.finish(f)
}

// relayUntilFinal passes a response to the client as it arrives, but for its
// last packet.
func (s *session) relayUntilFinal() (final, error) {
	for {
		f, err := s.relayResult()
		if err != nil || !f.more() {
			return f, err
		}
		if err := s.client.WritePacket(f.packet); err != nil {
			return f, clientError{err}
		}
	}
}

// relayResult passes one result to the client, but for its last packet
// (manual: "COM_QUERY Response").
func (s *session) relayResult() (final, error) {
	_, first, err := s.peekBackend()
	if err != nil {
		return final{}, err
	}
	switch first {
	case wire.HeaderOK, wire.HeaderERR, wire.HeaderEOF:
		return s.readFinal()
	case wire.HeaderLocalInfile:
		if err := s.relayFile(); err != nil {
			return final{}, err
		}
		return s.relayResult()
	default:
		return s.relayResultSet()
	}
}

// relayResultSet passes column definitions and rows to the client.
func (s *session) relayResultSet() (final, error) {
	packet, err := s.backend.ReadPacket(maxFinal)
	if err != nil {
		return final{}, backendError{err}
	}
	columns, err := wire.DecodeColumnCount(packet)
	if err != nil {
		return final{}, backendError{fmt.Errorf("result set: %w", err)}
	}
	if err := s.client.WritePacket(packet); err != nil {
		return final{}, clientError{err}
	}
	for range columns {
		if err := s.forwardDown(); err != nil {
			return final{}, err
		}
	}
	if s.capabilities&wire.ClientDeprecateEOF != 0 {
		return s.relayRows()
	}
	f, err := s.readFinal()
	if err != nil || f.failed() || f.ok.Status&wire.StatusCursorExists != 0 {
		// With a cursor no row follows: the client fetches them.
		return f, err
	}
	if err := s.client.WritePacket(f.packet); err != nil {
		return final{}, clientError{err}
	}
	return s.relayRows()
}

// relayRows passes packets to the client until one ends the rows.
func (s *session) relayRows() (final, error) {
	for {
		length, first, err := s.peekBackend()
		if err != nil {
			return final{}, err
		}
		if isEnd(length, first) {
			return s.readFinal()
		}
		if err := s.forwardDown(); err != nil {
			return final{}, err
		}
	}
}

// relayFile passes the server's request for a local file to the client, and the
// client's file to the server: packets until an empty one
// (manual: "LOCAL INFILE Request"). The proxy opens no file.
func (s *session) relayFile() error {
	if err := s.forwardDown(); err != nil {
		return err
	}
	if err := s.client.Flush(); err != nil {
		return clientError{err}
	}
	for {
		length, _, err := s.client.Peek(0)
		if err != nil {
			return clientError{err}
		}
		if err := s.forwardUp(); err != nil {
			return err
		}
		if length == 0 {
			break
		}
	}
	return s.flushBackend()
}

// finish sends the last packet of a response. While the transaction is aborted
// the client still sees it as open.
func (s *session) finish(f final) error {
	if f.failed() {
		// The server may have ended the transaction, and a routine that failed
		// may have begun one: the flags are unknown until the server is asked.
		s.facts.stale = true
	} else {
		s.follow(f.ok.Status)
		if s.aborted != nil {
			if err := f.setStatus(f.ok.Status | wire.StatusInTransaction); err != nil {
				return backendError{err}
			}
		}
	}
	return s.send(f.packet)
}
