package rewrite_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

var update = flag.Bool("update", false, "write the golden files anew")

var leaseTable = rewrite.Table{Schema: "app", Name: "fenced_job_leases"}

// testRules protect app.runs and app.jobs, under two leases; app.plans, observed,
// under the first; and app.held under the session's own.
func testRules(t testing.TB) *rewrite.Rules {
	t.Helper()
	table := func(name string) rewrite.Table { return rewrite.Table{Schema: "app", Name: name} }
	r, err := rewrite.NewRules(leaseTable, []rewrite.Rule{
		{Table: table("runs"), Lease: "admin:reconciliation"},
		{Table: table("jobs"), Lease: "admin:other"},
		{Table: table("plans"), Lease: "admin:reconciliation", Mode: rewrite.Observe, OnUnfenced: rewrite.UnfencedAllow, OnReject: rewrite.RejectZeroRows},
		{Table: table("held")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sessionOf reads a "# session: key=value …" line; what it does not say is as in
// an ordinary session.
func sessionOf(t testing.TB, line string) rewrite.Session {
	t.Helper()
	s := rewrite.Session{Database: "app", Charset: "utf8mb4", MultiStatements: true, Autocommit: true}
	settings, ok := strings.CutPrefix(line, "# session: ")
	if !ok {
		return s
	}
	for setting := range strings.FieldsSeq(settings) {
		key, value, _ := strings.Cut(setting, "=")
		switch key {
		case "database":
			s.Database = value
		case "charset":
			s.Charset = value
		case "lower_case_table_names":
			s.LowerCaseTableNames = 1
		case "clock":
			s.ForgedClock = true
		case "sql_mode":
			s.SQLMode = map[string]rewrite.SQLMode{
				"ANSI_QUOTES": rewrite.ANSIQuotes, "NO_BACKSLASH_ESCAPES": rewrite.NoBackslashEscapes, "ORACLE": rewrite.Oracle | rewrite.ANSIQuotes,
			}[value]
		default:
			t.Fatalf("unknown setting %q", setting)
		}
	}
	return s
}

// statements calls f with each statement of testdata/plans.sql and its session.
func statements(t testing.TB, f func(heading string, s rewrite.Session, sql string)) {
	t.Helper()
	text, err := os.ReadFile("testdata/plans.sql")
	if err != nil {
		t.Fatal(err)
	}
	session, heading := sessionOf(t, ""), ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			session, heading = sessionOf(t, line), line
			continue
		}
		f(heading, session, line)
	}
}

// TestPlans compares the plan of each statement with the one in the golden file,
// which was read by people. What is sent is written with the guards shortened.
func TestPlans(t *testing.T) {
	r := testRules(t)
	var got strings.Builder
	last := ""
	n := 0
	statements(t, func(heading string, s rewrite.Session, sql string) {
		if heading != last {
			fmt.Fprintf(&got, "%s\n\n", heading)
			last = heading
		}
		n++
		describe(&got, r, s, sql)
	})
	if n < 180 {
		t.Errorf("only %d statements", n)
	}
	const golden = "testdata/plans.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	gotBlocks, wantBlocks := strings.Split(got.String(), "\n\n"), strings.Split(string(want), "\n\n")
	for i := range gotBlocks {
		if i >= len(wantBlocks) || gotBlocks[i] != wantBlocks[i] {
			t.Errorf("got\n%s\nwant\n%s", gotBlocks[i], strings.Join(wantBlocks[min(i, len(wantBlocks)):min(i+1, len(wantBlocks))], ""))
		}
	}
	if len(wantBlocks) != len(gotBlocks) {
		t.Errorf("%d blocks, want %d", len(gotBlocks), len(wantBlocks))
	}
}

func describe(b *strings.Builder, r *rewrite.Rules, s rewrite.Session, sql string) {
	p := r.Plan(s, sql)
	fmt.Fprintf(b, "%s\n  %v", sql, p.Kind)
	if p.Reason != rewrite.NoReason {
		fmt.Fprintf(b, " %v", p.Reason)
	}
	if p.Write.Table.Name != "" {
		fmt.Fprintf(b, " %v", p.Write.Table)
		if p.Write.Lease == "" {
			b.WriteString(" under the session's lease")
		} else {
			fmt.Fprintf(b, " under %s", p.Write.Lease)
		}
	}
	fmt.Fprintf(b, ": %s\n", p.Why)
	if p.Text != "" {
		fmt.Fprintf(b, "  > %s\n", shorten(p.Text))
	}
	if !r.Mentions([]byte(sql)) {
		b.WriteString("  passed unread\n")
	}
	b.WriteString("\n")
}

// condition is the guard's.
const condition = "__fence.lease_name = 'admin:reconciliation' AND __fence.owner_token = @fence_owner" +
	" AND __fence.fence_token = CAST(@fence_token AS UNSIGNED) AND UNIX_TIMESTAMP(__fence.leased_until) > @@timestamp"

// shorten puts <guard> in the place of the guard's condition, which must be whole.
func shorten(text string) string { return strings.ReplaceAll(text, condition, "<guard>") }

func TestTheGuardIsExact(t *testing.T) {
	r := testRules(t)
	s := sessionOf(t, "")
	const table = "`app`.`fenced_job_leases` AS __fence"
	for _, tt := range []struct{ sql, text, guard string }{
		{
			"UPDATE runs SET status = 'done' WHERE run_id = 42",
			"UPDATE runs JOIN " + table + " ON " + condition + " SET status = 'done' WHERE run_id = 42",
			"SELECT 1 FROM " + table + " WHERE " + condition + " LIMIT 1 LOCK IN SHARE MODE",
		},
		{
			"DELETE FROM runs WHERE a = 1 OR b = 2 LIMIT 3",
			"DELETE FROM runs WHERE (a = 1 OR b = 2) AND EXISTS (SELECT 1 FROM " + table + " WHERE " + condition + " LOCK IN SHARE MODE) LIMIT 3",
			"SELECT 1 FROM " + table + " WHERE " + condition + " LIMIT 1 LOCK IN SHARE MODE",
		},
		{
			"INSERT INTO held VALUES (1)", "",
			"SELECT 1 FROM " + table + " WHERE " + strings.Replace(condition, "'admin:reconciliation'", "@fence_lease", 1) + " LIMIT 1 LOCK IN SHARE MODE",
		},
	} {
		p := r.Plan(s, tt.sql)
		if p.Text != tt.text || p.Guard != tt.guard {
			t.Errorf("%s\n text %s\nguard %s", tt.sql, p.Text, p.Guard)
		}
	}
}

func TestTheStrictestPolicyCounts(t *testing.T) {
	p := testRules(t).Plan(sessionOf(t, ""), "UPDATE plans p JOIN runs r ON r.id = p.id SET p.a = 1, r.b = 2")
	w := p.Write
	if w.Mode != rewrite.Enforce || w.OnUnfenced != rewrite.UnfencedReject || w.OnReject != rewrite.RejectError {
		t.Errorf("%+v", w)
	}
}

func TestBadRules(t *testing.T) {
	runs := rewrite.Table{Schema: "app", Name: "runs"}
	for name, rules := range map[string][]rewrite.Rule{
		"twice the same table":     {{Table: runs}, {Table: runs, Lease: "x"}},
		"the lease table":          {{Table: leaseTable}},
		"no schema":                {{Table: rewrite.Table{Name: "runs"}}},
		"a quote in the lease":     {{Table: runs, Lease: "a'b"}},
		"a space in the lease":     {{Table: runs, Lease: "a b"}},
		"a lease that is too long": {{Table: runs, Lease: strings.Repeat("x", 129)}},
	} {
		if _, err := rewrite.NewRules(leaseTable, rules, nil); !errors.Is(err, rewrite.ErrRule) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFurtherLeaseColumnsAreAmbiguousToo(t *testing.T) {
	r, err := rewrite.NewRules(leaseTable, []rewrite.Rule{{Table: rewrite.Table{Schema: "app", Name: "runs"}, Lease: "l"}}, []string{"lease_name", "Team"})
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Plan(sessionOf(t, ""), "UPDATE runs SET status = 'x' WHERE team = 1"); p.Kind != rewrite.Exists {
		t.Errorf("%v: %s", p.Kind, p.Why)
	}
}

// TestRulesAreSharedBySessions plans at once what the golden file has; the race
// detector watches.
func TestRulesAreSharedBySessions(t *testing.T) {
	r := testRules(t)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			statements(t, func(_ string, s rewrite.Session, sql string) {
				first, second := r.Plan(s, sql), r.Plan(s, sql)
				if first != second {
					t.Errorf("%s: %v, then %v", sql, first, second)
				}
			})
		})
	}
	done.Wait()
}
