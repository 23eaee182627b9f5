package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

func environment(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}

const plainest = `listen: [127.0.0.1:3307]
backend: {address: 127.0.0.1:3306}
control: {dsn: "fenceproxy:secret@tcp(127.0.0.1:3306)/app"}
lease_table: app.fenced_job_leases
protect:
  - table: app.reconciliation_runs
    lease: admin:reconciliation
`

func TestThePlainestFileTakesEveryDefault(t *testing.T) {
	got, err := config.Parse("f.yaml", []byte(plainest), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Config{
		Listen:     []string{"127.0.0.1:3307"},
		Backend:    config.Backend{Address: "127.0.0.1:3306"},
		Control:    config.Control{DSN: "fenceproxy:secret@tcp(127.0.0.1:3306)/app"},
		LeaseTable: rewrite.Table{Schema: "app", Name: "fenced_job_leases"},
		Protect: []config.Protection{{
			Rule: rewrite.Rule{
				Table: rewrite.Table{Schema: "app", Name: "reconciliation_runs"}, Lease: "admin:reconciliation",
				Mode: rewrite.Enforce, OnUnfenced: rewrite.UnfencedReject, OnReject: rewrite.RejectError,
			},
			Line: 6,
		}},
		Limits: config.Limits{
			MaxConnections: 1000, MaxStatementBytes: 1 << 30,
			ConnectTimeout: 5 * time.Second, LoginTimeout: 10 * time.Second, DrainTimeout: 30 * time.Second,
		},
		Catalogue: config.Catalogue{Incomplete: config.IncompleteRefuse},
		Log:       config.Log{Level: slog.LevelInfo, Format: config.JSON},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	file := `
listen: ["127.0.0.1:3307", "[::1]:3307", ":3308", 'unix:/run/fenceproxy/mysql.sock']
backend: {address: unix:/run/mysqld/mysqld.sock}
control:
  dsn: "${USER_NAME}:${PASSWORD}@unix(/run/mysqld/mysqld.sock)/app?timeout=2s"
lease_table: app.leases$1
protect:
  - {table: app.runs, lease: "job:${JOB}", mode: observe, on_unfenced: allow, on_reject: zero_rows}
  - table: my-app.Läufe und mehr
    lease: ${session}
    on_unfenced: observe
limits:
  max_connections: ${CONNECTIONS}
  max_statement_bytes: 64MiB
  connect_timeout: 1m30s
  login_timeout: 500ms
  drain_timeout: 2h
catalogue: {incomplete: warn}
admin: {listen: "127.0.0.1:0"}
log: {level: debug, format: text, statements: true}
`
	got, err := config.Parse("f.yaml", []byte(file), environment(map[string]string{
		"USER_NAME": "proxy", "PASSWORD": "p@ss/w:${NOT_AGAIN}", "JOB": "7", "CONNECTIONS": "20",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Config{
		Listen:     []string{"127.0.0.1:3307", "[::1]:3307", ":3308", "unix:/run/fenceproxy/mysql.sock"},
		Backend:    config.Backend{Address: "unix:/run/mysqld/mysqld.sock"},
		Control:    config.Control{DSN: "proxy:p@ss/w:${NOT_AGAIN}@unix(/run/mysqld/mysqld.sock)/app?timeout=2s"},
		LeaseTable: rewrite.Table{Schema: "app", Name: "leases$1"},
		Protect: []config.Protection{
			{Line: 8, Rule: rewrite.Rule{
				Table: rewrite.Table{Schema: "app", Name: "runs"}, Lease: "job:7",
				Mode: rewrite.Observe, OnUnfenced: rewrite.UnfencedAllow, OnReject: rewrite.RejectZeroRows,
			}},
			{Line: 9, Rule: rewrite.Rule{
				Table: rewrite.Table{Schema: "my-app", Name: "Läufe und mehr"}, Lease: "", OnUnfenced: rewrite.UnfencedObserve,
			}},
		},
		Limits: config.Limits{
			MaxConnections: 20, MaxStatementBytes: 64 << 20,
			ConnectTimeout: 90 * time.Second, LoginTimeout: 500 * time.Millisecond, DrainTimeout: 2 * time.Hour,
		},
		Catalogue: config.Catalogue{Incomplete: config.IncompleteWarn},
		Admin:     config.Admin{Listen: "127.0.0.1:0"},
		Log:       config.Log{Level: slog.LevelDebug, Format: config.Text, Statements: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	rules := got.Rules()
	if len(rules) != 2 || rules[0] != want.Protect[0].Rule || rules[1] != want.Protect[1].Rule {
		t.Errorf("Rules() = %+v", rules)
	}
}

func TestTheSampleFileLoadsAndShowsTheDefaults(t *testing.T) {
	t.Setenv("FENCEPROXY_PASSWORD", "secret")
	sample, err := config.Load("../docs/fenceproxy.sample.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The same file with the defaults put in must mean the same. Their # has no
	// space behind it.
	text, err := os.ReadFile("../docs/fenceproxy.sample.yaml")
	if err != nil {
		t.Fatal(err)
	}
	commentedOut := regexp.MustCompile(`(?m)^( *)#([a-z])`)
	if n := len(commentedOut.FindAll(text, -1)); n != 12 {
		t.Fatalf("the sample has %d keys commented out, want 12", n)
	}
	withDefaults := commentedOut.ReplaceAll(text, []byte("$1$2"))
	full, err := config.Parse("full", withDefaults, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sample, full) {
		t.Errorf("defaults differ from what the sample says:\nsample %+v\nfull   %+v", sample, full)
	}
}

func TestAMissingFileIsToldApart(t *testing.T) {
	_, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"))
	var bad *config.Error
	if !errors.Is(err, fs.ErrNotExist) || errors.As(err, &bad) {
		t.Errorf("err = %v", err)
	}
}

func TestThePasswordIsNeverPrinted(t *testing.T) {
	dsn := config.DSN("fenceproxy:sesame@tcp(db:3306)/app?timeout=2s")
	const want = "fenceproxy@tcp(db:3306)/app"
	marshalled, err := json.Marshal(map[string]any{"dsn": dsn})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("start", "dsn", dsn)
	for way, text := range map[string]string{
		"Sprint": fmt.Sprint(dsn), "%v in a struct": fmt.Sprintf("%+v", config.Control{DSN: dsn}),
		"%#v": fmt.Sprintf("%#v", dsn), "%q": fmt.Sprintf("%q", dsn),
		"json": string(marshalled), "slog": log.String(),
	} {
		if strings.Contains(text, "sesame") || !strings.Contains(text, want) {
			t.Errorf("%s prints %s, want %s", way, text, want)
		}
	}
}
