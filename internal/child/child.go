// Package child runs one command and answers for every process that comes of
// it: it forwards signals, ends the whole process group, and reaps orphans.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is what to run.
type Command struct {
	Args []string // the program, looked up in PATH, and its arguments
	Env  []string
	// KillAfter is how long the command may take to end after SIGTERM, once
	// the context has ended.
	KillAfter time.Duration
}

// Exit statuses that a shell gives to commands that could not be run
// (POSIX, "Exit Status for Commands").
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

// StartError tells that the command could not be started. Status is what a
// shell would exit with.
type StartError struct {
	Status int
	Err    error
}

func (e *StartError) Error() string { return fmt.Sprintf("cannot start the command: %v", e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// forwarded are the signals passed on to the command. SIGTSTP and SIGCONT are
// left alone: stopping this process would stop its renewals too.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// Run runs the command with this process's standard input, output and error,
// in a process group of its own, and returns its exit status: 128 plus the
// signal's number if a signal ended it. When ctx ends first, the group gets
// SIGTERM, and SIGKILL after KillAfter.
func (c Command) Run(ctx context.Context) (status int, err error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)

	pid, err := c.start()
	if err != nil {
		return 0, err
	}
	exited := make(chan unix.WaitStatus, 1)
	go func() { exited <- wait(pid) }()

	lost := ctx.Done()
	var kill <-chan time.Time
	for {
		select {
		case w := <-exited:
			if ctx.Err() != nil {
				// What the command left running is fenced; it must not go on
				// all the same.
				_ = unix.Kill(-pid, unix.SIGKILL)
			}
			return exitStatus(w), nil
		case sig := <-signals:
			_ = unix.Kill(-pid, sig.(syscall.Signal))
		case <-lost:
			lost = nil
			_ = unix.Kill(-pid, unix.SIGTERM)
			// A stopped process acts on SIGTERM only once it is continued.
			_ = unix.Kill(-pid, unix.SIGCONT)
			timer := time.NewTimer(c.KillAfter)
			defer timer.Stop()
			kill = timer.C
		case <-kill:
			_ = unix.Kill(-pid, unix.SIGKILL)
		}
	}
}

func (c Command) start() (pid int, err error) {
	path, err := exec.LookPath(c.Args[0])
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return 0, &StartError{Status: StatusNotFound, Err: err}
	}
	if err != nil {
		return 0, &StartError{Status: StatusNotExecutable, Err: err}
	}
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if terminal := int(os.Stdin.Fd()); isForeground(terminal) {
		// The command's group takes the terminal, so that it can read from it
		// and Ctrl-C reaches it.
		attributes.Foreground = true
		attributes.Ctty = terminal
	}
	process, err := os.StartProcess(path, c.Args, &os.ProcAttr{
		Env:   c.Env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   attributes,
	})
	if err != nil {
		return 0, &StartError{Status: StatusNotExecutable, Err: err}
	}
	pid = process.Pid
	_ = process.Release()
	return pid, nil
}

// isForeground tells that this process's group owns the terminal behind fd.
func isForeground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// wait waits for pid. As process 1 it also reaps the orphans that the kernel
// hands to it meanwhile (manual: wait(2), pid_namespaces(7)).
func wait(pid int) unix.WaitStatus {
	of := pid
	if os.Getpid() == 1 {
		of = -1
	}
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(of, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || got == pid {
			return status
		}
	}
}

func exitStatus(w unix.WaitStatus) int {
	if w.Signaled() {
		return 128 + int(w.Signal())
	}
	return w.ExitStatus()
}
