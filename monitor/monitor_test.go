package monitor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/fenceproxy/fenceproxy/monitor"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

func logged(t *testing.T, r monitor.Rejection, options ...monitor.Option) map[string]any {
	t.Helper()
	var out bytes.Buffer
	monitor.New(slog.New(slog.NewJSONHandler(&out, nil)), prometheus.NewRegistry(), options...).Reject(r)
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 {
		t.Fatalf("%d lines, want 1: %s", n, out.Bytes())
	}
	line := make(map[string]any)
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	return line
}

func TestARejectionIsOneLogLine(t *testing.T) {
	got := logged(t, stale(), monitor.WithStatements())
	want := map[string]any{
		"time": "2026-03-01T12:00:12.34Z", "level": "WARN", "msg": "write rejected",
		"session": 42.0, "client": "10.0.0.7:51000", "user": "app", "program": "php", "database": "app",
		"table": "app.reconciliation_runs", "lease": "admin:reconciliation", "owner": "A", "token": "7",
		"current_owner": "B", "current_token": "8", "leased_until": "2026-03-01T12:00:00.005Z",
		"plan": "join", "reason": "stale_token",
		"digest": "0123456789abcdef", "statement": "UPDATE reconciliation_runs SET status = ?",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestTheLogHasNoStatementUnlessAskedFor(t *testing.T) {
	got := logged(t, stale())
	if got["statement"] != nil || got["digest"] != "0123456789abcdef" {
		t.Errorf("got %v, want the digest alone", got)
	}
}

func TestAnObservedRejectionIsToldApart(t *testing.T) {
	r := stale()
	r.Observed, r.HasLease, r.Reason, r.Detail = true, false, rewrite.Unfenced, "the session has no identity"
	got := logged(t, r)
	if got["level"] != "INFO" || got["msg"] != "write would be rejected" || got["detail"] != r.Detail || got["current_token"] != nil {
		t.Errorf("got %v", got)
	}
}

// report makes the monitor report everything that it can.
func report(m *monitor.Monitor) {
	w := rewrite.Write{Table: rewrite.Table{Schema: "app", Name: "runs"}, Lease: "job"}
	ofSession := rewrite.Write{Table: rewrite.Table{Schema: "app", Name: "plans"}}
	m.SessionOpened()
	m.SessionOpened()
	m.SessionClosed()
	m.BackendDialed(nil)
	m.BackendDialed(errors.New("refused"))
	m.BackendDialed(nil)
	m.Passed()
	m.Guarded(w, rewrite.Join, 70*time.Microsecond)
	m.Guarded(ofSession, rewrite.Bracket, 2*time.Millisecond)
	m.Unfenced(ofSession)
	r := stale()
	m.Reject(r)
	r.Observed = true
	m.Reject(r)
	r.RuleLease, r.Lease = "", "made up by the session"
	m.Reject(r)
	m.Reject(monitor.Rejection{Reason: rewrite.Forbidden, Plan: rewrite.Refuse, Lease: "made up, too"})
}

func TestMetricsCountWhatWasReported(t *testing.T) {
	reg := prometheus.NewRegistry()
	report(monitor.New(slog.New(slog.DiscardHandler), reg))
	want := `
# HELP fenceproxy_backend_dials_total Attempts to connect to the backend.
# TYPE fenceproxy_backend_dials_total counter
fenceproxy_backend_dials_total{result="error"} 1
fenceproxy_backend_dials_total{result="ok"} 2
# HELP fenceproxy_guarded_statements_total Writes to protected tables that their guard let through.
# TYPE fenceproxy_guarded_statements_total counter
fenceproxy_guarded_statements_total{lease="${session}",plan="bracket",table="app.plans"} 1
fenceproxy_guarded_statements_total{lease="job",plan="join",table="app.runs"} 1
# HELP fenceproxy_passed_statements_total Statements that were sent on as they are.
# TYPE fenceproxy_passed_statements_total counter
fenceproxy_passed_statements_total 1
# HELP fenceproxy_rejected_statements_total Writes that were rejected, or with observed=true would have been.
# TYPE fenceproxy_rejected_statements_total counter
fenceproxy_rejected_statements_total{lease="${session}",observed="true",plan="join",reason="stale_token",table="app.reconciliation_runs"} 1
fenceproxy_rejected_statements_total{lease="admin:reconciliation",observed="false",plan="join",reason="stale_token",table="app.reconciliation_runs"} 1
fenceproxy_rejected_statements_total{lease="admin:reconciliation",observed="true",plan="join",reason="stale_token",table="app.reconciliation_runs"} 1
fenceproxy_rejected_statements_total{lease="none",observed="false",plan="refuse",reason="forbidden",table="none"} 1
# HELP fenceproxy_sessions Client connections that are open.
# TYPE fenceproxy_sessions gauge
fenceproxy_sessions 1
# HELP fenceproxy_sessions_total Client connections since the start.
# TYPE fenceproxy_sessions_total counter
fenceproxy_sessions_total 2
# HELP fenceproxy_unfenced_statements_total Writes to protected tables by sessions without identity, allowed by on_unfenced.
# TYPE fenceproxy_unfenced_statements_total counter
fenceproxy_unfenced_statements_total{lease="${session}",table="app.plans"} 1
`
	err := testutil.GatherAndCompare(reg, strings.NewReader(want),
		"fenceproxy_backend_dials_total", "fenceproxy_guarded_statements_total", "fenceproxy_passed_statements_total",
		"fenceproxy_rejected_statements_total", "fenceproxy_sessions", "fenceproxy_sessions_total", "fenceproxy_unfenced_statements_total")
	if err != nil {
		t.Error(err)
	}
}

func TestTheGuardsTimeIsInSeconds(t *testing.T) {
	reg := prometheus.NewRegistry()
	report(monitor.New(slog.New(slog.DiscardHandler), reg))
	body := get(t, monitor.NewAdmin(reg), "/metrics", http.StatusOK)
	for _, line := range []string{
		`fenceproxy_guard_seconds_bucket{plan="join",le="5e-05"} 0`,
		`fenceproxy_guard_seconds_bucket{plan="join",le="0.0001"} 1`,
		`fenceproxy_guard_seconds_sum{plan="bracket"} 0.002`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}

// The documentation's table and the registry must have the same rows.
func TestEveryMetricIsDocumentedWithItsLabels(t *testing.T) {
	reg := prometheus.NewRegistry()
	report(monitor.New(slog.New(slog.DiscardHandler), reg))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var registered []string
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		registered = append(registered, f.GetName()+" "+strings.ToLower(f.GetType().String())+" "+strings.Join(labels, " "))
	}

	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(fenceproxy_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		labels := strings.NewReplacer("`", "", ",", "").Replace(strings.TrimSpace(row[3]))
		documented = append(documented, row[1]+" "+row[2]+" "+labels)
	}
	if !slices.Equal(registered, documented) {
		t.Errorf("docs/metrics.md differs from the registry:\ndocumented\n%s\nregistered\n%s",
			strings.Join(documented, "\n"), strings.Join(registered, "\n"))
	}
	for _, reason := range rewrite.Reasons() {
		if !strings.Contains(string(page), "`"+reason.String()+"`") {
			t.Errorf("docs/metrics.md lacks the reason %s", reason)
		}
	}
}

func get(t *testing.T, h http.Handler, path string, status int) string {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	response, err := http.Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status {
		t.Fatalf("GET %s: status %d, want %d: %s", path, response.StatusCode, status, body)
	}
	return string(body)
}

func TestTheAdminServerAnswersWhatItIsAsked(t *testing.T) {
	admin := monitor.NewAdmin(monitor.NewRegistry())
	if got := get(t, admin, "/healthz", http.StatusOK); got != "ok\n" {
		t.Errorf("got %q", got)
	}
	if got := get(t, admin, "/metrics", http.StatusOK); !strings.Contains(got, "go_goroutines") {
		t.Error("/metrics lacks the Go runtime's")
	}
	get(t, admin, "/nothing", http.StatusNotFound)
}

func BenchmarkGuarded(b *testing.B) {
	m := monitor.New(slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	w := rewrite.Write{Table: rewrite.Table{Schema: "app", Name: "runs"}, Lease: "job"}
	b.ReportAllocs()
	for b.Loop() {
		m.Guarded(w, rewrite.Join, time.Microsecond)
	}
}
