package rewrite

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// planUpdate guards an UPDATE. The join is for the plainest: everything that a
// multi-table UPDATE would do differently takes EXISTS.
func (j *judge) planUpdate(st *ast.UpdateStmt, w Write) Plan {
	if why := j.notSpliceable(st.With != nil); why != "" {
		return Plan{Kind: Bracket, Write: w, Why: why}
	}
	if why := j.notJoinable(st); why != "" {
		return j.planExists(st, st.Where, w, why)
	}
	// The guard goes behind the table reference, before SET.
	set := j.scan.clause(0, "SET")
	if set < 0 {
		return Plan{Kind: Bracket, Write: w, Why: mismatchWhy}
	}
	at := j.scan.tokens[set-1].end
	guard := j.join(w.Lease)
	text := j.scan.sql[:at] + guard + j.scan.sql[at:]
	if !j.sameTree(st, text, "UPDATE fence"+guard+" SET a = 1") {
		return Plan{Kind: Bracket, Write: w, Why: mismatchWhy}
	}
	return Plan{Kind: Join, Write: w, Text: text, Why: "an UPDATE of one table that a join does not change"}
}

const mismatchWhy = "its clauses cannot be told apart with certainty"

// planDelete guards a DELETE. EXISTS leaves it the single-table or multi-table
// statement that it is.
func (j *judge) planDelete(st *ast.DeleteStmt, w Write) Plan {
	if why := j.notSpliceable(st.With != nil); why != "" {
		return Plan{Kind: Bracket, Write: w, Why: why}
	}
	return j.planExists(st, st.Where, w, "a DELETE keeps its form with EXISTS")
}

// notSpliceable says why nothing can be inserted into the statement, or "".
func (j *judge) notSpliceable(with bool) string {
	if with {
		return "a common table expression may hide what a name means"
	}
	if j.session.SQLMode&Oracle != 0 {
		return "sql_mode ORACLE reads statements differently"
	}
	for i, t := range j.scan.tokens {
		if name, ok := j.scan.identifier(i); ok && strings.EqualFold(name, alias) {
			return "it uses the name " + alias
		}
		if t.kind == variableToken && containsFold(j.scan.text(i), "fence_") {
			return "it uses the variables of the guard"
		}
	}
	return ""
}

// notJoinable says why an UPDATE would mean something else with a join, or "".
func (j *judge) notJoinable(st *ast.UpdateStmt) string {
	switch {
	case len(sources(st.TableRefs.TableRefs)) != 1 || !plainReference(st):
		return "it has several tables"
	case st.Order != nil || st.Limit != nil:
		return "it has ORDER BY or LIMIT"
	case st.IgnoreErr:
		return "UPDATE IGNORE counts differently with a join"
	}
	v := columnCheck{leaseColumns: j.leaseColumns}
	st.Accept(&v)
	switch {
	case v.ambiguous != "":
		return "the lease table has a column " + v.ambiguous + " too"
	case v.subquery:
		return "it has a subquery"
	case readsAssigned(st.List):
		return "an assignment reads a column that another assigns"
	}
	return ""
}

// plainReference tells that the one table is named directly.
func plainReference(st *ast.UpdateStmt) bool {
	join := st.TableRefs.TableRefs
	if join.Right != nil {
		return false
	}
	s, ok := join.Left.(*ast.TableSource)
	if !ok {
		return false
	}
	_, ok = s.Source.(*ast.TableName)
	return ok
}

// columnCheck looks for unqualified columns that the lease table has too, and for
// subqueries.
type columnCheck struct {
	leaseColumns map[string]bool
	ambiguous    string
	subquery     bool
}

func (v *columnCheck) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.ColumnName:
		if n.Table.O == "" && v.leaseColumns[n.Name.L] {
			v.ambiguous = n.Name.O
		}
	case *ast.SubqueryExpr:
		v.subquery = true
	}
	return n, false
}

func (v *columnCheck) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// readsAssigned tells that a right-hand side reads a column which an assignment
// to its left sets: a single-table UPDATE reads the new value there, a
// multi-table UPDATE may read the old one.
func readsAssigned(list []*ast.Assignment) bool {
	assigned := make(map[string]bool)
	for _, a := range list {
		v := columnReads{among: assigned}
		a.Expr.Accept(&v)
		if v.found || assigned[a.Column.Name.L] {
			return true
		}
		assigned[a.Column.Name.L] = true
	}
	return false
}

type columnReads struct {
	among map[string]bool
	found bool
}

func (v *columnReads) Enter(n ast.Node) (ast.Node, bool) {
	if c, ok := n.(*ast.ColumnName); ok && v.among[c.Name.L] {
		v.found = true
	}
	return n, false
}

func (v *columnReads) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// planExists puts the guard into the WHERE of an UPDATE or DELETE, with the user's
// own condition in parentheses.
func (j *judge) planExists(st ast.StmtNode, where ast.ExprNode, w Write, why string) Plan {
	text, ok := j.spliceExists(where != nil, j.exists(w.Lease))
	if !ok || !j.sameTree(st, text, "DELETE FROM fence WHERE "+j.exists(w.Lease)) {
		return Plan{Kind: Bracket, Write: w, Why: mismatchWhy}
	}
	return Plan{Kind: Exists, Write: w, Text: text, Why: why}
}

// spliceExists inserts guard into the statement's WHERE, or makes one before what
// may follow it.
func (j *judge) spliceExists(hasWhere bool, guard string) (text string, ok bool) {
	c := &j.scan
	from := c.clause(0, "SET")
	if from < 0 {
		from = 0 // a DELETE
	}
	last := c.lastToken()
	end := last + 1
	for _, word := range []string{"ORDER", "LIMIT", "RETURNING"} {
		if i := c.clause(from, word); i >= 0 {
			end = min(end, i)
		}
	}
	where := c.clause(from, "WHERE")
	if (where >= 0) != hasWhere || end == 0 || where >= end-1 && hasWhere {
		return "", false
	}
	at := c.tokens[end-1].end
	if !hasWhere {
		return c.sql[:at] + " WHERE " + guard + c.sql[at:], true
	}
	open := c.tokens[where+1].start
	return c.sql[:open] + "(" + c.sql[open:at] + ") AND " + guard + c.sql[at:], true
}

// lastToken is the index of the last token but a final semicolon.
func (c *scan) lastToken() int {
	i := len(c.tokens) - 1
	for c.is(i, ";") {
		i--
	}
	return i
}

// clause is the index of the first keyword word outside parentheses from token
// from on, or -1. It must be reserved, so that it cannot be a name.
func (c *scan) clause(from int, word string) int {
	depth := 0
	for i := from; i < len(c.tokens); i++ {
		switch {
		case c.is(i, "("):
			depth++
		case c.is(i, ")"):
			depth--
		case depth == 0 && c.is(i, word):
			return i
		}
	}
	return -1
}
