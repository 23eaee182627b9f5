package rewrite

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// sameTree tells that text parses to the tree that comes of adding the guard to
// statement. sample is a statement whose tree has the guard where it belongs. The
// tree of statement is changed.
func (j *judge) sameTree(statement ast.StmtNode, text, sample string) bool {
	spliced, err := parse(j.session, text)
	if err != nil || len(spliced) != 1 {
		return false
	}
	guard, err := parse(j.session, sample)
	if err != nil || len(guard) != 1 {
		return false
	}
	addGuard(statement, guard[0])
	want, err := restored(statement)
	if err != nil {
		return false
	}
	got, err := restored(spliced[0])
	return err == nil && got == want
}

// addGuard adds the guard in sample's tree to statement's.
func addGuard(statement, sample ast.StmtNode) {
	switch from := sample.(type) {
	case *ast.UpdateStmt:
		join := from.TableRefs.TableRefs
		to := statement.(*ast.UpdateStmt)
		join.Left = to.TableRefs.TableRefs.Left
		to.TableRefs.TableRefs = join
	case *ast.DeleteStmt:
		switch to := statement.(type) {
		case *ast.UpdateStmt:
			to.Where = and(to.Where, from.Where)
		case *ast.DeleteStmt:
			to.Where = and(to.Where, from.Where)
		}
	}
}

func and(where, guard ast.ExprNode) ast.ExprNode {
	if where == nil {
		return guard
	}
	return &ast.BinaryOperationExpr{Op: opcode.LogicAnd, L: &ast.ParenthesesExpr{Expr: where}, R: guard}
}
