package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/internal/child"
	"github.com/fenceproxy/fenceproxy/internal/dsn"
	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/proxy"
)

// runFlags are the flags of run.
type runFlags struct {
	lease      string
	ttl        time.Duration
	wait       time.Duration
	killAfter  time.Duration
	rewriteEnv []string
}

const (
	// defaultRunTTL survives a pause of some seconds, and lets another instance
	// take over within half a minute of a crash.
	defaultRunTTL = 30 * time.Second
	// defaultKillAfter is what supervisors such as docker stop grant.
	defaultKillAfter = 10 * time.Second
)

func newRun(path *string) *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "run --lease NAME [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command that holds a lease, with its database sessions fenced",
		Long: `Acquires the lease, opens a private listener whose every connection carries the
lease's identity, and runs the command with these in its environment:

  FENCE_LEASE, FENCE_OWNER, FENCE_TOKEN   the identity
  FENCE_HOST, FENCE_PORT, FENCE_SOCKET    where to connect in place of the database

The command needs to know nothing of leases: point its DSN at the listener, by
those variables or with --rewrite-env. The lease is renewed while the command
runs and released when it ends. When the lease is lost, the command's sessions
can write no more, and it gets SIGTERM, then SIGKILL after --kill-after.

Exit status: the command's own (128 plus the signal's number if one ended it);
75 the lease is held by another and was not free within --wait; 76 the lease was
lost while the command ran; 126, 127 the command could not be started; 1 and 2
as for the other subcommands.`,
		Example: `  fenceproxy run --lease admin:reconciliation --ttl 30s -- php artisan reconcile
  fenceproxy run --lease nightly --wait 10m --rewrite-env DATABASE_URL -- ./nightly.py
  fenceproxy run --lease backup -- sh -c 'mariadb --host=$FENCE_HOST --port=$FENCE_PORT app < job.sql'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := loadConfig(*path)
			if err != nil {
				return err
			}
			return run(c.Context(), cfg, flags, args, c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&flags.lease, "lease", "", "the lease to hold (required)")
	c.Flags().DurationVar(&flags.ttl, "ttl", defaultRunTTL, "how long the lease outlives the last renewal (1s to 24h)")
	c.Flags().DurationVar(&flags.wait, "wait", 0, "how long to wait for a lease that is held")
	c.Flags().DurationVar(&flags.killAfter, "kill-after", defaultKillAfter, "how long the command may take to end once the lease is lost")
	c.Flags().StringArrayVar(&flags.rewriteEnv, "rewrite-env", nil, "environment variable whose DSN is pointed at the listener (repeatable)")
	_ = c.MarkFlagRequired("lease")
	return c
}

func run(ctx context.Context, cfg *config.Config, flags runFlags, args []string, stderr io.Writer) (err error) {
	cfg.Log.Format = config.Text // it shares standard error with the command
	log := newLogger(stderr, cfg.Log)
	e, err := newEngine(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer e.close()
	if !slices.ContainsFunc(cfg.Protect, func(p config.Protection) bool { return p.Lease == flags.lease || p.Lease == "" }) {
		log.Warn("no protected table has this lease: its writes will not be guarded by it", "lease", flags.lease)
	}
	held, err := acquire(ctx, e.leases, flags.lease, flags.ttl, flags.wait, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, releaseHeld(e.leases, held.Claim)) }()

	binding := proxy.NewBinding(held.Claim)
	front, err := startFront(e.proxy, binding)
	if err != nil {
		return err
	}
	defer front.stop()
	env, err := front.environment(os.Environ(), held.Claim, flags.rewriteEnv)
	if err != nil {
		return err
	}

	alive, stop := e.leases.KeepAlive(context.WithoutCancel(ctx), held)
	defer stop()
	// Fencing comes before anything else that the loss entails.
	defer context.AfterFunc(alive, binding.Revoke)()
	status, err := child.Command{Args: args, Env: env, KillAfter: flags.killAfter}.Run(alive)
	if err != nil {
		return startFailure(err)
	}
	if cause := context.Cause(alive); cause != nil {
		return &exitError{status: exitLost, err: fmt.Errorf("the lease was lost while the command ran: %w", cause)}
	}
	if status != 0 {
		return &exitError{status: status}
	}
	return nil
}

func startFailure(err error) error {
	var start *child.StartError
	if errors.As(err, &start) {
		return &exitError{status: start.Status, err: err}
	}
	return err
}

// releaseTimeout limits the release at exit: the lease runs out by itself.
const releaseTimeout = 5 * time.Second

// releaseHeld releases the lease at exit. One that is lost by then needs none.
func releaseHeld(leases *lease.Store, claim lease.Claim) error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	err := leases.Release(ctx, claim)
	if errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrExpired) || errors.Is(err, lease.ErrNoLease) {
		return nil
	}
	return err
}

// front is the private listener of run: a TCP port on the loopback interface
// and a unix socket that only this account can open.
type front struct {
	dir, socket, host, port string
	stop                    func()
}

func startFront(srv *proxy.Server, binding *proxy.Binding) (*front, error) {
	dir, err := os.MkdirTemp("", "fenceproxy-run-") // mode 0700
	if err != nil {
		return nil, err
	}
	f := &front{dir: dir, socket: filepath.Join(dir, "mysql.sock")}
	tcp, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	local, err := proxy.Listen("unix:" + f.socket)
	if err == nil {
		err = os.Chmod(f.socket, 0o600)
	}
	if err != nil {
		_ = tcp.Close()
		_ = os.RemoveAll(dir)
		return nil, err
	}
	f.host = "127.0.0.1"
	f.port = strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port)
	done := make(chan struct{}, 2)
	for _, l := range []net.Listener{tcp, local} {
		go func() {
			_ = srv.Serve(l, binding)
			done <- struct{}{}
		}()
	}
	f.stop = func() {
		// The command has ended, and what it left running has no lease.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = srv.Shutdown(ctx)
		<-done
		<-done
		_ = os.RemoveAll(dir)
	}
	return f, nil
}

// environment is the command's: env with the identity, the address, and the
// variables named in rewrite pointed at the listener.
func (f *front) environment(env []string, claim lease.Claim, rewrite []string) ([]string, error) {
	env = slices.Clone(env)
	for _, name := range rewrite {
		if err := f.rewriteVariable(env, name); err != nil {
			return nil, &exitError{status: exitUsage, err: err}
		}
	}
	return append(env,
		"FENCE_LEASE="+claim.Name, "FENCE_OWNER="+claim.Owner, "FENCE_TOKEN="+strconv.FormatUint(claim.Token, 10),
		"FENCE_HOST="+f.host, "FENCE_PORT="+f.port, "FENCE_SOCKET="+f.socket), nil
}

func (f *front) rewriteVariable(env []string, name string) error {
	for i, entry := range env {
		value, found := strings.CutPrefix(entry, name+"=")
		if !found {
			continue
		}
		pointed, err := dsn.Point(value, f.host, f.port)
		if err != nil {
			return fmt.Errorf("--rewrite-env %s: %w", name, err)
		}
		env[i] = name + "=" + pointed
		return nil
	}
	return fmt.Errorf("--rewrite-env %s: the variable is not set", name)
}
