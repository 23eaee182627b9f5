package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
)

// cli runs command lines in this process.
type cli struct {
	t      *testing.T
	config string // the value of -c, "" for none
	input  string // standard input
}

// result is what a command line did.
type result struct {
	status   int
	out, err string
}

func (c cli) run(args ...string) result {
	c.t.Helper()
	if c.config != "" {
		args = append([]string{"-c", c.config}, args...)
	}
	var out, errs bytes.Buffer
	status := runCommandLine(c.t.Context(), args, strings.NewReader(c.input), &out, &errs)
	return result{status, out.String(), errs.String()}
}

// must runs a command line that has to succeed, and returns its output.
func (c cli) must(args ...string) string {
	c.t.Helper()
	r := c.run(args...)
	if r.status != exitOK {
		c.t.Fatalf("%v: status %d\n%s%s", args, r.status, r.out, r.err)
	}
	return r.out
}

// want runs a command line and compares its status, and its error text unless
// that is empty.
func (c cli) want(status int, errorText string, args ...string) result {
	c.t.Helper()
	r := c.run(args...)
	if r.status != status || !strings.Contains(r.err, errorText) {
		c.t.Errorf("%v: status %d, stderr %q, want status %d and %q", args, r.status, r.err, status, errorText)
	}
	return r
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// configFor writes a configuration whose control account is dsn.
func configFor(t *testing.T, dsn string, tables ...string) string {
	t.Helper()
	if len(tables) == 0 {
		tables = []string{"app.runs"}
	}
	control, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	text := "listen: [127.0.0.1:3307]\nlease_table: app.fenced_job_leases\n" +
		fmt.Sprintf("control: {dsn: %q}\nbackend: {address: %q}\nprotect:\n", dsn, control.Addr)
	for _, table := range tables {
		text += fmt.Sprintf("  - {table: %q, lease: admin:reconciliation}\n", table)
	}
	return writeFile(t, text)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fenceproxy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// openServer starts a server that has the schema app.
func openServer(t *testing.T) (*dbtest.Server, *sql.DB) {
	t.Helper()
	server := dbtest.New(t)
	db, err := sql.Open("mysql", server.DSN("")+"?multiStatements=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	execSQL(t, db, "CREATE DATABASE app")
	return server, db
}

func execSQL(t *testing.T, db *sql.DB, statements string) {
	t.Helper()
	if _, err := db.Exec(statements); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

func TestMistakesOfUsageExitWith2(t *testing.T) {
	t.Setenv(configVariable, filepath.Join(t.TempDir(), "none.yaml"))
	for _, name := range []string{leaseVariable, ownerVariable, tokenVariable} {
		t.Setenv(name, "")
	}
	good := configFor(t, "root@tcp(127.0.0.1:1)/app")
	bad := writeFile(t, "listen: []\nliste: x\n")
	tests := []struct {
		name, config string
		args         []string
		want         string
	}{
		{"an unknown command", "", []string{"serv"}, `unknown command "serv" for "fenceproxy"`},
		{"an unknown command below lease", "", []string{"lease", "take"}, `unknown command "take" for "fenceproxy lease"`},
		{"an unknown flag", "", []string{"check", "--offline"}, "unknown flag: --offline"},
		{"an unknown output format", "", []string{"lease", "list", "-o", "xml"}, "it is text or json"},
		{"an argument too many", "", []string{"version", "please"}, "unknown command"},
		{"a lease without its name", "", []string{"lease", "acquire"}, "accepts 1 arg(s), received 0"},
		{"a claim without an owner", good, []string{"lease", "renew", "job"}, "whose lease? Give --owner, or set FENCE_OWNER"},
		{"a claim without a token", good, []string{"lease", "release", "job", "--owner", "A"}, "which token? Give --token, or set FENCE_TOKEN"},
		{"a claim without a name", good, []string{"lease", "release"}, "which lease? Give its NAME, or set FENCE_LEASE"},
		{"a token that is no number", good, []string{"lease", "renew", "job", "--owner", "A", "--token", "x"}, `token "x" is not a number`},
		{"accounts without a server", good, []string{"check", "--app-user", "app@%"}, "--app-user needs --online"},
		{"an account without a host", good, []string{"check", "--online", "--app-user", "app"}, `account "app" is not USER@HOST; for every host write app@%`},
		{"a mode that does not exist", good, []string{"explain", "--sql-mode", "ANSI,ANSI_QUOTE", "x"}, `"ANSI_QUOTE" is no mode`},
		{"a number of no meaning", good, []string{"explain", "--lower-case-table-names", "3", "x"}, "--lower-case-table-names is 3, not 0, 1 or 2"},
		{"a configuration that is not there", "", []string{"check"}, "fenceproxy: no configuration: there is no file "},
		{
			"a configuration with mistakes", bad,
			[]string{"check"},
			"fenceproxy: the configuration is not valid\n" + bad + ":1:1: backend is missing\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := cli{t: t, config: tt.config}.want(exitUsage, tt.want, tt.args...)
			if r.out != "" || !strings.HasPrefix(r.err, "fenceproxy: ") {
				t.Errorf("stdout %q, stderr %q", r.out, r.err)
			}
		})
	}
}

func TestTheConfigurationIsLookedForInPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(configVariable, "")
	c := cli{t: t}
	if _, err := os.Stat("/etc/fenceproxy/fenceproxy.yaml"); err != nil {
		c.want(exitUsage, "no configuration: there is neither ./fenceproxy.yaml nor /etc/fenceproxy/fenceproxy.yaml; name a file with --config or $FENCEPROXY_CONFIG", "check")
	}
	valid := configFor(t, "root@tcp(127.0.0.1:1)/app")
	text, err := os.ReadFile(valid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("fenceproxy.yaml", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := c.must("check"); out != "ok    configuration ./fenceproxy.yaml\n" {
		t.Errorf("got %q", out)
	}
	t.Setenv(configVariable, valid)
	if out := c.must("check"); out != "ok    configuration "+valid+"\n" {
		t.Errorf("got %q", out)
	}
	c.config = writeFile(t, "")
	c.want(exitUsage, c.config+":1:1: listen is missing", "check")
}

func TestAServerThatDoesNotAnswerIsNamedWithoutItsPassword(t *testing.T) {
	c := cli{t: t, config: configFor(t, "fenceproxy:sesame@tcp(127.0.0.1:1)/app")}
	for _, args := range [][]string{{"check", "--online"}, {"lease", "list"}, {"migrate", "up"}} {
		r := c.want(exitFailed, "fenceproxy: connect to fenceproxy@tcp(127.0.0.1:1)/app (control.dsn): ", args...)
		if strings.Contains(r.out+r.err, "sesame") {
			t.Errorf("%v prints the password: %s", args, r.err)
		}
	}
}

func TestEveryCommandHasAnExampleAndASentence(t *testing.T) {
	var check func(path string, args []string)
	check = func(path string, args []string) {
		root := newRoot(nil, nil, nil)
		c, _, err := root.Find(args)
		if err != nil {
			t.Fatal(err)
		}
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s has no description or no example", path)
		}
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" {
				check(path+" "+sub.Name(), append(args[:len(args):len(args)], sub.Name()))
			}
		}
	}
	check("fenceproxy", nil)
	if help := (cli{t: t}).must("--help"); !strings.Contains(help, exitCodesHelp) {
		t.Error("the help does not tell the exit statuses")
	}
}

func TestVersionTellsTheBuild(t *testing.T) {
	build := decode[map[string]string](t, cli{t: t}.must("version", "-o", "json"))
	if build["version"] == "" || build["commit"] == "" || !strings.HasPrefix(build["go"], "go1.") {
		t.Errorf("got %v", build)
	}
	text := cli{t: t}.must("version")
	if want := fmt.Sprintf("fenceproxy %s\ncommit %s\n%s\n", build["version"], build["commit"], build["go"]); text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func openAs(t *testing.T, server *dbtest.Server, user string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", strings.Replace(server.DSN(""), "root@", user+"@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
