package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"time"
)

// script is a net.Conn that reads from r and writes to w.
type script struct {
	r io.Reader
	w io.Writer
}

func (s script) Read(p []byte) (int, error)       { return s.r.Read(p) }
func (s script) Write(p []byte) (int, error)      { return s.w.Write(p) }
func (s script) Close() error                     { return nil }
func (s script) LocalAddr() net.Addr              { return nil }
func (s script) RemoteAddr() net.Addr             { return nil }
func (s script) SetDeadline(time.Time) error      { return nil }
func (s script) SetReadDeadline(time.Time) error  { return nil }
func (s script) SetWriteDeadline(time.Time) error { return nil }

// reading is a Conn whose peer sent b.
func reading(b []byte) *Conn { return NewConn(script{bytes.NewReader(b), io.Discard}) }

// framed is payload as a Conn writes it.
func framed(t testing.TB, payload []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	c := NewConn(script{nil, &out})
	if err := c.WritePacket(payload); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPayloadsOfEverySizeSurviveFraming(t *testing.T) {
	for _, size := range []int{0, 1, 250, bufferSize - 4, bufferSize, 1 << 20, MaxPayload - 1, MaxPayload, MaxPayload + 1, 2 * MaxPayload} {
		payload := bytes.Repeat([]byte("fence"), size/5+1)[:size]
		stream := framed(t, payload)

		got, err := reading(stream).ReadPacket(size)
		if err != nil || !bytes.Equal(got, payload) {
			t.Errorf("%d bytes: read back %d bytes, %v", size, len(got), err)
		}

		var forwarded bytes.Buffer
		to := NewConn(script{nil, &forwarded})
		from := NewConn(script{iotest.OneByteReader(bytes.NewReader(stream)), nil})
		if size > 1<<20 {
			from = reading(stream)
		}
		if err := errors.Join(from.Forward(to), to.Flush()); err != nil {
			t.Errorf("%d bytes: forward: %v", size, err)
		}
		if !bytes.Equal(forwarded.Bytes(), stream) {
			t.Errorf("%d bytes: forwarding changed the stream", size)
		}
	}
}

func TestForwardNumbersPacketsInTheReceiversSequence(t *testing.T) {
	from := reading([]byte{1, 0, 0, 9, 'x'})
	from.SetSequence(9)
	var out bytes.Buffer
	to := NewConn(script{nil, &out})
	to.SetSequence(1)
	if err := errors.Join(from.Forward(to), to.Flush()); err != nil {
		t.Fatal(err)
	}
	if want := []byte{1, 0, 0, 1, 'x'}; !bytes.Equal(out.Bytes(), want) {
		t.Errorf("forwarded % x, want % x", out.Bytes(), want)
	}
}

func TestBadFramesAreErrors(t *testing.T) {
	tests := []struct {
		name   string
		stream []byte
		limit  int
		want   error
	}{
		{"end between packets", nil, 10, io.EOF},
		{"end in the header", []byte{5, 0}, 10, io.ErrUnexpectedEOF},
		{"end in the body", []byte{5, 0, 0, 0, 'a'}, 10, io.ErrUnexpectedEOF},
		{"longer than allowed", []byte{5, 0, 0, 0, 'a', 'b', 'c', 'd', 'e'}, 4, ErrTooLong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := reading(tt.stream).ReadPacket(tt.limit); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestPacketOutOfOrderIsAnError(t *testing.T) {
	_, err := reading([]byte{1, 0, 0, 7, 'x'}).ReadPacket(10)
	var sequence *SequenceError
	if !errors.As(err, &sequence) || sequence.Got != 7 || sequence.Want != 0 {
		t.Errorf("got %v, want sequence id 7 instead of 0", err)
	}
}

func TestAClaimedLengthCostsNoMemoryBeforeItsBytesArrive(t *testing.T) {
	c := reading([]byte{0xff, 0xff, 0xff, 0, 'a'})
	if _, err := c.ReadPacket(1 << 30); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if cap(c.packet) > 2<<20 {
		t.Errorf("%d bytes were set aside for one that arrived", cap(c.packet))
	}
}

func TestForwardTellsWhichSideFailed(t *testing.T) {
	failing := NewConn(script{nil, writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })})
	big := framed(t, make([]byte, 2*bufferSize))
	if err := reading(big).Forward(failing); !errors.Is(err, ErrWrite) || !errors.Is(err, ErrMidPacket) {
		t.Errorf("receiver gone in the middle of a packet: %v", err)
	}
	sink := NewConn(script{nil, io.Discard})
	if err := reading(big[:100]).Forward(sink); errors.Is(err, ErrWrite) || !errors.Is(err, ErrMidPacket) {
		t.Errorf("sender gone in the middle of a packet: %v", err)
	}
	if err := reading(nil).Forward(sink); !errors.Is(err, io.EOF) || errors.Is(err, ErrMidPacket) {
		t.Errorf("sender gone between packets: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func FuzzConn(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 'x', 0, 0, 0, 1}, 10)
	f.Add([]byte{0xff, 0xff, 0xff, 0}, 100)
	f.Fuzz(func(t *testing.T, stream []byte, limit int) {
		limit &= 1<<20 - 1
		payload, err := reading(stream).ReadPacket(limit)
		if err != nil {
			return
		}
		if len(payload) > limit {
			t.Fatalf("read %d bytes, limit %d", len(payload), limit)
		}
		if again := framed(t, payload); !bytes.HasPrefix(stream, again) {
			t.Fatalf("% x was read as % x", stream, payload)
		}
	})
}
