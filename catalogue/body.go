package catalogue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// bodyCharset is how texts arrive, whatever character_set_client they were written
// in: the session's character_set_results.
const bodyCharset = "utf8mb4"

// program is a stored program as information_schema shows it.
type program struct {
	// text is its body with every literal spelled anew, see exact.
	text string
	// modes is the sql_mode of its creation.
	modes string
	// show is the statement that prints its definition as it was written.
	show string
}

// body reads a program's text as it was written.
func (s *session) body(ctx context.Context, p program) (rewrite.Body, error) {
	b := rewrite.Body{Text: p.text, SQLMode: sqlMode(p.modes), Charset: bodyCharset}
	if !strings.ContainsFunc(p.text, respelled) {
		return b, nil
	}
	whole, err := s.definition(ctx, p.show)
	if err != nil {
		return b, err
	}
	b.Text = exact(p.text, whole)
	return b, nil
}

// exact finds the body in the whole definition, which begins with CREATE; "" tells
// that it cannot be found for certain.
//
// information_schema prints literals by their value: MariaDB doubles quotes, but not
// backslashes, so that 'a\\' becomes 'a\'; MySQL does neither. Read as SQL, such a
// text can hide a statement in what looks like a string. SHOW CREATE prints what the
// author wrote, behind a header whose form depends on the server and on the kind of
// program, and which may hold any text in a comment. What stands before the first
// literal, the head, is the same in both: the body begins at the first head of as many
// as information_schema's has, counted from the end.
func exact(text, whole string) string {
	head := text
	if i := strings.IndexFunc(text, respelled); i >= 0 {
		head = text[:i]
	}
	if head == "" {
		if strings.HasSuffix(whole, text) {
			return text
		}
		return ""
	}
	at := len(whole)
	for range strings.Count(text, head) {
		if at = strings.LastIndex(whole[:at], head); at < 0 {
			return ""
		}
	}
	return whole[at:]
}

// respelled tells that a character may be spelled differently in the two: it is of
// a literal or a quoted name, or is one that a comment's bytes could not be
// converted to.
func respelled(c rune) bool { return c > '~' || strings.ContainsRune("'\"`\\?", c) }

// definition is what a SHOW CREATE statement prints, "" if it prints nothing: the
// program is gone meanwhile, or the account may not see it.
func (s *session) definition(ctx context.Context, show string) (string, error) {
	rows, err := s.QueryContext(ctx, show)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
			return "", fmt.Errorf("%s: %w", show, err)
		}
		return "", nil
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return "", fmt.Errorf("%s: %w", show, err)
	}
	at := slices.IndexFunc(columns, func(name string) bool {
		return strings.HasPrefix(name, "Create ") || name == "SQL Original Statement"
	})
	if at < 0 {
		return "", fmt.Errorf("%s: none of the columns %q is a definition", show, columns)
	}
	fields := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range fields {
		targets[i] = &fields[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return "", fmt.Errorf("%s: %w", show, err)
		}
	}
	if err := rows.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", show, err)
	}
	return fields[at].String, nil
}

// sqlMode reads the flags that change how a text reads. The servers spell out what
// a combination such as ORACLE stands for.
func sqlMode(modes string) rewrite.SQLMode {
	var m rewrite.SQLMode
	for name := range strings.SplitSeq(modes, ",") {
		switch name {
		case "ANSI_QUOTES":
			m |= rewrite.ANSIQuotes
		case "NO_BACKSLASH_ESCAPES":
			m |= rewrite.NoBackslashEscapes
		case "PIPES_AS_CONCAT":
			m |= rewrite.PipesAsConcat
		case "IGNORE_SPACE":
			m |= rewrite.IgnoreSpace
		case "ORACLE":
			m |= rewrite.Oracle
		}
	}
	return m
}
