package rewrite

import "github.com/pingcap/tidb/pkg/parser/ast"

// planChange judges UPDATE and DELETE, bare or behind common table expressions.
func (j *judge) planChange(p piece) Plan {
	st := j.parsePiece(p)
	if st == nil {
		return j.bracket(j.named(p), syntaxWhy)
	}
	var targets found
	switch st := st.(type) {
	case *ast.UpdateStmt:
		targets = j.updateTargets(st)
	case *ast.DeleteStmt:
		targets = j.deleteTargets(st)
	}
	plan := j.bracket(targets, "")
	if plan.Kind != Bracket {
		return plan
	}
	if targets.lease {
		return Plan{Kind: Refuse, Write: plan.Write, Reason: Forbidden, Why: "it writes the lease table as well; write them one by one"}
	}
	if p.assignsIdentity() {
		return Plan{Kind: Refuse, Write: plan.Write, Reason: Forbidden, Why: "it changes the session's identity while it is guarded by it; SET that before"}
	}
	if plan.Why = j.notSpliceable(p, st); plan.Why != "" {
		return plan
	}
	return j.splice(p, st, plan.Write)
}

// notSpliceable says why no guard can be inserted into the statement, or "".
func (j *judge) notSpliceable(p piece, st ast.StmtNode) string {
	switch {
	case !j.whole:
		return "it stands within another statement"
	case hasWith(st):
		return "a common table expression may hide what a name means"
	case j.session.SQLMode&Oracle != 0:
		return "sql_mode ORACLE reads statements differently"
	case containsFold(j.scan.sql, "set_var"):
		return "it may have an optimizer hint that sets variables, of which the guard must know nothing"
	}
	for i := range p.tokens {
		if name, ok := p.identifier(i); ok && equalAlias(name, alias) {
			return "it uses the name " + alias
		}
	}
	return ""
}

func hasWith(st ast.StmtNode) bool {
	switch st := st.(type) {
	case *ast.UpdateStmt:
		return st.With != nil
	case *ast.DeleteStmt:
		return st.With != nil
	}
	return false
}

// assignsIdentity tells that a statement assigns a variable of the identity, or
// one whose name is quoted so that it cannot be read plainly.
func (p piece) assignsIdentity() bool {
	for i, t := range p.tokens {
		if t.kind != variableToken || !p.symbol(i+1, ':') || !p.symbol(i+2, '=') {
			continue
		}
		text := p.text(i)
		if containsFold(text, "fence_") || len(text) > 1 && (text[1] == '\'' || text[1] == '"') {
			return true
		}
	}
	return false
}
