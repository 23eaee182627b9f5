package proxy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fenceproxy/fenceproxy/migrations"
	"github.com/fenceproxy/fenceproxy/monitor"
	"github.com/fenceproxy/fenceproxy/proxy"
	"github.com/fenceproxy/fenceproxy/proxy/wire"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// statementWorld is a schema with the tables of testdata/world.sql behind a proxy,
// and a twin of it without one: what a statement does there is what it means.
type statementWorld struct {
	*fixture
	// twin is the twin's schema. Its name is as long as the other, so that what
	// differs in an answer by the name alone is equal once the names are.
	twin     string
	registry *prometheus.Registry
	rows     string // the statements of rows.sql
	reading  string // the statement of readContents
	pristine string // the contents that rows.sql makes
	file     string // for LOAD DATA and the like
	unique   string // differs for each subtest

	sides map[string]*side // by schema
}

// side is one of the two schemas, looked at straight at the server.
type side struct {
	session *rawClient
	// start is what the tables have before the statement. pristine tells that they
	// have what rows.sql puts there.
	start    string
	pristine bool
}

// protectedTables are the tables of the world that have a rule under leaseName; jobs
// has one under otherLease.
var protectedTables = []string{"runs", "steps", "parts", "rates", "ledger", "monthly runs"}

const otherLease = "admin:other"

func newStatementWorld(t *testing.T) *statementWorld {
	t.Helper()
	var options proxy.Options
	f := setup(t, func(_ *rewrite.Rule, o *proxy.Options) { options = *o })
	w := &statementWorld{
		fixture: f, twin: "u" + f.schema[1:], registry: prometheus.NewRegistry(),
		rows: strings.Join(paragraphs(t, "testdata/rows.sql"), ""),
		file: filepath.Join(t.TempDir(), "rows"), sides: make(map[string]*side),
	}
	mustExec(t, f.direct, "CREATE DATABASE "+w.twin)
	t.Cleanup(func() { _, _ = f.direct.Exec("DROP DATABASE " + w.twin) })
	if _, err := migrations.Up(t.Context(), f.direct, w.twin+".fenced_job_leases"); err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{f.schema, w.twin} {
		s := &side{session: w.session(server.Addr(), schema)}
		for _, definition := range paragraphs(t, "testdata/world.sql") {
			s.session.must(definition)
		}
		w.sides[schema] = s
	}

	twin := w.sides[w.twin].session
	w.reading = readContents(t, twin)
	twin.must(w.rows, identities[0].leases)
	w.pristine = w.contents(w.twin)

	var rules []rewrite.Rule
	for _, name := range protectedTables {
		rules = append(rules, rewrite.Rule{Table: rewrite.Table{Schema: f.schema, Name: name}, Lease: leaseName})
	}
	rules = append(rules, rewrite.Rule{Table: rewrite.Table{Schema: f.schema, Name: "jobs"}, Lease: otherLease})
	var err error
	options.Rules, err = rewrite.NewRules(rewrite.Table{Schema: f.schema, Name: "fenced_job_leases"}, rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	options.Monitor = monitor.New(options.Log, w.registry)
	f.stop()
	f.proxy = proxy.NewServer(options)
	f.addr = f.serve(nil)
	return w
}

// paragraphs are a file's parts between blank lines, without comments.
func paragraphs(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		var kept []string
		for line := range strings.Lines(paragraph) {
			if !strings.HasPrefix(line, "--") {
				kept = append(kept, line)
			}
		}
		if len(kept) > 0 {
			found = append(found, strings.Join(kept, ""))
		}
	}
	return found
}

var uniqueCount counter

// with is the world in the hands of a subtest.
func (w *statementWorld) with(t *testing.T) *statementWorld {
	t.Helper()
	f := *w.fixture
	f.t = t
	mine := *w
	mine.fixture = &f
	mine.unique = fmt.Sprintf("%s-%d", w.schema, uniqueCount.next())
	for _, s := range w.sides {
		s.session.t = t
		if err := s.session.SetTimeout(rawTimeout); err != nil {
			t.Fatal(err)
		}
	}
	return &mine
}

// statementCapabilities are what the list's clients tell that they understand.
const statementCapabilities = wire.ClientLocalFiles | clientMultiResults | clientPSMultiResults

// session is a new session at addr.
func (w *statementWorld) session(addr, schema string) *rawClient {
	w.t.Helper()
	f := *w.fixture
	f.schema = schema
	c, answer := f.loginAt(addr, statementCapabilities)
	if answer[0] != wire.HeaderOK {
		c.wantError(answer, 0)
	}
	return c
}

// restore puts the rows of a schema back, and makes file and leases ready.
func (w *statementWorld) restore(schema, file, leases string, before []string) {
	w.t.Helper()
	if file != "" {
		if err := os.WriteFile(w.file, []byte(file), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	s := w.sides[schema]
	if !s.pristine {
		s.session.must(w.rows)
	}
	s.session.must(leases)
	s.pristine = false
	for _, statement := range before {
		s.session.must(w.fill(statement, schema))
	}
	s.start = w.pristine
	if before != nil {
		s.start = w.contents(schema)
	}
}

func (w *statementWorld) fill(text, schema string) string {
	return fill(text, schema, w.file, w.unique)
}

// undo takes back what rows.sql does not, by way of the proxy where there is one, so
// that it knows what views and programs there are.
func (w *statementWorld) undo(schema string, statements []string) {
	w.t.Helper()
	if statements == nil {
		return
	}
	c := w.sides[schema].session
	if schema == w.schema {
		c = w.session(w.addr, schema)
		defer func() { _ = c.Conn.Close() }()
	}
	for _, statement := range statements {
		c.must(w.fill(statement, schema))
	}
}

// readContents builds the statement that reads all that the tables of a schema have:
// its tables' names, and their rows as text. Of the lease table it reads what tests
// do not set; of a versioned table the history too.
func readContents(t testing.TB, session *rawClient) string {
	t.Helper()
	tables := session.ask("SELECT table_name, GROUP_CONCAT('QUOTE(`', column_name, '`)' ORDER BY ordinal_position)"+
		" FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)"+
		" WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name NOT LIKE 'fenced_job_leases%' GROUP BY table_name", "")
	if e := tables.failure(); e != nil {
		t.Fatal(e)
	}
	parts := []string{
		"SELECT 'table', table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
		"SELECT 'lease', CONCAT_WS(',', QUOTE(lease_name), QUOTE(metadata)) FROM fenced_job_leases",
		"SELECT 'ledger', CONCAT_WS(',', id, amount, row_end > '2038-01-01') FROM ledger FOR SYSTEM_TIME ALL",
	}
	for _, row := range tables[0].rows {
		c := wire.NewCursor([]byte(row))
		name, columns := c.String(), c.String()
		parts = append(parts, fmt.Sprintf("SELECT '%[1]s', CONCAT_WS(',', %[2]s) FROM `%[1]s`", name, columns))
	}
	return strings.Join(parts, " UNION ALL ") + " ORDER BY 1, 2"
}

// contents is all that the tables of a schema have.
func (w *statementWorld) contents(schema string) string {
	w.t.Helper()
	r := w.sides[schema].session.ask(w.reading, "")
	if e := r.failure(); e != nil {
		w.t.Fatal(e)
	}
	var b strings.Builder
	for _, row := range r[0].rows {
		c := wire.NewCursor([]byte(row))
		fmt.Fprintf(&b, "%s: %s\n", c.String(), c.String())
	}
	return b.String()
}

// identity is what a session says of itself, and what the leases say.
type identity struct {
	name string
	// reason is that of a rejection, "" for the holder.
	reason string
	// message is part of what the client is told.
	message string
	// set gives the session its identity; leases makes them what they are.
	set, leases string
}

const (
	setIdentity = "SET @fence_owner = 'A', @fence_token = 7"
	makeLeases  = "REPLACE INTO fenced_job_leases (lease_name, owner_token, fence_token, leased_until) VALUES" +
		" ('" + leaseName + "', '%[1]s', %[2]d, NOW(3) + INTERVAL %[3]d SECOND), ('" + otherLease + "', '%[1]s', %[2]d, NOW(3) + INTERVAL %[3]d SECOND)"
)

var identities = []identity{
	{"current", "", "", setIdentity, fmt.Sprintf(makeLeases, "A", 7, 3600)},
	{"stale", "stale_token", "stale token 7, lease 'admin:", setIdentity, fmt.Sprintf(makeLeases, "B", 8, 3600)},
	{"expired", "expired", "(owner A, token 7) expired at ", setIdentity, fmt.Sprintf(makeLeases, "A", 7, -2)},
	{"unfenced", "unfenced", "the session has no identity", "DO 0", fmt.Sprintf(makeLeases, "A", 7, 3600)},
}

// counts are the proxy's counters of statements: "passed", "guarded table plan" and
// "rejected table plan reason".
func (w *statementWorld) counts() map[string]int {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, family := range families {
		what, ok := strings.CutPrefix(family.GetName(), "fenceproxy_")
		what, isCount := strings.CutSuffix(what, "_statements_total")
		if !ok || !isCount {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := make(map[string]string)
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = strings.TrimPrefix(l.GetValue(), w.schema+".")
			}
			key := strings.TrimRight(fmt.Sprintf("%s %s|%s|%s", what, labels["table"], labels["plan"], labels["reason"]), "|")
			counts[strings.TrimSpace(key)] = int(metric.GetCounter().GetValue())
		}
	}
	return counts
}

// counted is what has been added since before.
func (w *statementWorld) counted(before map[string]int) map[string]int {
	w.t.Helper()
	added := w.counts()
	for key, n := range before {
		if added[key] -= n; added[key] == 0 {
			delete(added, key)
		}
	}
	return added
}
