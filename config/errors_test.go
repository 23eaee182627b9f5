package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fenceproxy/fenceproxy/config"
)

// change replaces a line of the plainest file: "4|lease_table: x" is line 4.
func change(t *testing.T, lines ...string) string {
	t.Helper()
	file := strings.Split(plainest, "\n")
	for _, l := range lines {
		number, text, _ := strings.Cut(l, "|")
		file[number[0]-'1'] = text
	}
	return strings.Join(file, "\n")
}

func TestAMistakeIsNamedWithItsPlaceAndARemedy(t *testing.T) {
	long := strings.Repeat("x", 129)
	tests := []struct {
		name, file string
		want       []string
	}{
		{"an unknown key that looks like a known one", change(t, "7|    lese: admin:reconciliation"), []string{
			`f.yaml:6:5: protect[0].lease is missing`,
			`f.yaml:7:5: unknown key "lese" in protect[0]; did you mean lease?`,
		}},
		{"an unknown key like no other", plainest + "tls: {}\n", []string{`f.yaml:8:1: unknown key "tls"`}},
		{"two letters swapped in a key", change(t, "4|laese_table: app.leases"), []string{
			`f.yaml:1:1: lease_table is missing`,
			`f.yaml:4:1: unknown key "laese_table"; did you mean lease_table?`,
		}},
		{"a key of another case", plainest + "Log: {}\n", []string{`f.yaml:8:1: unknown key "Log"; did you mean log?`}},
		{"a key written twice", plainest + "lease_table: app.others\n", []string{
			`f.yaml:8:1: key "lease_table" is written twice, first in line 4; remove one of them`,
		}},
		{"an empty file", "# nothing\n", []string{
			`f.yaml:1:1: listen is missing`, `f.yaml:1:1: backend is missing`, `f.yaml:1:1: control is missing`,
			`f.yaml:1:1: lease_table is missing`, `f.yaml:1:1: protect is missing`,
		}},
		{"an empty section", change(t, "2|backend:"), []string{`f.yaml:2:9: backend.address is missing`}},
		{"a list where keys belong", change(t, "2|backend: [127.0.0.1:3306]"), []string{
			`f.yaml:2:10: backend takes keys and values, not a list`,
		}},
		{"text where a list belongs", change(t, "1|listen: 127.0.0.1:3307"), []string{
			`f.yaml:1:9: listen takes a list, not text; put it in brackets: [127.0.0.1:3307]`,
		}},
		{"a number where text belongs", change(t, "7|    lease: 42"), []string{
			`f.yaml:7:12: protect[0].lease takes text, not a number; put it in quotes`,
		}},
		{"an empty list", change(t, "1|listen: []"), []string{`f.yaml:1:9: listen is empty`}},
		{"a file that is no mapping", "- a\n", []string{`f.yaml:1:1: the file takes keys and values, not a list`}},
		{"a second document", plainest + "---\nlisten: []\n", []string{
			`f.yaml:9:1: a second YAML document; remove it, and the line --- before it`,
		}},
		{"an anchor", change(t, "4|lease_table: &t app.leases"), []string{
			`f.yaml:4:14: lease_table takes text, not a YAML anchor; this file knows no anchors, aliases and tags: write the value out`,
		}},
		{"broken YAML", "listen: [127.0.0.1:3307\n", []string{`f.yaml:1:9: not YAML: sequence end token ']' not found`}},

		{"a listener without a port", change(t, "1|listen: [localhost]"), []string{
			`f.yaml:1:10: listen[0] is "localhost", not an address; write host:port, or [::1]:port for IPv6`,
		}},
		{"a port that is a name", change(t, "1|listen: [localhost:mysql]"), []string{
			`f.yaml:1:10: listen[0] is "localhost:mysql", whose port is not a number from 0 to 65535`,
		}},
		{"a relative socket", change(t, "1|listen: [unix:mysql.sock]"), []string{
			`f.yaml:1:10: listen[0] is "unix:mysql.sock": a unix socket needs an absolute path; write unix:/run/fenceproxy/mysql.sock`,
		}},
		{"a socket whose path is too long", change(t, "1|listen: [unix:/"+long+"]"), []string{
			`f.yaml:1:10: listen[0] is a path of 130 bytes, a unix socket's can have 107`,
		}},
		{"the same listener twice", change(t, "1|listen: [127.0.0.1:3307, 127.0.0.1:3307]"), []string{
			`f.yaml:1:26: listen[1] is "127.0.0.1:3307", which is listened on already, see line 1; remove one of them`,
		}},
		{"metrics on the clients' address", plainest + "admin: {listen: 127.0.0.1:3307}\n", []string{
			`f.yaml:8:17: admin.listen is "127.0.0.1:3307", which is listened on already, see line 1; remove one of them`,
		}},
		{"a proxy in front of itself", change(t, "2|backend: {address: 127.0.0.1:3307}"), []string{
			`f.yaml:2:20: backend.address is what the proxy itself listens on, see line 1`,
		}},
		{"a backend without a host", change(t, "2|backend: {address: \":3306\"}"), []string{
			`f.yaml:2:20: backend.address is ":3306": an address to connect to needs a host and a port`,
		}},

		{"a DSN without a slash", change(t, `3|control: {dsn: "fenceproxy:sesame@tcp(127.0.0.1:3306)"}`), []string{
			`f.yaml:3:16: control.dsn is not a data source name of go-sql-driver/mysql; write user:password@tcp(host:port)/database or user:password@unix(/path)/database`,
		}},
		{"a DSN with a bad parameter", change(t, `3|control: {dsn: "fenceproxy:sesame@tcp(db:3306)/app?timeout=5"}`), []string{
			`f.yaml:3:16: control.dsn has a parameter timeout whose value the driver does not take`,
		}},
		{"an empty DSN", change(t, `3|control: {dsn: ""}`), []string{
			`f.yaml:3:16: control.dsn is empty; write user:password@tcp(host:port)/database or user:password@unix(/path)/database`,
		}},
		{"a variable that is not set", change(t, `3|control: {dsn: "p:${PASSWORD}@tcp(db:3306)/app"}`), []string{
			`f.yaml:3:16: control.dsn needs the environment variable PASSWORD, which is not set; set it, or write $${ for the characters ${ themselves`,
		}},
		{"a variable without its end", change(t, "3|control: {dsn: \"p:${PASSWORD@tcp(db:3306)/app\"}"), []string{
			`f.yaml:3:16: control.dsn has a ${ without its }; close it with }, or write $${ for the characters ${ themselves`,
		}},
		{"a variable with a bad name", change(t, "7|    lease: ${a-b}"), []string{
			`f.yaml:7:12: protect[0].lease: "a-b" is not the name of an environment variable; write ${NAME}, or $${ for the characters ${ themselves`,
		}},
		{"the session's lease as a part of a name", change(t, "7|    lease: job:${session}"), []string{
			`f.yaml:7:12: protect[0].lease: ${session} can only be the whole of a table's lease`,
		}},
		{"the session's lease elsewhere", change(t, "4|lease_table: ${session}"), []string{
			`f.yaml:4:14: lease_table: ${session} can only be the whole of a table's lease`,
		}},

		{"a table without its schema", change(t, "6|  - table: runs"), []string{
			`f.yaml:6:12: protect[0].table is "runs", not the name of a table with its schema; write schema.name`,
		}},
		{"a table in quotes", change(t, "6|  - table: '`app`.`runs`'"), []string{
			"f.yaml:6:12: protect[0].table is \"`app`.`runs`\", a name in quotes; write schema.name without quotes",
		}},
		{"a table with a name too long", change(t, "6|  - table: app."+long), []string{
			`f.yaml:6:12: protect[0].table is "app.` + long + `", which no table can be named`,
		}},
		{"a lease table that would need quotes", change(t, "4|lease_table: my-app.leases"), []string{
			`f.yaml:4:14: lease_table is "my-app.leases": the lease table's schema and name can hold letters, digits, _ and $ only`,
		}},
		{"a lease table with a name too long", change(t, "4|lease_table: app."+long[:57]), []string{
			`f.yaml:4:14: lease_table is "app.` + long[:57] + `": the lease table's name can have 56 characters`,
		}},
		{"the same table twice", plainest + "  - {table: app.reconciliation_runs, lease: other}\n", []string{
			`f.yaml:8:13: protect[1].table is "app.reconciliation_runs", which has a rule already, see line 6; remove one of them`,
		}},
		{"the lease table protected", change(t, "4|lease_table: app.reconciliation_runs"), []string{
			`f.yaml:6:12: app.reconciliation_runs is the lease table: it is guarded by itself; remove the rule`,
		}},
		{"a lease with a space", change(t, "7|    lease: admin reconciliation"), []string{
			`f.yaml:7:12: protect[0].lease is "admin reconciliation", which no lease can be named; use 1 to 128 printable ASCII characters without spaces, quotes, \ and ;`,
		}},
		{"a lease that is too long", change(t, "7|    lease: "+long), []string{
			`f.yaml:7:12: protect[0].lease is "` + long + `", which no lease can be named; use 1 to 128 printable ASCII characters without spaces, quotes, \ and ;`,
		}},
		{"a mode that is nearly one", plainest + "    mode: enforced\n", []string{
			`f.yaml:8:11: protect[0].mode is "enforced", not one of enforce, observe; did you mean enforce?`,
		}},
		{"an on_unfenced that is none", plainest + "    on_unfenced: explode\n", []string{
			`f.yaml:8:18: protect[0].on_unfenced is "explode", not one of reject, observe, allow`,
		}},
		{"an on_reject that is nearly one", plainest + "    on_reject: zero-rows\n", []string{
			`f.yaml:8:16: protect[0].on_reject is "zero-rows", not one of error, zero_rows; did you mean zero_rows?`,
		}},

		{"limits out of range", plainest + "limits: {max_connections: 0, max_statement_bytes: 2GiB, connect_timeout: 0s}\n", []string{
			`f.yaml:8:27: limits.max_connections is "0", not a number from 1 to 100000`,
			`f.yaml:8:51: limits.max_statement_bytes is "2GiB", not a size from 1KiB to 1GiB`,
			`f.yaml:8:74: limits.connect_timeout is "0s", less than 1ms`,
		}},
		{"an incomplete catalogue ignored", plainest + "catalogue: {incomplete: ignore}\n", []string{
			`f.yaml:8:25: catalogue.incomplete is "ignore", not one of refuse, warn`,
		}},
		{"a size larger than any number", plainest + "limits: {max_statement_bytes: 99999999999GiB}\n", []string{
			`f.yaml:8:31: limits.max_statement_bytes is "99999999999GiB", not a size from 1KiB to 1GiB`,
		}},
		{"a size in a unit of ten", plainest + "limits: {max_statement_bytes: 64MB}\n", []string{
			`f.yaml:8:31: limits.max_statement_bytes is "64MB", a size in an unknown unit; the units are B, KiB, MiB and GiB`,
		}},
		{"a size that is none", plainest + "limits: {max_statement_bytes: big one}\n", []string{
			`f.yaml:8:31: limits.max_statement_bytes is "big one", not a size; write it like 65536, 64KiB, 64MiB or 1GiB`,
		}},
		{"a time without a unit", plainest + "limits: {login_timeout: 10}\n", []string{
			`f.yaml:8:25: limits.login_timeout is "10", a time without a unit; write 10s for seconds`,
		}},
		{"a time in an unknown unit", plainest + "limits: {drain_timeout: 1day}\n", []string{
			`f.yaml:8:25: limits.drain_timeout is "1day", not a time; write it like 500ms, 5s or 1m30s`,
		}},
		{"a limit that is a list", plainest + "limits: {max_connections: [1], max_statement_bytes: true}\n", []string{
			`f.yaml:8:27: limits.max_connections takes a number, not a list`,
			`f.yaml:8:53: limits.max_statement_bytes takes a size, not true or false`,
		}},
		{"a level that is none", plainest + "log: {level: warning, format: xml, statements: yes}\n", []string{
			`f.yaml:8:14: log.level is "warning", not one of debug, info, warn, error`,
			`f.yaml:8:31: log.format is "xml", not one of json, text`,
			`f.yaml:8:48: log.statements is "yes", not true or false`,
		}},
		{"metrics on a unix socket", plainest + "admin: {listen: unix:/run/x.sock}\n", []string{
			`f.yaml:8:17: admin.listen is "unix:/run/x.sock", whose port is not a number from 0 to 65535`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse("f.yaml", []byte(tt.file), environment(nil))
			var bad *config.Error
			if !errors.As(err, &bad) {
				t.Fatalf("err = %v, want a *config.Error of:\n%s", err, tt.file)
			}
			if want := strings.Join(tt.want, "\n"); err.Error() != want {
				t.Errorf("got:\n%v\nwant:\n%s", err, want)
			}
			if strings.Contains(err.Error(), "sesame") {
				t.Error("the message holds the password")
			}
		})
	}
}

func TestWhatTheEnvironmentHoldsIsNotInMessages(t *testing.T) {
	file := change(t, "1|listen: [\"${SECRET}\"]", "2|backend: {address: \"${SECRET}\"}", "3|control: {dsn: \"${SECRET}\"}",
		"4|lease_table: \"${SECRET}\"", "6|  - table: ${SECRET}", "7|    lease: ${SECRET}") +
		"    mode: ${SECRET}\nlimits: {max_connections: \"${SECRET}\", max_statement_bytes: \"${SECRET}\", connect_timeout: \"${SECRET}\"}\n" +
		"admin: {listen: \"${SECRET}\"}\nlog: {level: \"${SECRET}\", statements: \"${SECRET}\"}\n"
	for _, secret := range []string{"open sesame", "root:sesame/app", "u:sesame@x(y)/z?timeout=sesame", "a:b/c?sesame=%zz"} {
		_, err := config.Parse("f.yaml", []byte(file), environment(map[string]string{"SECRET": secret}))
		var bad *config.Error
		if !errors.As(err, &bad) || len(bad.Problems) < 10 {
			t.Fatalf("err = %v", err)
		}
		if strings.Contains(err.Error(), "sesame") {
			t.Errorf("with %q the messages hold what the environment does:\n%v", secret, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(plainest))
	f.Add([]byte("listen: [unix:/a, \"${A}\"]\nlimits: {max_statement_bytes: 1KiB}\nlog:\n  level: |\n    info\n"))
	f.Add([]byte("a: &x 1\nb: *x\n<<: {c: d}\n? [e]\n: f\n"))
	f.Add([]byte("protect:\n  -\n  - table: ${session}\n    lease: $${x}\n  - ~\n---\n...\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("f.yaml", data, environment(map[string]string{"A": "b"}))
		if err == nil {
			if len(c.Listen) == 0 || c.Backend.Address == "" || c.Control.DSN == "" || c.LeaseTable.Name == "" || len(c.Rules()) == 0 {
				t.Fatalf("a file without a required key is valid: %+v", c)
			}
			return
		}
		var bad *config.Error
		if !errors.As(err, &bad) || len(bad.Problems) == 0 {
			t.Fatalf("error of type %T: %v", err, err)
		}
		for _, p := range bad.Problems {
			if p.File != "f.yaml" || p.Line < 1 || p.Column < 1 || p.Message == "" {
				t.Fatalf("a problem without a place: %+v", p)
			}
		}
	})
}
