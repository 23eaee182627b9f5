// Command fenceproxy stands between programs and their MySQL or MariaDB server,
// and lets a write to a protected table through only while the writer holds its
// lease.
//
// Each subcommand is a file of its own; the packages do the work.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(runCommandLine(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
