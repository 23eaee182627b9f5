package catalogue_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/fenceproxy/fenceproxy/catalogue"
	"github.com/fenceproxy/fenceproxy/internal/dbtest"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// execute runs statements on one connection of their own, so that what they set holds
// for those behind them.
func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
	}()
	for _, s := range statements {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func read(t *testing.T, db *sql.DB) rewrite.Catalogue {
	t.Helper()
	c, err := catalogue.New(db).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func table(schema, name string) rewrite.Table { return rewrite.Table{Schema: schema, Name: name} }

// others is what of all is in none of the server's own schemas, in the order of names.
func others[T any](all []T, name func(T) rewrite.Table) []T {
	system := []string{"mysql", "sys"}
	all = slices.DeleteFunc(slices.Clone(all), func(v T) bool { return slices.Contains(system, name(v).Schema) })
	slices.SortFunc(all, func(a, b T) int { return cmp.Compare(name(a).String(), name(b).String()) })
	return all
}

func routinesOf(c rewrite.Catalogue) []rewrite.Routine {
	return others(c.Routines, func(r rewrite.Routine) rewrite.Table { return r.Name })
}

func triggersOf(c rewrite.Catalogue) []rewrite.Trigger {
	return others(c.Triggers, func(t rewrite.Trigger) rewrite.Table { return t.Name })
}

func viewsOf(c rewrite.Catalogue) []rewrite.View {
	return others(c.Views, func(v rewrite.View) rewrite.Table { return v.Name })
}

func keysOf(c rewrite.Catalogue) []rewrite.ForeignKey {
	return others(c.ForeignKeys, func(k rewrite.ForeignKey) rewrite.Table { return table(k.Child.Schema, k.Child.Name+"."+k.Name) })
}

func compare[T any](t *testing.T, got, want []T) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("lacks %+v", want[i])
		case i >= len(want):
			t.Errorf("has %+v", got[i])
		case !reflect.DeepEqual(got[i], want[i]):
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
}

func body(text string, mode rewrite.SQLMode) rewrite.Body {
	return rewrite.Body{Text: text, SQLMode: mode, Charset: "utf8mb4"}
}

// oracle is what MariaDB makes of sql_mode=ORACLE.
const oracle = rewrite.Oracle | rewrite.ANSIQuotes | rewrite.PipesAsConcat | rewrite.IgnoreSpace

func TestEveryKindOfObjectIsRead(t *testing.T) {
	// Whatever the server's own settings are.
	db := dbtest.New(t, "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "--character-set-server=latin1").Open(t, "")
	execute(
		t, db,
		"SET NAMES utf8mb4", "SET sql_mode = ''",
		"SET GLOBAL sql_select_limit = 1, sql_quote_show_create = 0",
		"CREATE DATABASE app", "CREATE DATABASE `select.ünd``zwei`",
		"CREATE TABLE app.runs (id INT PRIMARY KEY, n INT)",
		"CREATE TABLE `select.ünd``zwei`.`from.``x` (id INT PRIMARY KEY, `größe` INT)",
		"CREATE VIEW app.v AS SELECT id, n FROM app.runs WHERE n <> 'it''s\\\\'",
		"CREATE VIEW `select.ünd``zwei`.`table` AS SELECT `größe` FROM `select.ünd``zwei`.`from.``x`",
		"CREATE VIEW sys.added AS SELECT id FROM app.runs",
		"CREATE TRIGGER app.tr BEFORE INSERT ON app.runs FOR EACH ROW SET NEW.n = 1",
		"CREATE TRIGGER `select.ünd``zwei`.`ö` AFTER DELETE ON `select.ünd``zwei`.`from.``x` FOR EACH ROW BEGIN UPDATE app.runs SET n = 1; END",
		"CREATE PROCEDURE app.p(a INT) COMMENT 'UPDATE runs' UPDATE app.runs SET n = a",
		"CREATE PROCEDURE app.broken() UPDATE nothing.there SET n = 1",
		"CREATE FUNCTION `select.ünd``zwei`.`f.``g`() RETURNS INT BEGIN UPDATE app.runs SET n = 1; RETURN 2; END",
		"SET sql_mode = 'ORACLE'",
		"CREATE PACKAGE app.k AS PROCEDURE a; END",
		"CREATE PACKAGE BODY app.k AS PROCEDURE a AS BEGIN UPDATE app.runs SET n = 1; END; BEGIN UPDATE app.runs SET n = 2; END",
		"CREATE PACKAGE app.declared AS PROCEDURE a; END",
		"CREATE PROCEDURE app.o(a IN INT) AS x INT := 1; BEGIN UPDATE app.runs SET n = x; END",
	)
	c := read(t, db)
	zwei := "select.ünd`zwei"
	compare(t, viewsOf(c), []rewrite.View{
		{Name: table("app", "v"), Definition: "select `app`.`runs`.`id` AS `id`,`app`.`runs`.`n` AS `n` from `app`.`runs` where `app`.`runs`.`n` <> 'it\\'s\\\\'"},
		{Name: table(zwei, "table"), Definition: "select `select.ünd``zwei`.`from.``x`.`größe` AS `größe` from `select.ünd``zwei`.`from.``x`"},
	})
	if !slices.ContainsFunc(c.Views, func(v rewrite.View) bool { return v.Name == table("sys", "added") }) || len(c.Views) != 3 {
		t.Errorf("of the system schemas' views not only the added one is read: %d views", len(c.Views))
	}
	compare(t, triggersOf(c), []rewrite.Trigger{
		{Name: table("app", "tr"), On: table("app", "runs"), Event: rewrite.InsertRow, Body: body("SET NEW.n = 1", 0)},
		{Name: table(zwei, "ö"), On: table(zwei, "from.`x"), Event: rewrite.DeleteRow, Body: body("BEGIN UPDATE app.runs SET n = 1; END", 0)},
	})
	compare(t, routinesOf(c), []rewrite.Routine{
		{Name: table("app", "broken"), Kind: rewrite.Procedure, Body: body("UPDATE nothing.there SET n = 1", 0)},
		{Name: table("app", "declared"), Kind: rewrite.Package, Body: body("AS PROCEDURE a; END", oracle)},
		{Name: table("app", "k"), Kind: rewrite.Package, Body: body("AS PROCEDURE a AS BEGIN UPDATE app.runs SET n = 1; END; BEGIN UPDATE app.runs SET n = 2; END", oracle)},
		{Name: table("app", "o"), Kind: rewrite.Procedure, Body: body("AS x INT := 1; BEGIN UPDATE app.runs SET n = x; END", oracle)},
		{Name: table("app", "p"), Kind: rewrite.Procedure, Body: body("UPDATE app.runs SET n = a", 0)},
		{Name: table(zwei, "f.`g"), Kind: rewrite.Function, Body: body("BEGIN UPDATE app.runs SET n = 1; RETURN 2; END", 0)},
	})
	if !slices.ContainsFunc(c.Routines, func(r rewrite.Routine) bool {
		return r.Name == table("sys", "execute_prepared_stmt") && r.Body.Text != ""
	}) {
		t.Error("the routines of sys, some of which run any text, are left out")
	}
	for _, r := range c.Routines {
		if r.Body.Text == "" {
			t.Errorf("routine %s has no text", r.Name)
		}
	}
}

// information_schema prints literals so that a text can read differently: 'a\\' as
// 'a\'.
func TestBodiesAreAsTheirAuthorsWroteThem(t *testing.T) {
	db := dbtest.New(t).Open(t, "")
	execute(t, db, "CREATE DATABASE app", "CREATE TABLE app.runs (id INT PRIMARY KEY, n VARCHAR(9))")
	tests := []struct {
		name, charset, mode, text string
		reads                     rewrite.SQLMode
		want                      string // what is read; "" for text itself
	}{
		{"a literal that ends in a backslash", "utf8mb4", "", `BEGIN SET @a = 'x\\'; UPDATE app.runs SET n = 'y'; SET @b = 'z'; END`, 0, ""},
		{"every way to quote a quote", "utf8mb4", "", "BEGIN SET @a = 'it''s', @b = \"d\"\"q\", @c = 'a\\'b\\n\\\\c', @`a``b` = 'x' 'y''z'; END", 0, ""},
		{"a literal of several lines", "utf8mb4", "", "BEGIN SET @a = 'UPDATE\napp.runs SET n = 1'; END", 0, ""},
		{"words that the comment before it holds, too", "utf8mb4", "", "SELECT 'SELECT ''' INTO @a", 0, ""},
		{"literals with an introducer", "utf8mb4", "", "BEGIN SET @a = _latin1'x''\\\\', @b = n'y', @c = x'41'; END", 0, ""},
		{"NO_BACKSLASH_ESCAPES", "utf8mb4", "NO_BACKSLASH_ESCAPES", `BEGIN SET @a = 'x\', @b = 'y''\'; END`, rewrite.NoBackslashEscapes, ""},
		{"ANSI_QUOTES", "utf8mb4", "ANSI_QUOTES", "BEGIN SET @a = 'x''\"'; UPDATE \"app\".\"runs\" SET \"n\" = 'a\\\\'; END", rewrite.ANSIQuotes, ""},
		{"latin1", "latin1", "", "BEGIN SET @a = '\xe9''s\\'' /* \xe9 */, @`\xe9` = 1; END", 0, "BEGIN SET @a = 'é''s\\'' /* é */, @`é` = 1; END"},
		{"gbk, whose characters can end in a backslash", "gbk", "", "BEGIN SET @a = '\x81\x5c', @b = /* \x81\x5c */ 'x'; END", 0, "BEGIN SET @a = '乗', @b = /* 乗 */ 'x'; END"},
		{"comments", "utf8mb4", "", "BEGIN /* it's */ SET @a = 1; -- don't\n# \"\nUPDATE app.runs SET n = 1; END", 0, ""},
		{"a comment that is executed", "utf8mb4", "", "BEGIN /*!50000 UPDATE app.runs SET n = 'x' */; END", 0, "BEGIN  UPDATE app.runs SET n = 'x' ; END"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			execute(
				t, db,
				"SET NAMES "+tt.charset, "SET sql_mode = '"+tt.mode+"'",
				"CREATE OR REPLACE TRIGGER app.body BEFORE INSERT ON app.runs FOR EACH ROW "+tt.text,
				"CREATE OR REPLACE PROCEDURE app.body(a INT) COMMENT 'SELECT it''s' "+tt.text,
				"CREATE OR REPLACE EVENT app.body ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' DISABLE COMMENT 'it''s' DO "+tt.text,
			)
			want := body(tt.want, tt.reads)
			if tt.want == "" {
				want.Text = tt.text
			}
			c := read(t, db)
			compare(t, triggersOf(c), []rewrite.Trigger{{Name: table("app", "body"), On: table("app", "runs"), Event: rewrite.InsertRow, Body: want}})
			compare(t, routinesOf(c), []rewrite.Routine{{Name: table("app", "body"), Kind: rewrite.Procedure, Body: want}})
			compare(t, inspect(t, db).Events, []catalogue.Event{{Name: table("app", "body"), Body: want}})
		})
	}
}

func TestForeignKeys(t *testing.T) {
	db := dbtest.New(t).Open(t, "")
	execute(
		t, db,
		"CREATE DATABASE app", "CREATE DATABASE other",
		`CREATE TABLE app.p (id INT PRIMARY KEY, a INT, b INT, g INT AS (a + 1) STORED, s TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
			UNIQUE (a, b), UNIQUE (b), UNIQUE (g), UNIQUE (s))`,
		"CREATE TABLE app.q (id INT PRIMARY KEY)",
		"CREATE TRIGGER app.q BEFORE UPDATE ON app.q FOR EACH ROW SET NEW.id = OLD.id + 1",
		"CREATE TABLE other.c (x INT, y INT, CONSTRAINT `k.1` FOREIGN KEY (x) REFERENCES app.p (id) ON DELETE CASCADE)",
		"CREATE TABLE app.c1 (x INT, y INT, CONSTRAINT k FOREIGN KEY (y, x) REFERENCES app.p (a, b) ON UPDATE CASCADE)",
		"CREATE TABLE app.c2 (x INT, CONSTRAINT k2 FOREIGN KEY (x) REFERENCES app.p (b) ON DELETE SET NULL ON UPDATE SET NULL)",
		"CREATE TABLE app.c3 (x INT, CONSTRAINT k3 FOREIGN KEY (x) REFERENCES app.p (b) ON DELETE RESTRICT ON UPDATE NO ACTION)",
		"CREATE TABLE app.c4 (x INT, CONSTRAINT k4 FOREIGN KEY (x) REFERENCES app.p (g) ON UPDATE CASCADE)",
		"CREATE TABLE app.c5 (x TIMESTAMP NULL, CONSTRAINT k5 FOREIGN KEY (x) REFERENCES app.p (s) ON UPDATE CASCADE)",
		"CREATE TABLE app.c6 (x INT, CONSTRAINT k6 FOREIGN KEY (x) REFERENCES app.q (id) ON UPDATE CASCADE)",
	)
	p := table("app", "p")
	compare(t, keysOf(read(t, db)), []rewrite.ForeignKey{
		{Name: "k", Child: table("app", "c1"), Parent: p, ParentColumns: []string{"a", "b"}, OnUpdate: rewrite.UpdateRow},
		{Name: "k2", Child: table("app", "c2"), Parent: p, ParentColumns: []string{"b"}, OnDelete: rewrite.UpdateRow, OnUpdate: rewrite.UpdateRow},
		{Name: "k4", Child: table("app", "c4"), Parent: p, OnUpdate: rewrite.UpdateRow},
		{Name: "k5", Child: table("app", "c5"), Parent: p, OnUpdate: rewrite.UpdateRow},
		{Name: "k6", Child: table("app", "c6"), Parent: table("app", "q"), OnUpdate: rewrite.UpdateRow},
		{Name: "k.1", Child: table("other", "c"), Parent: p, OnDelete: rewrite.DeleteRow},
	})
}

func TestReadEndsWithItsContext(t *testing.T) {
	server := dbtest.New(t)
	db := server.Open(t, "")
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := catalogue.New(db).Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := catalogue.New(db).Read(t.Context()); err == nil {
		t.Error("a server that is down has a catalogue")
	}
}

func inspect(t *testing.T, db *sql.DB, schemas ...string) catalogue.Report {
	t.Helper()
	r, err := catalogue.New(db).Inspect(t.Context(), schemas)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
