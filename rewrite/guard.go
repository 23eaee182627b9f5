package rewrite

import "strings"

// alias is the lease table's name in a guard. A statement that has it as an
// identifier of its own is bracketed.
const alias = "__fence"

// condition is what holds while the session's lease is current. The token is
// cast, since a string variable and a BIGINT would be compared as DOUBLE.
func (r *Rules) condition(lease string) string {
	name := "@fence_lease"
	if lease != "" {
		name = "'" + lease + "'"
	}
	return alias + ".lease_name = " + name +
		" AND " + alias + ".owner_token = @fence_owner" +
		" AND " + alias + ".fence_token = CAST(@fence_token AS UNSIGNED)" +
		" AND " + alias + ".leased_until > CURRENT_TIMESTAMP(3)"
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

// bracket is the guard that precedes a statement. Its LIMIT keeps a session's
// sql_select_limit from cutting the row off.
func (r *Rules) bracket(lease string) string {
	return "SELECT 1 FROM " + r.leaseTable() + " WHERE " + r.condition(lease) + " LIMIT 1 LOCK IN SHARE MODE"
}

// The statements around a bracket outside the client's own transactions. They say
// NO CHAIN NO RELEASE, so that the session's completion_type changes nothing.
const (
	BeginStatement    = "START TRANSACTION"
	CommitStatement   = "COMMIT AND NO CHAIN NO RELEASE"
	RollbackStatement = "ROLLBACK AND NO CHAIN NO RELEASE"
)
