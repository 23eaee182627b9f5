package proxy_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/proxy/wire"
)

// preparedStatement prepares text and reads the whole answer.
func (c *rawClient) preparedStatement(text string) (id string, p wire.PrepareOK) {
	c.t.Helper()
	first := c.command(wire.ComStmtPrepare, text)
	if first[0] == wire.HeaderERR {
		c.wantError(first, 0)
	}
	p, err := wire.DecodePrepareOK(first)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, n := range []uint16{p.Params, p.Columns} {
		if n > 0 && c.capabilities&wire.ClientDeprecateEOF == 0 {
			n++
		}
		for range n {
			c.read()
		}
	}
	return string(binary.LittleEndian.AppendUint32(nil, p.StatementID)), p
}

func TestCursorsAreFetchedThroughTheProxy(t *testing.T) {
	f := setup(t)
	for _, capabilities := range []uint32{0, wire.ClientDeprecateEOF} {
		c, _ := f.login(capabilities)
		id, p := c.preparedStatement("SELECT id FROM runs ORDER BY id")
		if p.Columns != 1 || p.Params != 0 {
			t.Errorf("prepared %+v", p)
		}
		const readOnlyCursor = "\x01"
		c.command(wire.ComStmtExecute, id+readOnlyCursor+"\x01\x00\x00\x00") // the column count
		c.read()                                                             // the column
		if end := c.read(); end[0] != wire.HeaderEOF {
			t.Fatalf("no rows should follow: % x", end)
		}
		for fetch, want := range []int{2, 1} {
			rows := 0
			p := c.command(wire.ComStmtFetch, id+"\x02\x00\x00\x00")
			for p[0] != wire.HeaderEOF {
				rows++
				p = c.read()
			}
			if rows != want {
				t.Errorf("fetch %d gave %d rows, want %d", fetch+1, rows, want)
			}
		}
		if p := c.command(wire.ComStmtReset, id); p[0] != wire.HeaderOK {
			t.Errorf("COM_STMT_RESET: % x", p)
		}
		c.SetSequence(0)
		c.write([]byte(string(rune(wire.ComStmtClose)) + id))
		c.wantError(c.command(wire.ComStmtExecute, id+"\x00\x01\x00\x00\x00"), 1243)
	}
}

func TestLongDataOfAGuardedStatement(t *testing.T) {
	f := setup(t)
	mustExec(t, f.direct, "ALTER TABLE runs MODIFY status LONGTEXT")
	a := f.acquire(time.Minute)
	c, _ := f.login(0, "fence_owner", a.Owner, "fence_token", "1")
	piece := strings.Repeat("p", 100_000)
	for _, text := range []string{"UPDATE runs SET status = ? WHERE id = 1", "INSERT INTO runs (status) VALUES (?)"} {
		id, p := c.preparedStatement(text)
		if p.Params != 1 {
			t.Errorf("%s has %d parameters", text, p.Params)
		}
		send := func() []byte {
			for range 3 {
				c.SetSequence(0)
				c.write([]byte(string(rune(wire.ComStmtSendLongData)) + id + "\x00\x00" + piece))
			}
			// One parameter, of the type BLOB, whose value was sent before.
			return c.command(wire.ComStmtExecute, id+"\x00\x01\x00\x00\x00\x00\x01\xfc\x00")
		}
		if p := send(); p[0] != wire.HeaderOK {
			c.wantError(p, 0)
		}
	}
	var n, total int
	if err := f.direct.QueryRow("SELECT COUNT(*), SUM(LENGTH(status)) FROM runs WHERE status LIKE 'ppp%'").Scan(&n, &total); err != nil || n != 2 || total != 600_000 {
		t.Errorf("%d rows with %d bytes, %v", n, total, err)
	}
}

func TestAGuardedStatementHasTheParametersOfTheClientsOwn(t *testing.T) {
	f := setup(t)
	c, _ := f.login(0)
	for text, want := range map[string]uint16{
		"UPDATE runs SET status = ?, n = ? WHERE id = ?":                      3,
		"DELETE FROM runs WHERE id = ? OR n IN (?, ?) LIMIT ?":                4,
		"INSERT INTO runs (status, n) VALUES (?, ?), (?, ?)":                  4,
		"UPDATE runs r JOIN notes ON notes.id = r.id SET r.n = ? WHERE ? = 1": 2,
	} {
		if _, p := c.preparedStatement(text); p.Params != want || p.Columns != 0 {
			t.Errorf("%s: %d parameters, %d columns", text, p.Params, p.Columns)
		}
	}
}
