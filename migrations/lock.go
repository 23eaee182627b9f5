package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const (
	// lockName is one for the whole server: migrations are short and rare.
	lockName = "fenceproxy-migrate"
	// lockSeconds is how long a migration waits for another.
	lockSeconds = 60
)

// ErrBusy tells that another program has been migrating all the time.
var ErrBusy = errors.New("another migration is still running on this server")

// locker makes programs that migrate at once take turns, by a user-level lock of
// the server, which ends with its connection.
type locker struct{}

// SessionLock waits for the lock, or returns ErrBusy.
func (locker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	var got sql.NullBool
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", lockName, lockSeconds).Scan(&got); err != nil {
		return fmt.Errorf("lock %s: %w", lockName, err)
	}
	if !got.Bool {
		return fmt.Errorf("lock %s: waited %d s: %w", lockName, lockSeconds, ErrBusy)
	}
	return nil
}

// SessionUnlock ends the lock.
func (locker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", lockName); err != nil {
		return fmt.Errorf("unlock %s: %w", lockName, err)
	}
	return nil
}
