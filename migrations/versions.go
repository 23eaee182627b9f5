package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3/database"
)

// versionSuffix names goose's own table after the lease table: two lease tables
// in one schema are migrated apart.
const versionSuffix = "_version"

// versions is goose's table of applied migrations, with the columns that goose
// gives it. goose's own MySQL store is not used, because it writes names without
// quotes, so that a schema called system is a syntax error, and reads times only
// where the driver parses them.
type versions struct{ schema, name string }

// Tablename is the table as it stands in a statement.
func (v versions) Tablename() string { return quote(v.schema, v.name) }

// TableExists tells that the table is there with the version 0 that goose puts
// into a new one. A table without it, left by a program that ended in between,
// does not count: goose then completes it.
func (v versions) TableExists(ctx context.Context, db database.DBTxConn) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", v.schema, v.name).Scan(&n)
	if err == nil && n > 0 {
		err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+v.Tablename()+" WHERE version_id = 0").Scan(&n)
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", v.Tablename(), err)
	}
	return n > 0, nil
}

// CreateVersionTable leaves a table that is there as it is.
func (v versions) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+v.Tablename()+" ("+
		"id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, version_id BIGINT NOT NULL, is_applied BOOLEAN NOT NULL,"+
		" tstamp TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB")
	if err != nil {
		return fmt.Errorf("create %s: %w", v.Tablename(), err)
	}
	return nil
}

// Insert records a version as applied.
func (v versions) Insert(ctx context.Context, db database.DBTxConn, r database.InsertRequest) error {
	_, err := db.ExecContext(ctx, "INSERT INTO "+v.Tablename()+" (version_id, is_applied) VALUES (?, TRUE)", r.Version)
	if err != nil {
		return fmt.Errorf("record version %d in %s: %w", r.Version, v.Tablename(), err)
	}
	return nil
}

// Delete forgets a version.
func (v versions) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	_, err := db.ExecContext(ctx, "DELETE FROM "+v.Tablename()+" WHERE version_id = ?", version)
	if err != nil {
		return fmt.Errorf("delete version %d from %s: %w", version, v.Tablename(), err)
	}
	return nil
}

// GetMigration tells when a version was applied, or database.ErrVersionNotFound.
func (v versions) GetMigration(ctx context.Context, db database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	var seconds int64
	var r database.GetMigrationResult
	err := db.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(tstamp) AS SIGNED), is_applied FROM "+v.Tablename()+
		" WHERE version_id = ? ORDER BY id DESC LIMIT 1", version).Scan(&seconds, &r.IsApplied)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %d", database.ErrVersionNotFound, version)
	}
	if err != nil {
		return nil, fmt.Errorf("read version %d from %s: %w", version, v.Tablename(), err)
	}
	r.Timestamp = time.Unix(seconds, 0)
	return &r, nil
}

// GetLatestVersion is the highest version, or database.ErrVersionNotFound.
func (v versions) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	var latest sql.NullInt64
	if err := db.QueryRowContext(ctx, "SELECT MAX(version_id) FROM "+v.Tablename()).Scan(&latest); err != nil {
		return 0, fmt.Errorf("read %s: %w", v.Tablename(), err)
	}
	if !latest.Valid {
		return 0, fmt.Errorf("%w: %s is empty", database.ErrVersionNotFound, v.Tablename())
	}
	return latest.Int64, nil
}

// ListMigrations lists the versions, the latest first.
func (v versions) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	rows, err := db.QueryContext(ctx, "SELECT version_id, is_applied FROM "+v.Tablename()+" ORDER BY id DESC")
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", v.Tablename(), err)
	}
	defer func() { _ = rows.Close() }()
	var all []*database.ListMigrationsResult
	for rows.Next() {
		var r database.ListMigrationsResult
		if err := rows.Scan(&r.Version, &r.IsApplied); err != nil {
			return nil, fmt.Errorf("read %s: %w", v.Tablename(), err)
		}
		all = append(all, &r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", v.Tablename(), err)
	}
	return all, nil
}
