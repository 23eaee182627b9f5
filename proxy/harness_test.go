package proxy_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/migrations"
	"github.com/fenceproxy/fenceproxy/monitor"
	"github.com/fenceproxy/fenceproxy/proxy"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// server is the MariaDB that the package's tests share; each test has a schema
// of its own on it.
var server *dbtest.Server

func TestMain(m *testing.M) {
	ctx := context.Background()
	var err error
	server, err = dbtest.Start(ctx, dbtest.Options{Args: []string{"--local-infile=1", "--innodb-lock-wait-timeout=20"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = server.Stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// fixture is a proxy in front of the shared server, with a schema of its own
// that has a lease table and the protected table runs.
type fixture struct {
	t      testing.TB
	schema string
	addr   string  // of the proxy
	direct *sql.DB // straight at the server
	leases *lease.Store
	proxy  *proxy.Server
	logs   *logBuffer
	rule   rewrite.Rule
}

const leaseName = "admin:reconciliation"

// setup starts a fixture. change may alter the rule of runs and the options.
func setup(t testing.TB, change ...func(*rewrite.Rule, *proxy.Options)) *fixture {
	t.Helper()
	return setupOn(t, server, change...)
}

func setupOn(t testing.TB, db *dbtest.Server, change ...func(*rewrite.Rule, *proxy.Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, schema: schemaName(t), logs: &logBuffer{}}
	root := open(t, db.DSN(""))
	mustExec(t, root, "CREATE DATABASE "+f.schema)
	t.Cleanup(func() { _, _ = root.Exec("DROP DATABASE IF EXISTS " + f.schema) })

	f.direct = open(t, db.DSN(f.schema)+"?multiStatements=true")
	table := f.schema + ".fenced_job_leases"
	if _, err := migrations.Up(t.Context(), f.direct, table); err != nil {
		t.Fatal(err)
	}
	mustExec(t, f.direct, "CREATE TABLE runs (id INT PRIMARY KEY AUTO_INCREMENT, status VARCHAR(40) NOT NULL DEFAULT 'new', n INT, UNIQUE KEY (n)) ENGINE=InnoDB")
	mustExec(t, f.direct, "CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(200)) ENGINE=InnoDB")
	mustExec(t, f.direct, "INSERT INTO runs (id, status, n) VALUES (1,'running',10),(2,'running',20),(3,'running',30)")
	var err error
	if f.leases, err = lease.New(f.direct, table); err != nil {
		t.Fatal(err)
	}

	f.rule = rewrite.Rule{Table: rewrite.Table{Schema: f.schema, Name: "runs"}, Lease: leaseName}
	log := slog.New(slog.NewJSONHandler(f.logs, nil))
	options := proxy.Options{
		Backend: db.Addr(),
		Leases:  f.leases,
		Monitor: monitor.New(log, prometheus.NewRegistry()),
		Log:     log,

		MaxConnections: config.DefaultMaxConnections,
		MaxStatement:   config.DefaultMaxStatementBytes,
		ConnectTimeout: config.DefaultConnectTimeout,
		LoginTimeout:   config.DefaultLoginTimeout,
	}
	for _, c := range change {
		c(&f.rule, &options)
	}
	options.Rules, err = rewrite.NewRules(rewrite.Table{Schema: f.schema, Name: "fenced_job_leases"}, []rewrite.Rule{f.rule}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.proxy = proxy.NewServer(options)
	f.addr = f.serve(nil)
	t.Cleanup(f.stop)
	return f
}

// serve opens another listener of the proxy and returns its address.
func (f *fixture) serve(binding *proxy.Binding) string {
	f.t.Helper()
	l, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.proxy.Serve(l, binding) }()
	f.t.Cleanup(func() {
		f.stop()
		if err := <-done; !errors.Is(err, proxy.ErrServerClosed) {
			f.t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// stop ends the proxy at once.
func (f *fixture) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = f.proxy.Shutdown(ctx)
}

func schemaName(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, t.Name())
	if len(name) > 40 {
		name = name[len(name)-40:]
	}
	return fmt.Sprintf("t%d_%s", schemaCount.next(), strings.ToLower(name))
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

var schemaCount counter

func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func mustExec(t testing.TB, db interface {
	Exec(string, ...any) (sql.Result, error)
}, query string, args ...any,
) sql.Result {
	t.Helper()
	r, err := db.Exec(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return r
}

// connect opens one session through the proxy. parameters are the driver's.
func (f *fixture) connect(parameters ...string) *client {
	f.t.Helper()
	return f.connectTo(f.addr, parameters...)
}

func (f *fixture) connectTo(addr string, parameters ...string) *client {
	f.t.Helper()
	db := open(f.t, fmt.Sprintf("root@tcp(%s)/%s?%s", addr, f.schema, strings.Join(parameters, "&")))
	conn, err := db.Conn(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close() })
	return &client{t: f.t, conn: conn}
}

// worker opens a session with the identity of claim, set as a program would.
func (f *fixture) worker(claim lease.Claim, parameters ...string) *client {
	f.t.Helper()
	c := f.connect(parameters...)
	c.exec("SET @fence_owner = '" + claim.Owner + "', @fence_token = " + fmt.Sprint(claim.Token))
	return c
}

// acquire takes the lease for ttl.
func (f *fixture) acquire(ttl time.Duration) lease.Claim {
	f.t.Helper()
	l, err := f.leases.Acquire(f.t.Context(), leaseName, ttl)
	if err != nil {
		f.t.Fatal(err)
	}
	return l.Claim
}

// takeOver makes another owner the holder: the lease is released for it first.
func (f *fixture) takeOver(from lease.Claim) lease.Claim {
	f.t.Helper()
	if err := f.leases.Release(f.t.Context(), from); err != nil {
		f.t.Fatal(err)
	}
	return f.acquire(time.Minute)
}

// status reads the status of run id straight from the server.
func (f *fixture) status(id int) string {
	f.t.Helper()
	var status string
	err := f.direct.QueryRow("SELECT status FROM runs WHERE id = ?", id).Scan(&status)
	if errors.Is(err, sql.ErrNoRows) {
		return ""
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return status
}

// client is one session.
type client struct {
	t    testing.TB
	conn *sql.Conn
}

func (c *client) exec(query string, args ...any) sql.Result {
	c.t.Helper()
	r, err := c.conn.ExecContext(context.Background(), query, args...)
	if err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	return r
}

func (c *client) try(query string, args ...any) error {
	_, err := c.conn.ExecContext(context.Background(), query, args...)
	return err
}

// value reads one value.
func (c *client) value(query string) string {
	c.t.Helper()
	var v sql.NullString
	if err := c.conn.QueryRowContext(context.Background(), query).Scan(&v); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	if !v.Valid {
		return "NULL"
	}
	return v.String
}

// wantRejected fails the test unless err is the proxy's rejection, once, with
// every part in its message.
func wantRejected(t *testing.T, err error, parts ...string) {
	t.Helper()
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a rejection", err)
	}
	if e.Number != 1644 || string(e.SQLState[:]) != "45000" {
		t.Fatalf("got %v, want error 1644 (45000)", err)
	}
	for _, part := range parts {
		if !strings.Contains(e.Message, part) {
			t.Errorf("message %q lacks %q", e.Message, part)
		}
	}
}

// logBuffer collects the proxy's log.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// rejections are the log's lines about rejections, observed or not.
func (b *logBuffer) rejections(t *testing.T) []map[string]any {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []map[string]any
	for line := range strings.Lines(b.buf.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if entry["reason"] != nil {
			found = append(found, entry)
		}
	}
	return found
}

// forwarder relays one port to the server, so that a test can read, cut or
// change what passes between the proxy and the server.
type forwarder struct {
	net.Listener
	to string

	mu    sync.Mutex
	sent  bytes.Buffer // towards the server
	conns []net.Conn
}

func newForwarder(t *testing.T, to string) *forwarder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{Listener: l, to: to}
	var done sync.WaitGroup
	done.Go(func() { f.accept(&done) })
	t.Cleanup(func() {
		_ = l.Close()
		f.cut()
		done.Wait()
	})
	return f
}

func (f *forwarder) accept(done *sync.WaitGroup) {
	for {
		near, err := f.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", f.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		f.mu.Lock()
		f.conns = append(f.conns, near, far)
		f.mu.Unlock()
		done.Go(func() { f.pump(far, near, &f.sent) })
		done.Go(func() { f.pump(near, far, nil) })
	}
}

func (f *forwarder) pump(dst, src net.Conn, record *bytes.Buffer) {
	defer func() { _ = dst.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if record != nil {
				f.mu.Lock()
				record.Write(buf[:n])
				f.mu.Unlock()
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut closes every connection that passes through.
func (f *forwarder) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
}

// towardsServer is what the proxy has sent so far.
func (f *forwarder) towardsServer() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Clone(f.sent.Bytes())
}
