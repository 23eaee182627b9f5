package lease

// Guard renders a claim as SQL, for programs that fence their own writes rather
// than send them through fenceproxy. Both forms take a shared lock on the lease
// row until the transaction ends, read its newest committed state, and match
// nothing once the lease is lost. A write that affects no row then means either
// that its own WHERE matched nothing, or that the lease is lost: ask IsHeld.
type Guard struct {
	table string
	claim Claim
}

// Guard renders c against the store's table.
func (s *Store) Guard(c Claim) Guard { return Guard{table: s.table, claim: c} }

// guardCondition runs in the program's own session: see clock.go for why it does
// not say leased_until > CURRENT_TIMESTAMP(3).
const guardCondition = "__fence.lease_name = ? AND __fence.owner_token = ? AND __fence.fence_token = ? AND UNIX_TIMESTAMP(__fence.leased_until) > @@timestamp"

// Join is for an UPDATE of one table, between the table and SET:
//
//	UPDATE runs JOIN … SET runs.status = 'done' WHERE runs.run_id = 42
//
// Do not use it with ORDER BY, LIMIT or IGNORE, with unqualified columns that the
// lease table has too, or where one assignment reads a column that another sets:
// a joined UPDATE means something else there.
func (g Guard) Join() (text string, args []any) {
	return "JOIN " + g.table + " AS __fence ON " + guardCondition, g.args()
}

// Exists is for the WHERE of any UPDATE, DELETE or INSERT … SELECT. It has an
// explicit LOCK IN SHARE MODE: without it, nothing is locked at READ COMMITTED
// and a stale write can land after a takeover. Do not use it inside VALUES, where
// it would read an old snapshot.
func (g Guard) Exists() (text string, args []any) {
	return "EXISTS (SELECT 1 FROM " + g.table + " AS __fence WHERE " + guardCondition + " LOCK IN SHARE MODE)", g.args()
}

func (g Guard) args() []any { return []any{g.claim.Name, g.claim.Owner, g.claim.Token} }
