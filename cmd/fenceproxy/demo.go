package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/migrations"
	"github.com/fenceproxy/fenceproxy/monitor"
	"github.com/fenceproxy/fenceproxy/proxy"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

func newDemo() *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Play the main story on a private MariaDB: a stale worker cannot write",
		Long: `Starts a private MariaDB and plays one story twice with the stock mariadb client
as the worker: worker A takes the lease and stalls until it has expired, worker B
takes over and finishes, and A wakes up and executes its last statement. First
straight at the database, where A silently wins, then through fenceproxy, where
its late write is rejected.

Exits 0 when the story ended so, and 1 otherwise.`,
		Example: `  fenceproxy demo
  fenceproxy demo --keep    # leave the database and the proxy running, to try by hand`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), c.OutOrStdout(), keep) },
	}
	c.Flags().BoolVar(&keep, "keep", false, "leave everything running until interrupted, and print how to connect")
	return c
}

const (
	demoLease = "admin:reconciliation"
	demoTTL   = 2 * time.Second
	demoTable = "app.fenced_job_leases"
	demoRow   = "SELECT status, finished_by, total FROM reconciliation_runs WHERE run_id = 42"
)

// demoSchema is what the legacy application would have: a table, and an account
// that may write it. SELECT on the lease table is what the guard needs.
const demoSchema = `
CREATE DATABASE app;
CREATE TABLE app.reconciliation_runs (
  run_id INT PRIMARY KEY, status VARCHAR(20) NOT NULL, finished_by VARCHAR(20), total INT
) ENGINE=InnoDB;
CREATE USER worker@'%' IDENTIFIED BY 'legacy';
GRANT SELECT, INSERT, UPDATE, DELETE ON app.reconciliation_runs TO worker@'%';`

func runDemo(ctx context.Context, out io.Writer, keep bool) (err error) {
	fmt.Fprintln(out, "Starting a private MariaDB …")
	db, err := dbtest.Start(ctx, dbtest.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Stop()) }()
	admin, err := sql.Open("mysql", db.DSN("")+"?multiStatements=true")
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }()
	if _, err := admin.ExecContext(ctx, demoSchema); err != nil {
		return err
	}
	if _, err := migrations.Up(ctx, admin, demoTable); err != nil {
		return err
	}
	if _, err := admin.ExecContext(ctx, "GRANT SELECT ON "+demoTable+" TO worker@'%'"); err != nil {
		return err
	}
	leases, err := lease.New(admin, demoTable)
	if err != nil {
		return err
	}
	front, err := startDemoProxy(db.Addr(), leases)
	if err != nil {
		return err
	}
	defer front.stop()

	s := &story{out: out, admin: admin, leases: leases}
	if err := s.playBoth(ctx, db.Addr(), front.addr); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	printKeep(out, db, front)
	<-ctx.Done()
	return nil
}

func printKeep(out io.Writer, db *dbtest.Server, front *demoProxy) {
	host, port, _ := net.SplitHostPort(front.addr)
	fmt.Fprintf(out, `
Everything is left running; Ctrl-C ends it.
  through fenceproxy  mariadb --host=%s --port=%s --user=worker --password=legacy --skip-ssl app
  straight            mariadb --host=127.0.0.1 --port=%d --user=root --skip-ssl app
  DSN through it      worker:legacy@tcp(%s)/app
  metrics             http://%s/metrics
To write, a session needs the lease's identity:
  SELECT owner_token, fence_token INTO @fence_owner, @fence_token FROM fenced_job_leases WHERE lease_name = '%s';
`, host, port, db.Port(), front.addr, front.admin, demoLease)
}

// demoProxy is the proxy of the demo with its metrics.
type demoProxy struct {
	addr, admin string
	stop        func()
}

func startDemoProxy(backend string, leases *lease.Store) (*demoProxy, error) {
	rules, err := rewrite.NewRules(rewrite.Table{Schema: "app", Name: "fenced_job_leases"}, []rewrite.Rule{{
		Table: rewrite.Table{Schema: "app", Name: "reconciliation_runs"},
		Lease: demoLease,
	}}, nil)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	registry := monitor.NewRegistry()
	srv := proxy.NewServer(proxy.Options{
		Backend: backend,
		Rules:   rules,
		Leases:  leases,
		Monitor: monitor.New(log, registry),
		Log:     log,

		MaxConnections: config.DefaultMaxConnections,
		MaxStatement:   config.DefaultMaxStatementBytes,
		ConnectTimeout: config.DefaultConnectTimeout,
		LoginTimeout:   config.DefaultLoginTimeout,
	})
	l, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	page, err := startAdmin("127.0.0.1:0", registry)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l, nil)
	}()
	return &demoProxy{addr: l.Addr().String(), admin: page.addr, stop: func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = srv.Shutdown(ctx)
		<-done
		page.stop()
	}}, nil
}

// story plays the demo's acts and tells what happens.
type story struct {
	out    io.Writer
	admin  *sql.DB
	leases *lease.Store
	start  time.Time
}

func (s *story) say(who, format string, args ...any) {
	fmt.Fprintf(s.out, "  %5.2f s  %-8s  %s\n", time.Since(s.start).Seconds(), who, fmt.Sprintf(format, args...))
}

func (s *story) playBoth(ctx context.Context, direct, proxied string) error {
	fmt.Fprintln(s.out, "\nAct 1: the workers are connected straight to the database.")
	late, row, err := s.play(ctx, direct)
	if err != nil {
		return err
	}
	if late != "" || !strings.Contains(row, "by A") {
		return fmt.Errorf("without fenceproxy the late write should have won, but: %s; %s", row, late)
	}
	fmt.Fprintf(s.out, "  The row now says: %s. B's result is gone, and nobody was told.\n", row)

	fmt.Fprintln(s.out, "\nAct 2: the same workers, the same statements, through fenceproxy.")
	late, row, err = s.play(ctx, proxied)
	if err != nil {
		return err
	}
	if !strings.Contains(late, "1644") || !strings.Contains(row, "by B") {
		return fmt.Errorf("through fenceproxy the late write should have been rejected, but: %s; %s", row, late)
	}
	fmt.Fprintf(s.out, "  The row now says: %s. The late write changed nothing, and A knows.\n", row)
	return nil
}

// play runs the story against addr. late is the error of A's last statement,
// "" if it succeeded; row is how the row ends.
func (s *story) play(ctx context.Context, addr string) (late, row string, err error) {
	s.start = time.Now()
	_, err = s.admin.ExecContext(ctx, "REPLACE INTO app.reconciliation_runs VALUES (42, 'new', NULL, NULL)")
	if err != nil {
		return "", "", err
	}
	a, err := s.leases.Acquire(ctx, demoLease, demoTTL, lease.WithOwner("worker-A"))
	if err != nil {
		return "", "", err
	}
	s.say("A", "takes the lease '%s' for %v: token %d", demoLease, demoTTL, a.Token)
	workerA, err := startWorker(ctx, addr, a.Claim)
	if err != nil {
		return "", "", err
	}
	defer workerA.stop()
	if err := s.run(workerA, "A", "UPDATE reconciliation_runs SET status = 'running' WHERE run_id = 42"); err != nil {
		return "", "", err
	}
	s.say("A", "scans the books … and stalls")

	b, err := s.leases.AcquireWait(ctx, demoLease, time.Minute, lease.WithOwner("worker-B"))
	if err != nil {
		return "", "", err
	}
	s.say("B", "the lease has expired; takes over: token %d", b.Token)
	workerB, err := startWorker(ctx, addr, b.Claim)
	if err != nil {
		return "", "", err
	}
	defer workerB.stop()
	if err := s.run(workerB, "B", "UPDATE reconciliation_runs SET status = 'done', finished_by = 'B', total = 1200 WHERE run_id = 42"); err != nil {
		return "", "", err
	}

	s.say("A", "wakes up and executes its last statement")
	late, err = workerA.execute("UPDATE reconciliation_runs SET status = 'done', finished_by = 'A', total = 900 WHERE run_id = 42")
	if err != nil {
		return "", "", err
	}
	if late == "" {
		s.say("A", "succeeds")
	} else {
		s.say("A", "%s", late)
	}
	if err := s.leases.Release(ctx, b.Claim); err != nil {
		return "", "", err
	}
	row, err = s.readRow(ctx)
	return late, row, err
}

func (s *story) run(w *worker, who, statement string) error {
	refusal, err := w.execute(statement)
	if err != nil {
		return err
	}
	if refusal != "" {
		return fmt.Errorf("worker %s: %s: %s", who, statement, refusal)
	}
	s.say(who, "%s", statement)
	return nil
}

func (s *story) readRow(ctx context.Context) (string, error) {
	conn, err := s.admin.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "USE app"); err != nil {
		return "", err
	}
	var status, by string
	var total int
	if err := conn.QueryRowContext(ctx, demoRow).Scan(&status, &by, &total); err != nil {
		return "", err
	}
	return fmt.Sprintf("run 42 is %s, finished by %s, total %d", status, by, total), nil
}
