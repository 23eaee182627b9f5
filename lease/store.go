package lease

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Claim is what a holder says of itself: the lease, the owner token and the
// fence token with which it acquired it.
type Claim struct {
	Name  string
	Owner string
	Token uint64
}

// Store works on one lease table. It is safe for concurrent use.
type Store struct {
	db    *sql.DB
	table string // quoted
}

// New makes a Store for table, "schema.name". It does not connect. db may have
// any settings of the driver, but must leave autocommit on; the account needs
// SELECT, INSERT and UPDATE.
func New(db *sql.DB, table string) (*Store, error) {
	quoted, err := quoteTable(table)
	if err != nil {
		return nil, err
	}
	return &Store{db: db, table: quoted}, nil
}

// Info is a lease as the database has it.
type Info struct {
	Name        string
	Owner       string
	Token       uint64
	LeasedUntil time.Time
	// SecondsLeft is by the database's clock: negative once it has expired.
	SecondsLeft float64
	AcquiredAt  time.Time
	RenewedAt   time.Time
	Renewals    uint64 // since it was acquired
	Metadata    string
}

// Held tells that the lease had not expired when it was read.
func (i Info) Held() bool { return i.SecondsLeft > 0 }

// columns are what scanInfo reads. Times come as integers, since how a driver
// gives a time depends on its parseTime and loc.
const columns = "lease_name, owner_token, fence_token, CAST(" + untilMS + " AS SIGNED), CAST(" + untilMS + " - " + nowMS + " AS SIGNED)," +
	" CAST(ROUND(UNIX_TIMESTAMP(acquired_at) * 1000) AS SIGNED), CAST(ROUND(UNIX_TIMESTAMP(renewed_at) * 1000) AS SIGNED), renewals, metadata"

type scanner interface{ Scan(dest ...any) error }

func scanInfo(row scanner, more ...any) (Info, error) {
	var i Info
	var until, left, acquired, renewed int64
	var metadata sql.NullString
	err := row.Scan(append(more, &i.Name, &i.Owner, &i.Token, &until, &left, &acquired, &renewed, &i.Renewals, &metadata)...)
	i.LeasedUntil = time.UnixMilli(until)
	i.SecondsLeft = float64(left) / 1000
	i.AcquiredAt = time.UnixMilli(acquired)
	i.RenewedAt = time.UnixMilli(renewed)
	i.Metadata = metadata.String
	return i, err
}

// List reads all leases, in the order of their names.
func (s *Store) List(ctx context.Context) ([]Info, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT "+columns+" FROM "+s.table+" ORDER BY lease_name")
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var all []Info
	for rows.Next() {
		i, err := scanInfo(rows)
		if err != nil {
			return nil, fmt.Errorf("list leases: %w", err)
		}
		all = append(all, i)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	return all, nil
}
