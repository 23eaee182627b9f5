package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The programs of these tests know nothing of leases. Each writes once, prints
// "wrote", waits for a line, and writes again: its late write.
const (
	phpProgram = `<?php
$c = new PDO("mysql:host=" . getenv("FENCE_HOST") . ";port=" . getenv("FENCE_PORT") . ";dbname=app", "worker", "legacy");
$c->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$w = $c->prepare("UPDATE reconciliation_runs SET finished_by = ? WHERE run_id = 42");
$w->execute([$argv[1]]);
echo "wrote\n";
fgets(STDIN);
try { $w->execute([$argv[1] . " late"]); echo "landed\n"; } catch (PDOException $e) { echo $e->getMessage(), "\n"; }
`
	pythonProgram = `
import os, sys, pymysql
c = pymysql.connect(unix_socket=os.environ['FENCE_SOCKET'], user='worker', password='legacy', database='app', autocommit=True)
w = "UPDATE reconciliation_runs SET finished_by = %s WHERE run_id = 42"
c.cursor().execute(w, (sys.argv[1],))
print('wrote', flush=True)
sys.stdin.readline()
try:
    c.cursor().execute(w, (sys.argv[1] + ' late',))
    print('landed', flush=True)
except pymysql.err.MySQLError as e:
    print(e, flush=True)
`
	shellProgram = `
write() { mariadb --no-defaults --skip-ssl --host="$FENCE_HOST" --port="$FENCE_PORT" --user=worker --password=legacy app \
  -e "UPDATE reconciliation_runs SET finished_by = '$1' WHERE run_id = 42" 2>&1; }
write "$1" && echo wrote
read go
write "$1 late" && echo landed
`
)

// programDir is where buildProgram puts the program.
var programDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fenceproxy-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// buildProgram builds the fenceproxy binary once for the tests that run it.
var buildProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programDir, "fenceproxy")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// writeConfig writes a configuration for the stage's database.
func (s *stage) writeConfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fenceproxy.yaml")
	text := fmt.Sprintf(`listen: [127.0.0.1:0]
backend: {address: "%s"}
control: {dsn: "%s"}
lease_table: %s
protect:
  - {table: app.reconciliation_runs, lease: "%s"}
`, s.db.Addr(), s.db.DSN("app"), demoTable, demoLease)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// supervised is a program under fenceproxy run.
type supervised struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  interface{ Write([]byte) (int, error) }
	stdout *os.File
	stderr bytes.Buffer
}

func (s *stage) startRun(t *testing.T, config string, program []string, flags ...string) *supervised {
	t.Helper()
	path, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", "-c", config, "--lease", demoLease, "--kill-after", "2s"}, flags...)
	r := &supervised{t: t, cmd: exec.Command(path, append(append(args, "--"), program...)...)}
	r.cmd.Stderr = &r.stderr
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.stdin = stdin
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdout, r.stdout = write, read
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	t.Cleanup(func() {
		// Whatever it started, stopped or not: Wait waits for their stderr too.
		if r.cmd.ProcessState == nil {
			for _, pid := range r.processes() {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			_ = r.cmd.Wait()
		}
		_ = read.Close()
	})
	return r
}

// line reads one line of the program's output.
func (r *supervised) line() string {
	r.t.Helper()
	var text []byte
	one := make([]byte, 1)
	_ = r.stdout.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		if _, err := r.stdout.Read(one); err != nil {
			r.t.Fatalf("after %q: %v\n%s", text, err, r.stderr.String())
		}
		if one[0] == '\n' {
			return string(text)
		}
		text = append(text, one[0])
	}
}

func (r *supervised) goOn() {
	r.t.Helper()
	if _, err := r.stdin.Write([]byte("go on\n")); err != nil {
		r.t.Fatal(err)
	}
}

func (r *supervised) wantStatus(want int) {
	r.t.Helper()
	_ = r.cmd.Wait()
	if got := r.cmd.ProcessState.ExitCode(); got != want {
		r.t.Errorf("exit status %d, want %d\n%s", got, want, r.stderr.String())
	}
}

// processes are fenceproxy run and all that it started.
func (r *supervised) processes() []int {
	found := []int{r.cmd.Process.Pid}
	for i := 0; i < len(found); i++ {
		// Any thread may have forked.
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", found[i]))
		for _, thread := range threads {
			children, err := os.ReadFile(thread)
			if err != nil {
				continue // it has ended
			}
			for child := range strings.FieldsSeq(string(children)) {
				if pid, err := strconv.Atoi(child); err == nil {
					found = append(found, pid)
				}
			}
		}
	}
	return found
}

func (r *supervised) signal(sig syscall.Signal) {
	r.t.Helper()
	for _, pid := range r.processes() {
		// Once fenceproxy is continued it ends the others, continued or not.
		if err := unix.Kill(pid, sig); err != nil && !(sig == syscall.SIGCONT && errors.Is(err, unix.ESRCH)) {
			r.t.Fatalf("signal %v to %d: %v", sig, pid, err)
		}
	}
}

// TestProgramsThatKnowNothingOfLeases runs each program twice at once, stalls
// the one that runs until its lease has expired, lets a second take over and
// finish, and continues the first.
func TestProgramsThatKnowNothingOfLeases(t *testing.T) {
	s := newStage(t)
	config := s.writeConfig(t)
	for name, program := range map[string][]string{
		"php pdo_mysql":   {"php", "-r", strings.TrimPrefix(phpProgram, "<?php")},
		"python3-pymysql": {"/usr/bin/python3", "-c", pythonProgram},
		"shell":           {"sh", "-c", shellProgram, "sh"},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(who string) []string {
				p := append([]string(nil), program...)
				if name == "php pdo_mysql" {
					p = append(p, "--")
				}
				return append(p, who)
			}
			first := s.startRun(t, config, with("A"), "--ttl", "3s")
			if got := first.line(); got != "wrote" {
				t.Fatalf("A said %q", got)
			}
			if by := s.finishedBy(t); by != "A" {
				t.Fatalf("finished by %q while A runs", by)
			}

			second := s.startRun(t, config, with("B"))
			second.wantStatus(75)
			if !strings.Contains(second.stderr.String(), "held") {
				t.Errorf("the second said %q", second.stderr.String())
			}

			all := first.processes()
			first.signal(syscall.SIGSTOP)
			third := s.startRun(t, config, with("B"), "--wait", "1m", "--ttl", "1m")
			if got := third.line(); got != "wrote" {
				t.Fatalf("B said %q", got)
			}
			third.goOn()
			if got := third.line(); got != "landed" {
				t.Fatalf("B's second write: %q", got)
			}
			third.wantStatus(0)

			first.goOn() // the late write is the first thing that A does
			first.signal(syscall.SIGCONT)
			first.wantStatus(76)
			if by := s.finishedBy(t); by != "B late" {
				t.Errorf("finished by %q in the end", by)
			}
			for _, pid := range all {
				if unix.Kill(pid, 0) == nil {
					t.Errorf("process %d of %v is left", pid, all)
				}
			}
		})
	}
}

func TestRunReturnsTheCommandsStatusAndReleasesTheLease(t *testing.T) {
	s := newStage(t)
	config := s.writeConfig(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 9": 9, "kill -TERM $$": 143} {
		s.startRun(t, config, []string{"sh", "-c", script}).wantStatus(want)
	}
	s.startRun(t, config, []string{"/nonexistent/program"}).wantStatus(127)
	listed, err := s.leases.List(t.Context())
	if err != nil || len(listed) != 1 || listed[0].SecondsLeft > 0 || listed[0].Token != 4 {
		t.Errorf("leases %+v, %v; want one, released, at token 4", listed, err)
	}
}

func TestRunGivesTheCommandItsEnvironment(t *testing.T) {
	s := newStage(t)
	config := s.writeConfig(t)
	t.Setenv("DATABASE_URL", "mysql://worker:legacy@db.example/app?x=1")
	r := s.startRun(t, config, []string{"sh", "-c", `stat -c %a "$FENCE_SOCKET"; echo "$FENCE_LEASE $FENCE_TOKEN $DATABASE_URL $FENCE_PORT"`}, "--rewrite-env", "DATABASE_URL")
	if got := r.line(); got != "600" {
		t.Errorf("the socket's mode is %s", got)
	}
	fields := strings.Fields(r.line())
	want := []string{demoLease, "1", "mysql://worker:legacy@127.0.0.1:" + fields[len(fields)-1] + "/app?x=1"}
	if strings.Join(fields[:3], " ") != strings.Join(want, " ") {
		t.Errorf("environment %v, want %v", fields, want)
	}
	r.wantStatus(0)

	bad := s.startRun(t, config, []string{"true"}, "--rewrite-env", "NO_SUCH_VARIABLE")
	bad.wantStatus(2)
	if !strings.Contains(bad.stderr.String(), "NO_SUCH_VARIABLE: the variable is not set") {
		t.Errorf("said %q", bad.stderr.String())
	}
}

func TestRunForwardsSignals(t *testing.T) {
	s := newStage(t)
	r := s.startRun(t, s.writeConfig(t), []string{"sh", "-c", "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.02; done"})
	r.line()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := r.line(); got != "got" {
		t.Errorf("the command said %q", got)
	}
	r.wantStatus(5)
}
