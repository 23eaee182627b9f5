package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/migrations"
)

func TestTheDemoEndsAsItSays(t *testing.T) {
	var out bytes.Buffer
	if err := runDemo(t.Context(), &out, false); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text := out.String()
	for _, want := range []string{
		"finished by A, total 900. B's result is gone",
		"ERROR 1644 (45000)",
		"write to app.reconciliation_runs rejected: stale token",
		"finished by B, total 1200. The late write changed nothing",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the demo does not say %q:\n%s", want, text)
		}
	}
}

// stage is a database with the demo's schema and a proxy in front of it.
type stage struct {
	admin  *sql.DB
	leases *lease.Store
	proxy  *demoProxy
	db     *dbtest.Server
}

func newStage(t *testing.T) *stage {
	t.Helper()
	db := dbtest.New(t)
	admin, err := sql.Open("mysql", db.DSN("")+"?multiStatements=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	s := &stage{admin: admin, db: db}
	s.must(t, demoSchema)
	if _, err := migrations.Up(t.Context(), admin, demoTable); err != nil {
		t.Fatal(err)
	}
	s.must(t, "GRANT SELECT ON "+demoTable+" TO worker@'%'")
	s.must(t, "INSERT INTO app.reconciliation_runs VALUES (42, 'running', NULL, NULL)")
	if s.leases, err = lease.New(admin, demoTable); err != nil {
		t.Fatal(err)
	}
	if s.proxy, err = startDemoProxy(db.Addr(), s.leases); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.proxy.stop)
	return s
}

func (s *stage) must(t *testing.T, query string) {
	t.Helper()
	if _, err := s.admin.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (s *stage) finishedBy(t *testing.T) string {
	t.Helper()
	var by sql.NullString
	if err := s.admin.QueryRow("SELECT finished_by FROM app.reconciliation_runs WHERE run_id = 42").Scan(&by); err != nil {
		t.Fatal(err)
	}
	return by.String
}

// TestTheLateWriteIsRejectedForUnmodifiedClients: the holder writes, is
// overtaken, and its next write is rejected, in the same session.
func TestTheLateWriteIsRejectedForUnmodifiedClients(t *testing.T) {
	s := newStage(t)
	clients := map[string]func(t *testing.T, claim lease.Claim, overtake func()) (late string){
		"mariadb command line":                 s.mariadbClient,
		"go-sql-driver, text protocol":         func(t *testing.T, c lease.Claim, o func()) string { return s.goClient(t, c, o, true) },
		"go-sql-driver, binary protocol":       func(t *testing.T, c lease.Claim, o func()) string { return s.goClient(t, c, o, false) },
		"go-sql-driver, connection attributes": s.goClientWithAttributes,
		"python3-pymysql":                      s.pymysqlClient,
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			s.must(t, "UPDATE app.reconciliation_runs SET finished_by = NULL WHERE run_id = 42")
			a, err := s.leases.Acquire(t.Context(), demoLease, 3*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			var b *lease.Lease
			late := client(t, a.Claim, func() {
				if by := s.finishedBy(t); by != "A" {
					t.Errorf("the holder's write: finished by %q", by)
				}
				if b, err = s.leases.AcquireWait(t.Context(), demoLease, time.Minute); err != nil {
					t.Fatal(err)
				}
				s.must(t, "UPDATE app.reconciliation_runs SET finished_by = 'B' WHERE run_id = 42")
			})
			want := fmt.Sprintf("fenceproxy: write to app.reconciliation_runs rejected: stale token %d, lease '%s' is at token %d (owner %s)", a.Token, demoLease, b.Token, b.Owner)
			if !strings.Contains(late, "1644") || !strings.Contains(late, want) {
				t.Errorf("the late write: %s\nwant %s", late, want)
			}
			if by := s.finishedBy(t); by != "B" {
				t.Errorf("finished by %q in the end", by)
			}
			if err := s.leases.Release(t.Context(), b.Claim); err != nil {
				t.Fatal(err)
			}
		})
	}
}

const (
	firstWrite = "UPDATE reconciliation_runs SET finished_by = 'A' WHERE run_id = 42"
	lateWrite  = "UPDATE reconciliation_runs SET finished_by = 'A again' WHERE run_id = 42"
)

func (s *stage) mariadbClient(t *testing.T, claim lease.Claim, overtake func()) string {
	w, err := startWorker(t.Context(), s.proxy.addr, claim)
	if err != nil {
		t.Fatal(err)
	}
	defer w.stop()
	if refusal, err := w.execute(firstWrite); err != nil || refusal != "" {
		t.Fatal(refusal, err)
	}
	overtake()
	late, err := w.execute(lateWrite)
	if err != nil {
		t.Fatal(err)
	}
	return late
}

func (s *stage) goClient(t *testing.T, claim lease.Claim, overtake func(), text bool) string {
	parameters := fmt.Sprintf("interpolateParams=%v", text)
	conn := s.goConn(t, parameters)
	execute(t, conn, fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", claim.Owner, claim.Token))
	return writeTwice(t, conn, overtake)
}

func (s *stage) goClientWithAttributes(t *testing.T, claim lease.Claim, overtake func()) string {
	conn := s.goConn(t, fmt.Sprintf("connectionAttributes=fence_owner:%s,fence_token:%d", claim.Owner, claim.Token))
	return writeTwice(t, conn, overtake)
}

func (s *stage) goConn(t *testing.T, parameters string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("mysql", "worker:legacy@tcp("+s.proxy.addr+")/app?"+parameters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func execute(t *testing.T, conn *sql.Conn, query string, args ...any) {
	t.Helper()
	if _, err := conn.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func writeTwice(t *testing.T, conn *sql.Conn, overtake func()) string {
	t.Helper()
	const write = "UPDATE reconciliation_runs SET finished_by = ? WHERE run_id = 42"
	execute(t, conn, write, "A")
	overtake()
	_, err := conn.ExecContext(context.Background(), write, "A again")
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		t.Fatalf("the late write: %v", err)
	}
	return err.Error()
}

// pymysqlProgram prints "wrote" after its first write, and goes on when it is
// told to.
const pymysqlProgram = `
import sys, pymysql
host, port, owner, token, first, late = sys.argv[1:]
c = pymysql.connect(host=host, port=int(port), user='worker', password='legacy', database='app', autocommit=True,
                    init_command="SET @fence_owner = '%s', @fence_token = %s" % (owner, token))
c.cursor().execute(first)
print('wrote', flush=True)
sys.stdin.readline()
try:
    c.cursor().execute(late)
    print('the late write landed')
except pymysql.err.OperationalError as e:
    print(e.args[0], e.args[1])
`

func (s *stage) pymysqlClient(t *testing.T, claim lease.Claim, overtake func()) string {
	host, port, err := net.SplitHostPort(s.proxy.addr)
	if err != nil {
		t.Fatal(err)
	}
	// Debian's own interpreter: the one that python3-pymysql is installed for.
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", pymysqlProgram, host, port, claim.Owner, fmt.Sprint(claim.Token), firstWrite, lateWrite)
	return talk(t, cmd, overtake)
}

// talk starts a program, waits for "wrote", calls overtake, tells the program to
// go on, and returns what it prints then.
func talk(t *testing.T, cmd *exec.Cmd, overtake func()) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wrote := make([]byte, len("wrote\n"))
	if _, err := io.ReadFull(stdout, wrote); err != nil || string(wrote) != "wrote\n" {
		_ = stdin.Close() // it may wait for a line
		_ = cmd.Wait()
		t.Fatalf("the program said %q, %v: %s", wrote, err, stderr.String())
	}
	overtake()
	if _, err := stdin.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(stdout); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return rest.String() + stderr.String()
}
