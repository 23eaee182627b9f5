package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
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
// any settings of the driver; the account needs SELECT, INSERT and UPDATE.
func New(db *sql.DB, table string) (*Store, error) {
	quoted, err := quoteTable(table)
	if err != nil {
		return nil, err
	}
	return &Store{db: db, table: quoted}, nil
}

// restoreTimeout limits the statement that gives a pooled connection its time
// zone back.
const restoreTimeout = time.Second

// write runs one statement that computes with times, in a session whose time
// zone is UTC: in a zone with daylight saving, local times are ambiguous for an
// hour each year, and a TIMESTAMP stored from one may be an hour off. The
// connection goes back to the pool with the time zone that it had.
func (s *Store) write(ctx context.Context, query string, args ...any) (sql.Result, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "SET @fence_time_zone = @@session.time_zone, time_zone = '+00:00'"); err != nil {
		return nil, err
	}
	result, err := conn.ExecContext(ctx, query, args...)
	restoring, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if _, restoreErr := conn.ExecContext(restoring, "SET time_zone = @fence_time_zone, @fence_time_zone = NULL"); restoreErr != nil {
		// A connection in the wrong time zone must not be used again.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return result, err
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

// nowMS and untilMS are the statement's time and the lease's end in
// milliseconds since 1970. Both are exact in any session time zone:
// UNIX_TIMESTAMP of a TIMESTAMP column is the stored value, and @@timestamp is
// the statement's start, where CURRENT_TIMESTAMP would be a local time. The
// thousandth makes up for @@timestamp being a DOUBLE.
const (
	nowMS   = "FLOOR(@@timestamp * 1000 + 0.001)"
	untilMS = "ROUND(UNIX_TIMESTAMP(leased_until) * 1000)"
	columns = "lease_name, owner_token, fence_token, CAST(" + untilMS + " AS SIGNED), CAST(" + untilMS + " - " + nowMS + " AS SIGNED)," +
		" CAST(ROUND(UNIX_TIMESTAMP(acquired_at) * 1000) AS SIGNED), CAST(ROUND(UNIX_TIMESTAMP(renewed_at) * 1000) AS SIGNED), renewals, metadata"
)

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

// Finding is a claim held against the lease, as the guard of a write does it.
type Finding struct {
	Found        bool // there is a lease of that name; the rest is false without
	TokenMatches bool
	OwnerMatches bool
	Expired      bool
	Current      Info
}

// Holds tells that the claim's lease was current when it was read.
func (f Finding) Holds() bool { return f.Found && f.TokenMatches && f.OwnerMatches && !f.Expired }

// err is nil if the claim holds, and else says what became of it.
func (f Finding) err(c Claim) error {
	switch {
	case !f.Found:
		return fmt.Errorf("%w: '%s'", ErrNoLease, c.Name)
	case !f.TokenMatches || !f.OwnerMatches:
		return &LostError{Claim: c, CurrentOwner: f.Current.Owner, CurrentToken: f.Current.Token}
	case f.Expired:
		return &ExpiredError{Claim: c, SecondsAgo: -f.Current.SecondsLeft}
	default:
		return nil
	}
}

// Check reads the newest committed state of the claim's lease, without a lock.
// The comparisons are the server's, as in the guard. By the time it returns, the
// lease may be lost; one that is lost stays so for this claim.
func (s *Store) Check(ctx context.Context, c Claim) (Finding, error) {
	var f Finding
	row := s.db.QueryRowContext(ctx,
		"SELECT owner_token = ?, fence_token = ?, "+untilMS+" <= "+nowMS+", "+columns+" FROM "+s.table+" WHERE lease_name = ?",
		c.Owner, c.Token, c.Name)
	var err error
	f.Current, err = scanInfo(row, &f.OwnerMatches, &f.TokenMatches, &f.Expired)
	if errors.Is(err, sql.ErrNoRows) {
		return Finding{}, nil
	}
	if err != nil {
		return Finding{}, fmt.Errorf("check lease '%s': %w", c.Name, err)
	}
	f.Found = true
	return f, nil
}

// IsHeld tells that the claim's lease is current. A program that asks this
// before a write still races with a takeover: guard the write itself.
func (s *Store) IsHeld(ctx context.Context, c Claim) (bool, error) {
	f, err := s.Check(ctx, c)
	return f.Holds(), err
}
