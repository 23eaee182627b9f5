// Package config reads the one YAML file that configures fenceproxy; it decides
// what the file may say, and nothing about what is done with it.
//
// [Load] and [Parse] return a [Config] that is complete and valid, with every
// default filled in, or an [Error] that lists everything wrong with the file,
// each with its line, its column and a hint. The names of keys and values are
// fenceproxy's interface: they are added to, never changed.
package config

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Config is a valid configuration. Addresses are "host:port" or "unix:/path".
type Config struct {
	// Listen are the addresses that clients connect to; at least one.
	Listen  []string
	Backend Backend
	Control Control
	// LeaseTable holds the leases, one a row.
	LeaseTable rewrite.Table
	// Protect are the protected tables, each once; at least one.
	Protect   []Protection
	Catalogue Catalogue
	Limits    Limits
	Admin     Admin
	Log       Log
}

// Backend is the server that sessions are relayed to.
type Backend struct{ Address string }

// Control is the proxy's own connection: leases, catalogue, diagnosis.
type Control struct{ DSN DSN }

// Protection is a rule and the line of the file that it begins on.
type Protection struct {
	rewrite.Rule
	Line int
}

// Catalogue says how the proxy learns of views, triggers, routines and foreign keys.
type Catalogue struct {
	Incomplete Incomplete
}

// Incomplete says what becomes of a proxy whose control account may not see all that
// is in the schemas of the protected tables.
type Incomplete uint8

const (
	// IncompleteRefuse does not start it.
	IncompleteRefuse Incomplete = iota
	// IncompleteWarn starts it with a warning in the log.
	IncompleteWarn
)

// Limits bound what one client, or all of them together, can take.
type Limits struct {
	// MaxConnections is the number of client connections above which a new one
	// is answered with error 1040.
	MaxConnections int
	// MaxStatementBytes is the longest command that is read into memory.
	MaxStatementBytes int
	// ConnectTimeout limits the dial to the backend, LoginTimeout the handshake
	// and authentication.
	ConnectTimeout time.Duration
	LoginTimeout   time.Duration
	// DrainTimeout is how long a stopping proxy waits for open transactions.
	DrainTimeout time.Duration
}

// Admin is the HTTP server of metrics and health; an empty Listen is none.
type Admin struct{ Listen string }

// Log configures the log on standard error.
type Log struct {
	Level  slog.Level
	Format LogFormat
	// Statements adds the text of a rejected statement to its log line, with
	// every literal taken out.
	Statements bool
}

// LogFormat is how a log line is written.
type LogFormat uint8

const (
	JSON LogFormat = iota
	Text
)

// Defaults of the keys that may be left out.
const (
	// DefaultMaxConnections leaves a server at its usual max_connections (151)
	// to refuse by itself, and stops a runaway client before the proxy's file
	// descriptors, two a session, reach a usual limit.
	DefaultMaxConnections = 1000
	// DefaultMaxStatementBytes is the largest max_allowed_packet a server can
	// have, so that the server's own setting decides.
	DefaultMaxStatementBytes = 1 << 30
	// DefaultConnectTimeout outlives one lost SYN, which is sent again after 1 s
	// and then 2 s.
	DefaultConnectTimeout = 5 * time.Second
	// DefaultLoginTimeout is the server's own default for connect_timeout.
	DefaultLoginTimeout = 10 * time.Second
	// DefaultDrainTimeout ends before a usual supervisor sends SIGKILL (systemd
	// after 90 s), and with Kubernetes just as it does (30 s).
	DefaultDrainTimeout = 30 * time.Second
	// DefaultLogLevel shows rejections, and what an operator acts on.
	DefaultLogLevel = slog.LevelInfo
	// DefaultLogFormat is for collectors, which read most logs of a daemon.
	DefaultLogFormat = JSON
)

// Load reads the file at path and replaces ${NAME} from the environment. The
// error is an *Error when the file's content is at fault.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(path, data, os.LookupEnv)
}

// Rules are the protected tables' rules, in the file's order.
func (c *Config) Rules() []rewrite.Rule {
	rules := make([]rewrite.Rule, len(c.Protect))
	for i, p := range c.Protect {
		rules[i] = p.Rule
	}
	return rules
}
