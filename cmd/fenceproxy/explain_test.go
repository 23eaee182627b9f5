package main

import (
	"slices"
	"strings"
	"testing"
)

const explainConfig = `listen: [127.0.0.1:3307]
backend: {address: 127.0.0.1:3306}
control: {dsn: "fenceproxy@tcp(127.0.0.1:3306)/app"}
lease_table: app.fenced_job_leases
protect:
  - {table: app.runs, lease: admin:reconciliation}
  - {table: app.plans, lease: "${session}"}
  - {table: app.watched, lease: watch, mode: observe}
`

func TestExplainShowsWhatIsSent(t *testing.T) {
	const joined = "JOIN `app`.`fenced_job_leases` AS __fence ON __fence.lease_name = "
	tests := []struct {
		name      string
		statement string
		flags     []string
		plan      string
		table     string
		lease     string
		mode      string
		reason    string
		sent      []string // how each begins
	}{
		{
			"a plain UPDATE", "UPDATE app.runs SET n = 1 WHERE id = 2", nil, "join", "app.runs", "admin:reconciliation", "enforce", "",
			[]string{"UPDATE app.runs " + joined + "'admin:reconciliation'"},
		},
		{
			"in the default database", "UPDATE runs SET n = 1 WHERE id = 2",
			[]string{"-d", "app"},
			"join", "app.runs", "admin:reconciliation", "enforce", "",
			[]string{"UPDATE runs " + joined},
		},
		{
			"in another default database", "UPDATE runs SET n = 1 WHERE id = 2",
			[]string{"-d", "other"},
			"pass", "", "", "", "",
			[]string{"UPDATE runs SET n = 1 WHERE id = 2"},
		},
		{
			"in another case where the server folds names", "UPDATE APP.Runs SET n = 1 WHERE id = 2",
			[]string{"--lower-case-table-names", "1"},
			"join", "app.runs", "admin:reconciliation", "enforce", "",
			[]string{"UPDATE APP.Runs " + joined},
		},
		{
			"with quoted names", `UPDATE "app"."runs" SET n = 1 WHERE id = 2`,
			[]string{"--sql-mode", "STRICT_ALL_TABLES,ANSI"},
			"join", "app.runs", "admin:reconciliation", "enforce", "",
			[]string{`UPDATE "app"."runs" ` + joined},
		},
		{
			"with the session's lease", "UPDATE app.plans SET n = 1 WHERE id = 2", nil, "join", "app.plans", "@fence_lease", "enforce", "",
			[]string{"UPDATE app.plans " + joined + "@fence_lease"},
		},
		{
			"a DELETE", "DELETE FROM app.runs WHERE id = 2", nil, "exists", "app.runs", "admin:reconciliation", "enforce", "",
			[]string{"DELETE FROM app.runs WHERE (id = 2) AND EXISTS (SELECT 1 FROM `app`.`fenced_job_leases` AS __fence WHERE "},
		},
		{
			"an INSERT", "INSERT INTO app.runs VALUES (1, 2)", nil, "bracket", "app.runs", "admin:reconciliation", "enforce", "",
			[]string{"START TRANSACTION", "SELECT 1 FROM `app`.`fenced_job_leases` AS __fence WHERE ", "INSERT INTO app.runs VALUES (1, 2)", "COMMIT AND NO CHAIN NO RELEASE"},
		},
		{"a TRUNCATE", "TRUNCATE app.runs", nil, "refuse", "app.runs", "admin:reconciliation", "enforce", "unsupported", nil},
		{"a SELECT", "SELECT * FROM app.runs", nil, "pass", "", "", "", "", []string{"SELECT * FROM app.runs"}},
		{"an observed table", "UPDATE app.watched SET n = 1", nil, "join", "app.watched", "watch", "observe", "", []string{"UPDATE app.watched SET n = 1"}},
	}
	c := cli{t: t, config: writeFile(t, explainConfig)}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c.t = t
			got := decode[explanation](t, c.must(append([]string{"explain", "-o", "json", tt.statement}, tt.flags...)...))
			if got.Plan != tt.plan || got.Table != tt.table || got.Lease != tt.lease || got.Mode != tt.mode || got.Reason != tt.reason {
				t.Errorf("got %+v", got)
			}
			if !slices.EqualFunc(got.Sent, tt.sent, strings.HasPrefix) {
				t.Errorf("sent %q, want %q and what follows", got.Sent, tt.sent)
			}
			if got.Why == "" && tt.plan != "pass" {
				t.Error("no reason why")
			}
			c.input = tt.statement + "\n"
			fromInput := decode[explanation](t, c.must(append([]string{"explain", "-o", "json", "-"}, tt.flags...)...))
			if !slices.Equal(fromInput.Sent, got.Sent) {
				t.Errorf("from standard input: %q", fromInput.Sent)
			}
		})
	}
}

func TestExplainForPeople(t *testing.T) {
	c := cli{t: t, config: writeFile(t, explainConfig)}
	refused := c.must("explain", "TRUNCATE app.runs")
	for _, want := range []string{"plan   refuse\nreason unsupported\nwhy    ", "table  app.runs\nlease  admin:reconciliation\nmode   enforce\n\nNothing is sent.\n"} {
		if !strings.Contains(refused, want) {
			t.Errorf("lacks %q:\n%s", want, refused)
		}
	}
	bracket := c.must("explain", "INSERT INTO app.runs VALUES (1);")
	for _, want := range []string{"\n\nSent (in a transaction of the client's without the first and the last):\n\nSTART TRANSACTION;\nSELECT 1 FROM ", ";\nINSERT INTO app.runs VALUES (1);\nCOMMIT AND NO CHAIN NO RELEASE;\n"} {
		if !strings.Contains(bracket, want) {
			t.Errorf("lacks %q:\n%s", want, bracket)
		}
	}
}
