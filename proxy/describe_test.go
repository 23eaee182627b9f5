package proxy_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-sql-driver/mysql"
)

func asMySQL(err error, e **mysql.MySQLError) bool { return errors.As(err, e) }

// describe runs statement on a driver connection and writes down its whole
// answer.
func describe(out *strings.Builder, dc any, statement string, prepared bool) error {
	ctx := context.Background()
	returnsRows := strings.HasPrefix(statement, "SELECT") || strings.HasPrefix(statement, "SHOW") || strings.Contains(statement, "RETURNING")
	run := func(query func() (driver.Rows, error), exec func() (driver.Result, error)) error {
		if returnsRows {
			rows, err := query()
			if err != nil {
				return err
			}
			return describeRows(out, rows)
		}
		r, err := exec()
		if err != nil {
			return err
		}
		affected, _ := r.RowsAffected()
		id, _ := r.LastInsertId()
		fmt.Fprintf(out, "  affected %d, insert id %d\n", affected, id)
		return nil
	}
	if !prepared {
		return run(
			func() (driver.Rows, error) { return dc.(driver.QueryerContext).QueryContext(ctx, statement, nil) },
			func() (driver.Result, error) { return dc.(driver.ExecerContext).ExecContext(ctx, statement, nil) },
		)
	}
	st, err := dc.(driver.ConnPrepareContext).PrepareContext(ctx, statement)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	fmt.Fprintf(out, "  %d parameters\n", st.NumInput())
	return run(
		func() (driver.Rows, error) { return st.(driver.StmtQueryContext).QueryContext(ctx, nil) },
		func() (driver.Result, error) { return st.(driver.StmtExecContext).ExecContext(ctx, nil) },
	)
}

func describeRows(out *strings.Builder, rows driver.Rows) (err error) {
	defer func() { _ = rows.Close() }()
	fmt.Fprintf(out, "  columns %v\n", rows.Columns())
	values := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(values); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for _, v := range values {
			fmt.Fprintf(out, "  %s", v)
		}
		out.WriteByte('\n')
	}
}
