package rewrite

import (
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// RestoreRowCount replaces ROW_COUNT() in a SELECT by what it would have been, had
// the proxy's own COMMIT not come before it. Result columns keep their names. ok
// is false, and the statement is to be sent as it is, where there is no such call
// or its place is not certain.
func RestoreRowCount(s Session, sql string, n int64) (text string, ok bool) {
	c := cut(s, sql)
	if c.opaque || c.several {
		return "", false
	}
	statements, err := parse(s, sql)
	if err != nil || len(statements) != 1 {
		return "", false
	}
	sel, isSelect := statements[0].(*ast.SelectStmt)
	if !isSelect || sel.Fields == nil {
		return "", false
	}
	value := "CAST(" + strconv.FormatInt(n, 10) + " AS SIGNED)"
	var b strings.Builder
	copied := 0
	depth, fieldStart, field, named := 0, 1, 0, false
	// The select list ends with the first FROM, INTO, LIMIT … outside parentheses;
	// calls behind it need no name.
	inList := true
	for c.is(fieldStart, "DISTINCT") || c.is(fieldStart, "ALL") || c.is(fieldStart, "SQL_CALC_FOUND_ROWS") {
		fieldStart++
	}
	endField := func(end int) {
		if !inList || field >= len(sel.Fields.Fields) {
			return
		}
		if named && sel.Fields.Fields[field].AsName.O == "" {
			at := c.tokens[end-1].end
			name := sql[c.tokens[fieldStart].start:at]
			b.WriteString(sql[copied:at] + " AS " + quoteName(name))
			copied = at
		}
		field++
		fieldStart, named = end+1, false
	}
	for i := range c.tokens {
		switch {
		case c.is(i, "ROW_COUNT") && c.is(i+1, "(") && c.is(i+2, ")"):
			b.WriteString(sql[copied:c.tokens[i].start] + value)
			copied = c.tokens[i+2].end
			named, ok = true, true
		case c.is(i, "("):
			depth++
		case c.is(i, ")"):
			depth--
		case depth == 0 && c.is(i, ","):
			endField(i)
		case depth == 0 && inList && i > 0 && endsList(&c, i):
			endField(i)
			inList = false
		}
	}
	if inList {
		endField(c.lastToken() + 1)
	}
	b.WriteString(sql[copied:])
	return b.String(), ok
}

// endsList tells that token i begins a clause behind the select list.
func endsList(c *scan, i int) bool {
	for _, word := range []string{"FROM", "INTO", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "PROCEDURE", "FOR", "LOCK", "UNION", "WINDOW"} {
		if c.is(i, word) {
			return true
		}
	}
	return c.is(i, ";")
}
