package catalogue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Reader reads a server's catalogue. It is safe for concurrent use.
type Reader struct{ db *sql.DB }

// New makes a Reader that takes a connection of db for the time of each call. The
// account needs the privileges that Inspect misses; README.md lists them.
func New(db *sql.DB) *Reader { return &Reader{db: db} }

// Read reads the views, triggers, routines and foreign keys of all schemas. ctx
// limits the time it may take: the server looks at every table that it has.
//
// What the account may not see at all is left out. What it may see without its text
// has an empty Definition or Text.
func (r *Reader) Read(ctx context.Context) (c rewrite.Catalogue, err error) {
	err = r.withSession(ctx, func(s *session) error {
		if c.Routines, err = s.routines(ctx); err != nil {
			return err
		}
		if c.Triggers, err = s.triggers(ctx); err != nil {
			return err
		}
		if c.Views, err = s.views(ctx); err != nil {
			return err
		}
		c.ForeignKeys, err = s.foreignKeys(ctx)
		return err
	})
	return c, err
}

// session is a connection whose settings make the server's answers independent of
// its configuration.
type session struct{ *sql.Conn }

// settings: names and texts arrive in UTF-8, names quoted by backticks, and no
// answer is cut short.
var settings = []string{
	"SET NAMES utf8mb4",
	"SET SESSION sql_mode = '', sql_quote_show_create = 1, sql_select_limit = 18446744073709551615",
}

// withSession calls f with a connection that is closed afterwards: its settings are
// not for others of the pool.
func (r *Reader) withSession(ctx context.Context, f func(*session) error) error {
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	defer func() {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
	}()
	for _, statement := range settings {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("read the catalogue: %s: %w", statement, err)
		}
	}
	return f(&session{conn})
}

// each calls row for every row of a query. what names it in errors.
func (s *session) each(ctx context.Context, what, query string, args []any, row func(scan func(...any) error) error) error {
	rows, err := s.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

// quoted is a name in backticks, and quotedTable a name with its schema.
func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func quotedTable(t rewrite.Table) string { return quoted(t.Schema) + "." + quoted(t.Name) }
