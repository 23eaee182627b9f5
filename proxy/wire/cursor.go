package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrShort tells that a packet ended before a field that its format demands.
var ErrShort = errors.New("packet is too short for its fields")

// Cursor reads the fields of one packet. The first field that does not fit
// sets the error, and every later read returns zero: check Err once at the end.
// The slices it returns point into the packet.
type Cursor struct {
	rest []byte
	err  error
}

// NewCursor reads packet from its first byte.
func NewCursor(packet []byte) *Cursor { return &Cursor{rest: packet} }

// Err is nil, or ErrShort.
func (c *Cursor) Err() error { return c.err }

// Len is the number of bytes not read yet.
func (c *Cursor) Len() int { return len(c.rest) }

// Bytes reads the next n bytes.
func (c *Cursor) Bytes(n int) []byte {
	if c.err != nil || n < 0 || n > len(c.rest) {
		c.err = ErrShort
		c.rest = nil
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

// Rest reads all that is left.
func (c *Cursor) Rest() []byte { return c.Bytes(len(c.rest)) }

// Uint8 reads one byte.
func (c *Cursor) Uint8() uint8 {
	if b := c.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint16 reads a little-endian two-byte integer.
func (c *Cursor) Uint16() uint16 {
	if b := c.Bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// Uint32 reads a little-endian four-byte integer.
func (c *Cursor) Uint32() uint32 {
	if b := c.Bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Int reads a length-encoded integer. NULL (0xfb) is not one.
func (c *Cursor) Int() uint64 {
	first := c.Uint8()
	if first < 0xfb {
		return uint64(first)
	}
	width := 0
	switch first {
	case 0xfc:
		width = 2
	case 0xfd:
		width = 3
	case 0xfe:
		width = 8
	default:
		c.err = ErrShort
		c.rest = nil
		return 0
	}
	var wide [8]byte
	copy(wide[:], c.Bytes(width))
	return binary.LittleEndian.Uint64(wide[:])
}

// String reads a length-encoded string.
func (c *Cursor) String() []byte {
	n := c.Int()
	if n > uint64(len(c.rest)) {
		c.err = ErrShort
		c.rest = nil
		return nil
	}
	return c.Bytes(int(n))
}

// NullableString reads a length-encoded string of a text result row; ok is
// false for NULL.
func (c *Cursor) NullableString() (value []byte, ok bool) {
	if len(c.rest) > 0 && c.rest[0] == 0xfb {
		c.Bytes(1)
		return nil, false
	}
	value = c.String()
	return value, c.err == nil
}

// NulString reads up to a NUL byte, which it skips.
func (c *Cursor) NulString() []byte {
	end := bytes.IndexByte(c.rest, 0)
	if end < 0 {
		c.err = ErrShort
		c.rest = nil
		return nil
	}
	s := c.Bytes(end)
	c.Bytes(1)
	return s
}

// AppendInt appends a length-encoded integer.
func AppendInt(dst []byte, n uint64) []byte {
	switch {
	case n < 0xfb:
		return append(dst, byte(n))
	case n < 1<<16:
		return append(dst, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(dst, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	default:
		return binary.LittleEndian.AppendUint64(append(dst, 0xfe), n)
	}
}

// AppendString appends a length-encoded string.
func AppendString(dst, s []byte) []byte {
	return append(AppendInt(dst, uint64(len(s))), s...)
}
