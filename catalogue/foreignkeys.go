package catalogue

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// foreignKeys reads the foreign keys that change rows of the child (manual:
// "Information Schema REFERENTIAL_CONSTRAINTS Table"). Those that only forbid
// changes of the parent are left out.
func (s *session) foreignKeys(ctx context.Context) ([]rewrite.ForeignKey, error) {
	var keys []rewrite.ForeignKey
	err := s.each(
		ctx, "foreign keys",
		"SELECT CONSTRAINT_SCHEMA, CONSTRAINT_NAME, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE"+
			" FROM information_schema.REFERENTIAL_CONSTRAINTS", nil,
		func(scan func(...any) error) error {
			var k rewrite.ForeignKey
			var parent sql.NullString
			var onDelete, onUpdate string
			if err := scan(&k.Child.Schema, &k.Name, &k.Child.Name, &k.Parent.Schema, &parent, &onDelete, &onUpdate); err != nil {
				return err
			}
			k.Parent.Name = parent.String
			k.OnDelete, k.OnUpdate = effect(onDelete, rewrite.DeleteRow), effect(onUpdate, rewrite.UpdateRow)
			if k.OnDelete|k.OnUpdate != 0 {
				keys = append(keys, k)
			}
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	parents := make(map[rewrite.Table]map[string]bool)
	for i := range keys {
		k := &keys[i]
		if k.OnUpdate == 0 && k.Parent.Name != "" {
			continue
		}
		if err := s.completeKey(ctx, k); err != nil {
			return nil, err
		}
		still, read := parents[k.Parent]
		if !read {
			if still, err = s.assignedOnly(ctx, k.Parent); err != nil {
				return nil, err
			}
			parents[k.Parent] = still
		}
		if k.OnUpdate == 0 || slices.ContainsFunc(k.ParentColumns, func(c string) bool { return !still[c] }) {
			k.ParentColumns = nil
		}
	}
	return keys, nil
}

// effect is what a rule does to the rows of the child; cascade is the change that
// CASCADE passes on. RESTRICT and NO ACTION change nothing.
func effect(rule string, cascade rewrite.Change) rewrite.Change {
	switch rule {
	case "CASCADE":
		return cascade
	case "SET NULL", "SET DEFAULT":
		return rewrite.UpdateRow
	default:
		return 0
	}
}

// completeKey reads the columns that a key refers to, and the name of its parent:
// MariaDB 10.11 leaves that out of REFERENTIAL_CONSTRAINTS for an account that has
// SELECT on everything and other privileges on the one schema (measured).
func (s *session) completeKey(ctx context.Context, k *rewrite.ForeignKey) error {
	err := s.each(
		ctx, "the columns of foreign key "+k.Name,
		"SELECT TABLE_NAME, CONSTRAINT_NAME, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE"+
			" WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND REFERENCED_COLUMN_NAME IS NOT NULL ORDER BY ORDINAL_POSITION",
		[]any{k.Child.Schema, k.Child.Name},
		func(scan func(...any) error) error {
			var table, constraint, parent, column string
			if err := scan(&table, &constraint, &parent, &column); err != nil {
				return err
			}
			if table == k.Child.Name && constraint == k.Name {
				k.Parent.Name = parent
				k.ParentColumns = append(k.ParentColumns, column)
			}
			return nil
		},
	)
	if err == nil && k.Parent.Name == "" {
		err = fmt.Errorf("read foreign keys: the table that %s of %s refers to is not shown: the account needs TRIGGER on schema %s",
			k.Name, k.Child, k.Parent.Schema)
	}
	return err
}

// assignedOnly are the columns of a table that change only where a statement assigns
// them: nil for all if a trigger may set others.
func (s *session) assignedOnly(ctx context.Context, t rewrite.Table) (map[string]bool, error) {
	columns := make(map[string]bool)
	err := s.each(
		ctx, "the columns of "+t.String(),
		"SELECT TABLE_NAME, COLUMN_NAME, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
		[]any{t.Schema, t.Name},
		func(scan func(...any) error) error {
			var table, column, extra string
			if err := scan(&table, &column, &extra); err != nil {
				return err
			}
			// MySQL has DEFAULT_GENERATED for a default that is an expression.
			generated := strings.Contains(extra, " GENERATED") || strings.Contains(extra, "on update")
			if table == t.Name && !generated {
				columns[column] = true
			}
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	err = s.each(
		ctx, "the triggers of "+t.String(),
		"SELECT EVENT_OBJECT_TABLE, EVENT_MANIPULATION FROM information_schema.TRIGGERS"+
			" WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ? AND ACTION_TIMING = 'BEFORE'",
		[]any{t.Schema, t.Name},
		func(scan func(...any) error) error {
			var table, event string
			if err := scan(&table, &event); err != nil {
				return err
			}
			if table == t.Name && changeOf(event)&rewrite.UpdateRow != 0 {
				columns = nil
			}
			return nil
		},
	)
	return columns, err
}

// changeOf reads EVENT_MANIPULATION.
func changeOf(event string) rewrite.Change {
	var c rewrite.Change
	for name := range strings.SplitSeq(event, ",") {
		switch name {
		case "INSERT":
			c |= rewrite.InsertRow
		case "UPDATE":
			c |= rewrite.UpdateRow
		case "DELETE":
			c |= rewrite.DeleteRow
		}
	}
	return c
}
