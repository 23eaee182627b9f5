package rewrite_test

import (
	"strings"
	"testing"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// fuzzSession makes a session of what the fuzzer chose.
func fuzzSession(mode, charset uint8, several bool) rewrite.Session {
	charsets := []string{"utf8mb4", "latin1", "binary", "gbk", "sjis", "big5", "cp932", "gb18030", "ascii", "euckr"}
	return rewrite.Session{
		Database: "app", SQLMode: rewrite.SQLMode(mode), Charset: charsets[int(charset)%len(charsets)],
		LowerCaseTableNames: int(mode>>5) % 3, MultiStatements: several, Autocommit: mode&128 != 0,
	}
}

// certainWrites begin statements that write app.runs, whatever follows.
var certainWrites = []string{
	"UPDATE runs SET ", "UPDATE app.runs SET ", "UPDATE `runs` SET ", "/* c */ update runs set ",
	"DELETE FROM runs WHERE ", "DELETE FROM app.runs WHERE ", "DELETE FROM runs ORDER BY ",
	"INSERT INTO runs VALUES (", "INSERT IGNORE runs SET ", "REPLACE INTO app.runs SELECT ",
	"LOAD DATA INFILE 'f' INTO TABLE app.runs (status) ", "TRUNCATE app.runs ", "ALTER TABLE app.runs ",
}

// FuzzPlan: whatever the text, nothing panics, what is spliced is the user's text
// and the guard, and a write to a protected table never passes.
func FuzzPlan(f *testing.F) {
	statements(f, func(_ string, s rewrite.Session, sql string) {
		f.Add(sql, uint8(s.SQLMode), uint8(0), true)
		f.Add(sql, uint8(s.SQLMode), uint8(3), false)
	})
	r := testRules(f)
	f.Fuzz(func(t *testing.T, sql string, mode, charset uint8, several bool) {
		s := fuzzSession(mode, charset, several)
		checkSplice(t, r, s, sql)
		for _, write := range certainWrites {
			text := write + sql
			if checkSplice(t, r, s, text).Kind == rewrite.Pass {
				t.Errorf("passed: %q", text)
			}
			if !r.Mentions([]byte(text)) {
				t.Errorf("passed unread: %q", text)
			}
		}
	})
}

// checkSplice plans sql and takes the guard out of what would be sent: the user's
// own bytes must be left.
func checkSplice(t *testing.T, r *rewrite.Rules, s rewrite.Session, sql string) rewrite.Plan {
	t.Helper()
	p := r.Plan(s, sql)
	switch p.Kind {
	case rewrite.Join, rewrite.Exists:
		if !withoutGuard(p, sql) {
			t.Errorf("%q became %q", sql, p.Text)
		}
	case rewrite.Pass, rewrite.Bracket, rewrite.Refuse:
		if p.Text != "" {
			t.Errorf("%v of %q has the text %q", p.Kind, sql, p.Text)
		}
	}
	if guarded := p.Kind != rewrite.Pass && p.Kind != rewrite.Refuse; guarded != (p.Guard != "") {
		t.Errorf("%v of %q has the guard %q", p.Kind, sql, p.Guard)
	}
	return p
}

// withoutGuard tells that p.Text is sql with one guard spliced in, and parentheses
// around its WHERE.
func withoutGuard(p rewrite.Plan, sql string) bool {
	_, inner, _ := strings.Cut(p.Guard, "WHERE ")
	inner = strings.TrimSuffix(inner, " LIMIT 1 LOCK IN SHARE MODE")
	const table = "`app`.`fenced_job_leases` AS __fence"
	if p.Kind == rewrite.Join {
		return strings.Replace(p.Text, " JOIN "+table+" ON "+inner, "", 1) == sql
	}
	exists := "EXISTS (SELECT 1 FROM " + table + " WHERE " + inner + " LOCK IN SHARE MODE)"
	if strings.Replace(p.Text, " WHERE "+exists, "", 1) == sql {
		return true
	}
	before, after, found := strings.Cut(p.Text, ") AND "+exists)
	if !found || !strings.HasSuffix(sql, after) {
		return false
	}
	// One parenthesis was added somewhere before.
	own := sql[:len(sql)-len(after)]
	for i := range before {
		if before[i] == '(' && before[:i]+before[i+1:] == own {
			return true
		}
	}
	return false
}

// FuzzDigest: no part of a literal gets into the log.
func FuzzDigest(f *testing.F) {
	f.Add("UPDATE runs SET a = ", " WHERE b = 1", uint8(0), uint8(0), uint8(0))
	f.Add("SELECT '\\'", "", uint8(1), uint8(3), uint8(2))
	f.Add("INSERT INTO t VALUES (1, ", ")", uint8(2), uint8(1), uint8(1))
	const secret = "5ecre7"
	quotes := []string{"'" + secret + "'", "\"" + secret + "\"", "x'" + secret + "'", "_utf8'" + secret + "'", "/* " + secret + " */", "-- " + secret + "\n"}
	f.Fuzz(func(t *testing.T, before, after string, mode, charset, quote uint8) {
		if strings.Contains(before+after, secret) || strings.ContainsAny(before, "'\"`\\#-/*@\x00") || !isASCII(before) {
			return // the literal would not be one
		}
		s := fuzzSession(mode, charset, true)
		literal := quotes[int(quote)%len(quotes)]
		if s.SQLMode&rewrite.ANSIQuotes != 0 && literal[0] == '"' {
			return
		}
		text, _ := rewrite.Digest(s, before+" "+literal+" "+after)
		if strings.Contains(text, secret) {
			t.Errorf("the digest of %q has the literal: %q", before+" "+literal+" "+after, text)
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// FuzzStatements: the smaller judgements neither panic nor contradict each other.
func FuzzStatements(f *testing.F) {
	statements(f, func(_ string, s rewrite.Session, sql string) { f.Add(sql, uint8(s.SQLMode), uint8(0)) })
	f.Fuzz(func(t *testing.T, sql string, mode, charset uint8) {
		s := fuzzSession(mode, charset, true)
		_ = rewrite.EndOf(s, sql)
		if text, ok := rewrite.RestoreRowCount(s, sql, 3); ok && !strings.Contains(text, "COALESCE(3, ROW_COUNT())") {
			t.Errorf("%q became %q", sql, text)
		}
		// A statement that sets the identity is never missed, wherever it stands.
		for _, set := range []string{"SET @fence_token = 7", "SELECT 1; SET @fence_token = 7", "SELECT 7 INTO @fence_token"} {
			if !rewrite.MayChangeFacts([]byte(set + " " + sql)) {
				t.Errorf("missed: %q", set+" "+sql)
			}
		}
	})
}
