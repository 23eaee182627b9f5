package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ErrTooLong tells that a packet is longer than its reader allows.
var ErrTooLong = errors.New("packet is longer than allowed")

// ErrWrite wraps an error of the receiving side in Forward; without it the
// error is the sending side's.
var ErrWrite = errors.New("write")

// ErrMidPacket wraps an error that left the receiver of Forward with a part of
// a packet: nothing more can be said to it.
var ErrMidPacket = errors.New("in the middle of a packet")

// SequenceError tells that a packet came with another sequence id than its
// place in the exchange gives it.
type SequenceError struct{ Got, Want uint8 }

func (e *SequenceError) Error() string {
	return fmt.Sprintf("packet has sequence id %d, expected %d", e.Got, e.Want)
}

const (
	headerSize = 4
	// bufferSize is the size in bytes of a connection's read and write buffer:
	// the server's own net_buffer_length, so that one of its writes fits.
	bufferSize = 16 << 10
	// keptPacket is the largest packet buffer that a connection keeps for the
	// next packet. A larger one is left to the garbage collector.
	keptPacket = 64 << 10
)

// Conn frames packets on one connection. Its sequence id counts the packets of
// one exchange in both directions, as the protocol does. It is not safe for
// use by two goroutines, but for Close and the deadline methods of the
// underlying net.Conn.
type Conn struct {
	net.Conn
	r      *bufio.Reader
	w      *bufio.Writer
	seq    uint8
	packet []byte
}

// NewConn frames nc.
func NewConn(nc net.Conn) *Conn {
	return &Conn{Conn: nc, r: bufio.NewReaderSize(nc, bufferSize), w: bufio.NewWriterSize(nc, bufferSize)}
}

// SetSequence sets the sequence id that the next packet has, read or written.
// A command starts an exchange at 0; the reply to a one-packet command at 1.
func (c *Conn) SetSequence(seq uint8) { c.seq = seq }

// Buffered is the number of bytes that can be read without waiting.
func (c *Conn) Buffered() int { return c.r.Buffered() }

// Flush sends what has been written.
func (c *Conn) Flush() error { return c.w.Flush() }

// Wait waits until a packet begins to arrive, and consumes nothing.
func (c *Conn) Wait() error {
	_, err := c.r.Peek(1)
	return err
}

// Peek returns the next packet's payload length and up to n of its first
// bytes, and consumes nothing. For a payload of several packets the length is
// the first one's. The slice is valid until the next read.
func (c *Conn) Peek(n int) (length int, first []byte, err error) {
	header, err := c.r.Peek(headerSize)
	if err != nil {
		return 0, nil, partial(err, len(header))
	}
	length = payloadLength(header)
	n = min(n, length)
	start, err := c.r.Peek(headerSize + n)
	if err != nil {
		return 0, nil, partial(err, len(start))
	}
	return length, start[headerSize:], nil
}

// ReadPacket reads the next payload, put together when it spans packets, and
// at most limit bytes long (ErrTooLong). It is valid until the next read.
func (c *Conn) ReadPacket(limit int) ([]byte, error) {
	if cap(c.packet) > keptPacket {
		c.packet = nil
	}
	c.packet = c.packet[:0]
	for {
		length, err := c.readHeader()
		if err != nil {
			return nil, err
		}
		if len(c.packet)+length > limit {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLong, limit)
		}
		if err := c.readBody(length); err != nil {
			return nil, err
		}
		if length < MaxPayload {
			return c.packet, nil
		}
	}
}

// readBody appends length bytes to the packet buffer, which grows as they
// arrive: a claimed length alone costs no memory.
func (c *Conn) readBody(length int) error {
	const step = 1 << 20
	for length > 0 {
		n := min(length, step)
		start := len(c.packet)
		if cap(c.packet)-start < n {
			grown := make([]byte, start, max(2*cap(c.packet), start+n))
			copy(grown, c.packet)
			c.packet = grown
		}
		c.packet = c.packet[:start+n]
		if _, err := io.ReadFull(c.r, c.packet[start:]); err != nil {
			return partial(err, 1)
		}
		length -= n
	}
	return nil
}

func (c *Conn) readHeader() (length int, err error) {
	header, err := c.r.Peek(headerSize)
	if err != nil {
		return 0, partial(err, len(header))
	}
	length = payloadLength(header)
	if header[3] != c.seq {
		return 0, &SequenceError{Got: header[3], Want: c.seq}
	}
	c.seq++
	_, _ = c.r.Discard(headerSize)
	return length, nil
}

// WritePacket writes payload, split into packets where it is long. Nothing is
// sent before Flush or a full buffer.
func (c *Conn) WritePacket(payload []byte) error {
	for {
		n := min(len(payload), MaxPayload)
		if err := c.writeHeader(n); err != nil {
			return err
		}
		if _, err := c.w.Write(payload[:n]); err != nil {
			return err
		}
		payload = payload[n:]
		if n < MaxPayload {
			return nil
		}
	}
}

func (c *Conn) writeHeader(length int) error {
	header := [headerSize]byte{byte(length), byte(length >> 8), byte(length >> 16), c.seq}
	c.seq++
	_, err := c.w.Write(header[:])
	return err
}

// Forward moves the next payload to dst, numbered in dst's sequence, in the
// chunks in which it arrives. What dst has is flushed before it would wait for
// more, so that a slow sender's bytes are not held back. An error may be
// ErrWrite, ErrMidPacket, or both.
func (c *Conn) Forward(dst *Conn) error {
	for first := true; ; first = false {
		length, err := c.forwardOne(dst)
		if err != nil && !first && !errors.Is(err, ErrMidPacket) {
			err = fmt.Errorf("%w: %w", ErrMidPacket, err)
		}
		if err != nil || length < MaxPayload {
			return err
		}
	}
}

// forwardOne moves one packet of at most MaxPayload bytes.
func (c *Conn) forwardOne(dst *Conn) (length int, err error) {
	if err := c.flushBeforeWait(dst); err != nil {
		return 0, err
	}
	length, err = c.readHeader()
	if err != nil {
		return 0, err
	}
	if err := dst.writeHeader(length); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	if err := c.forwardBody(dst, length); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMidPacket, err)
	}
	return length, nil
}

func (c *Conn) forwardBody(dst *Conn, length int) error {
	for length > 0 {
		if err := c.flushBeforeWait(dst); err != nil {
			return err
		}
		if _, err := c.r.Peek(1); err != nil {
			return partial(err, 1)
		}
		chunk, _ := c.r.Peek(min(length, c.r.Buffered()))
		if _, err := dst.w.Write(chunk); err != nil {
			return fmt.Errorf("%w: %w", ErrWrite, err)
		}
		_, _ = c.r.Discard(len(chunk))
		length -= len(chunk)
	}
	return nil
}

func (c *Conn) flushBeforeWait(dst *Conn) error {
	if c.r.Buffered() >= headerSize {
		return nil
	}
	if err := dst.w.Flush(); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

// Discard reads the next payload and drops it.
func (c *Conn) Discard() error {
	for {
		length, err := c.readHeader()
		if err != nil {
			return err
		}
		if _, err := c.r.Discard(length); err != nil {
			return partial(err, 1)
		}
		if length < MaxPayload {
			return nil
		}
	}
}

// SetTimeout makes reads and writes fail once d has passed; 0 ends the limit.
func (c *Conn) SetTimeout(d time.Duration) error {
	if d == 0 {
		return c.SetDeadline(time.Time{})
	}
	return c.SetDeadline(time.Now().Add(d))
}

func payloadLength(header []byte) int {
	return int(header[0]) | int(header[1])<<8 | int(header[2])<<16
}

// partial turns an end of stream inside a packet into ErrUnexpectedEOF; io.EOF
// is kept for an end between packets.
func partial(err error, got int) error {
	if errors.Is(err, io.EOF) && got > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
