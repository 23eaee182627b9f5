package dbtest

import (
	"bytes"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a child that dies with this one.
type process struct {
	cmd    *exec.Cmd
	log    *logBuffer
	exited chan struct{}
}

// startProcess starts program. The kernel ends it when the thread that started
// it ends (PR_SET_PDEATHSIG): that thread belongs to a goroutine which waits for
// the process, so it lives as long as this program does.
func startProcess(program string, args []string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), log: &logBuffer{}, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	return p, <-started
}

func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// pause stops all threads. The signal alone returns while some still run; the
// kernel reports the child as stopped when the last one has.
func (p *process) pause() {
	p.signal(syscall.SIGSTOP)
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED, nil) == syscall.EINTR {
	}
}

// logBuffer keeps what the server says, for the error that quotes it.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}
