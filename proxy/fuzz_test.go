package proxy_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/proxy/wire"
)

// hangTimeout is how long a session may take to end after both of its peers have
// said all that they have to say.
const hangTimeout = 20 * time.Second

// FuzzSessionClient feeds a session of a stale holder with commands and then with
// raw bytes. Whatever they are, the session ends and the protected table stays.
func FuzzSessionClient(f *testing.F) {
	fix := setup(f)
	stale := fuzzAccount(f, fix)
	for _, commands := range [][3]string{
		{query("BEGIN"), query("UPDATE runs SET status = 'late'"), query("ROLLBACK AND CHAIN")},
		{query("SET NAMES gbk"), query("UPDATE runs SET status = '\xbf\\' WHERE n = 1 -- '"), query("SELECT '\xbf\\'")},
		{query("SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"), query(`UPDATE "runs" SET status = '\'`), query("DO 1; DELETE FROM runs")},
		{"\x16INSERT INTO runs (status) VALUES (?)", "\x18\x01\x00\x00\x00\x00\x00late", "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\xfc\x00"},
		{"\x16SELECT * FROM runs", "\x17\x01\x00\x00\x00\x01\x01\x00\x00\x00", "\x1c\x01\x00\x00\x00\x02\x00\x00\x00"},
		{"\x16DELETE FROM runs", "\x17\xff\xff\xff\xff\x00\x01\x00\x00\x00", "\x19\x01\x00\x00\x00"},
		{"\x11fuzz\x00\x00\x00\x2d\x00mysql_native_password\x00\x00", "\x1b\x00\x00", "\x1f"},
		{"\x04runs\x00%", "\x02mysql", "\x09"},
		{query("PREPARE s FROM 'DELETE FROM runs'"), query("EXECUTE s"), query("EXECUTE IMMEDIATE CONCAT('DELETE FROM ', 'runs')")},
		{query("LOAD DATA LOCAL INFILE 'x' INTO TABLE notes"), "late\n", ""},
		{query("XA START 'x'"), query("REPLACE INTO runs (id) VALUES (1)"), query("XA END 'x'; XA PREPARE 'x'")},
		{query("LOCK TABLES runs WRITE"), query("/*! DELETE */ FROM /*M!100000 runs */"), query("SET STATEMENT sql_mode = '' FOR DELETE FROM runs")},
	} {
		f.Add([]byte(commands[0]), []byte(commands[1]), []byte(commands[2]), []byte("\x05\x00\x00\x00\x03BEGIN"))
	}
	want := fix.rowsOfRuns()
	f.Fuzz(func(t *testing.T, first, second, third, raw []byte) {
		fix := *fix
		fix.t = t
		c := dialRaw(t, fix.addr)
		c.capabilities |= wire.ClientLocalFiles
		c.read()
		c.write(handshakeResponse(c.capabilities, "fuzz", fix.schema, stale))
		if ok := c.read(); ok[0] != wire.HeaderOK {
			c.wantError(ok, 0)
		}
		ended := make(chan error, 1)
		go func() { ended <- drain(c.Conn.Conn) }()
		for _, command := range [][]byte{first, second, third} {
			c.SetSequence(0)
			_ = c.WritePacket(command)
		}
		_ = c.Flush()
		_, _ = c.Conn.Conn.Write(raw)
		_ = c.Conn.Conn.(*net.TCPConn).CloseWrite()
		if err := <-ended; err != nil {
			t.Fatalf("the session does not end: %v", err)
		}
		if got := fix.rowsOfRuns(); got != want {
			t.Errorf("the table changed to\n%s", got)
		}
	})
}

// fuzzAccount makes the user fuzz, who may do harm to two tables only and nothing
// for long, and returns the attributes of an identity that is stale.
func fuzzAccount(f *testing.F, fix *fixture) []string {
	f.Helper()
	for _, statement := range []string{
		"CREATE USER fuzz WITH MAX_STATEMENT_TIME 2",
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX ON runs TO fuzz",
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX ON notes TO fuzz",
		"GRANT SELECT ON fenced_job_leases TO fuzz",
		"GRANT CREATE TEMPORARY TABLES, LOCK TABLES ON * TO fuzz",
	} {
		mustExec(f, fix.direct, statement)
	}
	f.Cleanup(func() { _, _ = fix.direct.Exec("DROP USER fuzz") })
	a := fix.acquire(time.Hour)
	if err := fix.leases.Release(f.Context(), a); err != nil {
		f.Fatal(err)
	}
	fix.acquire(lease.MaxTTL)
	return []string{"fence_owner", a.Owner, "fence_token", fmt.Sprint(a.Token)}
}

// drain reads until the peer closes; a reset is an end as well.
func drain(c net.Conn) error {
	_ = c.SetReadDeadline(time.Now().Add(hangTimeout))
	_, err := io.Copy(io.Discard, c)
	if err != nil && isReset(err) {
		return nil
	}
	return err
}

// FuzzSessionBackend lets a server answer a client's commands with packets and raw
// bytes that no server would send. Each answer is a list of packets with a length
// byte before each, since lengths and sequence ids at random would be all that is
// ever looked at.
func FuzzSessionBackend(f *testing.F) {
	script, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = script.Close() })
	fix := setup(f, backendAt(script.Addr().String()))
	claim := fix.acquire(time.Hour)
	attributes := []string{"fence_owner", claim.Owner, "fence_token", fmt.Sprint(claim.Token)}
	const (
		ok   = "\x07\x00\x00\x00\x02\x00\x00\x00"
		open = "\x07\x00\x00\x00\x03\x00\x00\x00"
		eof  = "\x05\xfe\x00\x00\x02\x00"
		fail = "\x0c\xff\x28\x04#42000bad"
	)
	facts := "\x01\x0a" + strings.Repeat("\x01c", 10) + eof + string(factsRow(fix.schema, claim)) + eof
	for command := range byte(len(fuzzCommands)) {
		f.Add(command, []byte(ok), []byte(facts), []byte(ok), []byte(ok), []byte("\x05\x00\x00\x01\xff"))
		f.Add(command, []byte(ok), []byte(facts), []byte(open), []byte("\x01\x01\x01c"+eof+"\x02\x011"+eof), []byte(ok))
		f.Add(command, []byte(ok), []byte(fail), []byte(open), []byte(fail), []byte("\x01\x00\x00\x01\xfb"))
		f.Add(command, []byte(ok), []byte("\x0c\x00\x01\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x01p"+eof+"\x01c"+eof), []byte("\x01\xfb"), []byte(ok), []byte{})
		f.Add(command, []byte("\x16\xfemysql_native_password\x00"), []byte("\x02\x01\x03"), []byte(ok), []byte(fail), []byte{0xff, 0xff, 0xff, 1})
	}
	f.Fuzz(func(t *testing.T, command byte, login, first, second, third, raw []byte) {
		answered := make(chan error, 1)
		go func() { answered <- answerAll(script, raw, login, first, second, third) }()
		c := dialRaw(t, fix.addr)
		c.read()
		c.write(handshakeResponse(c.capabilities, "root", fix.schema, attributes))
		for _, packet := range fuzzCommands[int(command)%len(fuzzCommands):] {
			c.SetSequence(0)
			_ = c.WritePacket([]byte(packet))
		}
		_ = c.Flush()
		_ = c.Conn.Conn.(*net.TCPConn).CloseWrite()
		if err := drain(c.Conn.Conn); err != nil {
			t.Fatalf("the session does not end: %v", err)
		}
		if err := <-answered; err != nil {
			t.Fatalf("the backend's connection does not end: %v", err)
		}
	})
}

// factsRow is the answer to what the proxy asks of a session, with its length.
func factsRow(schema string, claim lease.Claim) []byte {
	var row []byte
	for _, value := range []string{schema, "", "utf8mb4", "0", claim.Name, claim.Owner, fmt.Sprint(claim.Token), "0", "utf8mb4", "0"} {
		row = wire.AppendString(row, []byte(value))
	}
	return wire.AppendString(nil, row)
}

// fuzzCommands are what a client says to the scripted server, from any one on.
var fuzzCommands = []string{
	query("SELECT 1"),
	query("UPDATE runs SET status = 'x' WHERE id = 1"),
	query("INSERT INTO runs (status) VALUES ('x')"),
	query("LOAD DATA LOCAL INFILE 'x' INTO TABLE runs"),
	"\x16UPDATE runs SET status = ? WHERE id = 1",
	"\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00",
	"\x1c\x01\x00\x00\x00\x02\x00\x00\x00",
	"\x04runs\x00",
	"\x09",
	"\x1b\x00\x00",
	"\x1f",
	"\x11root\x00\x00\x00\x2d\x00mysql_native_password\x00\x00",
	query("COMMIT"),
}

// answerAll greets one connection, sends all answers at once, and waits until the
// proxy closes.
func answerAll(script net.Listener, raw []byte, answers ...[]byte) error {
	nc, err := script.Accept()
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }()
	w := wire.NewConn(nc)
	_ = w.WritePacket(fuzzGreeting())
	sequence := uint8(2) // of the answer to a login
	for _, answer := range answers {
		w.SetSequence(sequence)
		sequence = 1
		for len(answer) > 0 {
			n := min(int(answer[0]), len(answer)-1)
			_ = w.WritePacket(answer[1 : 1+n])
			answer = answer[1+n:]
		}
	}
	_ = w.Flush()
	_, _ = nc.Write(raw)
	_ = nc.(*net.TCPConn).CloseWrite()
	return drain(nc)
}

func fuzzGreeting() []byte {
	const capabilities = rawCapabilities
	g := append([]byte{10}, "10.11.0-MariaDB\x00\x01\x00\x00\x00scramble\x00"...)
	g = binary.LittleEndian.AppendUint16(g, uint16(capabilities&0xffff))
	g = append(g, 45, 2, 0)
	g = binary.LittleEndian.AppendUint16(g, uint16(capabilities>>16))
	g = append(g, 21)
	g = append(g, make([]byte, 10)...)
	return append(g, "scramblescra\x00mysql_native_password\x00"...)
}
