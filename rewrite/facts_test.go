package rewrite_test

import (
	"strings"
	"testing"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

func TestMayChangeFacts(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT * FROM runs":                                   false,
		"  /* c */ insert into t values (1)":                   false,
		"UPDATE t SET a = 'use other; set names gbk'":          false,
		"SET autocommit = 1":                                   false,
		"SET @x = 1":                                           false,
		"SET time_zone = '+00:00'":                             false,
		"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE": false,
		"COMMIT":                               false,
		"BEGIN":                                false,
		"START TRANSACTION":                    false,
		"SELECT 1;":                            false,
		"SET @fence_token = 7":                 true,
		"set @`Fence_Owner` = 'A'":             true,
		"SELECT 7 INTO @fence_token":           true,
		"SELECT @fence_token := 7":             true,
		"UPDATE t SET a = (@FENCE_TOKEN := 7)": true,
		"USE other":                            true,
		"DROP DATABASE app":                    true,
		"SET NAMES gbk":                        true,
		"SET CHARACTER SET latin1":             true,
		"SET character_set_client = gbk":       true,
		"SET sql_mode = 'ANSI_QUOTES'":         true,
		"SET @@session.SQL_MODE = ''":          true,
		"SET timestamp = 1":                    true,
		"CALL p()":                             true,
		"EXECUTE s":                            true,
		"BEGIN NOT ATOMIC SET @x = 1; END":     true,
		"/*!40101 SET NAMES utf8 */":           true,
		"SELECT 1 /*! INTO @x */":              true,
		"SELECT 1; USE other":                  true,
		"SELECT 1; SELECT 2":                   true,
		"something new":                        true,
	} {
		if got := rewrite.MayChangeFacts([]byte(sql)); got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
}

func TestEndOf(t *testing.T) {
	const autocommit, manual = true, false
	for _, tt := range []struct {
		sql        string
		autocommit bool
		want       rewrite.End
	}{
		{"COMMIT", autocommit, rewrite.EndCommit},
		{"commit work and chain", autocommit, rewrite.EndCommit},
		{"/* c */ COMMIT;", autocommit, rewrite.EndCommit},
		{"ROLLBACK", autocommit, rewrite.EndRollback},
		{"ROLLBACK WORK AND CHAIN", autocommit, rewrite.EndRollback},
		{"ROLLBACK TO s", autocommit, rewrite.NoEnd},
		{"ROLLBACK WORK TO SAVEPOINT s", autocommit, rewrite.NoEnd},
		{"SAVEPOINT s", autocommit, rewrite.NoEnd},
		{"BEGIN", autocommit, rewrite.EndCommit},
		{"START TRANSACTION READ ONLY", autocommit, rewrite.EndCommit},
		{"CREATE TABLE t (id INT)", autocommit, rewrite.EndCommit},
		{"CREATE TEMPORARY TABLE t (id INT)", autocommit, rewrite.NoEnd},
		{"DROP TEMPORARY TABLE t", autocommit, rewrite.NoEnd},
		{"DROP TABLE t", autocommit, rewrite.EndCommit},
		{"TRUNCATE t", autocommit, rewrite.EndCommit},
		{"LOCK TABLES t READ", autocommit, rewrite.EndCommit},
		{"SET autocommit = 1", manual, rewrite.EndCommit},
		{"SET @@session.autocommit = ON", manual, rewrite.EndCommit},
		{"SET autocommit = 1", autocommit, rewrite.NoEnd},
		{"SET autocommit = 0", manual, rewrite.NoEnd},
		{"INSERT INTO t VALUES (1)", autocommit, rewrite.NoEnd},
		{"SELECT 'COMMIT'", autocommit, rewrite.NoEnd},
		{"ROLLBACK; INSERT INTO runs VALUES (1)", autocommit, rewrite.NoEnd},
		{"COMMIT; UPDATE runs SET x = 1", autocommit, rewrite.NoEnd},
		{"ROLLBACK /*! TO s */", autocommit, rewrite.NoEnd},
	} {
		s := sessionOf(t, "")
		s.Autocommit = tt.autocommit
		if got := rewrite.EndOf(s, tt.sql); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.sql, got, tt.want)
		}
	}
}

func TestDigest(t *testing.T) {
	s := sessionOf(t, "")
	first, hash := rewrite.Digest(s, "UPDATE runs  SET status = 'secret', n = 42 /* who */ WHERE id IN (1, 2, 3)")
	again, sameHash := rewrite.Digest(s, "UPDATE runs SET status='other',n=1.5e3 WHERE id IN (4)")
	if strings.Contains(first, "secret") || strings.Contains(first, "42") || strings.Contains(first, "who") {
		t.Errorf("a literal or a comment is left: %s", first)
	}
	if !strings.Contains(first, "runs") || len(hash) != 16 {
		t.Errorf("%q, %q", first, hash)
	}
	if first != again || hash != sameHash {
		t.Errorf("statements that differ in literals have the digests\n%s\n%s", first, again)
	}
	other, otherHash := rewrite.Digest(s, "UPDATE runs SET status = 'x' WHERE id = 1")
	if other == first || otherHash == hash {
		t.Errorf("another statement has the same digest: %s", other)
	}
	long, _ := rewrite.Digest(s, "SELECT "+strings.Repeat("a + ", 1000)+"a")
	if len(long) > 1024 {
		t.Errorf("%d bytes", len(long))
	}
}

func TestRestoreRowCount(t *testing.T) {
	s := sessionOf(t, "")
	for sql, want := range map[string]string{
		"SELECT ROW_COUNT()":                     "SELECT COALESCE(3, ROW_COUNT()) AS `ROW_COUNT()`",
		"select row_count() as n":                "select COALESCE(3, ROW_COUNT()) as n",
		"SELECT 1, Row_Count ( ) + 1, 'x'":       "SELECT 1, COALESCE(3, ROW_COUNT()) + 1 AS `Row_Count ( ) + 1`, 'x'",
		"SELECT id FROM t WHERE n = ROW_COUNT()": "SELECT id FROM t WHERE n = COALESCE(3, ROW_COUNT())",
		"SET @n = ROW_COUNT()":                   "SET @n = COALESCE(3, ROW_COUNT())",
		"SELECT 'ROW_COUNT()'":                   "",
		"SELECT t.row_count FROM t":              "",
		"SELECT 1 /*! , ROW_COUNT() */":          "",
	} {
		got, ok := rewrite.RestoreRowCount(s, sql, 3)
		if got != want || ok != (want != "") {
			t.Errorf("%s\n got %q, %v\nwant %q", sql, got, ok, want)
		}
	}
}

// TestTheQuickPathAllocatesNothing: it runs for every statement.
func TestTheQuickPathAllocatesNothing(t *testing.T) {
	r := testRules(t)
	for _, sql := range []string{quickSelect, quickInsert} {
		statement := []byte(sql)
		if r.Mentions(statement) || rewrite.MayChangeFacts(statement) {
			t.Errorf("%s is not passed", sql)
		}
		n := testing.AllocsPerRun(100, func() {
			_ = r.Mentions(statement)
			_ = rewrite.MayChangeFacts(statement)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", sql, n)
		}
	}
}

const (
	quickSelect = "SELECT id, customer, amount, currency FROM orders WHERE customer = 4711 AND state = 'open' ORDER BY id"
	quickInsert = "INSERT INTO orders (customer, amount, currency, state) VALUES (4711, 12.50, 'EUR', 'open, not paid')"
)

func BenchmarkQuickPath(b *testing.B) {
	r := testRules(b)
	for name, sql := range map[string]string{"select": quickSelect, "insert": quickInsert} {
		b.Run(name, func(b *testing.B) {
			statement := []byte(sql)
			b.ReportAllocs()
			for b.Loop() {
				_ = r.Mentions(statement)
				_ = rewrite.MayChangeFacts(statement)
			}
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	r := testRules(b)
	s := sessionOf(b, "")
	for name, sql := range map[string]string{
		"update by key":  "UPDATE runs SET status = 'done' WHERE run_id = 42",
		"delete":         "DELETE FROM runs WHERE a = 1 OR b = 2 LIMIT 3",
		"insert":         "INSERT INTO runs (id, status) VALUES (1, 'done')",
		"insert, 100 KB": "INSERT INTO runs (id, status) VALUES (1, '" + strings.Repeat("x", 100_000) + "')",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Plan(s, sql)
			}
		})
	}
}

func TestALongInsertIsPlannedInBoundedMemory(t *testing.T) {
	r := testRules(t)
	s := sessionOf(t, "")
	sql := "INSERT INTO runs (id, status) VALUES " + strings.Repeat("(1, 'done'), ", 16<<20/13) + "(2, 'done')"
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if p := r.Plan(s, sql); p.Kind != rewrite.Bracket {
				b.Fatalf("%v: %s", p.Kind, p.Why)
			}
		}
	})
	if perPlan := result.AllocedBytesPerOp(); perPlan > 100<<20 {
		t.Errorf("a statement of 16 MB took %d MB", perPlan>>20)
	}
}
