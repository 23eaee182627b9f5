package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// TableError lists how a table differs from the lease table that fenceproxy
// needs.
type TableError struct {
	Table       string
	Differences []string
}

func (e *TableError) Error() string {
	return fmt.Sprintf("%s is not a lease table that fenceproxy can use:\n  - %s", e.Table, strings.Join(e.Differences, "\n  - "))
}

// ErrMissing tells that there is no such table, or that the account may not see
// it.
var ErrMissing = errors.New("the table does not exist, or the account may not see it")

// column is what fenceproxy needs a column to be. Other columns are a team's own.
type column struct {
	name, kind, collation string
	nullable              string // as information_schema has it
}

var columns = []column{
	{"lease_name", "varchar(128)", "utf8mb4_bin", "NO"},
	{"owner_token", "varchar(128)", "utf8mb4_bin", "NO"},
	{"fence_token", "bigint unsigned", "", "NO"},
	{"leased_until", "timestamp(3)", "", "NO"},
	{"acquired_at", "timestamp(3)", "", "NO"},
	{"renewed_at", "timestamp(3)", "", "NO"},
	{"renewals", "bigint unsigned", "", "NO"},
	{"metadata", "varchar(255)", "", "YES"},
}

// Verify compares the table with what fenceproxy needs: columns, types,
// collations, primary key, InnoDB, and no ON UPDATE. The error is ErrMissing or a
// *TableError.
func Verify(ctx context.Context, db *sql.DB, table string) error {
	t, err := split(table)
	if err != nil {
		return err
	}
	var engine sql.NullString
	err = db.QueryRowContext(ctx, "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", t.schema, t.name).Scan(&engine)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", table, ErrMissing)
	}
	if err != nil {
		return fmt.Errorf("verify %s: %w", table, err)
	}
	differences, err := columnDifferences(ctx, db, t)
	if err != nil {
		return fmt.Errorf("verify %s: %w", table, err)
	}
	if !strings.EqualFold(engine.String, "InnoDB") {
		differences = append(differences, fmt.Sprintf("its engine is %s, want InnoDB: no other locks the lease's row", orNone(engine.String)))
	}
	if differences != nil {
		return &TableError{Table: table, Differences: differences}
	}
	return nil
}

func orNone(engine string) string {
	if engine == "" {
		return "none (a view?)"
	}
	return engine
}

// actual is a column as the server has it.
type actual struct {
	kind, collation, nullable, key, extra string
}

func columnDifferences(ctx context.Context, db *sql.DB, t target) ([]string, error) {
	found, err := readColumns(ctx, db, t)
	if err != nil {
		return nil, err
	}
	var differences []string
	add := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	var primary []string
	for column, a := range found {
		if a.key == "PRI" {
			primary = append(primary, column)
		}
	}
	for _, want := range columns {
		a, ok := found[want.name]
		if !ok {
			add("column %s is missing, want %s", want.name, want.kind)
			continue
		}
		if a.kind != want.kind {
			add("column %s is %s, want %s", want.name, a.kind, want.kind)
		}
		if want.collation != "" && a.collation != want.collation {
			add("column %s has the collation %s, want %s", want.name, a.collation, want.collation)
		}
		if a.nullable != want.nullable {
			add("column %s: nullable is %s, want %s", want.name, a.nullable, want.nullable)
		}
		if strings.Contains(strings.ToLower(a.extra), "on update") {
			add("column %s has ON UPDATE CURRENT_TIMESTAMP: it must change only when fenceproxy sets it", want.name)
		}
	}
	slices.Sort(primary)
	if len(primary) != 1 || primary[0] != "lease_name" {
		add("its primary key is (%s), want (lease_name)", strings.Join(primary, ", "))
	}
	return differences, nil
}

func readColumns(ctx context.Context, db *sql.DB, t target) (map[string]actual, error) {
	rows, err := db.QueryContext(ctx, "SELECT LOWER(COLUMN_NAME), LOWER(COLUMN_TYPE), COALESCE(COLLATION_NAME, ''), IS_NULLABLE, COLUMN_KEY, EXTRA"+
		" FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", t.schema, t.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	found := make(map[string]actual)
	for rows.Next() {
		var column string
		var a actual
		if err := rows.Scan(&column, &a.kind, &a.collation, &a.nullable, &a.key, &a.extra); err != nil {
			return nil, err
		}
		// MariaDB shows the display width that MySQL 8 has dropped.
		a.kind = strings.Replace(a.kind, "bigint(20)", "bigint", 1)
		found[column] = a
	}
	return found, rows.Err()
}
