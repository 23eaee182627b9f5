package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/proxy"
	"github.com/fenceproxy/fenceproxy/proxy/wire"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

func limitTo(n int) func(*rewrite.Rule, *proxy.Options) {
	return func(_ *rewrite.Rule, o *proxy.Options) { o.MaxConnections = n }
}

func backendAt(addr string) func(*rewrite.Rule, *proxy.Options) {
	return func(_ *rewrite.Rule, o *proxy.Options) { o.Backend = addr }
}

// TestUnprotectedTrafficPassesByteForByte compares the bytes that a client sends
// with those that reach the server, and the bytes of the answers.
func TestUnprotectedTrafficPassesByteForByte(t *testing.T) {
	record := newForwarder(t, server.Addr())
	f := setup(t, backendAt(record.Addr().String()))
	statements := []string{
		"SELECT 'a', 1.50, NULL, x'00ff' UNION SELECT 'runs in a string', 2, 'b', ''",
		"  insert  into notes(text) values ( 'caf\xc3\xa9' ) /* kept */ -- as it is",
		"INSERT INTO notes (text) VALUES ('\x00\\'\xff')",
		"SELECT * FROM runs",
		"SELECT nosuch FROM notes",
		"DO 1; SELECT 2; DO 3",
	}
	for _, capabilities := range []uint32{0, wire.ClientDeprecateEOF, wire.ClientSessionTrack} {
		through, _ := f.login(capabilities)
		plain, _ := f.loginAt(server.Addr(), capabilities)
		for _, statement := range statements {
			through.SetSequence(0)
			plain.SetSequence(0)
			packet := append([]byte{byte(wire.ComQuery)}, statement...)
			through.write(packet)
			plain.write(packet)
			got, want := through.wholeAnswer(), plain.wholeAnswer()
			if statement[0] == ' ' || strings.HasPrefix(statement, "INSERT") {
				// Each has inserted a row of its own.
				got[2], want[2] = 0, 0
			}
			if !bytes.Equal(got, want) {
				t.Errorf("capabilities %#x, %s\nthrough the proxy % x\ndirectly          % x", capabilities, statement, got, want)
			}
			if !bytes.Contains(record.towardsServer(), packet) {
				t.Errorf("%s did not reach the server as it was sent", statement)
			}
		}
	}
}

// wholeAnswer reads the raw bytes of an answer, up to the end of its last
// result.
func (c *rawClient) wholeAnswer() []byte {
	c.t.Helper()
	var all []byte
	for {
		first := c.read()
		all = append(append(all, first...), '|')
		if first[0] == wire.HeaderERR {
			return all
		}
		if first[0] == wire.HeaderOK {
			ok, err := wire.DecodeOK(first, c.capabilities)
			if err != nil {
				c.t.Fatal(err)
			}
			if ok.Status&wire.StatusMoreResults == 0 {
				return all
			}
			continue
		}
		ends := 2
		if c.capabilities&wire.ClientDeprecateEOF != 0 {
			ends = 1
		}
		var last []byte
		for ends > 0 {
			last = c.read()
			all = append(append(all, last...), '|')
			if last[0] == wire.HeaderEOF && len(last) < 100 {
				ends--
			}
		}
		status := uint16(0)
		if c.capabilities&wire.ClientDeprecateEOF != 0 {
			ok, _ := wire.DecodeOK(last, c.capabilities)
			status = ok.Status
		} else {
			eof, _ := wire.DecodeEOF(last)
			status = eof.Status
		}
		if status&wire.StatusMoreResults == 0 {
			return all
		}
	}
}

func TestALargeResultStreamsInBoundedMemory(t *testing.T) {
	f := setup(t)
	c := f.connect("maxAllowedPacket=0")
	rows, err := c.conn.QueryContext(t.Context(), "SELECT REPEAT('x', 100000) FROM seq_1_to_2000")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var peak uint64
	var value []byte
	n := 0
	for rows.Next() {
		if err := rows.Scan(&value); err != nil {
			t.Fatal(err)
		}
		if n++; n%500 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
		}
	}
	if err := rows.Err(); err != nil || n != 2000 {
		t.Fatalf("%d rows, %v", n, err)
	}
	if peak > 64<<20 {
		t.Errorf("the heap held %d MB while 200 MB passed", peak>>20)
	}
}

func TestStatementsAndRowsAbove16MB(t *testing.T) {
	db := dbtest.New(t, "--max-allowed-packet=128M")
	f := setupOn(t, db)
	mustExec(t, f.direct, "ALTER TABLE notes MODIFY text LONGTEXT")
	claim := f.acquire(10 * time.Minute)
	c := f.worker(claim, "maxAllowedPacket=134217728")
	for _, size := range []int{wire.MaxPayload - 40, wire.MaxPayload - 1, wire.MaxPayload, wire.MaxPayload + 1, 40 << 20} {
		text := strings.Repeat("z", size)
		c.exec("DELETE FROM notes")
		c.exec("INSERT INTO notes (text) VALUES ('" + text + "')")
		c.exec("UPDATE runs SET status = 'big' WHERE id = 1 AND '" + text + "' <> ''")
		if got := c.value("SELECT text FROM notes"); got != text {
			t.Errorf("%d bytes came back as %d", size, len(got))
		}
		c.exec("UPDATE runs SET status = 'small' WHERE id = 1 AND ? <> ''", text)
	}
}

func TestLoadDataLocalIsGuarded(t *testing.T) {
	f := setup(t)
	file := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(file, []byte(strings.Repeat("loaded\n", 100000)), 0o600); err != nil {
		t.Fatal(err)
	}
	mysql.RegisterLocalFile(file)
	defer mysql.DeregisterLocalFile(file)
	load := func(table, column string) string {
		return fmt.Sprintf("LOAD DATA LOCAL INFILE '%s' INTO TABLE %s (%s)", file, table, column)
	}
	a := f.acquire(time.Minute)
	c := f.worker(a)
	for _, statement := range []string{load("notes", "text"), load("runs", "status")} {
		if n, _ := c.exec(statement).RowsAffected(); n != 100000 {
			t.Errorf("%s loaded %d rows", statement, n)
		}
	}
	f.takeOver(a)
	wantRejected(t, c.try(load("runs", "status")), "stale token")
	c.exec(load("notes", "text"))
}

func TestALostBackendIsAnErrorAndNotASilence(t *testing.T) {
	cut := newForwarder(t, server.Addr())
	f := setup(t, backendAt(cut.Addr().String()))
	c, _ := f.login(0)
	c.SetSequence(0)
	c.write([]byte("\x03SELECT SLEEP(30)"))
	waitFor(t, "the query to run", func() bool {
		var n int
		err := f.direct.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'SELECT SLEEP(30)'").Scan(&n)
		return err == nil && n == 1
	})
	cut.cut()
	c.wantError(c.read(), 2013, "unknown")
	c.wantClosed()
	killSleepers(t, f)
}

func killSleepers(t *testing.T, f *fixture) {
	t.Helper()
	var id int
	if err := f.direct.QueryRow("SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(30)'").Scan(&id); err == nil {
		mustExec(t, f.direct, fmt.Sprintf("KILL %d", id))
	}
}

func TestAnUnreachableBackendIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	_ = l.Close()
	f := setup(t, backendAt(nobody))
	c := dialRaw(t, f.addr)
	c.wantError(c.read(), 2003, nobody)
	c.wantClosed()
}

func TestShutdownEndsIdleSessionsAndWaitsForTransactions(t *testing.T) {
	f := setup(t)
	idle, _ := f.login(0)
	idle.query("SELECT 1")
	busy, _ := f.login(0)
	busy.query("BEGIN")
	busy.query("INSERT INTO notes (text) VALUES ('kept')")

	ended := make(chan error, 1)
	go func() { ended <- f.proxy.Shutdown(context.Background()) }()
	idle.SetSequence(1) // as the answer to the command that it would send next
	idle.wantError(idle.read(), 1053)
	idle.wantClosed()
	if _, err := net.Dial("tcp", f.addr); err == nil {
		t.Error("a new connection was accepted")
	}
	select {
	case err := <-ended:
		t.Fatalf("shutdown did not wait for the transaction: %v", err)
	default:
	}
	busy.query("COMMIT")
	busy.SetSequence(1)
	busy.wantError(busy.read(), 1053)
	if err := <-ended; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	var n int
	if err := f.direct.QueryRow("SELECT COUNT(*) FROM notes").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestShutdownClosesWhatDoesNotEndInTime(t *testing.T) {
	f := setup(t)
	busy, _ := f.login(0)
	busy.query("BEGIN")
	busy.query("INSERT INTO notes (text) VALUES ('lost')")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := f.proxy.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v", err)
	}
	busy.wantClosed()
}

func TestAccountsOfSeveralPluginsLogIn(t *testing.T) {
	f := setup(t)
	mustExec(t, f.direct, "INSTALL SONAME 'auth_ed25519'")
	for _, account := range []struct{ user, create string }{
		{"native", "CREATE USER native@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('secret')"},
		{"edward", "CREATE USER edward@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret')"},
		{"empty", "CREATE USER empty@'%'"},
	} {
		mustExec(t, f.direct, account.create)
		mustExec(t, f.direct, "GRANT ALL ON *.* TO "+account.user+"@'%'")
		t.Cleanup(func() { _, _ = f.direct.Exec("DROP USER " + account.user + "@'%'") })
		password := "secret"
		if account.user == "empty" {
			password = ""
		}
		db := open(t, fmt.Sprintf("%s:%s@tcp(%s)/%s", account.user, password, f.addr, f.schema))
		var user string
		if err := db.QueryRow("SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)").Scan(&user); err != nil || user != account.user {
			t.Errorf("%s: logged in as %q, %v", account.user, user, err)
		}
		wrong := open(t, fmt.Sprintf("%s:wrong@tcp(%s)/%s", account.user, f.addr, f.schema))
		var e *mysql.MySQLError
		if err := wrong.Ping(); !errors.As(err, &e) || e.Number != 1045 {
			t.Errorf("%s with a wrong password: %v", account.user, err)
		}
	}
}

func TestARevokedBindingWritesNoMore(t *testing.T) {
	f := setup(t)
	a := f.acquire(time.Minute)
	binding := proxy.NewBinding(a)
	c := f.connectTo(f.serve(binding))
	c.exec("UPDATE runs SET status = 'bound' WHERE id = 1")
	binding.Revoke()
	wantRejected(t, c.try("UPDATE runs SET status = 'late' WHERE id = 1"))
	wantRejected(t, c.try("INSERT INTO runs (n) VALUES (?)", 5))
	if got := f.status(1); got != "bound" {
		t.Errorf("status %q", got)
	}
	if got := c.value("SELECT @fence_lease"); got != leaseName {
		t.Errorf("@fence_lease is %q", got)
	}
}

func TestIdentityIsReadHoweverItWasSet(t *testing.T) {
	f := setup(t)
	a := f.acquire(time.Hour)
	mustExec(t, f.direct, fmt.Sprintf("CREATE PROCEDURE identify() SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token))
	for name, statements := range map[string][]string{
		"SET":                  {fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token)},
		"SET with a string":    {fmt.Sprintf("SET @fence_owner = '%s', @fence_token = '%d'", a.Owner, a.Token)},
		"SELECT INTO":          {fmt.Sprintf("SELECT '%s', %d INTO @fence_owner, @fence_token", a.Owner, a.Token)},
		"SELECT FROM INTO":     {"SELECT owner_token, fence_token FROM fenced_job_leases INTO @fence_owner, @fence_token"},
		"assignment":           {fmt.Sprintf("SELECT @fence_owner := '%s', @fence_token := %d", a.Owner, a.Token)},
		"CALL":                 {"CALL identify()"},
		"EXECUTE":              {fmt.Sprintf("PREPARE s FROM \"SET @fence_owner = '%s', @fence_token = %d\"", a.Owner, a.Token), "EXECUTE s"},
		"quoted variables":     {fmt.Sprintf("SET @`FENCE_owner` = '%s', @'fence_TOKEN' = %d", a.Owner, a.Token)},
		"latin1 connection":    {"SET NAMES latin1", fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token)},
		"another collation":    {"SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci", fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token)},
		"several in one batch": {fmt.Sprintf("SET @x = 1; SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token)},
	} {
		t.Run(name, func(t *testing.T) {
			c := f.connect("multiStatements=true")
			wantRejected(t, c.try("UPDATE runs SET n = n + 1 WHERE id = 3"), "no identity")
			for _, s := range statements {
				c.exec(s)
			}
			c.exec("UPDATE runs SET n = n + 1 WHERE id = 3")
			c.exec("INSERT INTO runs (status) VALUES (?)", name)
		})
	}
}

func TestAnErrorInATransactionDoesNotConfuseTheBracket(t *testing.T) {
	f := setup(t)
	mustExec(t, f.direct, "CREATE PROCEDURE leaves_open() BEGIN START TRANSACTION; INSERT INTO notes (text) VALUES ('open'); SIGNAL SQLSTATE '45000'; END")
	c := f.worker(f.acquire(time.Minute))
	// The routine fails with a transaction open: a bracket of the proxy's own
	// would commit it.
	if err := c.try("CALL leaves_open()"); err == nil {
		t.Fatal("the routine did not fail")
	}
	c.exec("INSERT INTO runs (n) VALUES (71)")
	c.exec("ROLLBACK")
	var n int
	if err := f.direct.QueryRow("SELECT (SELECT COUNT(*) FROM notes) + (SELECT COUNT(*) FROM runs WHERE n = 71)").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows were committed, %v", n, err)
	}

	// A failed statement that commits implicitly ends the transaction: the
	// guard alone would lock nothing.
	c.exec("BEGIN")
	if err := c.try("CREATE TABLE notes (id INT)"); err == nil {
		t.Fatal("the table was made twice")
	}
	c.exec("INSERT INTO runs (n) VALUES (72)")
	if err := f.direct.QueryRow("SELECT COUNT(*) FROM runs WHERE n = 72").Scan(&n); err != nil || n != 1 {
		t.Errorf("a write in autocommit was not committed: %d rows, %v", n, err)
	}
}

func TestCompletionTypeDoesNotChangeTheBracket(t *testing.T) {
	f := setup(t)
	c := f.worker(f.acquire(time.Minute))
	for _, completion := range []string{"CHAIN", "RELEASE"} {
		c.exec("SET completion_type = '" + completion + "'")
		c.exec("INSERT INTO runs (status) VALUES ('x')")
		if got := c.value("SELECT @@in_transaction"); got != "0" {
			t.Errorf("%s: in a transaction after the write", completion)
		}
	}
}
