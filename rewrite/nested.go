package rewrite

import "strings"

// planSet looks behind MariaDB's SET STATEMENT … FOR. A guard runs outside of it,
// and so under the session's own settings.
func (j *judge) planSet(p piece) Plan {
	if !p.is(1, "STATEMENT") {
		return pass("it writes no table")
	}
	i := p.find(2, "FOR")
	if i < 0 {
		return j.planUnknown(p)
	}
	inner := p.from(i + 1)
	if c := inner.classOf(); c == prepares || c == executes {
		// The settings change how the text within is read.
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	return j.planInner(inner)
}

// planAnalyze looks at the statement that MariaDB's ANALYZE executes. ANALYZE TABLE
// writes statistics only.
func (j *judge) planAnalyze(p piece) Plan {
	if i := p.find(1, "TABLE", "TABLES", "SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH"); i > 0 && !strings.HasPrefix(p.word(i), "TABLE") {
		return j.planInner(p.from(i))
	}
	return pass("it writes no rows")
}

// planExplain looks at the statement that EXPLAIN ANALYZE executes.
func (j *judge) planExplain(p piece) Plan {
	if p.find(1, "ANALYZE") != 1 {
		return pass("EXPLAIN does not execute")
	}
	return j.planAnalyze(p.from(1))
}

// planInner judges a statement within another: nothing is spliced into it.
func (j *judge) planInner(p piece) Plan {
	j.whole = false
	return j.planPiece(p)
}

// withVerbs are the words of which the first outside parentheses says what a
// statement with common table expressions does. All are reserved.
var withVerbs = []string{"SELECT", "VALUES", "TABLE", "UPDATE", "DELETE", "INSERT", "REPLACE"}

// planWith looks for the statement behind common table expressions.
func (j *judge) planWith(p piece) Plan {
	i := p.find(1, withVerbs...)
	switch p.word(i) {
	case "SELECT", "VALUES", "TABLE":
		return pass("it writes no table")
	case "UPDATE", "DELETE":
		j.whole = false
		return j.planChange(p)
	}
	// A SELECT in parentheses, or what is not known.
	return j.bracket(j.named(p), syntaxWhy)
}

// planPrepare judges SQL-level PREPARE by its literal. Names are bound when it is
// prepared, so that a later USE changes nothing, and EXECUTE runs only what passed
// here.
func (j *judge) planPrepare(p piece) Plan {
	if !p.is(2, "FROM") || len(p.tokens) != 4 {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	return j.planText(p, 3)
}

// planExecute judges EXECUTE IMMEDIATE by its literal.
func (j *judge) planExecute(p piece) Plan {
	if !p.is(1, "IMMEDIATE") {
		return pass("it was judged when it was prepared")
	}
	if len(p.tokens) > 3 && !p.is(3, "USING") {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	return j.planText(p, 2)
}

// keepsASCII are the character sets in which text is read as in ASCII: their other
// characters have no byte below 0x80. swe7, for one, has a letter in the place of
// the backslash, so that a string literal ends elsewhere.
var keepsASCII = map[string]bool{
	"": true, "utf8mb4": true, "utf8mb3": true, "utf8": true, "ascii": true, "binary": true,
	"latin1": true, "latin2": true, "latin5": true, "latin7": true, "greek": true, "hebrew": true,
	"cp1250": true, "cp1251": true, "cp1256": true, "cp1257": true, "cp850": true, "cp852": true, "cp866": true,
	"koi8r": true, "koi8u": true, "macce": true, "macroman": true, "keybcs2": true, "armscii8": true, "geostd8": true,
}

// planText judges the statement in string literal i. What would need a guard is
// refused: the guard cannot be put into the literal.
func (j *judge) planText(p piece, i int) Plan {
	if i >= len(p.tokens) || p.tokens[i].kind != stringToken || j.anySchema || !keepsASCII[j.session.ConnectionCharset] {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	s := j.session
	s.MultiStatements = false
	inner := j.PlanPrepared(s, unquote(p.text(i), s.SQLMode))
	if inner.Kind == Pass && !inner.unlocks || inner.Kind == Refuse {
		return inner
	}
	return Plan{Kind: Refuse, Write: inner.Write, Reason: Unsupported, Why: dynamicWhy}
}

// escapes are the characters that a backslash gives another meaning. Any other
// stands for itself (manual: "String Literals").
var escapes = map[byte]byte{'0': 0, 'b': '\b', 'n': '\n', 'r': '\r', 't': '\t', 'Z': 26}

// unquote is the value of a string literal.
func unquote(literal string, mode SQLMode) string {
	quote := literal[0]
	body := literal[1 : len(literal)-1]
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '\\' && mode&NoBackslashEscapes == 0 && i+1 < len(body):
			i++
			if meaning, ok := escapes[body[i]]; ok {
				b.WriteByte(meaning)
				continue
			}
			if body[i] == '%' || body[i] == '_' {
				b.WriteByte(c)
			}
			b.WriteByte(body[i])
		case c == quote:
			b.WriteByte(c)
			i++
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
