package proxy_test

import (
	"testing"

	"github.com/fenceproxy/fenceproxy/proxy/wire"
)

// Flags of COM_STMT_EXECUTE.
const (
	noCursor       = "\x00"
	readOnlyCursor = "\x01"
	executeTail    = "\x01\x00\x00\x00" // the iteration count
)

// answer reads the whole answer to a command, and returns its error, if it is one.
func (c *rawClient) answer() error {
	c.t.Helper()
	for {
		first := c.read()
		switch first[0] {
		case wire.HeaderERR:
			return decodeError(c.t, first)
		case wire.HeaderEOF: // COM_SET_OPTION
			return nil
		case wire.HeaderOK:
			ok, err := wire.DecodeOK(first, c.capabilities)
			if err != nil {
				c.t.Fatal(err)
			}
			if ok.Status&wire.StatusMoreResults == 0 {
				return nil
			}
			continue
		}
		if more, err := c.rows(); err != nil || !more {
			return err
		}
	}
}

// rows reads column definitions and rows, with an EOF behind each.
func (c *rawClient) rows() (more bool, err error) {
	c.t.Helper()
	for range 2 {
		packet := c.read()
		for packet[0] != wire.HeaderEOF {
			if packet[0] == wire.HeaderERR {
				return false, decodeError(c.t, packet)
			}
			packet = c.read()
		}
		eof, err := wire.DecodeEOF(packet)
		if err != nil {
			c.t.Fatal(err)
		}
		if eof.Status&wire.StatusCursorExists != 0 {
			return false, nil
		}
		more = eof.Status&wire.StatusMoreResults != 0
	}
	return more, nil
}

func decodeError(t testing.TB, packet []byte) error {
	t.Helper()
	e, err := wire.DecodeError(packet)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// say sends a command and reads its answer.
func (c *rawClient) say(command wire.Command, payload string) error {
	c.t.Helper()
	return c.pipeline(string(rune(command)) + payload)[0]
}

// text sends statements, one by one. Their errors are what a careless program
// makes of them.
func (c *rawClient) text(statements ...string) (last error) {
	c.t.Helper()
	for _, s := range statements {
		last = c.say(wire.ComQuery, s)
	}
	return last
}

// pipeline sends all commands at once, before it reads the answers.
func (c *rawClient) pipeline(commands ...string) []error {
	c.t.Helper()
	for _, command := range commands {
		c.SetSequence(0)
		if err := c.WritePacket([]byte(command)); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		c.t.Fatal(err)
	}
	answers := make([]error, 0, len(commands))
	for range commands {
		c.SetSequence(1)
		answers = append(answers, c.answer())
	}
	return answers
}

func query(statement string) string { return string(rune(wire.ComQuery)) + statement }

// silent sends a command that has no answer.
func (c *rawClient) silent(command wire.Command, payload string) {
	c.t.Helper()
	c.SetSequence(0)
	c.write([]byte(string(rune(command)) + payload))
}

func (c *rawClient) execute(id, flags string) error {
	c.t.Helper()
	return c.say(wire.ComStmtExecute, id+flags+executeTail)
}
