package rewrite

import "github.com/pingcap/tidb/pkg/parser/ast"

// source is a base table among a statement's table references.
type source struct {
	table tableName
	alias string // the name that columns are qualified with
}

// sources lists the base tables of references. Derived tables only read.
func sources(refs ast.ResultSetNode) []source {
	switch n := refs.(type) {
	case *ast.Join:
		found := sources(n.Left)
		if n.Right != nil {
			found = append(found, sources(n.Right)...)
		}
		return found
	case *ast.TableSource:
		switch inner := n.Source.(type) {
		case *ast.TableName:
			s := source{nameOf(inner), n.AsName.O}
			if s.alias == "" {
				s.alias = s.table.name
			}
			return []source{s}
		case *ast.Join:
			return sources(inner)
		}
	}
	return nil
}

func nameOf(t *ast.TableName) tableName { return tableName{t.Schema.O, t.Name.O} }

// updateTargets finds what an UPDATE writes: the tables whose columns it assigns.
// An unqualified column may be any table's, but the lease table's columns are
// known.
func (j *judge) updateTargets(st *ast.UpdateStmt) found {
	all := sources(st.TableRefs.TableRefs)
	var targets []tableName
	for _, a := range st.List {
		matched := false
		for _, s := range all {
			if a.Column.Table.O != "" && equalAlias(s.alias, a.Column.Table.O) {
				targets = append(targets, s.table)
				matched = true
			}
		}
		if matched {
			continue
		}
		for _, s := range all {
			if len(all) > 1 && j.same(j.lease, s.table) && !j.leaseColumns[a.Column.Name.L] {
				continue
			}
			targets = append(targets, s.table)
		}
	}
	return j.lookUp(targets...)
}

// deleteTargets finds what a DELETE deletes from: its one table, or those that a
// multi-table DELETE lists, by alias.
func (j *judge) deleteTargets(st *ast.DeleteStmt) found {
	all := sources(st.TableRefs.TableRefs)
	var targets []tableName
	if st.Tables != nil {
		for _, t := range st.Tables.Tables {
			targets = append(targets, deleteTarget(all, nameOf(t))...)
		}
		return j.lookUp(targets...)
	}
	for _, s := range all {
		targets = append(targets, s.table)
	}
	return j.lookUp(targets...)
}

// deleteTarget resolves a target. One that is no alias is an error to the server,
// or a reading of the parser's own, so that it may mean any table.
func deleteTarget(all []source, target tableName) []tableName {
	var matched, every []tableName
	for _, s := range all {
		every = append(every, s.table)
		otherSchema := target.schema != "" && s.table.schema != "" && !equalAlias(target.schema, s.table.schema)
		if equalAlias(s.alias, target.name) && !otherSchema {
			matched = append(matched, s.table)
		}
	}
	if matched == nil {
		return append(every, target)
	}
	return matched
}
