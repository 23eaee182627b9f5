package proxy_test

import (
	"testing"
)

// statementWorlds is how many statements are tried at once.
const statementWorlds = 2

// TestStatements runs each statement of testdata/statements.txt as text and
// prepared, in autocommit and in a transaction, by the holder of the lease, by a
// session whose lease was taken over, by one whose lease has expired, and by one
// without identity.
//
// The list says which plan the statement gets, and what its client gets for it; the
// proxy's metrics and its answer are held against that. What the statement means is
// taken from a twin of the tables, where it runs without the proxy: the holder's
// answer and tables must be the twin's. Everybody else's tables must stay as they
// were.
func TestStatements(t *testing.T) {
	list := readStatements(t)
	if len(list) < 200 {
		t.Errorf("only %d statements", len(list))
	}
	worlds := make(chan *statementWorld, statementWorlds)
	for range statementWorlds {
		worlds <- newStatementWorld(t)
	}
	for _, s := range list {
		t.Run(s.title, func(t *testing.T) {
			t.Parallel()
			w := <-worlds
			defer func() { worlds <- w }()
			for _, asPrepared := range []bool{false, true} {
				for _, inTransaction := range []bool{false, true} {
					tryStatement(t, w, attempt{s: s, asPrepared: asPrepared, inTransaction: inTransaction})
				}
			}
			if s.awaits != "" {
				t.Skip("the proxy does not do this before " + s.awaits)
			}
		})
	}
}

func tryStatement(t *testing.T, w *statementWorld, a attempt) {
	t.Helper()
	way := "text"
	if a.asPrepared {
		way = "prepared"
	}
	if a.inTransaction {
		way += " in a transaction"
	}
	if !t.Run(way+", on the twin", func(t *testing.T) { a.on(t, w, identities[0]).runOnTwin(&a.meaning) }) {
		return
	}
	if a.s.awaits != "" {
		return
	}
	for _, who := range identities {
		t.Run(way+", "+who.name, func(t *testing.T) { a.on(t, w, who).run() })
	}
}

// attempt is one statement by one session.
type attempt struct {
	t   *testing.T
	w   *statementWorld
	s   statement
	who identity

	asPrepared    bool
	inTransaction bool
	meaning       meaning
}

// meaning is what a statement does on the twin.
type meaning struct {
	answer string
	tables string
	// ranAnyway are the tables where only that runs which comes before a rejection.
	ranAnyway string
}

// on is the attempt by who, in a subtest.
func (a attempt) on(t *testing.T, w *statementWorld, who identity) *attempt {
	t.Helper()
	a.t, a.w, a.who = t, w.with(t), who
	return &a
}

// expected is what the holder gets.
func (a *attempt) expected() []outcome {
	want := a.s.current
	if a.inTransaction && a.s.inTransaction != nil {
		want = a.s.inTransaction
	}
	if a.asPrepared && a.s.prepared != "" {
		want = want[:1]
	}
	return want
}

// firstStopped is the index of the first statement of the packet that is not
// passed, or -1.
func (a *attempt) firstStopped() int {
	for i, p := range a.s.plan {
		if p.kind != "pass" {
			return i
		}
	}
	return -1
}

// refusal is the refusal that everybody gets, and its place in the packet.
func (a *attempt) refusal() (at int, o outcome, ok bool) {
	for i, o := range a.expected() {
		if o.kind == "refused" {
			return i, o, true
		}
	}
	return 0, outcome{}, false
}

// pending is a write of the transaction before the statement.
const pending = "INSERT INTO notes (id, text) VALUES (90, 'pending')"

// start brings a new session to where the statement is due.
func (a *attempt) start(addr, schema string) *rawClient {
	a.t.Helper()
	a.w.restore(schema, a.s.file, a.who.leases, a.s.before)
	c := a.w.session(addr, schema)
	c.must(a.who.set)
	switch {
	case a.inTransaction && a.s.begin != "":
		c.must(a.w.fill(a.s.begin, schema))
	case a.inTransaction:
		c.must("START TRANSACTION", pending)
	}
	for _, setting := range a.s.session {
		c.must(a.w.fill(setting, schema))
	}
	return c
}

// say runs the statement itself.
func (a *attempt) say(c *rawClient, schema string) (r reply, unprepared bool) {
	a.t.Helper()
	if !a.asPrepared {
		return c.ask(a.w.fill(a.s.text, schema), a.s.file), false
	}
	text := a.s.prepared
	if text == "" {
		text = a.s.text
	}
	return c.askPrepared(a.w.fill(text, schema), a.s.params, a.s.file)
}

// finish ends what the client began.
func (a *attempt) finish(c *rawClient, schema string) {
	a.t.Helper()
	switch {
	case a.inTransaction && a.s.end != "":
		c.must(a.w.fill(a.s.end, schema))
	case a.inTransaction:
		c.must("COMMIT")
	}
	a.quit(c)
}

func (a *attempt) quit(c *rawClient) {
	a.t.Helper()
	if err := c.Conn.Close(); err != nil {
		a.t.Fatal(err)
	}
}

// runOnTwin runs the statement where no proxy is, and writes down what it means.
// What the list says of it must be true there.
func (a *attempt) runOnTwin(m *meaning) {
	a.t.Helper()
	twin := a.w.twin
	defer a.w.undo(twin, a.s.undo)
	if a.s.runsAnyway != "" && !a.asPrepared && !a.inTransaction {
		c := a.start(server.Addr(), twin)
		c.must(a.s.runsAnyway)
		a.finish(c, twin)
		m.ranAnyway = a.w.contents(twin)
	}
	if _, _, refused := a.refusal(); refused {
		return
	}
	c := a.start(server.Addr(), twin)
	r, unprepared := a.say(c, twin)
	if !a.prepares(r, unprepared) {
		return
	}
	a.wantOutcomes(r, a.expected())
	m.answer = r.String(twin)
	a.finish(c, twin)
	m.tables = a.w.contents(twin)
}

// prepares holds an error of COM_STMT_PREPARE against the list, and tells that there
// is none.
func (a *attempt) prepares(r reply, unprepared bool) bool {
	a.t.Helper()
	want := 0
	if a.asPrepared {
		want = a.s.unpreparable
	}
	got := 0
	if unprepared {
		got = int(r.failure().Number)
	}
	if got != want {
		a.t.Fatalf("its preparation gives error %d (%v), want %d", got, r.failure(), want)
	}
	return want == 0
}

// run runs the statement through the proxy.
func (a *attempt) run() {
	a.t.Helper()
	schema := a.w.schema
	defer a.w.undo(schema, a.s.undo)
	c := a.start(a.w.addr, schema)
	before := a.w.counts()
	r, unprepared := a.say(c, schema)
	counted := a.w.counted(before)
	if !a.prepares(r, unprepared) {
		a.wantCounts(counted, map[string]int{})
		a.quit(c)
		a.wantUntouched()
		return
	}
	reason, stopped := a.rejection()
	a.wantCounts(counted, a.counts(reason, stopped))
	if stopped {
		a.wantRejected(r, reason)
		a.wantAborted(c)
		a.wantUntouched()
		return
	}
	if a.losesOtherwise() {
		a.wantOutcomes(r, a.s.lost)
		if a.inTransaction {
			c.must("ROLLBACK")
		}
		a.quit(c)
		a.wantUntouched()
		return
	}
	a.wantOutcomes(r, a.expected())
	if got := r.String(schema); a.compares() && got != a.meaning.answer {
		a.t.Errorf("through the proxy:\n%s\ndirectly:\n%s", got, a.meaning.answer)
	}
	a.finish(c, schema)
	a.wantTables(a.meaning.tables)
}
