package wire

import (
	"encoding/binary"
	"fmt"
)

// Response is the client's answer to the greeting
// (manual: "Protocol::HandshakeResponse41").
type Response struct {
	packet       []byte
	Capabilities uint32
	Extended     uint32 // MariaDB's capabilities 32 to 63
	Charset      uint8  // collation id
	User         string
	Database     string
	Plugin       string
	Attributes   map[string]string
}

// DecodeResponse reads packet, which the Response then owns. An SSLRequest is a
// Response that ends after its fixed part: its Capabilities have ClientSSL.
func DecodeResponse(packet []byte) (*Response, error) {
	c := NewCursor(packet)
	r := &Response{packet: packet, Capabilities: c.Uint32()}
	if c.Err() == nil && r.Capabilities&ClientProtocol41 == 0 {
		return nil, fmt.Errorf("%w: the client lacks CLIENT_PROTOCOL_41", ErrProtocol)
	}
	c.Uint32()
	r.Charset = c.Uint8()
	reserved := c.Bytes(23)
	if c.Err() != nil {
		return nil, fmt.Errorf("handshake response: %w", c.Err())
	}
	if r.Capabilities&ClientLongPassword == 0 {
		r.Extended = binary.LittleEndian.Uint32(reserved[19:])
	}
	if r.Capabilities&ClientSSL != 0 && c.Len() == 0 {
		return r, nil
	}
	r.User = string(c.NulString())
	readAuthResponse(c, r.Capabilities)
	if r.Capabilities&ClientConnectWithDB != 0 && c.Len() > 0 {
		r.Database = string(c.NulString())
	}
	if r.Capabilities&ClientPluginAuth != 0 && c.Len() > 0 {
		r.Plugin = string(readPlugin(c))
	}
	r.Attributes = readAttributes(c, r.Capabilities)
	if c.Err() != nil {
		return nil, fmt.Errorf("handshake response: %w", c.Err())
	}
	return r, nil
}

func readAuthResponse(c *Cursor, capabilities uint32) {
	switch {
	case capabilities&ClientPluginAuthLenEnc != 0:
		c.String()
	case capabilities&ClientSecureConnection != 0:
		c.Bytes(int(c.Uint8()))
	default:
		c.NulString()
	}
}

// readPlugin reads the plugin's name; some clients leave its NUL out when it is
// the packet's last field.
func readPlugin(c *Cursor) []byte {
	if n := len(c.rest); n > 0 && c.rest[n-1] != 0 && !hasNul(c.rest) {
		return c.Rest()
	}
	return c.NulString()
}

func hasNul(b []byte) bool {
	for _, x := range b {
		if x == 0 {
			return true
		}
	}
	return false
}

// readAttributes reads the connection attributes. The last of two with one
// name counts, as it does for the server.
func readAttributes(c *Cursor, capabilities uint32) map[string]string {
	if capabilities&ClientConnectAttrs == 0 || c.Len() == 0 {
		return nil
	}
	inner := NewCursor(c.String())
	attributes := make(map[string]string)
	for inner.Len() > 0 {
		key := inner.String()
		value := inner.String()
		if inner.Err() != nil {
			c.err = inner.Err()
			return nil
		}
		attributes[string(key)] = string(value)
	}
	return attributes
}

// Narrow leaves only the capabilities in both masks, in the packet as well.
func (r *Response) Narrow(capabilities, extended uint32) {
	if r.Capabilities&ClientLongPassword == 0 {
		r.Extended &= extended
		binary.LittleEndian.PutUint32(r.packet[28:], r.Extended)
	}
	r.Capabilities &= capabilities
	binary.LittleEndian.PutUint32(r.packet, r.Capabilities)
}

// Packet is the response as it now stands.
func (r *Response) Packet() []byte { return r.packet }

// ChangeUser is a COM_CHANGE_USER (manual: "COM_CHANGE_USER").
type ChangeUser struct {
	User       string
	Database   string
	Plugin     string
	Attributes map[string]string
}

// DecodeChangeUser reads a COM_CHANGE_USER on a connection with capabilities.
func DecodeChangeUser(packet []byte, capabilities uint32) (*ChangeUser, error) {
	c := NewCursor(packet)
	c.Uint8()
	u := &ChangeUser{User: string(c.NulString())}
	if capabilities&ClientSecureConnection != 0 {
		c.Bytes(int(c.Uint8()))
	} else {
		c.NulString()
	}
	u.Database = string(c.NulString())
	if c.Len() >= 2 {
		c.Uint16()
	}
	if capabilities&ClientPluginAuth != 0 && c.Len() > 0 {
		u.Plugin = string(readPlugin(c))
	}
	u.Attributes = readAttributes(c, capabilities)
	if c.Err() != nil {
		return nil, fmt.Errorf("COM_CHANGE_USER: %w", c.Err())
	}
	return u, nil
}
