package proxy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fenceproxy/fenceproxy/monitor"
)

// losesOtherwise tells that a session which has lost its lease gets another error
// than the rejection.
func (a *attempt) losesOtherwise() bool {
	return a.s.lost != nil && (a.who.reason == "stale_token" || a.who.reason == "expired")
}

// rejection is the reason for which the proxy does not run the packet to its end.
func (a *attempt) rejection() (reason string, stopped bool) {
	at := a.firstStopped()
	_, refusal, refused := a.refusal()
	switch {
	case at < 0 || a.losesOtherwise():
		return "", false
	case refused && (a.who.reason != "unfenced" || a.s.plan[at].table == ""):
		return refusal.reason, true
	default:
		return a.who.reason, a.who.reason != ""
	}
}

// counts are the metrics that the statement must have moved.
func (a *attempt) counts(reason string, stopped bool) map[string]int {
	want := make(map[string]int)
	for _, p := range a.s.plan {
		table := p.table
		if table == "" {
			table = "none"
		}
		switch {
		case p.kind == "pass":
			want["passed"]++
		case stopped:
			want["rejected "+table+"|"+p.kind+"|"+reason]++
			return want
		default:
			want["guarded "+table+"|"+p.kind]++
		}
	}
	return want
}

// wantCounts compares metrics. How many statements of a packet that holds several
// were passed is not looked at.
func (a *attempt) wantCounts(got, want map[string]int) {
	a.t.Helper()
	if len(a.s.plan) > 1 {
		delete(got, "passed")
		delete(want, "passed")
	}
	if !maps.Equal(got, want) {
		a.t.Errorf("counted %v, want %v", got, want)
	}
}

// wantOutcomes holds an answer against what the list says.
func (a *attempt) wantOutcomes(r reply, want []outcome) {
	a.t.Helper()
	var got []outcome
	for i, p := range r {
		o := p.outcome()
		if i < len(want) && want[i].n == anyNumber {
			o.n = anyNumber
		}
		got = append(got, o)
	}
	if !slices.Equal(got, want) {
		a.t.Fatalf("got\n%swant %s", r.String(a.w.schema), describeOutcomes(want))
	}
}

func (p part) outcome() outcome {
	switch {
	case p.err != nil:
		return outcome{kind: "error", n: int(p.err.Number)}
	case p.columns > 0:
		return outcome{kind: "rows", n: len(p.rows)}
	default:
		return outcome{kind: "ok", n: int(p.ok.AffectedRows)}
	}
}

func describeOutcomes(all []outcome) string {
	var b strings.Builder
	for _, o := range all {
		fmt.Fprintf(&b, "%s %d; ", o.kind, o.n)
	}
	return b.String()
}

// compares tells that the answer is the same each time.
func (a *attempt) compares() bool {
	return !slices.ContainsFunc(a.expected(), func(o outcome) bool { return o.n == anyNumber })
}

// wantRejected checks the error at the first statement that is not passed, and the
// answers before it.
func (a *attempt) wantRejected(r reply, reason string) {
	a.t.Helper()
	at := a.firstStopped()
	e := r.failure()
	if e == nil || e.Number != monitor.ErrorNumber || e.State != monitor.SQLState {
		a.t.Fatalf("got\n%swant a rejection", r.String(a.w.schema))
	}
	a.wantOutcomes(r[:len(r)-1], a.expected()[:at])

	prefix := "fenceproxy: statement rejected: "
	if table := a.s.plan[at].table; table != "" {
		prefix = fmt.Sprintf("fenceproxy: write to %s.%s rejected: ", a.w.schema, table)
	}
	because := map[string]string{"unsupported": "it cannot be guarded: ", "forbidden": "it could break the fence: "}[reason]
	if because == "" {
		because = a.who.message
	}
	if !strings.HasPrefix(e.Message, prefix) || !strings.Contains(e.Message, because) {
		a.t.Errorf("message %q, want %q and %q", e.Message, prefix, because)
	}
}

// wantAborted checks what a rejection leaves behind: nothing locked, and in a
// transaction a session that does nothing until it is told to roll back.
func (a *attempt) wantAborted(c *rawClient) {
	a.t.Helper()
	if a.inTransaction && strings.HasPrefix(a.s.begin, "XA") {
		c.wantClosed()
		return
	}
	if !slices.ContainsFunc(a.s.session, func(s string) bool { return strings.HasPrefix(s, "LOCK") }) {
		a.wantUnlocked()
	}
	if a.inTransaction {
		for _, statement := range []string{"SELECT 1", "INSERT INTO notes (id, text) VALUES (91, 'after')"} {
			e := c.ask(statement, "").failure()
			if e == nil || e.Number != monitor.ErrorNumber || !strings.Contains(e.Message, "the transaction was rolled back, end it with ROLLBACK") {
				a.t.Errorf("%s after the rejection: %v", statement, e)
			}
		}
		c.must("ROLLBACK")
	}
	if got := c.query("SELECT 'at work'"); got != "at work" {
		a.t.Errorf("after the rejection: %q", got)
	}
	a.quit(c)
}

// wantUnlocked fails the test while the lease's row is locked.
func (a *attempt) wantUnlocked() {
	a.t.Helper()
	r := a.w.sides[a.w.schema].session.ask("SELECT lease_name FROM fenced_job_leases FOR UPDATE NOWAIT", "")
	if e := r.failure(); e != nil {
		a.t.Errorf("the rejected session holds a lock on the lease: %v", e)
	}
}

// wantUntouched checks the tables after a rejection: what comes before it in a
// packet ran, and nothing of the rest, or of a transaction.
func (a *attempt) wantUntouched() {
	a.t.Helper()
	want := a.meaning.ranAnyway
	if want == "" {
		want = a.w.sides[a.w.schema].start
	}
	a.wantTables(want)
}

func (a *attempt) wantTables(want string) {
	a.t.Helper()
	s := a.w.sides[a.w.schema]
	got := a.w.contents(a.w.schema)
	if got != want {
		a.t.Errorf("the tables differ:\n%s", difference(got, want))
	}
	s.pristine = got == s.start && a.s.before == nil
}

// difference lists the lines that only one of two texts has.
func difference(got, want string) string {
	var b strings.Builder
	for _, side := range []struct{ mark, text, other string }{{"got  ", got, want}, {"want ", want, got}} {
		other := strings.Split(side.other, "\n")
		for line := range strings.SplitSeq(side.text, "\n") {
			if !slices.Contains(other, line) {
				b.WriteString(side.mark + line + "\n")
			}
		}
	}
	return b.String()
}
