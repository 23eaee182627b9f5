package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrProtocol tells that a peer speaks another protocol, or an older version.
var ErrProtocol = errors.New("not the MySQL protocol 4.1 (handshake version 10)")

// Greeting is the server's first packet (manual: "Protocol::HandshakeV10").
// The offsets are kept so that its capabilities can be narrowed in place: the
// rest of the packet, with its scramble, reaches the client as it is.
type Greeting struct {
	packet        []byte
	ServerVersion string
	ConnectionID  uint32
	Capabilities  uint32
	// Extended are MariaDB's capabilities 32 to 63; zero for MySQL.
	Extended                  uint32
	lowAt, highAt, extendedAt int
}

// reservedSize is the length of the reserved bytes after the scramble's length.
const reservedSize = 10

// DecodeGreeting reads packet, which the Greeting then owns.
func DecodeGreeting(packet []byte) (*Greeting, error) {
	c := NewCursor(packet)
	if version := c.Uint8(); c.Err() == nil && version != 10 {
		return nil, fmt.Errorf("%w: the server greets with version %d", ErrProtocol, version)
	}
	g := &Greeting{packet: packet, ServerVersion: string(c.NulString()), ConnectionID: c.Uint32()}
	c.Bytes(8 + 1)
	g.lowAt = len(packet) - c.Len()
	low := c.Uint16()
	c.Bytes(1 + 2)
	g.highAt = len(packet) - c.Len()
	high := c.Uint16()
	c.Uint8()
	g.extendedAt = len(packet) - c.Len() + mariaDBCapabilitiesStart
	reserved := c.Bytes(reservedSize)
	if c.Err() != nil {
		return nil, fmt.Errorf("greeting: %w", c.Err())
	}
	g.Capabilities = uint32(low) | uint32(high)<<16
	if g.Capabilities&ClientProtocol41 == 0 {
		return nil, fmt.Errorf("%w: the server lacks CLIENT_PROTOCOL_41", ErrProtocol)
	}
	if g.Capabilities&ClientLongPassword == 0 {
		g.Extended = binary.LittleEndian.Uint32(reserved[mariaDBCapabilitiesStart:])
	}
	return g, nil
}

// Narrow leaves only the capabilities in both masks.
func (g *Greeting) Narrow(capabilities, extended uint32) {
	if g.Capabilities&ClientLongPassword == 0 {
		g.Extended &= extended
		binary.LittleEndian.PutUint32(g.packet[g.extendedAt:], g.Extended)
	}
	g.Capabilities &= capabilities
	binary.LittleEndian.PutUint16(g.packet[g.lowAt:], uint16(g.Capabilities))
	binary.LittleEndian.PutUint16(g.packet[g.highAt:], uint16(g.Capabilities>>16))
}

// Packet is the greeting as it now stands.
func (g *Greeting) Packet() []byte { return g.packet }
