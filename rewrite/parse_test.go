package rewrite_test

import (
	"strings"
	"testing"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// TestAStatementTooLongToParseIsBracketed: a tree is as deep as its text is long,
// and a stack that overflows ends the program, whatever recovers.
func TestAStatementTooLongToParseIsBracketed(t *testing.T) {
	r := testRules(t)
	s := sessionOf(t, "")
	for name, long := range map[string]func(n int) string{
		"parentheses": func(n int) string {
			return "UPDATE runs SET a = " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n)
		},
		"a sum":  func(n int) string { return "UPDATE runs SET a = 1" + strings.Repeat(" + 1", n) },
		"signs":  func(n int) string { return "UPDATE runs SET a = " + strings.Repeat("- ", n) + "1" },
		"a list": func(n int) string { return "DELETE FROM runs WHERE a IN (1" + strings.Repeat(", 1", n) + ")" },
		"joins":  func(n int) string { return "DELETE runs FROM runs" + strings.Repeat(" JOIN other", n) },
	} {
		if p := r.Plan(s, long(2_000)); p.Kind != rewrite.Exists {
			t.Errorf("2,000 of %s: %v, %s", name, p.Kind, p.Why)
		}
		if p := r.Plan(s, long(1_000_000)); p.Kind != rewrite.Bracket {
			t.Errorf("1,000,000 of %s: %v, %s", name, p.Kind, p.Why)
		}
	}
	elsewhere := "DELETE FROM other WHERE a IN (SELECT id FROM elsewhere.runs) AND b IN (1" + strings.Repeat(", 1", 100_000) + ")"
	if p := r.Plan(s, elsewhere); p.Kind != rewrite.Pass {
		t.Errorf("another schema's table: %v, %s", p.Kind, p.Why)
	}
}
