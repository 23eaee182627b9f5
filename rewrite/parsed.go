package rewrite

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// planParsed judges one statement that the parser has read.
func (j *judge) planParsed(statement ast.StmtNode) Plan {
	switch st := statement.(type) {
	case *ast.UpdateStmt:
		return j.planWrite(j.updateTargets(st), func(w Write) Plan { return j.planUpdate(st, w) })
	case *ast.DeleteStmt:
		return j.planWrite(j.deleteTargets(st), func(w Write) Plan { return j.planDelete(st, w) })
	case *ast.InsertStmt:
		return j.planWrite(baseTables(st.Table.TableRefs), bracketed("an INSERT keeps its meaning only as it is"))
	case *ast.LoadDataStmt:
		return j.planWrite([]*ast.TableName{st.Table}, bracketed("LOAD DATA keeps its meaning only as it is"))
	case *ast.ExplainStmt:
		if !st.Analyze {
			return Plan{Kind: Pass, Why: "EXPLAIN does not execute"}
		}
		return j.planExplainAnalyze(st)
	case *ast.PrepareStmt:
		return j.planPrepare(st)
	case *ast.CreateTableStmt:
		return j.planCreateTable(st)
	case *ast.LockTablesStmt:
		return j.planLockTables(st)
	case *ast.DropDatabaseStmt:
		return j.planDropDatabase(st)
	case *ast.SelectStmt, *ast.SetOprStmt, *ast.ShowStmt, *ast.SetStmt, *ast.UseStmt, *ast.DoStmt, *ast.CallStmt,
		*ast.ExecuteStmt, *ast.DeallocateStmt, *ast.BeginStmt, *ast.CommitStmt, *ast.RollbackStmt,
		*ast.SavepointStmt, *ast.ReleaseSavepointStmt, *ast.AnalyzeTableStmt, *ast.OptimizeTableStmt,
		*ast.FlushStmt, *ast.GrantStmt, *ast.RevokeStmt, *ast.KillStmt, *ast.UnlockTablesStmt:
		return Plan{Kind: Pass, Why: "it writes no table"}
	default:
		return j.planDefinition(statement)
	}
}

// planWrite decides about DML on targets. guarded makes the plan once it is known
// that a guard is wanted.
func (j *judge) planWrite(targets []*ast.TableName, guarded func(Write) Plan) Plan {
	named, leaseWritten := j.protected(targets)
	if len(named) == 0 {
		return Plan{Kind: Pass, Why: "it writes no protected table"}
	}
	w, ok := merge(named)
	switch {
	case !ok:
		return Plan{Kind: Refuse, Write: w, Reason: Unsupported, Why: twoLeasesWhy}
	case leaseWritten:
		return Plan{Kind: Refuse, Write: w, Reason: Unsupported, Why: "it writes the lease table as well"}
	default:
		return guarded(w)
	}
}

func bracketed(why string) func(Write) Plan {
	return func(w Write) Plan { return Plan{Kind: Bracket, Write: w, Why: why} }
}

// protected finds the rules of tables.
func (j *judge) protected(tables []*ast.TableName) (named []Rule, lease bool) {
	for _, t := range tables {
		for _, rule := range j.rules {
			if j.sameTable(rule.Table, t.Schema.O, t.Name.O) {
				named = append(named, rule)
			}
		}
		lease = lease || j.sameTable(j.lease, t.Schema.O, t.Name.O)
	}
	return named, lease
}

// source is a base table in a statement's table references.
type source struct {
	table *ast.TableName
	alias string // the name that columns are qualified with
}

// sources lists the base tables of references; derived tables only read.
func sources(refs ast.ResultSetNode) []source {
	switch n := refs.(type) {
	case *ast.Join:
		if n == nil {
			return nil
		}
		found := sources(n.Left)
		if n.Right != nil {
			found = append(found, sources(n.Right)...)
		}
		return found
	case *ast.TableSource:
		table, ok := n.Source.(*ast.TableName)
		if !ok {
			if inner, ok := n.Source.(*ast.Join); ok {
				return sources(inner)
			}
			return nil
		}
		alias := n.AsName.O
		if alias == "" {
			alias = table.Name.O
		}
		return []source{{table, alias}}
	default:
		return nil
	}
}

func baseTables(refs ast.ResultSetNode) []*ast.TableName {
	var tables []*ast.TableName
	for _, s := range sources(refs) {
		tables = append(tables, s.table)
	}
	return tables
}

// updateTargets are the tables that an UPDATE writes: those whose columns it
// assigns if all of these are qualified, and otherwise all that it may mean.
func (j *judge) updateTargets(st *ast.UpdateStmt) []*ast.TableName {
	all := sources(st.TableRefs.TableRefs)
	var targets []*ast.TableName
	for _, a := range st.List {
		found := false
		for _, s := range all {
			if a.Column.Table.O != "" && strings.EqualFold(s.alias, a.Column.Table.O) {
				targets = append(targets, s.table)
				found = true
			}
		}
		if !found {
			return baseTables(st.TableRefs.TableRefs)
		}
	}
	return targets
}

// deleteTargets are the tables that a DELETE names before or after FROM,
// resolved through the aliases of its references.
func (j *judge) deleteTargets(st *ast.DeleteStmt) []*ast.TableName {
	all := sources(st.TableRefs.TableRefs)
	if st.Tables == nil {
		return baseTables(st.TableRefs.TableRefs)
	}
	var targets []*ast.TableName
	for _, t := range st.Tables.Tables {
		found := false
		for _, s := range all {
			if strings.EqualFold(s.alias, t.Name.O) && (t.Schema.O == "" || strings.EqualFold(s.table.Schema.O, t.Schema.O) || s.table.Schema.O == "") {
				targets = append(targets, s.table)
				found = true
			}
		}
		if !found {
			targets = append(targets, t)
		}
	}
	return targets
}

func (j *judge) planExplainAnalyze(st *ast.ExplainStmt) Plan {
	inner := j.planParsed(st.Stmt)
	if inner.Kind == Join || inner.Kind == Exists {
		inner.Kind, inner.Text = Bracket, ""
		inner.Why = "EXPLAIN ANALYZE executes the statement"
	}
	return inner
}

// planPrepare judges SQL-level PREPARE by its literal. Names are bound when it is
// prepared, so a later USE changes nothing, and EXECUTE runs only what passed here.
func (j *judge) planPrepare(st *ast.PrepareStmt) Plan {
	if st.SQLVar != nil {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	return j.planText(st.SQLText)
}

// planText judges the text of a statement within the statement.
func (j *judge) planText(text string) Plan {
	inner := j.Rules.Plan(j.session, text)
	if inner.Kind == Pass || inner.Kind == Refuse {
		return inner
	}
	return Plan{Kind: Refuse, Write: inner.Write, Reason: Unsupported, Why: dynamicWhy}
}

// planImmediate judges EXECUTE IMMEDIATE, whose text begins at token i.
func (j *judge) planImmediate(i int) Plan {
	alone := i < len(j.scan.tokens) && j.scan.tokens[i].kind == stringToken &&
		(i+1 == len(j.scan.tokens) || j.scan.is(i+1, "USING") || j.scan.is(i+1, ";") && i+2 == len(j.scan.tokens))
	if !alone {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	// The parser knows how to read the literal in this session's sql_mode.
	statements, err := parse(j.session, "PREPARE fence FROM "+j.scan.text(i))
	if err != nil || len(statements) != 1 {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	st, ok := statements[0].(*ast.PrepareStmt)
	if !ok {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	return j.planPrepare(st)
}

// planCreateTable lets a table be made from a protected one, which only reads it.
func (j *judge) planCreateTable(st *ast.CreateTableStmt) Plan {
	named, lease := j.protected([]*ast.TableName{st.Table})
	if len(named) > 0 || lease {
		return j.refuse(named, lease, definitionWhy)
	}
	return Plan{Kind: Pass, Why: "it writes no protected table"}
}

const definitionWhy = "it commits before it acts, so that no guard can hold; run schema changes straight at the database"

func (j *judge) planLockTables(st *ast.LockTablesStmt) Plan {
	for _, l := range st.TableLocks {
		named, lease := j.protected([]*ast.TableName{l.Table})
		if strings.HasPrefix(strings.ToUpper(l.Type.String()), "READ") {
			continue
		}
		if len(named) > 0 || lease {
			return j.refuse(named, lease, "under LOCK TABLES … WRITE the lease table could not be read")
		}
	}
	return Plan{Kind: Pass, Why: "it writes no table"}
}

func (j *judge) planDropDatabase(st *ast.DropDatabaseStmt) Plan {
	var named []Rule
	for _, rule := range j.rules {
		if strings.EqualFold(rule.Table.Schema, st.Name.O) {
			named = append(named, rule)
		}
	}
	lease := strings.EqualFold(j.lease.Schema, st.Name.O)
	if len(named) == 0 && !lease {
		return Plan{Kind: Pass, Why: "it has no protected table in it"}
	}
	return j.refuse(named, lease, definitionWhy)
}

// planDefinition judges every other statement: DDL and what else the parser
// knows. One that names a protected table anywhere is refused.
func (j *judge) planDefinition(statement ast.StmtNode) Plan {
	var names tableNames
	statement.Accept(&names)
	named, lease := j.protected(names.found)
	more, moreLease := j.namedInTokens()
	named, lease = append(named, more...), lease || moreLease
	if len(named) == 0 && !lease {
		return Plan{Kind: Pass, Why: "it names no protected table"}
	}
	return j.refuse(named, lease, definitionWhy)
}

// tableNames collects every table name of a tree.
type tableNames struct{ found []*ast.TableName }

func (v *tableNames) Enter(n ast.Node) (ast.Node, bool) {
	if t, ok := n.(*ast.TableName); ok {
		v.found = append(v.found, t)
	}
	return n, false
}

func (v *tableNames) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// planSeveral judges a packet of several statements: it passes if each would. A
// statement that changes the default database or how text is read makes what
// follows it uncertain.
func (j *judge) planSeveral(statements []ast.StmtNode) Plan {
	named, lease := j.namedInBytes()
	for _, st := range statements {
		if changesReading(st) && (len(named) > 0 || lease) {
			return j.refuse(named, lease, severalWhy)
		}
	}
	for _, st := range statements {
		if p := j.planParsed(st); p.Kind != Pass {
			if p.Kind == Refuse && p.Reason == Forbidden {
				return p
			}
			return Plan{Kind: Refuse, Write: p.Write, Reason: Unsupported, Why: severalWhy}
		}
	}
	return Plan{Kind: Pass, Why: fmt.Sprintf("none of its %d statements writes a protected table", len(statements))}
}

// changesReading tells that a statement may change the default database, sql_mode
// or character set of those behind it.
func changesReading(statement ast.StmtNode) bool {
	switch st := statement.(type) {
	case *ast.UseStmt, *ast.CallStmt, *ast.ExecuteStmt, *ast.DropDatabaseStmt:
		return true
	case *ast.SetStmt:
		for _, v := range st.Variables {
			if v.IsSystem || v.Name == ast.SetNames || v.Name == ast.SetCharset {
				return true
			}
		}
	}
	return false
}
