// Package dbtest runs private MariaDB servers for tests, benchmarks and the
// demo; it knows nothing of fencing.
//
// A server has a data directory of its own in the temporary folder, a free port
// on the loopback interface and a unix socket. It ends with the process that
// started it, however that ends, and leaves nothing behind.
package dbtest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver behind Open
)

// Options of a server.
type Options struct {
	// Args are further options of mariadbd, such as "--local-infile=1".
	Args []string
}

// Server is a running mariadbd. Its root account has no password, over TCP and
// over the socket. Its methods are not safe for use at the same time.
type Server struct {
	dir  string
	port int
	args []string

	process *process // nil while the server is down
	sweeper *sweeper
}

// ErrMissing tells that MariaDB is not installed.
var ErrMissing = errors.New("mariadbd not found: apt-get install mariadb-server")

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 30 * time.Second
	// portTries is how often another port is tried when the chosen one was
	// taken before mariadbd could bind it.
	portTries = 5
)

// Start makes a data directory and starts a server on it.
func Start(ctx context.Context, o Options) (*Server, error) {
	dir, err := os.MkdirTemp("", "fenceproxy-db-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, args: o.Args}
	if s.sweeper, err = startSweeper(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.bootstrap(ctx); err != nil {
		return nil, errors.Join(err, s.sweeper.sweep())
	}
	return s, nil
}

// bootstrap installs the system tables and starts the server on a free port.
func (s *Server) bootstrap(ctx context.Context) error {
	// A server removes the temporary tables of others in a tmpdir that they share.
	if err := os.Mkdir(s.tmpDir(), 0o700); err != nil {
		return err
	}
	if err := s.install(ctx); err != nil {
		return err
	}
	for try := 1; ; try++ {
		var err error
		if s.port, err = freePort(); err != nil {
			return err
		}
		err = s.start(ctx)
		if try == portTries || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

// New starts a server for a test, which its cleanup stops.
func New(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := Start(context.Background(), Options{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop the server: %v", err)
		}
	})
	return s
}

// find looks for a program in PATH and where Debian puts servers.
func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	path := filepath.Join("/usr/sbin", program)
	if _, err := os.Stat(path); err != nil {
		return "", ErrMissing
	}
	return path, nil
}

// userArgs let a server run as root, which it otherwise refuses.
func userArgs() []string {
	if os.Getuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

func (s *Server) install(ctx context.Context) error {
	program, err := find("mariadb-install-db")
	if err != nil {
		return err
	}
	args := append([]string{
		"--no-defaults", "--datadir=" + s.dataDir(), "--tmpdir=" + s.tmpDir(), "--auth-root-authentication-method=normal",
		"--skip-test-db", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=16M",
	}, userArgs()...)
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *Server) tmpDir() string  { return filepath.Join(s.dir, "tmp") }

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

var errPortTaken = errors.New("the port was taken meanwhile")

// start starts mariadbd on the data directory and waits until it answers.
func (s *Server) start(ctx context.Context) error {
	program, err := find("mariadbd")
	if err != nil {
		return err
	}
	args := append([]string{
		"--no-defaults", "--datadir=" + s.dataDir(), "--tmpdir=" + s.tmpDir(), "--socket=" + s.Socket(),
		"--port=" + strconv.Itoa(s.port), "--bind-address=127.0.0.1", "--pid-file=" + filepath.Join(s.dir, "pid"),
		"--skip-name-resolve", "--skip-log-bin", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
		"--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync", "--skip-innodb-doublewrite", "--max-connections=500",
	}, userArgs()...)
	p, err := startProcess(program, append(args, s.args...))
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, p); err != nil {
		p.signal(syscall.SIGKILL)
		<-p.exited
		if bytes.Contains(p.log.bytes(), []byte("Address already in use")) {
			return errPortTaken
		}
		return fmt.Errorf("start mariadbd: %w\n%s", err, p.log.bytes())
	}
	s.process = p
	return nil
}

func (s *Server) awaitReady(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		// The socket is tried first: a driver would log each refused attempt.
		if probe, err := net.Dial("unix", s.Socket()); err == nil {
			_ = probe.Close()
			return db.PingContext(ctx)
		}
		select {
		case <-p.exited:
			return errors.New("it exited")
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Port is the server's TCP port.
func (s *Server) Port() int { return s.port }

// Socket is the path of the server's unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "s") }

// DSN is go-sql-driver's data source name for root, with db as the default
// database, "" for none. Parameters may follow, as in "app?parseTime=true".
func (s *Server) DSN(db string) string { return "root@tcp(" + s.Addr() + ")/" + db }

// Open opens DSN(db) for a test, which its cleanup closes.
func (s *Server) Open(t testing.TB, db string) *sql.DB {
	t.Helper()
	pool, err := sql.Open("mysql", s.DSN(db))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// Stop shuts the server down and removes its files. It may be called twice.
func (s *Server) Stop() error {
	return errors.Join(s.shutdown(), s.sweeper.sweep())
}

func (s *Server) shutdown() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
		p.signal(syscall.SIGKILL)
		<-p.exited
		return fmt.Errorf("mariadbd did not stop within %v and was killed\n%s", stopTimeout, p.log.bytes())
	}
}

// Kill ends the server as a crash would (kill -9). Restart brings it back.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	s.process.signal(syscall.SIGKILL)
	<-s.process.exited
	s.process = nil
}

// Restart starts the server again on its data directory and port, after an
// orderly shutdown if it runs.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.shutdown(); err != nil {
		return err
	}
	return s.start(ctx)
}

// Pause stalls the running server as a frozen machine would (SIGSTOP). It returns
// once the server stands still.
func (s *Server) Pause() { s.process.pause() }

// Resume continues a paused server.
func (s *Server) Resume() { s.process.signal(syscall.SIGCONT) }
