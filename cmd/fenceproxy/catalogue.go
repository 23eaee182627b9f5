package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fenceproxy/fenceproxy/catalogue"
	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// catalogueTimeout limits a look at the whole catalogue: a server with many tables
// opens each of them.
const catalogueTimeout = time.Minute

// surroundings are what a server has beside the sessions that write protected tables.
type surroundings struct {
	catalogue.Report
	Catalogue rewrite.Catalogue
	// Writers are the events that may write protected tables.
	Writers []eventWrite
}

// eventWrite is an event, and the protected tables that it may write.
type eventWrite struct {
	event  catalogue.Event
	tables []rewrite.Table
}

func (w eventWrite) names() string {
	names := make([]string, len(w.tables))
	for i, t := range w.tables {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}

// survey reads the catalogue and what it leaves out.
func survey(ctx context.Context, reader *catalogue.Reader, cfg *config.Config, rules *rewrite.Rules) (s surroundings, err error) {
	ctx, cancel := context.WithTimeout(ctx, catalogueTimeout)
	defer cancel()
	if s.Catalogue, err = reader.Read(ctx); err != nil {
		return s, err
	}
	if s.Report, err = reader.Inspect(ctx, protectedSchemas(cfg)); err != nil {
		return s, err
	}
	for _, e := range s.Events {
		if tables := written(rules, s.Catalogue, cfg, e); len(tables) > 0 {
			s.Writers = append(s.Writers, eventWrite{e, tables})
		}
	}
	return s, nil
}

func protectedSchemas(cfg *config.Config) []string {
	schemas := make([]string, len(cfg.Protect))
	for i, p := range cfg.Protect {
		schemas[i] = p.Table.Schema
	}
	return schemas
}

// written are the protected tables that an event may write.
func written(_ *rewrite.Rules, _ rewrite.Catalogue, cfg *config.Config, e catalogue.Event) []rewrite.Table {
	var tables []rewrite.Table
	for _, p := range cfg.Protect {
		if strings.Contains(strings.ToLower(e.Body.Text), strings.ToLower(p.Table.Name)) {
			tables = append(tables, p.Table)
		}
	}
	return tables
}

// blindError tells that writers of protected tables may be hidden from the control
// account, and the grants that show them.
type blindError struct {
	account string
	gaps    []catalogue.Gap
}

func (e *blindError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the control account %s may not see all that can write the protected tables:\n", e.account)
	for _, g := range e.gaps {
		fmt.Fprintf(&b, "  %s\n", g.Problem)
		for _, remedy := range g.Remedies {
			fmt.Fprintf(&b, "    %s\n", remedy)
		}
	}
	b.WriteString("Grant that as an administrator, or set catalogue.incomplete to warn")
	return b.String()
}

// inspect reports what the server does past the proxy's guards, and what of that the
// proxy cannot see. The error is a *blindError when that is too much to start.
func (e *engine) inspect(ctx context.Context, rules *rewrite.Rules) error {
	s, err := survey(ctx, e.catalogue, e.config, rules)
	if err != nil {
		return err
	}
	near := s.Near()
	if len(near) > 0 && e.config.Catalogue.Incomplete == config.IncompleteRefuse {
		return &blindError{s.Server.Account, near}
	}
	for _, g := range append(near, s.Far()...) {
		e.log.Warn("catalogue incomplete", "problem", g.Problem, "remedy", strings.Join(g.Remedies, " "))
	}
	for _, w := range s.Writers {
		if w.event.Enabled {
			e.log.Warn("event writes unguarded", "event", w.event.Name.String(), "table", w.names())
		}
	}
	for _, t := range s.Remote {
		e.log.Warn("table leads to another", "table", t.Name.String(), "engine", t.Engine)
	}
	return nil
}
