package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// served is a running fenceproxy serve.
type served struct {
	cmd  *exec.Cmd
	log  *bufio.Scanner
	tcp  string
	page string
}

// startServe starts the program with these keys of limits, and reads its addresses
// from its log.
func (s *stage) startServe(t *testing.T, socket, limits string) *served {
	t.Helper()
	path, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "fenceproxy.yaml")
	text := fmt.Sprintf(`listen: ["127.0.0.1:0", "unix:%s"]
backend: {address: "%s"}
control: {dsn: "%s"}
lease_table: %s
protect:
  - {table: app.reconciliation_runs, lease: "%s"}
admin: {listen: "127.0.0.1:0"}
limits: {%s}
`, socket, s.db.Addr(), s.db.DSN("app"), demoTable, demoLease, limits)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &served{cmd: exec.Command(path, "serve", "-c", config)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.log = bufio.NewScanner(stderr)
	for listening := 0; listening < 2; {
		entry := p.entry(t)
		address, _ := entry["address"].(string)
		switch entry["msg"] {
		case "admin server listens":
			p.page = address
		case "listening":
			listening++
			if strings.HasPrefix(address, "127.0.0.1:") {
				p.tcp = address
			}
		}
	}
	return p
}

// entry reads the next line of the log.
func (p *served) entry(t *testing.T) map[string]any {
	t.Helper()
	if !p.log.Scan() {
		t.Fatal("the log ended: ", p.log.Err())
	}
	var entry map[string]any
	if err := json.Unmarshal(p.log.Bytes(), &entry); err != nil {
		t.Fatalf("%s: %v", p.log.Text(), err)
	}
	return entry
}

func TestServe(t *testing.T) {
	s := newStage(t)
	socket := filepath.Join(t.TempDir(), "mysql.sock")
	p := s.startServe(t, socket, "drain_timeout: 10s")
	s.proxy.addr = p.tcp

	a, err := s.leases.Acquire(t.Context(), demoLease, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	conn := s.goConn(t, "")
	execute(t, conn, fmt.Sprintf("SET @fence_owner = '%s', @fence_token = %d", a.Owner, a.Token))
	execute(t, conn, firstWrite)
	if err := s.leases.Release(t.Context(), a.Claim); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), lateWrite); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("the late write: %v", err)
	}
	entry := p.entry(t)
	for key, want := range map[string]string{
		"msg": "write rejected", "user": "worker", "database": "app", "table": "app.reconciliation_runs",
		"lease": demoLease, "owner": a.Owner, "token": fmt.Sprint(a.Token), "current_owner": a.Owner,
		"current_token": fmt.Sprint(a.Token), "plan": "join", "reason": "expired",
	} {
		if entry[key] != want {
			t.Errorf("logged %s is %v, want %s", key, entry[key], want)
		}
	}

	page := get(t, "http://"+p.page+"/metrics")
	for _, want := range []string{
		`fenceproxy_rejected_statements_total{lease="admin:reconciliation",observed="false",plan="join",reason="expired",table="app.reconciliation_runs"} 1`,
		`fenceproxy_guarded_statements_total{lease="admin:reconciliation",plan="join",table="app.reconciliation_runs"} 1`,
		"fenceproxy_sessions 1\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}

	out, err := exec.Command("mariadb", "--no-defaults", "--socket="+socket, "--user=worker", "--password=legacy", "--skip-ssl", "-N", "-e", "SELECT 'over the socket'").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "over the socket" {
		t.Errorf("through the unix socket: %s, %v", out, err)
	}

	execute(t, conn, "BEGIN")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for p.entry(t)["msg"] != "draining" {
	}
	execute(t, conn, "COMMIT")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("serve ended with %v", err)
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestServeSaysWhyItCannotStart(t *testing.T) {
	s := newStage(t)
	path, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	config := s.writeConfig(t)
	s.must(t, "DROP TABLE app.fenced_job_leases")
	out, err := exec.Command(path, "serve", "-c", config).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "fenceproxy migrate up") {
		t.Errorf("without a lease table: %s, %v", out, err)
	}
}

// A control account that sees the lease table and nothing else.
func TestTheProxyDoesNotStartBlind(t *testing.T) {
	s := newStage(t)
	s.must(t, `CREATE USER blind@'%'; GRANT SELECT, INSERT, UPDATE ON app.fenced_job_leases TO blind@'%';
		CREATE EVENT app.sweep ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' DO UPDATE app.reconciliation_runs SET total = 0`)
	text, err := os.ReadFile(s.writeConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	blind := strings.Replace(string(text), "root@", "blind@", 1)
	config := writeFile(t, blind)
	refused := `fenceproxy: the control account ` + "`blind`@`%`" + ` may not see all that can write the protected tables:
  triggers, foreign keys and views of schema app may be hidden
    GRANT TRIGGER ON ` + "`app`.* TO `blind`@`%`" + `;
  routines of schema app, or what they do, may be hidden
    GRANT SELECT ON ` + "`mysql`.`proc` TO `blind`@`%`" + `;
Grant that as an administrator, or set catalogue.incomplete to warn
`
	for _, args := range [][]string{{"serve"}, {"run", "--lease", demoLease, "--", "true"}} {
		if r := (cli{t: t, config: config}).want(exitFailed, refused, args...); r.err != refused {
			t.Errorf("%v said\n%s", args, r.err)
		}
	}
	run := func(config string) string {
		t.Helper()
		r := cli{t: t, config: config}.want(exitOK, "", "run", "--lease", demoLease, "--", "true")
		return r.err
	}
	warned := run(writeFile(t, blind+"catalogue: {incomplete: warn}\n"))
	for _, want := range []string{
		`level=WARN msg="catalogue incomplete" problem="triggers, foreign keys and views of schema app may be hidden" remedy="GRANT TRIGGER ON ` + "`app`.* TO `blind`@`%`" + `;"`,
		`problem="events of some schemas may be hidden"`,
	} {
		if !strings.Contains(warned, want) {
			t.Errorf("lacks %s:\n%s", want, warned)
		}
	}
	// What closes the gaps of the schema lets it start; the others are warned of.
	s.must(t, "GRANT TRIGGER ON `app`.* TO `blind`@`%`; GRANT SELECT ON `mysql`.`proc` TO `blind`@`%`;")
	if warned := run(config); strings.Contains(warned, "schema app") || !strings.Contains(warned, `problem="triggers, foreign keys and views of some schemas may be hidden"`) {
		t.Errorf("with the schema's grants:\n%s", warned)
	}
	s.must(t, "GRANT TRIGGER, EVENT ON *.* TO `blind`@`%`")
	if warned := run(config); strings.Contains(warned, "catalogue incomplete") || !strings.Contains(warned, `msg="event writes unguarded" event=app.sweep table=app.reconciliation_runs`) {
		t.Errorf("with all grants:\n%s", warned)
	}
}

func TestASocketFileLeftByACrashIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mysql.sock")
	first, err := listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("while another listens: %v", err)
	}
	first.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	_ = first.Close()
	second, err := listen("unix:" + path)
	if err != nil {
		t.Fatalf("after a crash: %v", err)
	}
	_ = second.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("over a file: %v", err)
	}
}
