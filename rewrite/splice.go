package rewrite

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

const mismatchWhy = "its clauses cannot be told apart with certainty"

// splice inserts a guard into an UPDATE or DELETE: the join where that certainly
// means the same, and EXISTS otherwise.
func (j *judge) splice(p piece, st ast.StmtNode, w Write) Plan {
	plan := Plan{Kind: Exists, Write: w, Why: "a DELETE keeps its form with EXISTS"}
	from := 1
	if update, ok := st.(*ast.UpdateStmt); ok {
		from = p.find(1, "SET")
		if plan.Why = j.notJoinable(p, update); plan.Why == "" {
			plan.Kind, plan.Why = Join, "an UPDATE of one table to literals: a join does not change it"
		}
	}
	var ok bool
	guard := j.guards[w.Lease]
	switch {
	case from < 0:
	case plan.Kind == Join:
		at := p.tokens[from-1].end
		plan.Text, ok = p.sql[:at]+guard.join+p.sql[at:], true
	default:
		plan.Text, ok = p.insertExists(from, whereOf(st) != nil, guard.exists)
	}
	if !ok || !j.sameTree(st, plan.Kind, guard, plan.Text) {
		return Plan{Kind: Bracket, Write: w, Why: mismatchWhy}
	}
	return plan
}

func whereOf(st ast.StmtNode) ast.ExprNode {
	switch st := st.(type) {
	case *ast.UpdateStmt:
		return st.Where
	case *ast.DeleteStmt:
		return st.Where
	}
	return nil
}

// insertExists puts guard into the WHERE that follows token from, or makes one
// before what may follow it.
func (p piece) insertExists(from int, hasWhere bool, guard string) (text string, ok bool) {
	end := len(p.tokens)
	where := p.find(from, "WHERE")
	tail := max(from, where)
	for {
		i := p.find(tail, "ORDER", "LIMIT", "RETURNING")
		if i < 0 {
			break
		}
		if !p.is(i-1, "FOR") { // USE INDEX FOR ORDER BY (…)
			end = i
			break
		}
		tail = i + 1
	}
	if (where >= 0) != hasWhere || hasWhere && where+1 >= end {
		return "", false
	}
	at := p.tokens[end-1].end
	if !hasWhere {
		return p.sql[:at] + " WHERE " + guard + p.sql[at:], true
	}
	open := p.tokens[where+1].start
	return p.sql[:open] + "(" + p.sql[open:at] + ") AND " + guard + p.sql[at:], true
}

// notJoinable says why an UPDATE may mean something else with a join, or "". A
// multi-table UPDATE evaluates its assignments into a temporary table first, and
// what was measured on MariaDB 10.11 to differ is left to EXISTS, which never did:
//
//   - NULL for a NOT NULL column is error 1048 in a single-table UPDATE, and
//     silently 0 or empty in a multi-table UPDATE of several rows, in strict mode too;
//     so every value that may be NULL counts: columns, functions, placeholders;
//   - a later assignment reads the old value of an earlier one;
//   - sql_safe_updates and max_join_size refuse joins where they let an UPDATE be;
//   - ORDER BY and LIMIT are allowed by one server only; IGNORE counts differently.
func (j *judge) notJoinable(p piece, st *ast.UpdateStmt) string {
	join := st.TableRefs.TableRefs
	switch {
	case join.Right != nil, len(sources(join)) != 1, !isTable(join.Left):
		return "it has several tables"
	case j.session.LimitsJoins:
		return "the session's sql_safe_updates or max_join_size could refuse a join"
	case st.Order != nil || st.Limit != nil:
		return "it has ORDER BY or LIMIT"
	case st.IgnoreErr:
		return "UPDATE IGNORE counts differently with a join"
	}
	assigned := make(map[string]bool)
	for _, a := range st.List {
		switch {
		case !isLiteral(a.Expr):
			return "it assigns what may be NULL, which a join of several rows stores as 0 where the column forbids it"
		case assigned[a.Column.Name.L]:
			return "it assigns a column twice"
		}
		assigned[a.Column.Name.L] = true
	}
	v := columnCheck{leaseColumns: j.leaseColumns}
	st.Accept(&v)
	switch {
	case v.ambiguous != "":
		return "the lease table has a column " + v.ambiguous + " too"
	case v.subquery:
		return "it has a subquery"
	case v.assigns:
		return "it assigns variables"
	}
	return ""
}

// isTable tells that references are one table, named directly.
func isTable(refs ast.ResultSetNode) bool {
	s, ok := refs.(*ast.TableSource)
	if !ok {
		return false
	}
	_, ok = s.Source.(*ast.TableName)
	return ok
}

// isLiteral tells that an expression is a literal other than NULL.
func isLiteral(e ast.ExprNode) bool {
	if signed, ok := e.(*ast.UnaryOperationExpr); ok {
		e = signed.V
	}
	literal, ok := e.(*test_driver.ValueExpr)
	return ok && literal.Kind() != test_driver.KindNull
}

// columnCheck looks for what a join would change in an UPDATE's expressions.
type columnCheck struct {
	leaseColumns map[string]bool
	ambiguous    string // an unqualified column that the lease table has too
	subquery     bool
	assigns      bool
}

func (v *columnCheck) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.ColumnName:
		if n.Table.O == "" && v.leaseColumns[n.Name.L] {
			v.ambiguous = n.Name.O
		}
	case *ast.SubqueryExpr:
		v.subquery = true
	case *ast.VariableExpr:
		v.assigns = v.assigns || n.Value != nil
	}
	return n, false
}

func (v *columnCheck) Leave(n ast.Node) (ast.Node, bool) { return n, true }
