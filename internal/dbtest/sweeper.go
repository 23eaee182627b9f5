package dbtest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// sweeper removes a server's files when this process ends without Stop: after a
// panic, a test's timeout or kill -9. It is a shell that waits for the end of its
// input, whose other end only this process has.
type sweeper struct {
	dir   string
	cmd   *exec.Cmd
	input io.Closer // nil once swept
}

// sweepScript tries again, since the server may be about to die and still write.
const sweepScript = `read -r _; for try in 1 2 3 4 5; do rm -rf -- "$1" && exit; sleep 0.2; done`

func startSweeper(dir string) (*sweeper, error) {
	cmd := exec.Command("/bin/sh", "-c", sweepScript, "sweep", dir)
	// Not in this process group: an interrupt from the terminal must not end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the sweeper of %s: %w", dir, err)
	}
	return &sweeper{dir: dir, cmd: cmd, input: input}, nil
}

// sweep removes the files now. It may be called twice.
func (s *sweeper) sweep() error {
	if s.input == nil {
		return nil
	}
	_ = s.input.Close()
	s.input = nil
	// Its status is of no interest: RemoveAll says better what is in the way.
	_ = s.cmd.Wait()
	return os.RemoveAll(s.dir)
}
