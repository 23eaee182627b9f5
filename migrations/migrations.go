// Package migrations makes the lease table and checks that it is as fenceproxy
// needs it; it changes nothing else in a database.
package migrations

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed 00001_lease_table.sql
var leaseTable string

// Migration is one step of the schema.
type Migration struct {
	Version   int64
	Name      string
	AppliedAt time.Time // zero while pending
}

// names are the migrations' names by version.
var names = map[int64]string{1: "lease_table"}

// Up applies what is pending to table, "schema.name", and returns it. The schema
// must exist. Applying again changes nothing, and programs that do so at once take
// turns. A table that is there without
// having been migrated is verified before anything is done, and in any case the
// table is verified at the end: the error names each difference (*TableError).
func Up(ctx context.Context, db *sql.DB, table string) ([]Migration, error) {
	t, err := split(table)
	if err != nil {
		return nil, err
	}
	migrated, err := t.versions().TableExists(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("migrate %s: %w", table, err)
	}
	if !migrated {
		if err := Verify(ctx, db, table); err != nil && !errors.Is(err, ErrMissing) {
			return nil, err
		}
	}
	p, err := t.provider(db)
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
	err = Verify(ctx, db, table)
	if errors.Is(err, ErrMissing) {
		err = fmt.Errorf("%w, but %s says that it was made: restore it, since a new one counts tokens from 1 again and stale writers may then look current;"+
			" if nobody can hold an old token any more, drop %[2]s and migrate again", err, t.versions().Tablename())
	}
	return applied, err
}

// Status lists all migrations, applied or pending. It changes nothing.
func Status(ctx context.Context, db *sql.DB, table string) ([]Migration, error) {
	t, err := split(table)
	if err != nil {
		return nil, err
	}
	p, err := t.provider(db)
	if err != nil {
		return nil, err
	}
	var all []Migration
	for _, source := range p.ListSources() {
		all = append(all, Migration{Version: source.Version, Name: names[source.Version]})
	}
	// goose would make its table first.
	migrated, err := t.versions().TableExists(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("migration status of %s: %w", table, err)
	}
	if !migrated {
		return all, nil
	}
	status, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migration status of %s: %w", table, err)
	}
	for i, s := range status {
		all[i].AppliedAt = s.AppliedAt
	}
	return all, nil
}

// target is the lease table's name.
type target struct{ schema, name string }

func (t target) versions() versions { return versions{t.schema, t.name + versionSuffix} }

func (t target) provider(db *sql.DB) (*goose.Provider, error) {
	statement := strings.ReplaceAll(leaseTable, "{{table}}", quote(t.schema, t.name))
	// In a transaction, because goose runs that on the connection that has the
	// lock: a pool of one connection is enough.
	up := goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement)
		return err
	}}, nil)
	p, err := goose.NewProvider("", db, nil,
		goose.WithStore(t.versions()), goose.WithGoMigrations(up), goose.WithDisableGlobalRegistry(true),
		goose.WithSessionLocker(locker{}))
	if err != nil {
		return nil, fmt.Errorf("migrate %s.%s: %w", t.schema, t.name, err)
	}
	return p, nil
}

var tableName = regexp.MustCompile(`^([0-9A-Za-z_$]{1,64})\.([0-9A-Za-z_$]{1,56})$`)

// split checks schema.name. The name leaves room for the version table's suffix.
func split(table string) (target, error) {
	parts := tableName.FindStringSubmatch(table)
	if parts == nil {
		return target{}, fmt.Errorf("lease table %q: want schema.name, of ASCII letters, digits, _ and $, the name at most 56 long", table)
	}
	return target{parts[1], parts[2]}, nil
}

func quote(schema, name string) string { return "`" + schema + "`.`" + name + "`" }
