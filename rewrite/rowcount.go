package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// RestoreRowCount replaces each ROW_COUNT() of a statement, the first of its
// packet, by n: what it would have answered, had the proxy's own COMMIT not come
// before it. Result columns keep their names. ok is false, and the statement is to
// be sent as it is, where there is no such call or its place is not certain.
func RestoreRowCount(s Session, sql string, n int64) (text string, ok bool) {
	tokens, certain := lex(s, sql)
	p := piece{sql, tokens}
	for i := range p.tokens {
		if p.symbol(i, ';') {
			p.tokens = p.tokens[:i]
			break
		}
	}
	var edits []edit
	// COALESCE takes the type of the call that it never makes: a BIGINT, where a
	// small literal would be an INT.
	value := "COALESCE(" + strconv.FormatInt(n, 10) + ", ROW_COUNT())"
	for i := range p.tokens {
		if p.is(i, "ROW_COUNT") && p.symbol(i+1, '(') && p.symbol(i+2, ')') {
			edits = append(edits, edit{p.tokens[i].start, p.tokens[i+2].end, value})
		}
	}
	if len(edits) == 0 || !certain {
		return "", false
	}
	blanked, ok := blank(p)
	if !ok {
		return "", false
	}
	statement, err := parse(s, blanked)
	if err != nil {
		return "", false
	}
	f := fieldNames{piece: p, calls: edits}
	statement.Accept(&f)
	if f.tooLong {
		return "", false
	}
	return apply(sql, append(edits, f.names...)), true
}

const countsWhy = "it reads ROW_COUNT() or FOUND_ROWS() of the statement before, and the guard would come between; read that into a variable first"

var countWords = newMatcher("row_count", "found_rows")

// readsCounts tells that a statement calls ROW_COUNT() or FOUND_ROWS(), or may.
func readsCounts(s Session, sql string) bool {
	if !countWords.in([]byte(sql)) {
		return false
	}
	tokens, certain := lex(s, sql)
	p := piece{sql, tokens}
	for i := range tokens {
		if (p.is(i, "ROW_COUNT") || p.is(i, "FOUND_ROWS")) && p.symbol(i+1, '(') {
			return true
		}
	}
	return !certain
}

// edit replaces the bytes from start to end by text.
type edit struct {
	start, end int
	text       string
}

// apply makes edits, which do not overlap. Those at one place keep their order.
func apply(sql string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.end - b.end })
	var b strings.Builder
	copied := 0
	for _, e := range edits {
		b.WriteString(sql[copied:e.start])
		b.WriteString(e.text)
		copied = e.end
	}
	b.WriteString(sql[copied:])
	return b.String()
}

// maxColumnName is how many characters a column's alias may have (manual:
// "Identifier Names").
const maxColumnName = 256

// fieldNames collects an alias for each select item without one that has a call
// within: the item's own text, which is what the server names it by.
type fieldNames struct {
	piece   piece
	calls   []edit
	names   []edit
	tooLong bool
}

func (f *fieldNames) Enter(n ast.Node) (ast.Node, bool) { return n, false }

// Leave sees inner items before the items that they are in, so that aliases which
// end at one place come in the right order.
func (f *fieldNames) Leave(n ast.Node) (ast.Node, bool) {
	field, ok := n.(*ast.SelectField)
	if !ok || field.Expr == nil || field.AsName.O != "" {
		return n, true
	}
	// Blanked text begins with the piece's first token.
	start := f.piece.tokens[0].start + field.Offset
	limit := start + len(field.Text())
	end := start
	for _, t := range f.piece.tokens {
		if t.start >= start && t.end <= limit {
			end = t.end
		}
	}
	called := slices.ContainsFunc(f.calls, func(c edit) bool { return c.start >= start && c.end <= end })
	if !called {
		return n, true
	}
	name := f.piece.sql[start:end]
	f.tooLong = f.tooLong || len(name) > maxColumnName
	f.names = append(f.names, edit{end, end, " AS " + quoteName(name)})
	return n, true
}
