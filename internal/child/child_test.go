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
	deadline := time.Now().Add(10 * time.Second)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
		time.Sleep(5 * time.Millisecond) // nothing announces the end of a process that is not ours
	}
}

func TestAsProcessOneItReapsOrphans(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal("unshare (util-linux) is missing: ", err)
	}
	// An orphan that ends must not stay a zombie: the script counts them.
	script := `sh -c 'true & exec true' ; (sh -c 'sleep 0.05' &) ; i=0
while [ $i -lt 200 ]; do
  if [ $i -gt 20 ] && ! grep -l ') Z ' /proc/[0-9]*/stat >/dev/null 2>&1; then echo clean; exit 6; fi
  i=$((i+1)); sleep 0.01
done; echo zombies; exit 1`
	flags := []string{"--pid", "--fork", "--mount-proc"}
	if os.Getuid() != 0 {
		flags = append(flags, "--user", "--map-root-user")
	}
	cmd := exec.Command(unshare, append(flags, os.Args[0], "run", "sh", "-c", script)...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if cmd.ProcessState.ExitCode() != 6 || !strings.Contains(string(out), "clean") {
		t.Errorf("exit status %d\n%s", cmd.ProcessState.ExitCode(), out)
	}
}
