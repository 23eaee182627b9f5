package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/lease"
)

// Exit statuses. 75 is EX_TEMPFAIL of sysexits.h, which mailers and schedulers
// take for "try again later"; 76 is its neighbour.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitHeld   = 75
	exitLost   = 76
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitError ends the program with a status of its own: a command's that was run.
type exitError struct {
	status int
	err    error // nil when there is nothing to print
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func exitStatus(err error) int {
	var exit *exitError
	var usage usageError
	var invalid *config.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.status
	case errors.As(err, &usage), errors.As(err, &invalid), errors.Is(err, errNoConfig),
		errors.Is(err, lease.ErrName), errors.Is(err, lease.ErrOwner), errors.Is(err, lease.ErrTTL):
		return exitUsage
	case errors.Is(err, lease.ErrHeld):
		return exitHeld
	case errors.Is(err, lease.ErrLost), errors.Is(err, lease.ErrExpired),
		errors.Is(err, lease.ErrNoLease), errors.Is(err, lease.ErrUnconfirmed):
		return exitLost
	default:
		return exitFailed
	}
}

// printError prints the problems of a configuration each on a line of its own,
// as editors and compilers have them.
func printError(w io.Writer, err error) {
	if exit, ok := err.(*exitError); ok && exit.err == nil {
		return
	}
	var usage usageError
	var invalid *config.Error
	switch {
	case err == nil:
	case errors.As(err, &invalid):
		_, _ = fmt.Fprintf(w, "fenceproxy: the configuration is not valid\n%v\n", invalid)
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(w, "fenceproxy: %v; see fenceproxy --help\n", err)
	default:
		_, _ = fmt.Fprintf(w, "fenceproxy: %v\n", err)
	}
}
