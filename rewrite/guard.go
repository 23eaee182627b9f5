package rewrite

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// alias is the lease table's name in a guard. A statement that has it as an
// identifier of its own is bracketed.
const alias = "__fence"

// guard is what is spliced into the statements of one lease, and its trees, which
// are shared and never changed.
type guard struct {
	join       string
	joinTree   *ast.Join
	exists     string
	existsTree ast.ExprNode
}

// newGuard makes the guards for a lease, "" for the session's @fence_lease.
func (r *Rules) newGuard(lease string) (guard, error) {
	g := guard{join: r.join(lease), exists: r.exists(lease)}
	update, err := guardTree("UPDATE t" + g.join + " SET a = 1")
	if err != nil {
		return g, err
	}
	st, ok := update.(*ast.UpdateStmt)
	if !ok {
		return g, fmt.Errorf("guard %q is not an UPDATE", g.join)
	}
	g.joinTree = st.TableRefs.TableRefs
	remove, err := guardTree("DELETE FROM t WHERE " + g.exists)
	if err != nil {
		return g, err
	}
	g.existsTree = whereOf(remove)
	return g, nil
}

// guardTree parses a statement of the package's own.
func guardTree(sql string) (ast.StmtNode, error) {
	s := Session{Charset: "utf8mb4"}
	sql = forParser(sql)
	tokens, _ := lex(s, sql)
	blanked, ok := blank(piece{sql, tokens})
	if !ok {
		return nil, fmt.Errorf("guard %q cannot be read", sql)
	}
	return parse(s, blanked)
}

// condition is what holds while the session's lease is current. The token is
// cast, since a string variable and a BIGINT would be compared as DOUBLE. The clock
// is compared as seconds since 1970: @@timestamp is the statement's start, as
// CURRENT_TIMESTAMP is, but that is a local time, and in the hour that daylight
// saving repeats it takes current leases for expired and expired ones for current
// (measured on MariaDB 10.11).
func (r *Rules) condition(lease string) string {
	name := "@fence_lease"
	if lease != "" {
		name = "'" + lease + "'"
	}
	return alias + ".lease_name = " + name +
		" AND " + alias + ".owner_token = @fence_owner" +
		" AND " + alias + ".fence_token = CAST(@fence_token AS UNSIGNED)" +
		" AND UNIX_TIMESTAMP(" + alias + ".leased_until) > @@timestamp"
}

// leaseTable is always qualified: USE must not redirect it.
func (r *Rules) leaseTable() string {
	return quoteName(r.lease.Schema) + "." + quoteName(r.lease.Name) + " AS " + alias
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// join reads the lease row by its key and holds a shared lock on it until the
// transaction ends, at any isolation level.
func (r *Rules) join(lease string) string {
	return " JOIN " + r.leaseTable() + " ON " + r.condition(lease)
}

// exists needs its explicit lock: without it, nothing is locked at READ
// COMMITTED, and a stale write lands after a committed takeover. LOCK IN SHARE
// MODE is understood by both servers, FOR SHARE by one.
func (r *Rules) exists(lease string) string {
	return "EXISTS (SELECT 1 FROM " + r.leaseTable() + " WHERE " + r.condition(lease) + " LOCK IN SHARE MODE)"
}

// bracketGuard precedes a statement. Its LIMIT keeps a session's
// sql_select_limit from cutting the row off.
func (r *Rules) bracketGuard(lease string) string {
	return "SELECT 1 FROM " + r.leaseTable() + " WHERE " + r.condition(lease) + " LIMIT 1 LOCK IN SHARE MODE"
}

// The statements around a bracket outside the client's own transactions. They say
// NO CHAIN NO RELEASE, so that the session's completion_type changes nothing.
const (
	BeginStatement    = "START TRANSACTION"
	CommitStatement   = "COMMIT AND NO CHAIN NO RELEASE"
	RollbackStatement = "ROLLBACK AND NO CHAIN NO RELEASE"
)
