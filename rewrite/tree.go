package rewrite

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// sameTree tells that text, which has guard spliced in, parses to the tree that
// comes of adding the guard to statement.
func (j *judge) sameTree(statement ast.StmtNode, kind Kind, guard guard, text string) bool {
	text = forParser(text)
	tokens, certain := lex(j.session, text)
	for len(tokens) > 0 && text[tokens[len(tokens)-1].start] == ';' {
		tokens = tokens[:len(tokens)-1]
	}
	spliced := j.parsePiece(piece{text, tokens})
	if !certain || spliced == nil {
		return false
	}
	wanted := guarded(statement, kind, guard)
	if wanted == nil {
		return false
	}
	want, err := restored(wanted)
	if err != nil {
		return false
	}
	got, err := restored(spliced)
	return err == nil && got == want
}

// forParser is a text with a guard in which the guard's alias does not begin with an
// underscore. The parser would look for a character set of that name, which costs
// a quarter of all its time. A statement has no such name of its own.
func forParser(text string) string { return strings.ReplaceAll(text, alias, "fence__") }

// guarded is statement with the guard in its tree. The parts are shared: neither
// statement nor guard is changed.
func guarded(statement ast.StmtNode, kind Kind, guard guard) ast.StmtNode {
	switch st := statement.(type) {
	case *ast.UpdateStmt:
		with := *st
		if kind == Join {
			join := *guard.joinTree
			join.Left = st.TableRefs.TableRefs.Left
			with.TableRefs = &ast.TableRefsClause{TableRefs: &join}
		} else {
			with.Where = and(st.Where, guard.existsTree)
		}
		return &with
	case *ast.DeleteStmt:
		with := *st
		with.Where = and(st.Where, guard.existsTree)
		return &with
	}
	return nil
}

func and(where, guard ast.ExprNode) ast.ExprNode {
	if where == nil {
		return guard
	}
	return &ast.BinaryOperationExpr{Op: opcode.LogicAnd, L: &ast.ParenthesesExpr{Expr: where}, R: guard}
}
