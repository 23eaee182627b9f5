package proxy_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/proxy/wire"
)

// rawClient speaks the protocol by hand, for what no driver lets a test say.
type rawClient struct {
	t testing.TB
	*wire.Conn
	capabilities uint32
}

const rawCapabilities = wire.ClientProtocol41 | wire.ClientSecureConnection | wire.ClientPluginAuth |
	wire.ClientConnectAttrs | wire.ClientConnectWithDB | wire.ClientMultiStatements | wire.ClientLongPassword

// rawTimeout ends a test whose peer says nothing.
const rawTimeout = 20 * time.Second

func dialRaw(t testing.TB, addr string) *rawClient {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	c := &rawClient{t: t, Conn: wire.NewConn(nc), capabilities: rawCapabilities}
	if err := c.SetTimeout(rawTimeout); err != nil {
		t.Fatal(err)
	}
	return c
}

// login logs in as root, without a password, with further capabilities and
// attributes, and returns the server's answer.
func (f *fixture) login(further uint32, attributes ...string) (*rawClient, []byte) {
	f.t.Helper()
	return f.loginAt(f.addr, further, attributes...)
}

func (f *fixture) loginAt(addr string, further uint32, attributes ...string) (*rawClient, []byte) {
	f.t.Helper()
	c := dialRaw(f.t, addr)
	c.capabilities |= further
	greeting := c.read()
	if len(greeting) == 0 || greeting[0] != 10 {
		f.t.Fatalf("no greeting: % x", greeting)
	}
	c.write(handshakeResponse(c.capabilities, "root", f.schema, attributes))
	return c, c.read()
}

// handshakeResponse logs in user without a password.
func handshakeResponse(capabilities uint32, user, database string, attributes []string) []byte {
	r := binary.LittleEndian.AppendUint32(nil, capabilities)
	r = binary.LittleEndian.AppendUint32(r, wire.MaxPayload)
	r = append(r, 45)
	r = append(r, make([]byte, 23)...)
	r = append(r, user+"\x00\x00"...)
	r = append(r, database...)
	r = append(r, "\x00mysql_native_password\x00"...)
	return append(r, attributeBlock(attributes)...)
}

func attributeBlock(attributes []string) []byte {
	var block []byte
	for _, a := range attributes {
		block = wire.AppendString(block, []byte(a))
	}
	return wire.AppendString(nil, block)
}

func (c *rawClient) write(packet []byte) {
	c.t.Helper()
	if err := errors.Join(c.WritePacket(packet), c.Flush()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) read() []byte {
	c.t.Helper()
	packet, err := c.ReadPacket(1 << 26)
	if err != nil {
		c.t.Fatal(err)
	}
	return bytes.Clone(packet)
}

// command sends one command and reads the first packet of its answer.
func (c *rawClient) command(command wire.Command, payload string) []byte {
	c.t.Helper()
	c.SetSequence(0)
	c.write(append([]byte{byte(command)}, payload...))
	return c.read()
}

// query runs a statement that returns one row of one column.
func (c *rawClient) query(statement string) string {
	c.t.Helper()
	first := c.command(wire.ComQuery, statement)
	if first[0] == wire.HeaderERR {
		e, _ := wire.DecodeError(first)
		c.t.Fatalf("%s: %v", statement, e)
	}
	if first[0] == wire.HeaderOK {
		return ""
	}
	c.read() // the column
	if c.capabilities&wire.ClientDeprecateEOF == 0 {
		c.read()
	}
	value := ""
	for {
		packet := c.read()
		if packet[0] == wire.HeaderEOF {
			return value
		}
		text, ok := wire.NewCursor(packet).NullableString()
		if !ok {
			text = []byte("NULL")
		}
		value = string(text)
	}
}

func (c *rawClient) wantError(packet []byte, number uint16, parts ...string) {
	c.t.Helper()
	if packet[0] != wire.HeaderERR {
		c.t.Fatalf("got packet % x, want error %d", packet, number)
	}
	e, err := wire.DecodeError(packet)
	if err != nil || e.Number != number {
		c.t.Fatalf("got %v, %v, want error %d", e, err, number)
	}
	for _, part := range parts {
		if !bytes.Contains([]byte(e.Message), []byte(part)) {
			c.t.Errorf("message %q lacks %q", e.Message, part)
		}
	}
}

func (c *rawClient) wantClosed() {
	c.t.Helper()
	if packet, err := c.ReadPacket(1 << 20); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !isReset(err) {
		c.t.Errorf("the connection is still open: % x, %v", packet, err)
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

func TestIdentityFromConnectionAttributes(t *testing.T) {
	f := setup(t)
	a := f.acquire(time.Minute)
	identity := []string{"fence_owner", a.Owner, "fence_token", fmt.Sprint(a.Token), "program_name", "reconciler"}
	c, ok := f.login(0, identity...)
	if ok[0] != wire.HeaderOK {
		c.wantError(ok, 0)
	}
	write := func() []byte { return c.command(wire.ComQuery, "UPDATE runs SET n = n + 1 WHERE id = 1") }
	if p := write(); p[0] != wire.HeaderOK {
		c.wantError(p, 0)
	}

	t.Run("re-applied after COM_RESET_CONNECTION", func(t *testing.T) {
		if p := c.command(wire.ComResetConnection, ""); p[0] != wire.HeaderOK {
			c.wantError(p, 0)
		}
		if got := c.query("SELECT @fence_owner"); got != a.Owner {
			t.Errorf("@fence_owner is %q after the reset", got)
		}
		if p := write(); p[0] != wire.HeaderOK {
			c.wantError(p, 0)
		}
	})
	t.Run("COM_CHANGE_USER brings its own", func(t *testing.T) {
		change := func(attributes ...string) {
			p := c.command(wire.ComChangeUser, "root\x00\x00"+f.schema+"\x00\x2d\x00mysql_native_password\x00"+string(attributeBlock(attributes)))
			for p[0] == wire.HeaderEOF { // the server asks for the scramble anew
				c.write(nil)
				p = c.read()
			}
			if p[0] != wire.HeaderOK {
				c.wantError(p, 0)
			}
		}
		change()
		if got := c.query("SELECT @fence_owner"); got != "NULL" {
			t.Errorf("@fence_owner is %q after a change of user without attributes", got)
		}
		c.wantError(write(), 1644, "no identity")
		change(identity...)
		if p := write(); p[0] != wire.HeaderOK {
			c.wantError(p, 0)
		}
	})
	f.takeOver(a)
	c.wantError(write(), 1644, "stale token")
	if got := f.logs.rejections(t); got[len(got)-1]["program"] != "reconciler" {
		t.Errorf("logged program %v", got[len(got)-1]["program"])
	}
}

func TestBadAttributesAreNamedAtLogin(t *testing.T) {
	f := setup(t)
	for _, tt := range []struct {
		attributes []string
		want       string
	}{
		{[]string{"fence_owner", "A", "fence_token", "seven"}, `fence_token is "seven"`},
		{[]string{"fence_owner", "A"}, "fence_token is missing"},
		{[]string{"fence_token", "7"}, "fence_owner is missing"},
		{[]string{"fence_lease", leaseName}, "fence_owner is missing"},
	} {
		c, answer := f.login(0, tt.attributes...)
		c.wantError(answer, 1043, tt.want)
		c.wantClosed()
	}
}

func TestUnknownCommandsAreRefusedAndTheSessionGoesOn(t *testing.T) {
	f := setup(t)
	c, _ := f.login(0)
	for _, command := range []wire.Command{wire.ComBinlogDump, wire.ComBinlogDumpGTID, wire.ComRegisterSlave, wire.ComTableDump, wire.ComStmtBulkExecute, wire.ComMulti, 0x1d, 0x77, 0x05} {
		c.wantError(c.command(command, "\x01\x00\x00\x00"), 1047, "not supported")
	}
	if got := c.query("SELECT 'on'"); got != "on" {
		t.Error(got)
	}
}

func TestOtherCommandsAreRelayed(t *testing.T) {
	f := setup(t)
	for _, capabilities := range []uint32{0, wire.ClientDeprecateEOF} {
		c, _ := f.login(capabilities)
		if p := c.command(wire.ComPing, ""); p[0] != wire.HeaderOK {
			t.Errorf("COM_PING: % x", p)
		}
		if p := c.command(wire.ComStatistics, ""); !bytes.HasPrefix(p, []byte("Uptime")) {
			t.Errorf("COM_STATISTICS: %q", p)
		}
		p := c.command(wire.ComFieldList, "runs\x00")
		columns := 0
		for p[0] != wire.HeaderEOF {
			columns++
			p = c.read()
		}
		if columns != 3 {
			t.Errorf("COM_FIELD_LIST: %d columns", columns)
		}
		if p := c.command(wire.ComSetOption, "\x01\x00"); p[0] != wire.HeaderEOF && p[0] != wire.HeaderOK {
			t.Errorf("COM_SET_OPTION: % x", p)
		}
		if p := c.command(wire.ComInitDB, "mysql"); p[0] != wire.HeaderOK {
			t.Errorf("COM_INIT_DB: % x", p)
		}
		if got := c.query("SELECT DATABASE()"); got != "mysql" {
			t.Errorf("after COM_INIT_DB: %q", got)
		}
		c.SetSequence(0)
		c.write([]byte{byte(wire.ComQuit)})
		c.wantClosed()
	}
}

func TestADefaultDatabaseChosenLaterCounts(t *testing.T) {
	f := setup(t)
	for name, choose := range map[string]func(c *rawClient){
		"COM_INIT_DB": func(c *rawClient) { c.command(wire.ComInitDB, f.schema) },
		"USE":         func(c *rawClient) { c.query("USE " + f.schema) },
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := f.login(0)
			c.command(wire.ComInitDB, "mysql")
			c.wantError(c.command(wire.ComQuery, "UPDATE runs SET n = 0"), 1146)
			choose(c)
			c.wantError(c.command(wire.ComQuery, "UPDATE runs SET n = 0"), 1644, "no identity")
		})
	}
}

func TestAStatementIDThatTheProxyDidNotSeePreparedIsUnknown(t *testing.T) {
	f := setup(t)
	a := f.acquire(time.Minute)
	c, _ := f.login(0)
	c.query("PREPARE s FROM 'INSERT INTO notes (text) VALUES (1)'")
	for id := byte(0); id < 4; id++ {
		c.wantError(c.command(wire.ComStmtExecute, string([]byte{id, 0, 0, 0, 0, 1, 0, 0, 0})), 1243)
	}
	// MariaDB's "the statement prepared last" is guarded like any other.
	if p := c.command(wire.ComStmtPrepare, "UPDATE runs SET status = 'late' WHERE id = 1"); p[0] != wire.HeaderOK {
		c.wantError(p, 0)
	}
	c.query(fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token))
	f.takeOver(a)
	c.wantError(c.command(wire.ComStmtExecute, "\xff\xff\xff\xff\x00\x01\x00\x00\x00"), 1644, "stale token")
}

func TestGarbageGetsAnErrorOrAClose(t *testing.T) {
	f := setup(t)
	for name, bytes := range map[string][]byte{
		"an HTTP request":         []byte("GET / HTTP/1.1\r\nHost: db\r\n\r\n"),
		"a TLS hello":             {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"a login before 4.1":      {10, 0, 0, 1, 5, 0, 0, 0, 0, 'r', 'o', 'o', 't', 0},
		"an unoffered SSLRequest": append([]byte{32, 0, 0, 1, 0, 0x0a, 0, 0}, make([]byte, 28)...),
		"a short login":           {4, 0, 0, 1, 0, 2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialRaw(t, f.addr)
			c.read()
			if _, err := c.Conn.Conn.Write(bytes); err != nil {
				t.Fatal(err)
			}
			_ = c.Conn.Conn.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(c.Conn.Conn) // returns once the proxy has closed
			if len(answer) > 0 && (len(answer) < 5 || answer[4] != wire.HeaderERR) {
				t.Errorf("got % x", answer)
			}
		})
	}
}

func TestTheConnectionLimitGives1040(t *testing.T) {
	f := setup(t, limitTo(2))
	first, _ := f.login(0)
	second, _ := f.login(0)
	third := dialRaw(t, f.addr)
	third.wantError(third.read(), 1040)
	third.wantClosed()
	second.SetSequence(0)
	second.write([]byte{byte(wire.ComQuit)})
	second.wantClosed()
	waitFor(t, "a place to be free", func() bool {
		c := dialRaw(t, f.addr)
		return c.read()[0] == 10
	})
	if got := first.query("SELECT 1"); got != "1" {
		t.Error(got)
	}
}

// waitFor polls until done.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(rawTimeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-tick.C
	}
}
