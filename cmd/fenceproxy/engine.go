package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fenceproxy/fenceproxy/catalogue"
	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/monitor"
	"github.com/fenceproxy/fenceproxy/proxy"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// engine is a proxy put together from a configuration: what serve and run have
// in common.
type engine struct {
	config    *config.Config
	log       *slog.Logger
	registry  *prometheus.Registry
	control   *sql.DB
	catalogue *catalogue.Reader
	leases    *lease.Store
	proxy     *proxy.Server
}

// startTimeout limits the look at the lease table before the proxy serves.
const startTimeout = 10 * time.Second

func newEngine(ctx context.Context, cfg *config.Config, log *slog.Logger) (*engine, error) {
	control, err := openControl(ctx, cfg)
	if err != nil {
		return nil, err
	}
	e := &engine{config: cfg, log: log, registry: monitor.NewRegistry(), control: control, catalogue: catalogue.New(control)}
	if err := e.assemble(ctx); err != nil {
		_ = control.Close()
		return nil, err
	}
	return e, nil
}

func (e *engine) assemble(ctx context.Context) error {
	columns, err := leaseColumns(ctx, e.control, e.config.LeaseTable)
	if err != nil {
		return err
	}
	rules, err := rewrite.NewRules(e.config.LeaseTable, e.config.Rules(), columns)
	if err != nil {
		return err
	}
	if err := e.inspect(ctx, rules); err != nil {
		return err
	}
	e.leases, err = lease.New(e.control, e.config.LeaseTable.String())
	if err != nil {
		return err
	}
	var options []monitor.Option
	if e.config.Log.Statements {
		options = append(options, monitor.WithStatements())
	}
	e.proxy = proxy.NewServer(proxy.Options{
		Backend:        e.config.Backend.Address,
		Rules:          rules,
		Leases:         e.leases,
		Monitor:        monitor.New(e.log, e.registry, options...),
		Log:            e.log,
		MaxConnections: e.config.Limits.MaxConnections,
		MaxStatement:   e.config.Limits.MaxStatementBytes,
		ConnectTimeout: e.config.Limits.ConnectTimeout,
		LoginTimeout:   e.config.Limits.LoginTimeout,
	})
	return nil
}

func (e *engine) close() { _ = e.control.Close() }

// leaseColumns reads the columns that the lease table really has: one that a
// team added must not become ambiguous in a joined statement.
func leaseColumns(ctx context.Context, db *sql.DB, table rewrite.Table) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	rows, err := db.QueryContext(ctx, "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", table.Schema, table.Name)
	if err != nil {
		return nil, fmt.Errorf("control connection: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var columns []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("columns of %s: %w", table, err)
		}
		columns = append(columns, name)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("columns of %s: %w", table, err)
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("the lease table %s does not exist, or the control account may not read it: run fenceproxy migrate up, and fenceproxy check --online", table)
	}
	return columns, nil
}

// newLogger makes the log that the configuration asks for.
func newLogger(w io.Writer, c config.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == config.Text {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
