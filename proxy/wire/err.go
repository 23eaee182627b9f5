package wire

import (
	"fmt"
)

// Error is an ERR_Packet (manual: "ERR_Packet").
type Error struct {
	Number  uint16
	State   string // SQLSTATE, five characters
	Message string
}

func (e *Error) Error() string {
	return fmt.Sprintf("Error %d (%s): %s", e.Number, e.State, e.Message)
}

// maxMessage is the longest message in bytes that clients keep
// (MYSQL_ERRMSG_SIZE less its NUL).
const maxMessage = 511

// DecodeError reads an ERR packet. Before the handshake is answered it has no
// SQLSTATE.
func DecodeError(packet []byte) (*Error, error) {
	c := NewCursor(packet)
	c.Uint8()
	e := &Error{Number: c.Uint16(), State: "HY000"}
	message := c.Rest()
	if len(message) >= 6 && message[0] == '#' {
		e.State = string(message[1:6])
		message = message[6:]
	}
	e.Message = string(message)
	return e, c.Err()
}

// AppendError appends an ERR packet for a client that has answered the
// handshake.
func AppendError(dst []byte, e *Error) []byte {
	dst = append(dst, HeaderERR, byte(e.Number), byte(e.Number>>8), '#')
	dst = append(dst, e.State...)
	return append(dst, clip(e.Message)...)
}

// AppendEarlyError appends an ERR packet in the place of the greeting, where
// SQLSTATE is not yet agreed upon.
func AppendEarlyError(dst []byte, e *Error) []byte {
	dst = append(dst, HeaderERR, byte(e.Number), byte(e.Number>>8))
	return append(dst, clip(e.Message)...)
}

func clip(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for end > 0 && message[end]&0xc0 == 0x80 {
		end--
	}
	return message[:end]
}
