package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
)

func TestCheckOnlineFindsWhatGuardsNeed(t *testing.T) {
	server, db := openServer(t)
	root := server.DSN("app")
	as := func(user string) string { return strings.Replace(root, "root@", user+"@", 1) }

	empty := cli{t: t, config: configFor(t, root)}
	r := empty.want(exitFailed, "fenceproxy: 2 checks failed", "check", "--online")
	for _, want := range []string{"FAIL  lease table app.fenced_job_leases: ", "FAIL  protected table app.runs (line 6) does not exist, or 'root'@'"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("lacks %q:\n%s", want, r.out)
		}
	}

	empty.must("migrate", "up")
	execSQL(t, db, `
		CREATE TABLE app.runs (id INT PRIMARY KEY) ENGINE=InnoDB;
		CREATE TABLE app.old (id INT PRIMARY KEY) ENGINE=MyISAM;
		CREATE VIEW app.seen AS SELECT * FROM app.runs;
		CREATE USER proxy@'%'; GRANT SELECT ON app.runs TO proxy@'%';
		GRANT SELECT, INSERT, UPDATE ON app.fenced_job_leases TO proxy@'%';
		GRANT SHOW VIEW, TRIGGER, EVENT ON *.* TO proxy@'%'; GRANT SELECT ON mysql.proc TO proxy@'%'; GRANT SELECT ON app.seen TO proxy@'%';
		CREATE USER half@'%'; GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* TO half@'%';
		CREATE USER blind@'%'; GRANT SELECT, INSERT, UPDATE ON app.fenced_job_leases TO blind@'%';
		CREATE USER none@'%'; GRANT SELECT, UPDATE ON app.runs TO none@'%';
		CREATE USER three@'%'; GRANT SELECT (lease_name, owner_token, fence_token) ON app.fenced_job_leases TO three@'%';
		CREATE USER four@'%'; GRANT SELECT (lease_name, owner_token, fence_token, leased_until) ON app.fenced_job_leases TO four@'%';
		CREATE USER tab@'10.0.0.%'; GRANT SELECT ON app.fenced_job_leases TO tab@'10.0.0.%';
		CREATE USER pat@'%'; GRANT SELECT ON `+"`ap_`"+`.* TO pat@'%';
		CREATE USER every@'%'; GRANT SELECT ON *.* TO every@'%';
		CREATE ROLE reader; GRANT SELECT ON app.* TO reader; CREATE ROLE worker; GRANT reader TO worker;
		CREATE USER rolled@'%'; GRANT worker TO rolled@'%'; SET DEFAULT ROLE worker FOR rolled@'%';
		CREATE USER idle@'%'; GRANT worker TO idle@'%';`)

	tests := []struct {
		name, dsn string
		tables    []string
		accounts  []string
		failures  int
		want      []string
	}{
		{"all is well", as("proxy"), nil, nil, 0, []string{
			"ok    server MariaDB 1", "ok    lease table app.fenced_job_leases\n", "ok    protected table app.runs\n",
			"ok    control account 'proxy'@'%' may SELECT, INSERT, UPDATE on app.fenced_job_leases\n",
			"ok    backend " + server.Addr() + " is the server of control.dsn\n", "ok    catalogue: 1 views, ",
		}},
		{"a view", root, []string{"app.seen"}, nil, 1, []string{
			"FAIL  protected table app.seen (line 6) is a view: protect the tables behind it\n",
		}},
		{"another engine", root, []string{"app.runs", "app.old"}, nil, 1, []string{
			"ok    protected table app.runs\n",
			"FAIL  protected table app.old (line 7) has engine MyISAM, which neither locks rows nor rolls back\n",
			"      ALTER TABLE `app`.`old` ENGINE=InnoDB;\n",
		}},
		{"a name in another case", root, []string{"app.Runs"}, nil, 1, []string{"FAIL  protected table app.Runs (line 6) does not exist"}},
		{"a control account that may only read", as("half"), nil, nil, 1, []string{
			"FAIL  control account 'half'@'%' may not INSERT, UPDATE on app.fenced_job_leases\n",
			"      GRANT INSERT, UPDATE ON `app`.`fenced_job_leases` TO 'half'@'%';\n",
		}},
		{"a control account that cannot see a protected table", as("blind"), nil, nil, 3, []string{
			"FAIL  protected table app.runs (line 6) does not exist, or 'blind'@'%' may not see it\n",
			"      if it exists: GRANT SELECT ON `app`.`runs` TO 'blind'@'%';\n",
			"FAIL  catalogue: triggers, foreign keys and views of schema app may be hidden\n      GRANT TRIGGER ON `app`.* TO `blind`@`%`;\n",
			"FAIL  catalogue: routines of schema app, or what they do, may be hidden\n      GRANT SELECT ON `mysql`.`proc` TO `blind`@`%`;\n",
			"WARN  catalogue: events of some schemas may be hidden\n      GRANT EVENT ON *.* TO `blind`@`%`;\n",
		}},
		{"a control account that cannot see grants", as("proxy"), nil, []string{"none@%"}, 1, []string{
			"FAIL  account 'none'@'%': 'proxy'@'%' may not read the mysql schema, so its grants cannot be seen\n",
			"GRANT SELECT ON `app`.`fenced_job_leases` TO 'none'@'%';\n",
		}},
		{"an account without a grant", root, nil, []string{"none@%"}, 1, []string{
			"FAIL  account 'none'@'%' may not SELECT on app.fenced_job_leases, where its guards read\n",
			"      GRANT SELECT ON `app`.`fenced_job_leases` TO 'none'@'%';\n",
		}},
		{"an account that does not exist", root, nil, []string{"none@localhost"}, 1, []string{"FAIL  account 'none'@'localhost' does not exist\n"}},
		{"a grant on three of the four columns", root, nil, []string{"three@%"}, 1, []string{"FAIL  account 'three'@'%' may not SELECT"}},
		{"a role that is not the default", root, nil, []string{"idle@%"}, 1, []string{"FAIL  account 'idle'@'%' may not SELECT"}},
		{"grants of every level", root, nil, []string{"four@%", "'tab'@'10.0.0.%'", "pat@%", "every@%", "half@%", "rolled@%"}, 0, []string{
			"ok    account 'four'@'%' may", "ok    account 'tab'@'10.0.0.%' may", "ok    account 'pat'@'%' may",
			"ok    account 'every'@'%' may", "ok    account 'half'@'%' may", "ok    account 'rolled'@'%' may",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := []string{"check", "--online"}
			for _, a := range tt.accounts {
				args = append(args, "--app-user", a)
			}
			status, complaint := exitOK, ""
			switch {
			case tt.failures == 1:
				status, complaint = exitFailed, "fenceproxy: one check failed\n"
			case tt.failures > 1:
				status, complaint = exitFailed, fmt.Sprintf("fenceproxy: %d checks failed\n", tt.failures)
			}
			r := cli{t: t, config: configFor(t, tt.dsn, tt.tables...)}.want(status, complaint, args...)
			for _, want := range tt.want {
				if !strings.Contains(r.out, want) {
					t.Errorf("lacks %q:\n%s", want, r.out)
				}
			}
		})
	}

	t.Run("the remedy puts it right", func(t *testing.T) {
		execSQL(t, db, "GRANT SELECT ON `app`.`fenced_job_leases` TO 'none'@'%';")
		cli{t: t, config: configFor(t, root)}.must("check", "--online", "--app-user", "none@%")
	})
	t.Run("a grant to everybody", func(t *testing.T) {
		execSQL(t, db, "GRANT SELECT ON app.fenced_job_leases TO PUBLIC")
		cli{t: t, config: configFor(t, root)}.must("check", "--online", "--app-user", "three@%")
	})
}

func TestCheckOnlineTellsAnotherServerBehindTheBackendsAddress(t *testing.T) {
	server, db := openServer(t)
	other := dbtest.New(t)
	c := cli{t: t, config: configFor(t, server.DSN("app"))}
	c.must("migrate", "up")
	execSQL(t, db, "CREATE TABLE app.runs (id INT PRIMARY KEY)")
	text, err := os.ReadFile(c.config)
	if err != nil {
		t.Fatal(err)
	}
	to := func(address string) cli {
		return cli{t: t, config: writeFile(t, strings.Replace(string(text), fmt.Sprintf("address: %q", server.Addr()), fmt.Sprintf("address: %q", address), 1))}
	}
	want := "FAIL  backend " + other.Addr() + " is another server than root@tcp(" + server.Addr() + ")/app (control.dsn): leases would be read where no guard looks\n"
	if r := to(other.Addr()).want(exitFailed, "one check failed", "check", "--online"); !strings.Contains(r.out, want) {
		t.Errorf("lacks %q:\n%s", want, r.out)
	}
	want = "ok    backend unix:" + server.Socket() + " is the server of control.dsn\n"
	if out := to("unix:"+server.Socket()).must("check", "--online"); !strings.Contains(out, want) {
		t.Errorf("lacks %q:\n%s", want, out)
	}
	if err := other.Stop(); err != nil {
		t.Fatal(err)
	}
	want = "WARN  backend " + other.Addr() + ": the control account cannot log in there"
	if out := to(other.Addr()).must("check", "--online"); !strings.Contains(out, want) {
		t.Errorf("lacks %q:\n%s", want, out)
	}
}

func TestCheckOnlineWarnsOfWritesThatNoGuardStandsBefore(t *testing.T) {
	server, db := openServer(t)
	c := cli{t: t, config: configFor(t, server.DSN("app"))}
	c.must("migrate", "up")
	execSQL(t, db, `CREATE TABLE app.runs (id INT PRIMARY KEY); CREATE TABLE app.log (id INT) ENGINE=MyISAM;
		CREATE TABLE app.door (id INT) ENGINE=MRG_MyISAM UNION=(app.log);
		CREATE EVENT app.sweep ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' DO DELETE FROM app.runs;
		CREATE EVENT app.idle ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM app.runs WHERE id = 'x';
		CREATE EVENT app.other ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' DO DELETE FROM app.log;`)
	out := c.must("check", "--online")
	for _, want := range []string{
		"WARN  event app.sweep may write app.runs: the server runs it by itself, so no guard stands before it\n",
		"WARN  event app.idle (not enabled) may write app.runs: ",
		"WARN  table app.door has engine MRG_MyISAM: if it leads to a protected table, no guard stands before writes of it\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "app.other") {
		t.Errorf("warns of an event that writes another table:\n%s", out)
	}
}

// The grants that check demands are those that the server demands.
func TestSelectOnTheLeaseTableIsAllThatGuardsNeed(t *testing.T) {
	server, db := openServer(t)
	cli{t: t, config: configFor(t, server.DSN("app"))}.must("migrate", "up")
	execSQL(t, db, `CREATE TABLE app.runs (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;
		CREATE USER app@'%'; GRANT SELECT, UPDATE ON app.runs TO app@'%';`)
	account := openAs(t, server, "app")
	guards := []string{
		"UPDATE app.runs r JOIN app.fenced_job_leases f ON f.lease_name = 'x' AND f.leased_until > CURRENT_TIMESTAMP(3) SET r.n = 1",
		"UPDATE app.runs SET n = 1 WHERE EXISTS (SELECT 1 FROM app.fenced_job_leases WHERE lease_name = 'x' LOCK IN SHARE MODE)",
		"SELECT 1 FROM app.fenced_job_leases WHERE lease_name = 'x' LIMIT 1 LOCK IN SHARE MODE",
	}
	for _, g := range guards {
		if _, err := account.Exec(g); !isDenied(err) {
			t.Errorf("without the grant: %v for %s", err, g)
		}
	}
	execSQL(t, db, "GRANT SELECT ON app.fenced_job_leases TO app@'%'")
	for _, g := range guards {
		if _, err := account.Exec(g); err != nil {
			t.Errorf("with the grant: %v for %s", err, g)
		}
	}
}
