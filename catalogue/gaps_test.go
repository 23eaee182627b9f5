package catalogue_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/catalogue"
	"github.com/fenceproxy/fenceproxy/internal/dbtest"
)

// openAs opens a pool for an account without a password.
func openAs(t *testing.T, server *dbtest.Server, user string) *sql.DB {
	t.Helper()
	c, err := mysql.ParseDSN(server.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	c.User = user
	db, err := sql.Open("mysql", c.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// world is a server with one object of each kind in app, whose tables are
// protected, and in other.
func world(t *testing.T) (*dbtest.Server, *sql.DB) {
	t.Helper()
	server := dbtest.New(t)
	db := server.Open(t, "")
	for _, schema := range []string{"a_pp", "other"} {
		execute(
			t, db,
			"CREATE DATABASE "+schema, "USE "+schema,
			"CREATE TABLE runs (id INT PRIMARY KEY, p INT UNIQUE)",
			"CREATE TABLE child (x INT, CONSTRAINT k FOREIGN KEY (x) REFERENCES a_pp.runs (p) ON UPDATE CASCADE)",
			"CREATE VIEW v AS SELECT id FROM a_pp.runs",
			"CREATE TRIGGER t AFTER INSERT ON runs FOR EACH ROW DELETE FROM child",
			"CREATE PROCEDURE p() UPDATE a_pp.runs SET p = 1",
			"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM a_pp.runs",
		)
	}
	return server, db
}

// seen counts what of the world an account sees with its text.
func seen(t *testing.T, db *sql.DB) map[string]int {
	t.Helper()
	c := read(t, db)
	n := map[string]int{"keys": len(keysOf(c)), "events": len(inspect(t, db).Events)}
	for _, v := range viewsOf(c) {
		if v.Definition != "" {
			n["views"]++
		}
	}
	for _, tr := range triggersOf(c) {
		if tr.Body.Text != "" {
			n["triggers"]++
		}
	}
	for _, r := range routinesOf(c) {
		if r.Body.Text != "" {
			n["routines"]++
		}
	}
	return n
}

func TestAnAccountWithTheGrantsOfTheManualMissesNothing(t *testing.T) {
	server, db := world(t)
	all := map[string]int{"keys": 2, "events": 2, "views": 2, "triggers": 2, "routines": 2}
	for name, grants := range map[string][]string{
		"everything":        {"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* TO proxy@'%'"},
		"all privileges":    {"GRANT ALL PRIVILEGES ON *.* TO proxy@'%'"},
		"without user data": {"GRANT SHOW VIEW, TRIGGER, EVENT ON *.* TO proxy@'%'", "GRANT SELECT ON mysql.proc TO proxy@'%'", "GRANT SELECT ON a_pp.v TO proxy@'%'", "GRANT SELECT ON other.v TO proxy@'%'"},
		"a role and everybody's": {
			"CREATE ROLE inner_role", "GRANT TRIGGER, EVENT ON *.* TO inner_role", "CREATE ROLE reader", "GRANT inner_role TO reader", "GRANT SELECT ON mysql.* TO reader",
			"GRANT reader TO proxy@'%'", "SET DEFAULT ROLE reader FOR proxy@'%'", "GRANT SELECT, SHOW VIEW ON a_pp.* TO PUBLIC", "GRANT SELECT, SHOW VIEW ON other.* TO PUBLIC",
		},
	} {
		t.Run(name, func(t *testing.T) {
			execute(t, db, append([]string{"CREATE OR REPLACE USER proxy@'%'"}, grants...)...)
			// MariaDB 10.11 forgets what a role inherits when it is granted more,
			// until the grants are read again.
			execute(t, db, "FLUSH PRIVILEGES")
			proxy := openAs(t, server, "proxy")
			if got := seen(t, proxy); !equal(got, all) {
				t.Errorf("sees %v, want %v", got, all)
			}
			if gaps := inspect(t, proxy, "a_pp").Gaps; len(gaps) > 0 {
				t.Errorf("gaps %+v", gaps)
			}
		})
	}
}

func equal(a, b map[string]int) bool {
	for k := range b {
		if a[k] != b[k] {
			return false
		}
	}
	return true
}

func TestGapsAreReportedWithWhatClosesThem(t *testing.T) {
	server, db := world(t)
	const (
		near   = "triggers, foreign keys and views of schema a_pp may be hidden"
		far    = "triggers, foreign keys and views of some schemas may be hidden"
		near2  = "routines of schema a_pp, or what they do, may be hidden"
		far2   = "routines of some schemas, or what they do, may be hidden"
		view   = "the definitions of these views of schema a_pp are hidden: v"
		view2  = "the definitions of these views of schema other are hidden: v"
		events = "events of some schemas may be hidden"
	)
	tests := []struct {
		name   string
		grants []string
		gaps   []string
		sees   map[string]int
	}{
		{"nothing", nil, []string{near, far, near2, far2, events}, map[string]int{"keys": 0, "views": 0, "triggers": 0, "routines": 0, "events": 0}},
		{
			"SELECT shows routines and no keys",
			[]string{"SELECT ON *.*"},
			[]string{near, far, view, view2, events},
			map[string]int{"keys": 0, "views": 0, "triggers": 0, "routines": 2, "events": 0},
		},
		{
			"TRIGGER shows keys, too",
			[]string{"TRIGGER ON *.*"},
			[]string{near2, far2, view, view2, events},
			map[string]int{"keys": 2, "views": 0, "triggers": 2, "routines": 0, "events": 0},
		},
		{
			"a definition takes SELECT and SHOW VIEW",
			[]string{"TRIGGER, SHOW VIEW, EVENT ON *.*", "SELECT ON mysql.*", "SELECT ON other.v"},
			[]string{view},
			map[string]int{"keys": 2, "views": 1, "triggers": 2, "routines": 2, "events": 2},
		},
		{
			"the schema of protected tables alone",
			[]string{"TRIGGER, SELECT, SHOW VIEW, EVENT ON `a\\_pp`.*", "SELECT ON mysql.proc"},
			[]string{far, events},
			map[string]int{"keys": 1, "views": 1, "triggers": 1, "routines": 2, "events": 1},
		},
		{
			"a pattern",
			[]string{"TRIGGER, SELECT, SHOW VIEW ON `a%`.*", "SELECT ON mysql.proc"},
			[]string{far, events},
			map[string]int{"keys": 1, "views": 1, "triggers": 1},
		},
		{
			"a nearer pattern takes the place of another",
			[]string{"TRIGGER ON `a%`.*", "SELECT, SHOW VIEW ON `a_pp`.*", "SELECT ON mysql.proc"},
			[]string{near, far, events},
			map[string]int{"keys": 1, "views": 1, "triggers": 0},
		},
		{
			"the pattern whose wildcard comes last counts",
			[]string{"SELECT, SHOW VIEW ON `a\\_p%`.*", "TRIGGER ON `a%`.*", "SELECT ON mysql.proc"},
			[]string{near, far, events},
			map[string]int{"views": 1, "triggers": 0},
		},
		{
			"and so in the other order",
			[]string{"SELECT, SHOW VIEW ON `a%`.*", "TRIGGER ON `a\\_p%`.*", "SELECT ON mysql.proc"},
			[]string{far, view, events},
			map[string]int{"views": 0, "triggers": 1},
		},
		{
			"EXECUTE shows names",
			[]string{"TRIGGER, SHOW VIEW, EXECUTE, EVENT ON *.*", "SELECT ON a_pp.v", "SELECT ON other.v"},
			[]string{near2, far2},
			map[string]int{"routines": 0, "views": 2},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			execute(t, db, "CREATE OR REPLACE USER proxy@'%'")
			for _, g := range tt.grants {
				execute(t, db, "GRANT "+g+" TO proxy@'%'")
			}
			proxy := openAs(t, server, "proxy")
			report := inspect(t, proxy, "a_pp")
			compare(t, problems(report.Gaps), tt.gaps)
			for _, g := range report.Near() {
				if g.Schema != "a_pp" || slices.Contains([]string{far, far2, view2, events}, g.Problem) {
					t.Errorf("%+v is said to be in the schema of a protected table", g)
				}
			}
			if got := seen(t, proxy); !equal(got, tt.sees) {
				t.Errorf("sees %v, want %v", got, tt.sees)
			}

			// Closing those of the protected schema, and then the others.
			closeGaps(t, db, report.Near())
			again := inspect(t, openAs(t, server, "proxy"), "a_pp")
			// What a new grant lists may have a definition that is hidden.
			closeGaps(t, db, again.Near())
			again = inspect(t, openAs(t, server, "proxy"), "a_pp")
			compare(t, problems(again.Near()), nil)
			if got := seen(t, openAs(t, server, "proxy")); got["triggers"] == 0 || got["views"] == 0 || got["keys"] == 0 || got["routines"] != 2 {
				t.Errorf("with the near gaps closed it sees %v", got)
			}
			for range 2 {
				closeGaps(t, db, again.Far())
				again = inspect(t, openAs(t, server, "proxy"), "a_pp")
			}
			compare(t, problems(again.Gaps), nil)
			all := map[string]int{"keys": 2, "events": 2, "views": 2, "triggers": 2, "routines": 2}
			if got := seen(t, openAs(t, server, "proxy")); !equal(got, all) {
				t.Errorf("with all gaps closed it sees %v", got)
			}
		})
	}
}

func problems(gaps []catalogue.Gap) []string {
	var all []string
	for _, g := range gaps {
		all = append(all, g.Problem)
	}
	return all
}

func closeGaps(t *testing.T, db *sql.DB, gaps []catalogue.Gap) {
	t.Helper()
	for _, g := range gaps {
		if len(g.Remedies) == 0 {
			t.Errorf("%+v has no remedy", g)
		}
		execute(t, db, g.Remedies...)
	}
}

func TestManyHiddenViewsAreOneGrant(t *testing.T) {
	server, db := world(t)
	for _, name := range []string{"a", "b", "c", "d", "f"} {
		execute(t, db, "CREATE VIEW other."+name+" AS SELECT id FROM a_pp.runs")
	}
	execute(t, db, "CREATE USER proxy@'%'", "GRANT TRIGGER, SHOW VIEW, EVENT ON *.* TO proxy@'%'", "GRANT SELECT ON mysql.proc TO proxy@'%'")
	report := inspect(t, openAs(t, server, "proxy"), "a_pp")
	compare(t, report.Far(), []catalogue.Gap{{
		Problem: "the definitions of 6 views of schema other are hidden", Remedies: []string{"GRANT SELECT, SHOW VIEW ON `other`.* TO `proxy`@`%`;"},
	}})
	closeGaps(t, db, report.Gaps)
	compare(t, inspect(t, openAs(t, server, "proxy"), "a_pp").Gaps, nil)
}

func TestTheServerItsEventsAndItsDoorsAreReported(t *testing.T) {
	server := dbtest.New(t, "--lower-case-table-names=1")
	db := server.Open(t, "")
	execute(
		t, db,
		"CREATE DATABASE app", "CREATE TABLE app.m (i INT) ENGINE=MyISAM", "CREATE TABLE app.door (i INT) ENGINE=MRG_MyISAM UNION=(app.m) INSERT_METHOD=LAST",
		"CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM app.m",
		"CREATE USER proxy@'%'", "GRANT SELECT, SHOW VIEW, TRIGGER ON app.* TO proxy@'%'", "GRANT SELECT ON mysql.proc TO proxy@'%'",
	)
	r := inspect(t, db)
	if !r.Server.MariaDB || !strings.Contains(r.Server.Version, "MariaDB") || r.Server.LowerCaseTableNames != 1 || r.Server.Account != "`root`@`127.0.0.1`" {
		t.Errorf("server %+v", r.Server)
	}
	compare(t, r.Remote, []catalogue.RemoteTable{{Name: table("app", "door"), Engine: "MRG_MyISAM"}})
	compare(t, r.Events, []catalogue.Event{{Name: table("app", "e"), Enabled: true, Body: body("DELETE FROM app.m", 0)}})
	// Grants are compared as the server compares names.
	compare(t, inspect(t, openAs(t, server, "proxy"), "APP").Near(), nil)
}
