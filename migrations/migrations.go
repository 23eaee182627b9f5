// Package migrations makes the lease table and checks that it is as fenceproxy
// needs it; it changes nothing else in a database.
package migrations

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed 00001_lease_table.sql
var leaseTable string

// versionSuffix names goose's own table after the lease table: two lease tables
// in one schema are migrated apart.
const versionSuffix = "_version"

// Migration is one step of the schema.
type Migration struct {
	Version   int64
	Name      string
	AppliedAt time.Time // zero while pending
}

// Up applies what is pending to table, "schema.name", and returns it. The schema
// must exist. Applying again changes nothing. Whatever it found or made is then
// verified: the error names each difference (*TableError).
func Up(ctx context.Context, db *sql.DB, table string) ([]Migration, error) {
	p, err := provider(db, table)
	if err != nil {
		return nil, err
	}
	results, err := p.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate %s: %w", table, err)
	}
	applied := make([]Migration, len(results))
	for i, r := range results {
		applied[i] = Migration{Version: r.Source.Version, Name: names[r.Source.Version], AppliedAt: time.Now()}
	}
	return applied, Verify(ctx, db, table)
}

// Status lists all migrations, applied or pending. It changes nothing but for
// goose's version table, which it makes if it is missing.
func Status(ctx context.Context, db *sql.DB, table string) ([]Migration, error) {
	p, err := provider(db, table)
	if err != nil {
		return nil, err
	}
	status, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migration status of %s: %w", table, err)
	}
	all := make([]Migration, len(status))
	for i, s := range status {
		all[i] = Migration{Version: s.Source.Version, Name: names[s.Source.Version], AppliedAt: s.AppliedAt}
	}
	return all, nil
}

// names are the migrations' names by version.
var names = map[int64]string{1: "lease_table"}

func provider(db *sql.DB, table string) (*goose.Provider, error) {
	schema, name, err := split(table)
	if err != nil {
		return nil, err
	}
	store, err := database.NewStore(database.DialectMySQL, schema+"."+name+versionSuffix)
	if err != nil {
		return nil, fmt.Errorf("migrate %s: %w", table, err)
	}
	statement := strings.ReplaceAll(leaseTable, "{{table}}", "`"+schema+"`.`"+name+"`")
	up := goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	}}, nil)
	p, err := goose.NewProvider("", db, nil,
		goose.WithStore(store), goose.WithGoMigrations(up), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("migrate %s: %w", table, err)
	}
	return p, nil
}

var tableName = regexp.MustCompile(`^([0-9A-Za-z_$]{1,64})\.([0-9A-Za-z_$]{1,56})$`)

// split checks schema.name. The name leaves room for the version table's suffix.
func split(table string) (schema, name string, err error) {
	parts := tableName.FindStringSubmatch(table)
	if parts == nil {
		return "", "", fmt.Errorf("lease table %q: want schema.name, of ASCII letters, digits, _ and $, the name at most 56 long", table)
	}
	return parts[1], parts[2], nil
}
