package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/fenceproxy/fenceproxy/proxy/wire"
)

// reply is all that a client gets for a command: one part for each statement that
// answered. Rows are kept as they came, text or binary.
type reply []part

type part struct {
	err     *wire.Error // the last part's at most
	ok      wire.OK     // of a part without columns, or of the end of its rows
	columns int
	rows    []string
}

// String is what is compared: everything but the status flags, and where in the
// text the server found a syntax error, as the text that it quotes may be guarded.
// schema is written as one name whatever it is.
func (r reply) String(schema string) string {
	var b strings.Builder
	for _, p := range r {
		switch {
		case p.err != nil:
			message, _, _ := strings.Cut(p.err.Message, " near '")
			fmt.Fprintf(&b, "error %d (%s) %s\n", p.err.Number, p.err.State, message)
		case p.columns > 0:
			fmt.Fprintf(&b, "%d columns, %d rows, %d warnings\n", p.columns, len(p.rows), p.ok.Warnings)
			for _, row := range p.rows {
				fmt.Fprintf(&b, "  %q\n", row)
			}
		default:
			fmt.Fprintf(&b, "ok affected=%d insert id=%d warnings=%d %q\n", p.ok.AffectedRows, p.ok.LastInsertID, p.ok.Warnings, p.ok.Info)
		}
	}
	return strings.ReplaceAll(b.String(), schema, "<schema>")
}

// failure is the error that ended the reply, or nil.
func (r reply) failure() *wire.Error { return r[len(r)-1].err }

// Further capabilities that replies need (manual: "Capabilities Flags").
const (
	clientMultiResults   uint32 = 1 << 17
	clientPSMultiResults uint32 = 1 << 18
)

// ask runs a statement as text. file is sent where the server asks for one.
func (c *rawClient) ask(sql, file string) reply {
	c.t.Helper()
	return c.reply(c.command(wire.ComQuery, sql), file)
}

// askPrepared prepares and executes a statement. unprepared tells that the error is
// that of the preparation.
func (c *rawClient) askPrepared(sql string, params []string, file string) (r reply, unprepared bool) {
	c.t.Helper()
	first := c.command(wire.ComStmtPrepare, sql)
	if first[0] == wire.HeaderERR {
		return c.reply(first, file), true
	}
	p, err := wire.DecodePrepareOK(first)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, definitions := range []uint16{p.Params, p.Columns} {
		if definitions > 0 {
			c.skipToEOF()
		}
	}
	if int(p.Params) != len(params) {
		c.t.Fatalf("%s: %d parameters, want %d", sql, p.Params, len(params))
	}
	execute := binary.LittleEndian.AppendUint32(nil, p.StatementID)
	execute = append(execute, noCursor+executeTail...)
	return c.reply(c.command(wire.ComStmtExecute, string(appendParams(execute, params))), file), false
}

// appendParams appends params as strings, but for NULL.
func appendParams(packet []byte, params []string) []byte {
	if len(params) == 0 {
		return packet
	}
	nulls := make([]byte, (len(params)+7)/8)
	var types, values []byte
	for i, p := range params {
		types = append(types, 0xfd, 0) // MYSQL_TYPE_VAR_STRING
		if p == "NULL" {
			nulls[i/8] |= 1 << (i % 8)
			continue
		}
		values = wire.AppendString(values, []byte(p))
	}
	packet = append(append(packet, nulls...), 1)
	return append(append(packet, types...), values...)
}

// reply reads the rest of the answer that begins with first.
func (c *rawClient) reply(first []byte, file string) reply {
	c.t.Helper()
	var all reply
	for {
		p := c.part(first, file)
		all = append(all, p)
		if p.err != nil || p.ok.Status&wire.StatusMoreResults == 0 {
			return all
		}
		first = c.read()
	}
}

func (c *rawClient) part(first []byte, file string) part {
	c.t.Helper()
	switch first[0] {
	case wire.HeaderERR:
		e, err := wire.DecodeError(first)
		if err != nil {
			c.t.Fatal(err)
		}
		return part{err: e}
	case wire.HeaderOK:
		ok, err := wire.DecodeOK(first, c.capabilities)
		if err != nil {
			c.t.Fatal(err)
		}
		ok.Info = bytes.Clone(ok.Info)
		return part{ok: ok}
	case wire.HeaderLocalInfile:
		c.write([]byte(file))
		c.write(nil)
		return c.part(c.read(), "")
	}
	columns, err := wire.DecodeColumnCount(first)
	if err != nil {
		c.t.Fatal(err)
	}
	p := part{columns: columns}
	c.skipToEOF()
	for {
		packet := c.read()
		switch {
		case packet[0] == wire.HeaderERR:
			failed := c.part(packet, "")
			failed.columns, failed.rows = p.columns, p.rows
			return failed
		case packet[0] == wire.HeaderEOF && len(packet) <= 5:
			if p.ok, err = wire.DecodeEOF(packet); err != nil {
				c.t.Fatal(err)
			}
			return p
		}
		p.rows = append(p.rows, string(packet))
	}
}

func (c *rawClient) skipToEOF() {
	c.t.Helper()
	for c.read()[0] != wire.HeaderEOF {
	}
}

// must runs statements that have to succeed.
func (c *rawClient) must(statements ...string) {
	c.t.Helper()
	for _, s := range statements {
		if e := c.ask(s, "").failure(); e != nil {
			c.t.Fatalf("%s: %v", s, e)
		}
	}
}
