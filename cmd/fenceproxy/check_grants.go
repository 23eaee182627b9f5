package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// account is user@host as the server's tables have it.
type account struct{ user, host string }

// parseAccounts reads the values of --app-user.
func parseAccounts(texts []string) ([]account, error) {
	accounts := make([]account, len(texts))
	for i, text := range texts {
		a, err := parseAccount(text)
		if err != nil {
			return nil, err
		}
		accounts[i] = a
	}
	return accounts, nil
}

// parseAccount reads USER@HOST; the last @ divides, since a user's name can hold
// one. Quotes around either, as in a GRANT, are taken off.
func parseAccount(text string) (account, error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return account{}, fmt.Errorf("account %q is not USER@HOST; for every host write %s@%%", text, text)
	}
	a := account{unquoted(text[:at]), unquoted(text[at+1:])}
	if a.user == "" || a.host == "" || strings.ContainsAny(a.user+a.host, "'\\") {
		return account{}, fmt.Errorf("account %q is not USER@HOST", text)
	}
	return a, nil
}

func unquoted(text string) string {
	if len(text) >= 2 && strings.ContainsRune("'`\"", rune(text[0])) && text[len(text)-1] == text[0] {
		return text[1 : len(text)-1]
	}
	return text
}

// quoted is the account as statements and information_schema's grantee have it.
func (a account) quoted() string { return "'" + a.user + "'@'" + a.host + "'" }

// checkAccount verifies that guards can run in the account's sessions.
func (o *onlineChecks) checkAccount(ctx context.Context, a account) error {
	table := o.config.LeaseTable
	grant := "GRANT SELECT ON " + quotedTable(table) + " TO " + a.quoted() + ";"
	exists, err := o.count(ctx, "SELECT COUNT(*) FROM mysql.user WHERE user = ? AND host = ?", a.user, a.host)
	if isDenied(err) {
		o.fail("account %s: %s may not read the mysql schema, so its grants cannot be seen", a.quoted(), o.account)
		o.remedy("as an administrator: GRANT SELECT ON mysql.* TO " + o.account + "; or to be safe " + grant)
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for account %s: %w", a.quoted(), err)
	}
	if exists == 0 {
		o.fail("account %s does not exist", a.quoted())
		return nil
	}
	may, err := o.maySelect(ctx, a)
	if err != nil {
		return fmt.Errorf("read the grants of %s: %w", a.quoted(), err)
	}
	if !may {
		o.fail("account %s may not SELECT on %s, where its guards read", a.quoted(), table)
		o.remedy(grant)
		return nil
	}
	o.ok("account %s may SELECT on %s", a.quoted(), table)
	return nil
}

// guardColumns are what a guard reads of the lease table.
const guardColumns = 4

// maySelect looks for SELECT on the lease table among the account's own grants,
// its default role's, and what everybody has. LOCK IN SHARE MODE needs no more
// (tried on MariaDB 10.11; MySQL manual, "Locking Reads", since 8.0.22).
func (o *onlineChecks) maySelect(ctx context.Context, a account) (bool, error) {
	grantees, err := o.grantees(ctx, a)
	if err != nil {
		return false, err
	}
	t := o.config.LeaseTable
	for _, grantee := range grantees {
		n, err := o.count(ctx, `SELECT
			(SELECT COUNT(*) FROM information_schema.user_privileges WHERE grantee = ? AND privilege_type = 'SELECT') +
			(SELECT COUNT(*) FROM information_schema.schema_privileges WHERE grantee = ? AND privilege_type = 'SELECT' AND ? LIKE table_schema) +
			(SELECT COUNT(*) FROM information_schema.table_privileges WHERE grantee = ? AND privilege_type = 'SELECT' AND table_schema = ? AND table_name = ?) +
			(SELECT COUNT(*) >= ? FROM information_schema.column_privileges WHERE grantee = ? AND privilege_type = 'SELECT' AND table_schema = ? AND table_name = ?
				AND column_name IN ('lease_name', 'owner_token', 'fence_token', 'leased_until'))`,
			grantee, grantee, t.Schema, grantee, t.Schema, t.Name, guardColumns, grantee, t.Schema, t.Name)
		if err != nil {
			return false, err
		}
		if n > 0 {
			return true, nil
		}
	}
	return false, nil
}

// grantees are the names under which information_schema lists the account's
// privileges: its own, on MariaDB that of its default role with the roles granted
// to that in turn, and PUBLIC.
func (o *onlineChecks) grantees(ctx context.Context, a account) ([]string, error) {
	own := []string{a.quoted()}
	if !o.mariaDB {
		return own, nil
	}
	var role string
	row := o.db.QueryRowContext(ctx, "SELECT default_role FROM mysql.user WHERE user = ? AND host = ?", a.user, a.host)
	if err := row.Scan(&role); err != nil {
		return nil, err
	}
	var roles []string
	for pending := []string{role}; len(pending) > 0; pending = pending[1:] {
		if pending[0] == "" || slices.Contains(roles, pending[0]) {
			continue
		}
		roles = append(roles, pending[0])
		granted, err := o.list(ctx, "SELECT role FROM mysql.roles_mapping WHERE user = ? AND host = ''", pending[0])
		if err != nil {
			return nil, err
		}
		pending = append(pending, granted...)
	}
	for _, r := range append(roles, "PUBLIC") {
		own = append(own, account{user: r}.quoted())
	}
	return own, nil
}

func (o *onlineChecks) count(ctx context.Context, query string, args ...any) (n int, err error) {
	err = o.db.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

func (o *onlineChecks) list(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := o.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}
