package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/migrations"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Oldest servers whose locks and syntax fenceproxy is made for.
var (
	oldestMariaDB = serverVersion{10, 6}
	oldestMySQL   = serverVersion{8, 0}
)

// Errors of the server about accounts (MariaDB manual, "MariaDB Error Codes").
const (
	errDatabaseAccessDenied = 1044
	errTableAccessDenied    = 1142
	errColumnAccessDenied   = 1143
)

// onlineChecks verify a configuration against the server.
type onlineChecks struct {
	*checkReport
	config *config.Config
	db     *sql.DB
	// mariaDB tells which server it is; foldNames that it compares table names
	// without regard to case (lower_case_table_names is not 0).
	mariaDB, foldNames bool
	account            string // the control account, quoted
}

// run makes all checks. The error is a query's that should not fail; a check that
// fails is reported.
func (o *onlineChecks) run(ctx context.Context, accounts []account) error {
	var version, control string
	var lowerCase int
	row := o.db.QueryRowContext(ctx, "SELECT VERSION(), CURRENT_USER(), @@lower_case_table_names")
	if err := row.Scan(&version, &control, &lowerCase); err != nil {
		return fmt.Errorf("ask the server for its version: %w", err)
	}
	o.foldNames = lowerCase != 0
	o.account = "the control account"
	if a, err := parseAccount(control); err == nil {
		o.account = a.quoted()
	}
	o.checkVersion(version)
	leaseTable := o.checkLeaseTable(ctx)
	for _, p := range o.config.Protect {
		if err := o.checkProtected(ctx, p); err != nil {
			return err
		}
	}
	if leaseTable {
		if err := o.checkControlGrants(ctx); err != nil {
			return err
		}
	}
	if err := o.checkBackend(ctx); err != nil {
		return err
	}
	if err := o.checkCatalogue(ctx); err != nil {
		return err
	}
	for _, a := range accounts {
		if err := o.checkAccount(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

type serverVersion struct{ major, minor int }

var versionForm = regexp.MustCompile(`^([0-9]+)\.([0-9]+)`)

func (o *onlineChecks) checkVersion(text string) {
	name, oldest := "MySQL", oldestMySQL
	if o.mariaDB = strings.Contains(text, "MariaDB"); o.mariaDB {
		name, oldest = "MariaDB", oldestMariaDB
	}
	match := versionForm.FindStringSubmatch(text)
	if match == nil {
		o.fail("server version %q is in no known form", text)
		return
	}
	major, _ := strconv.Atoi(match[1])
	minor, _ := strconv.Atoi(match[2])
	if major < oldest.major || major == oldest.major && minor < oldest.minor {
		o.fail("server %s %s is older than %d.%d", name, text, oldest.major, oldest.minor)
		return
	}
	o.ok("server %s %s", name, text)
}

// checkLeaseTable reports whether the lease table can be used.
func (o *onlineChecks) checkLeaseTable(ctx context.Context) bool {
	if err := migrations.Verify(ctx, o.db, o.config.LeaseTable.String()); err != nil {
		o.fail("lease table %s: %v", o.config.LeaseTable, err)
		return false
	}
	o.ok("lease table %s", o.config.LeaseTable)
	return true
}

func (o *onlineChecks) checkProtected(ctx context.Context, p config.Protection) error {
	kind, engine, err := o.catalogue(ctx, p.Table)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		o.fail("protected table %s (line %d) does not exist, or %s may not see it", p.Table, p.Line, o.account)
		o.remedy("if it exists: GRANT SELECT ON " + quotedTable(p.Table) + " TO " + o.account + ";")
	case err != nil:
		return fmt.Errorf("look for table %s: %w", p.Table, err)
	case kind != "BASE TABLE":
		o.fail("protected table %s (line %d) is a %s: protect the tables behind it", p.Table, p.Line, strings.ToLower(kind))
	case !strings.EqualFold(engine, "InnoDB"):
		o.fail("protected table %s (line %d) has engine %s, which neither locks rows nor rolls back", p.Table, p.Line, engine)
		o.remedy("ALTER TABLE " + quotedTable(p.Table) + " ENGINE=InnoDB;")
	default:
		o.ok("protected table %s", p.Table)
	}
	return nil
}

// catalogue finds a table. The catalogue compares names without regard to case,
// statements may not.
func (o *onlineChecks) catalogue(ctx context.Context, t rewrite.Table) (kind, engine string, err error) {
	rows, err := o.db.QueryContext(ctx,
		"SELECT table_schema, table_name, table_type, COALESCE(engine, '') FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
		t.Schema, t.Name)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var found rewrite.Table
		if err := rows.Scan(&found.Schema, &found.Name, &kind, &engine); err != nil {
			return "", "", err
		}
		if found == t || o.foldNames && strings.EqualFold(found.String(), t.String()) {
			return kind, engine, nil
		}
	}
	if err := rows.Err(); err != nil {
		return "", "", err
	}
	return "", "", sql.ErrNoRows
}

// checkControlGrants runs statements of the kinds that leases need, none of which
// can change a row: that answers for roles and for grants of every level.
func (o *onlineChecks) checkControlGrants(ctx context.Context) error {
	table := quotedTable(o.config.LeaseTable)
	probes := []struct{ privilege, statement string }{
		{"SELECT", "SELECT lease_name FROM " + table + " WHERE 1 = 0"},
		{"INSERT", "INSERT INTO " + table + " (lease_name, owner_token, fence_token, leased_until) SELECT '', '', 0, CURRENT_TIMESTAMP(3) FROM DUAL WHERE 1 = 0"},
		{"UPDATE", "UPDATE " + table + " SET fence_token = fence_token, owner_token = '' WHERE 1 = 0"},
	}
	var missing []string
	for _, p := range probes {
		_, err := o.db.ExecContext(ctx, p.statement)
		if isDenied(err) {
			missing = append(missing, p.privilege)
		} else if err != nil {
			return fmt.Errorf("try whether the control account may %s on %s: %w", p.privilege, o.config.LeaseTable, err)
		}
	}
	if len(missing) > 0 {
		o.fail("control account %s may not %s on %s", o.account, strings.Join(missing, ", "), o.config.LeaseTable)
		o.remedy("GRANT " + strings.Join(missing, ", ") + " ON " + table + " TO " + o.account + ";")
		return nil
	}
	o.ok("control account %s may SELECT, INSERT, UPDATE on %s", o.account, o.config.LeaseTable)
	return nil
}

func isDenied(err error) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return false
	}
	return e.Number == errDatabaseAccessDenied || e.Number == errTableAccessDenied || e.Number == errColumnAccessDenied
}

func quotedTable(t rewrite.Table) string { return quoted(t.Schema) + "." + quoted(t.Name) }

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
