package migrations_test

import (
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/migrations"
)

const table = "app.fenced_job_leases"

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func definition(t *testing.T, db *sql.DB) string {
	t.Helper()
	var name, text string
	if err := db.QueryRow("SHOW CREATE TABLE "+table).Scan(&name, &text); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestUpMakesTheTableOnceWhateverTheSessionIsSetTo(t *testing.T) {
	server := dbtest.New(t)
	root := open(t, server.DSN(""))
	first := ""
	for _, settings := range []string{
		"sql_mode=''",
		"sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
		"sql_mode='TRADITIONAL'&time_zone='-11:00'",
		"sql_mode='ORACLE'",
		"explicit_defaults_for_timestamp=0",
	} {
		exec(t, root, "DROP DATABASE IF EXISTS app", "CREATE DATABASE app")
		parameters := ""
		for s := range strings.SplitSeq(settings, "&") {
			name, value, _ := strings.Cut(s, "=")
			parameters += "&" + name + "=" + url.QueryEscape(value)
		}
		db := open(t, server.DSN("")+"?"+parameters[1:])
		applied, err := migrations.Up(t.Context(), db, table)
		if err != nil || len(applied) != 1 || applied[0].Version != 1 {
			t.Fatalf("%s: applied %v, %v", settings, applied, err)
		}
		made := definition(t, root)
		if first == "" {
			first = made
		}
		if made != first {
			t.Errorf("%s: the table differs:\n%s\n%s", settings, made, first)
		}
		exec(t, root, "INSERT INTO "+table+" (lease_name, owner_token, fence_token) VALUES ('a', 'A', 7)")
		again, err := migrations.Up(t.Context(), db, table)
		if err != nil || len(again) != 0 || definition(t, root) != made {
			t.Errorf("%s: the second time: applied %v, %v", settings, again, err)
		}
		var n int
		if err := root.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil || n != 1 {
			t.Errorf("%s: %d rows after the second time, %v", settings, n, err)
		}
	}
}

func TestStatusTellsWhatIsPending(t *testing.T) {
	server := dbtest.New(t)
	db := open(t, server.DSN(""))
	exec(t, db, "CREATE DATABASE app")
	before, err := migrations.Status(t.Context(), db, table)
	if err != nil || len(before) != 1 || !before[0].AppliedAt.IsZero() || before[0].Name != "lease_table" {
		t.Errorf("before: %v, %v", before, err)
	}
	if _, err := migrations.Up(t.Context(), open(t, server.DSN("")+"?parseTime=true"), table); err != nil {
		t.Fatal(err)
	}
	after, err := migrations.Status(t.Context(), open(t, server.DSN("")+"?parseTime=true"), table)
	if err != nil || after[0].AppliedAt.IsZero() {
		t.Errorf("after: %v, %v", after, err)
	}
}

func TestAForeignTableOfThatNameIsDescribed(t *testing.T) {
	server := dbtest.New(t)
	db := open(t, server.DSN(""))
	for _, tt := range []struct {
		name, change string
		want         []string
	}{
		{"column missing", "ALTER TABLE app.fenced_job_leases DROP COLUMN fence_token", []string{"column fence_token is missing, want bigint unsigned"}},
		{"other type", "ALTER TABLE app.fenced_job_leases MODIFY fence_token INT NOT NULL", []string{"column fence_token is int(11), want bigint unsigned"}},
		{"other collation", "ALTER TABLE app.fenced_job_leases MODIFY owner_token VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL", []string{"owner_token has the collation utf8mb4_general_ci, want utf8mb4_bin"}},
		{"nullable", "ALTER TABLE app.fenced_job_leases MODIFY leased_until TIMESTAMP(3) NULL", []string{"column leased_until may be NULL"}},
		{"on update", "ALTER TABLE app.fenced_job_leases MODIFY leased_until TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)", []string{"leased_until has ON UPDATE"}},
		{"no primary key", "ALTER TABLE app.fenced_job_leases DROP PRIMARY KEY", []string{"its primary key is (), want (lease_name)"}},
		{"other engine", "ALTER TABLE app.fenced_job_leases ENGINE=MyISAM", []string{"its engine is MyISAM, want InnoDB"}},
		{"everything", "CREATE OR REPLACE TABLE app.fenced_job_leases (id INT PRIMARY KEY) ENGINE=Aria", []string{"lease_name is missing", "leased_until is missing", "primary key is (id)", "engine is Aria"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exec(t, db, "DROP DATABASE IF EXISTS app", "CREATE DATABASE app")
			if _, err := migrations.Up(t.Context(), db, table); err != nil {
				t.Fatal(err)
			}
			exec(t, db, tt.change)
			for how, err := range map[string]error{"Verify": migrations.Verify(t.Context(), db, table), "Up": up(t, db)} {
				var e *migrations.TableError
				if !errors.As(err, &e) {
					t.Fatalf("%s: %v", how, err)
				}
				for _, want := range tt.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s does not say %q: %v", how, want, err)
					}
				}
			}
		})
	}
}

func up(t *testing.T, db *sql.DB) error {
	t.Helper()
	_, err := migrations.Up(t.Context(), db, table)
	return err
}

func TestFurtherColumnsAreATeamsOwn(t *testing.T) {
	server := dbtest.New(t)
	db := open(t, server.DSN(""))
	exec(t, db, "CREATE DATABASE app")
	if err := up(t, db); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "ALTER TABLE "+table+" ADD COLUMN team VARCHAR(20)")
	if err := up(t, db); err != nil {
		t.Error(err)
	}
}

func TestTwoLeaseTablesInOneSchema(t *testing.T) {
	server := dbtest.New(t)
	db := open(t, server.DSN(""))
	exec(t, db, "CREATE DATABASE app")
	for _, name := range []string{"app.one", "app.two"} {
		if applied, err := migrations.Up(t.Context(), db, name); err != nil || len(applied) != 1 {
			t.Errorf("%s: %v, %v", name, applied, err)
		}
	}
}

func TestMissingTablesAndBadNames(t *testing.T) {
	server := dbtest.New(t)
	db := open(t, server.DSN(""))
	if err := migrations.Verify(t.Context(), db, table); !errors.Is(err, migrations.ErrMissing) {
		t.Errorf("no table: %v", err)
	}
	for _, name := range []string{"", "leases", "app.`x`", "a.b.c", "app.x; DROP TABLE y"} {
		if _, err := migrations.Up(t.Context(), db, name); err == nil || !strings.Contains(err.Error(), "want schema.name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
