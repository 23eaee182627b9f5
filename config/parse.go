package config

import (
	"errors"
	"log/slog"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Names of the enumerations' values; the first is the default.
var (
	modes      = []choice[rewrite.Mode]{{"enforce", rewrite.Enforce}, {"observe", rewrite.Observe}}
	onUnfenced = []choice[rewrite.OnUnfenced]{
		{"reject", rewrite.UnfencedReject}, {"observe", rewrite.UnfencedObserve}, {"allow", rewrite.UnfencedAllow},
	}
	onReject   = []choice[rewrite.OnReject]{{"error", rewrite.RejectError}, {"zero_rows", rewrite.RejectZeroRows}}
	incomplete = []choice[Incomplete]{{"refuse", IncompleteRefuse}, {"warn", IncompleteWarn}}
	logFormats = []choice[LogFormat]{{"json", JSON}, {"text", Text}}
	logLevels  = []choice[slog.Level]{
		{"debug", slog.LevelDebug}, {"info", slog.LevelInfo}, {"warn", slog.LevelWarn}, {"error", slog.LevelError},
	}
)

// Bounds of the limits.
const (
	// maxConnections is the largest max_connections a server can have.
	maxConnections = 100_000
	// minStatementBytes is the smallest max_allowed_packet a server can have.
	minStatementBytes = 1 << 10
	minTimeout        = time.Millisecond
)

// Parse reads data, the content of the file called name. env finds environment
// variables for ${NAME}. Every error is an *Error.
func Parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	r := &reader{file: name, env: env}
	root, ok := r.root(data)
	if !ok {
		return nil, &Error{r.problems}
	}
	c := r.config(root)
	if len(r.problems) > 0 {
		sortProblems(r.problems)
		return nil, &Error{r.problems}
	}
	return c, nil
}

// root parses data to its one YAML document.
func (r *reader) root(data []byte) (value, bool) {
	top := position{1, 1}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := top, err.Error()
		var located yaml.Error
		if errors.As(err, &located) {
			message = located.GetMessage()
			if token := located.GetToken(); token != nil && token.Position != nil {
				at = position{max(1, token.Position.Line), max(1, token.Position.Column)}
			}
		}
		r.problem(at, "", "not YAML: %s", message)
		return value{}, false
	}
	var body ast.Node
	for _, document := range file.Docs {
		if document.Body == nil {
			continue
		}
		if body != nil {
			r.problem(positionOf(document.Body, top), "remove it, and the line --- before it", "a second YAML document")
			return value{}, false
		}
		body = document.Body
	}
	switch body.(type) {
	case nil, *ast.MappingNode, *ast.NullNode:
		return value{node: body, at: top}, true
	}
	r.problem(positionOf(body, top), "", "the file takes keys and values, not %s", typeName(body))
	return value{}, false
}

func (r *reader) config(root value) *Config {
	c := &Config{
		Limits: Limits{
			MaxConnections:    DefaultMaxConnections,
			MaxStatementBytes: DefaultMaxStatementBytes,
			ConnectTimeout:    DefaultConnectTimeout,
			LoginTimeout:      DefaultLoginTimeout,
			DrainTimeout:      DefaultDrainTimeout,
		},
		Log: Log{Level: DefaultLogLevel, Format: DefaultLogFormat},
	}
	places := places{reader: r, listen: make(map[string]position), table: make(map[rewrite.Table]position)}
	r.mapping(
		root,
		field{"listen", true, func(v value) { r.list(v, func(v value) { r.readListen(v, c, &places) }) }},
		field{"backend", true, func(v value) { r.readBackend(v, c, &places) }},
		field{"control", true, func(v value) {
			r.mapping(v, field{"dsn", true, func(v value) { set(&c.Control.DSN)(r.dsn(v)) }})
		}},
		field{"lease_table", true, func(v value) { set(&c.LeaseTable)(r.leaseTable(v)) }},
		field{"protect", true, func(v value) { r.list(v, func(v value) { r.readProtection(v, c, &places) }) }},
		field{"catalogue", false, func(v value) { r.readCatalogue(v, &c.Catalogue) }},
		field{"limits", false, func(v value) { r.readLimits(v, &c.Limits) }},
		field{"admin", false, func(v value) { r.readAdmin(v, c, &places) }},
		field{"log", false, func(v value) { r.readLog(v, &c.Log) }},
	)
	places.check(c)
	return c
}

// set stores what was read when it is valid, and else leaves the default.
func set[T any](target *T) func(T, bool) {
	return func(read T, ok bool) {
		if ok {
			*target = read
		}
	}
}

func (r *reader) readListen(v value, c *Config, p *places) {
	address, ok := r.listenAddress(v)
	if !ok {
		return
	}
	p.addListen(v, address)
	c.Listen = append(c.Listen, address)
}

func (r *reader) readBackend(v value, c *Config, p *places) {
	r.mapping(v, field{"address", true, func(v value) {
		address, ok := r.serverAddress(v)
		if !ok {
			return
		}
		c.Backend.Address = address
		p.backend = v.at
	}})
}

func (r *reader) readProtection(v value, c *Config, p *places) {
	protection := Protection{Line: v.at.line}
	r.mapping(
		v,
		field{"table", true, func(v value) {
			table, ok := r.table(v)
			if !ok {
				return
			}
			p.addTable(v, table)
			protection.Table = table
		}},
		field{"lease", true, func(v value) { set(&protection.Lease)(r.lease(v)) }},
		field{"mode", false, func(v value) { set(&protection.Mode)(choose(r, v, modes)) }},
		field{"on_unfenced", false, func(v value) { set(&protection.OnUnfenced)(choose(r, v, onUnfenced)) }},
		field{"on_reject", false, func(v value) { set(&protection.OnReject)(choose(r, v, onReject)) }},
	)
	c.Protect = append(c.Protect, protection)
}

func (r *reader) readCatalogue(v value, c *Catalogue) {
	r.mapping(
		v,
		field{"incomplete", false, func(v value) { set(&c.Incomplete)(choose(r, v, incomplete)) }},
	)
}

func (r *reader) readLimits(v value, l *Limits) {
	timeout := func(target *time.Duration) func(value) {
		return func(v value) { set(target)(r.duration(v, minTimeout)) }
	}
	r.mapping(
		v,
		field{"max_connections", false, func(v value) { set(&l.MaxConnections)(r.number(v, 1, maxConnections)) }},
		field{"max_statement_bytes", false, func(v value) {
			set(&l.MaxStatementBytes)(r.size(v, minStatementBytes, DefaultMaxStatementBytes))
		}},
		field{"connect_timeout", false, timeout(&l.ConnectTimeout)},
		field{"login_timeout", false, timeout(&l.LoginTimeout)},
		field{"drain_timeout", false, timeout(&l.DrainTimeout)},
	)
}

func (r *reader) readAdmin(v value, c *Config, p *places) {
	r.mapping(v, field{"listen", true, func(v value) {
		address, ok := r.tcpListenAddress(v)
		if !ok {
			return
		}
		p.addListen(v, address)
		c.Admin.Listen = address
	}})
}

func (r *reader) readLog(v value, l *Log) {
	r.mapping(
		v,
		field{"level", false, func(v value) { set(&l.Level)(choose(r, v, logLevels)) }},
		field{"format", false, func(v value) { set(&l.Format)(choose(r, v, logFormats)) }},
		field{"statements", false, func(v value) { set(&l.Statements)(r.boolean(v)) }},
	)
}
