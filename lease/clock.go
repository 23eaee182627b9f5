package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"
)

// Local times are ambiguous for an hour each year where there is daylight saving,
// and the server compares and computes with local times: in that hour,
// leased_until > CURRENT_TIMESTAMP(3) takes current leases for expired and expired
// ones for current. So reads compare seconds since 1970, and writes, which
// compute with times, run in a session whose time zone is UTC.
//
// UNIX_TIMESTAMP of a TIMESTAMP column is the stored value in any time zone;
// UNIX_TIMESTAMP of CURRENT_TIMESTAMP would go through a local time. @@timestamp is
// the statement's start, in seconds with a fraction.

// nowMS and untilMS are the statement's start and the lease's end in milliseconds
// since 1970. The thousandth makes up for @@timestamp being a DOUBLE.
const (
	nowMS   = "FLOOR(@@timestamp * 1000 + 0.001)"
	untilMS = "ROUND(UNIX_TIMESTAMP(leased_until) * 1000)"
)

// session is what a statement that writes needs of its session, and how to give
// a pooled connection back what it had.
type session struct{ prepare, restore string }

var (
	utc = session{
		"SET @lease_time_zone = @@session.time_zone, time_zone = '+00:00'",
		"SET time_zone = @lease_time_zone",
	}
	// acquiring waits for a row lock for a second at most, and begins without an
	// insert id.
	acquiring = session{
		"SET @lease_time_zone = @@session.time_zone, time_zone = '+00:00'," +
			" @lease_lock_wait = @@session.innodb_lock_wait_timeout, innodb_lock_wait_timeout = 1," +
			" @lease_insert_id = LAST_INSERT_ID(0)",
		"SET time_zone = @lease_time_zone, innodb_lock_wait_timeout = @lease_lock_wait",
	}
)

// restoreTimeout limits the statement that restores a session.
const restoreTimeout = time.Second

// in runs do on a connection whose session is as want.prepare makes it.
func (s *Store) in(ctx context.Context, want session, do func(*sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, want.prepare); err != nil {
		return err
	}
	err = do(conn)
	restoring, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if _, restoreErr := conn.ExecContext(restoring, want.restore); restoreErr != nil {
		// A session that was not restored must not be used again.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}
