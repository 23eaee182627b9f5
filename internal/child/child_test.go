package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for the program: Run speaks of the
// whole process's standard streams and signals.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		os.Exit(runForTest(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// runForTest runs a command; its context ends on SIGALRM, as when a lease is
// lost.
func runForTest(args []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lost := make(chan os.Signal, 1)
	signal.Notify(lost, syscall.SIGALRM)
	go func() {
		<-lost
		cancel()
	}()
	status, err := Command{Args: args, Env: os.Environ(), KillAfter: 200 * time.Millisecond}.Run(ctx)
	var start *StartError
	if errors.As(err, &start) {
		fmt.Fprintln(os.Stderr, err)
		return start.Status
	}
	return status
}

// supervised starts a command under Run in a process of its own, and waits for
// its first line of output.
func supervised(t *testing.T, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"run"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(s)
}

func wantStatus(t *testing.T, cmd *exec.Cmd, want int) {
	t.Helper()
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Errorf("exit status %d, want %d", got, want)
	}
}

func TestTheCommandsStatusIsReturned(t *testing.T) {
	for args, want := range map[string]int{
		"true":                     0,
		"exit 7":                   7,
		"kill -TERM $$":            128 + 15,
		"kill -KILL $$":            128 + 9,
		"exec /nonexistent/thing":  127,
		"test \"$0\" = sh || exit": 0,
	} {
		cmd, _ := supervised(t, "sh", "-c", args)
		wantStatus(t, cmd, want)
	}
}

func TestACommandThatCannotStart(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "not-executable")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"/nonexistent/thing": StatusNotFound, "no-such-program": StatusNotFound, plain: StatusNotExecutable} {
		_, err := Command{Args: []string{name}}.Run(t.Context())
		var start *StartError
		if !errors.As(err, &start) || start.Status != want {
			t.Errorf("%s: %v, want status %d", name, err, want)
		}
	}
}

func TestSignalsReachTheCommand(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		cmd, out := supervised(t, "sh", "-c", fmt.Sprintf("trap 'echo got; exit 9' %d; echo ready; while :; do sleep 0.01; done", sig))
		line(t, out)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if got := line(t, out); got != "got" {
			t.Errorf("%v: the command printed %q", sig, got)
		}
		wantStatus(t, cmd, 9)
	}
}

func TestALostContextEndsTheWholeGroup(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		status int
	}{
		"that obeys SIGTERM":  {"trap 'exit 3' TERM; sleep 100 & echo $!; while :; do sleep 0.01; done", 3},
		"that ignores it":     {"trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.01; done' & wait", 128 + 9},
		"that leaves a child": {"trap 'exit 4' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.01; done' & while :; do sleep 0.01; done", 4},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, out := supervised(t, "sh", "-c", tt.script)
			grandchild, err := strconv.Atoi(line(t, out))
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(syscall.SIGALRM); err != nil {
				t.Fatal(err)
			}
			wantStatus(t, cmd, tt.status)
			waitGone(t, grandchild)
		})
	}
}

// waitGone waits until pid runs no more. A zombie that nobody reaps counts as
// gone.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	await(t, fmt.Sprintf("the end of process %d", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// TestAsProcessOneItReapsOrphans: in a process namespace of its own, Run is
// process 1, and the orphans of its command become its children.
func TestAsProcessOneItReapsOrphans(t *testing.T) {
	flags := []string{"--pid", "--fork", "--kill-child"}
	if os.Getuid() != 0 {
		flags = append(flags, "--user", "--map-root-user")
	}
	script := `(sh -c 'read end </dev/null; exec sleep 0.3' &) ; read go; exit 6`
	cmd := exec.Command("unshare", append(flags, os.Args[0], "run", "sh", "-c", script)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var processOne int
	await(t, "process 1", func() bool {
		children := childrenOf(cmd.Process.Pid)
		if len(children) == 1 {
			processOne = children[0]
		}
		return processOne != 0
	})
	await(t, "the orphan to become a child of process 1", func() bool { return len(childrenOf(processOne)) == 2 })
	await(t, "the orphan to be reaped", func() bool { return len(childrenOf(processOne)) == 1 })
	if _, err := stdin.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, cmd, 6)
}

// await polls until done: nothing announces what other processes do.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// childrenOf lists the processes whose parent is pid, zombies included.
func childrenOf(pid int) []int {
	var children []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state parent …; the name may hold anything.
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			children = append(children, child)
		}
	}
	return children
}
