package config

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// maxIdentifier is the longest name of a schema or table in characters (MariaDB
// manual, "Identifier Names").
const maxIdentifier = 64

// maxLeaseTable leaves room for the suffix of the table that package migrations
// keeps its versions in.
const maxLeaseTable = 56

// plainIdentifier is what a name can hold without quotes (MariaDB manual,
// "Identifier Names", ASCII part).
var plainIdentifier = regexp.MustCompile(`^[0-9A-Za-z_$]+$`)

// table reads schema.name, as the server stores them: without quotes, and with
// any character but a dot and those that no name can hold.
func (r *reader) table(v value) (t rewrite.Table, ok bool) {
	text, ok := r.text(v)
	if !ok {
		return t, false
	}
	if strings.ContainsAny(text, "`\"") {
		r.problem(v.at, "write schema.name without quotes", "%s is %s, a name in quotes", v.path, source(v))
		return t, false
	}
	schema, name, _ := strings.Cut(text, ".")
	if schema == "" || name == "" || strings.Contains(name, ".") {
		r.problem(v.at, "write schema.name", "%s is %s, not the name of a table with its schema", v.path, source(v))
		return t, false
	}
	if !isIdentifier(schema) || !isIdentifier(name) {
		r.problem(v.at, "", "%s is %s, which no table can be named", v.path, source(v))
		return t, false
	}
	return rewrite.Table{Schema: schema, Name: name}, true
}

func isIdentifier(name string) bool {
	return utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxIdentifier &&
		!strings.HasSuffix(name, " ") && !strings.ContainsFunc(name, func(c rune) bool {
		return c < ' ' || c == 0x7f || c > 0xffff || c == '/' || c == '\\'
	})
}

// leaseTable reads the lease table's name. It goes into every guard and into the
// migrations, and needs no quotes there.
func (r *reader) leaseTable(v value) (t rewrite.Table, ok bool) {
	t, ok = r.table(v)
	if !ok {
		return t, false
	}
	if !plainIdentifier.MatchString(t.Schema) || !plainIdentifier.MatchString(t.Name) {
		r.problem(v.at, "", "%s is %s: the lease table's schema and name can hold letters, digits, _ and $ only", v.path, source(v))
		return t, false
	}
	if len(t.Name) > maxLeaseTable {
		r.problem(v.at, "", "%s is %s: the lease table's name can have %d characters", v.path, source(v), maxLeaseTable)
		return t, false
	}
	return t, true
}

// lease reads the name of a table's lease; "" is the session's own.
func (r *reader) lease(v value) (name string, ok bool) {
	if node, isText := v.node.(*ast.StringNode); isText && node.Value == sessionLease {
		return "", true
	}
	text, ok := r.text(v)
	if !ok {
		return "", false
	}
	if err := lease.ValidName(text); err != nil {
		r.problem(v.at, "use 1 to 128 printable ASCII characters without spaces, quotes, \\ and ;", "%s is %s, which no lease can be named", v.path, source(v))
		return "", false
	}
	return text, true
}
