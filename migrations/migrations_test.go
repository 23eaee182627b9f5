package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/migrations"
)

const table = "app.fenced_job_leases"

// server is shared by the tests; each begins with an empty schema app.
var server *dbtest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = dbtest.Start(context.Background(), dbtest.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// emptySchema makes the schema app anew.
func emptySchema(t *testing.T) *sql.DB {
	t.Helper()
	db := server.Open(t, "")
	exec(t, db, "DROP DATABASE IF EXISTS app", "CREATE DATABASE app")
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
	first := ""
	for _, settings := range []string{
		"sql_mode=''",
		"sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
		"sql_mode='TRADITIONAL'&time_zone='-11:00'",
		"sql_mode='ORACLE'",
		"explicit_defaults_for_timestamp=0",
	} {
		root := emptySchema(t)
		parameters := ""
		for s := range strings.SplitSeq(settings, "&") {
			name, value, _ := strings.Cut(s, "=")
			parameters += "&" + name + "=" + url.QueryEscape(value)
		}
		db := server.Open(t, "?"+parameters[1:])
		db.SetMaxOpenConns(1)
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

func TestStatusTellsWhatIsPendingAndMakesNothing(t *testing.T) {
	root := emptySchema(t)
	before, err := migrations.Status(t.Context(), root, table)
	if err != nil || len(before) != 1 || !before[0].AppliedAt.IsZero() || before[0].Name != "lease_table" {
		t.Errorf("before: %v, %v", before, err)
	}
	if n := tables(t, root); n != 0 {
		t.Errorf("asking made %d tables", n)
	}
	start := time.Now()
	if err := up(t, root); err != nil {
		t.Fatal(err)
	}
	for _, parameters := range []string{"", "?parseTime=true&loc=Asia%2FTokyo", "?time_zone=%27-11:00%27"} {
		after, err := migrations.Status(t.Context(), server.Open(t, parameters), table)
		if err != nil || len(after) != 1 {
			t.Fatalf("after, with %q: %v, %v", parameters, after, err)
		}
		if ago := after[0].AppliedAt.Sub(start); ago < -2*time.Second || ago > time.Minute {
			t.Errorf("with %q: applied at %v, want about %v", parameters, after[0].AppliedAt, start)
		}
	}
}

func tables(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAForeignTableIsLeftAloneAndCanMakeWay(t *testing.T) {
	db := emptySchema(t)
	exec(t, db, "CREATE TABLE "+table+" (id INT PRIMARY KEY)")
	var foreign *migrations.TableError
	if err := up(t, db); !errors.As(err, &foreign) {
		t.Fatalf("got %v, want the differences", err)
	}
	if n := tables(t, db); n != 1 {
		t.Errorf("%d tables in the schema, want the foreign one alone", n)
	}
	exec(t, db, "RENAME TABLE "+table+" TO app.theirs")
	if err := up(t, db); err != nil {
		t.Errorf("after it was renamed: %v", err)
	}
}

func TestATableMadeByHandIsAdopted(t *testing.T) {
	db := emptySchema(t)
	if err := up(t, db); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "DROP TABLE "+table+"_version")
	if err := up(t, db); err != nil {
		t.Error(err)
	}
}

func TestALeaseTableThatWasDroppedIsNotMadeAgainInSilence(t *testing.T) {
	db := emptySchema(t)
	if err := up(t, db); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "DROP TABLE "+table)
	err := up(t, db)
	if !errors.Is(err, migrations.ErrMissing) || !strings.Contains(err.Error(), "drop `app`.`fenced_job_leases_version` and migrate again") {
		t.Fatalf("got %v, want what to do", err)
	}
	exec(t, db, "DROP TABLE "+table+"_version")
	if err := up(t, db); err != nil {
		t.Errorf("after what it says: %v", err)
	}
}

func TestProgramsThatMigrateAtOnceTakeTurns(t *testing.T) {
	for range 5 {
		db := emptySchema(t)
		done := make(chan int)
		const programs = 8
		for range programs {
			go func() {
				applied, err := migrations.Up(t.Context(), db, table)
				if err != nil {
					t.Error(err)
				}
				done <- len(applied)
			}()
		}
		applied := 0
		for range programs {
			applied += <-done
		}
		if applied != 1 {
			t.Errorf("the migration was applied %d times", applied)
		}
	}
}

// The first attempt ended between two of its statements.
func TestUpCompletesWhatWasInterrupted(t *testing.T) {
	for _, undo := range [][]string{
		{"DELETE FROM " + table + "_version", "DROP TABLE " + table},
		{"DELETE FROM " + table + "_version WHERE version_id = 1", "DROP TABLE " + table},
		{"DELETE FROM " + table + "_version WHERE version_id = 1"},
	} {
		db := emptySchema(t)
		if err := up(t, db); err != nil {
			t.Fatal(err)
		}
		exec(t, db, undo...)
		if err := up(t, db); err != nil {
			t.Errorf("after %q: %v", undo, err)
		}
		status, err := migrations.Status(t.Context(), db, table)
		if err != nil || len(status) != 1 || status[0].AppliedAt.IsZero() {
			t.Errorf("after %q: status %v, %v", undo, status, err)
		}
	}
}

func TestAForeignTableOfThatNameIsDescribed(t *testing.T) {
	for _, tt := range []struct {
		name, change string
		want         []string
	}{
		{"column missing", "ALTER TABLE app.fenced_job_leases DROP COLUMN fence_token", []string{"column fence_token is missing, want bigint unsigned"}},
		{"other type", "ALTER TABLE app.fenced_job_leases MODIFY fence_token INT NOT NULL", []string{"column fence_token is int(11), want bigint unsigned"}},
		{"other collation", "ALTER TABLE app.fenced_job_leases MODIFY owner_token VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL", []string{"owner_token has the collation utf8mb4_general_ci, want utf8mb4_bin"}},
		{"nullable", "ALTER TABLE app.fenced_job_leases MODIFY leased_until TIMESTAMP(3) NULL", []string{"column leased_until: nullable is YES, want NO"}},
		{"not nullable", "ALTER TABLE app.fenced_job_leases MODIFY metadata VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL", []string{"column metadata: nullable is NO, want YES"}},
		{"on update", "ALTER TABLE app.fenced_job_leases MODIFY leased_until TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)", []string{"leased_until has ON UPDATE"}},
		{"no primary key", "ALTER TABLE app.fenced_job_leases DROP PRIMARY KEY", []string{"its primary key is (), want (lease_name)"}},
		{"other engine", "ALTER TABLE app.fenced_job_leases ENGINE=MyISAM", []string{"its engine is MyISAM, want InnoDB"}},
		{"everything", "CREATE OR REPLACE TABLE app.fenced_job_leases (id INT PRIMARY KEY) ENGINE=Aria", []string{"lease_name is missing", "leased_until is missing", "primary key is (id)", "engine is Aria"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := emptySchema(t)
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
	db := emptySchema(t)
	if err := up(t, db); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "ALTER TABLE "+table+" ADD COLUMN team VARCHAR(20)")
	if err := up(t, db); err != nil {
		t.Error(err)
	}
}

func TestSeveralLeaseTablesAndNamesThatWantQuotes(t *testing.T) {
	db := emptySchema(t)
	exec(t, db, "DROP DATABASE IF EXISTS `system`", "CREATE DATABASE `system`")
	for _, name := range []string{"app.one", "app.two", "system.order", "app.1e5"} {
		if applied, err := migrations.Up(t.Context(), db, name); err != nil || len(applied) != 1 {
			t.Errorf("%s: %v, %v", name, applied, err)
		}
	}
}

func TestMissingTablesAndBadNames(t *testing.T) {
	db := emptySchema(t)
	if err := migrations.Verify(t.Context(), db, table); !errors.Is(err, migrations.ErrMissing) {
		t.Errorf("no table: %v", err)
	}
	for _, name := range []string{"", "leases", "app.`x`", "a.b.c", "app.x; DROP TABLE y"} {
		if _, err := migrations.Up(t.Context(), db, name); err == nil || !strings.Contains(err.Error(), "want schema.name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
