package rewrite

// class says how a statement is judged. It is read off the first word.
type class uint8

const (
	// unknownClass: what it does is not known. Compound statements are among it.
	unknownClass class = iota
	// reads: it writes no table's rows, nor changes what a table is.
	reads
	// inserts and the other writes are DML: they do not commit before they write,
	// so that a bracket's lock is held while they do. This alone makes a bracket
	// sound.
	inserts
	updates
	deletes
	loads
	// withs: a common table expression, before a SELECT or DML.
	withs
	// creates, alters, drops and replaces (TRUNCATE, RENAME, …) commit before they
	// act, which would end a bracket's transaction and let its lock go.
	creates
	alters
	drops
	replaces
	locks
	// begins: BEGIN, or a compound statement.
	begins
	// sets: SET, or SET STATEMENT … FOR another statement.
	sets
	// analyzes: ANALYZE TABLE, or MariaDB's ANALYZE, which executes a statement.
	analyzes
	// explains: EXPLAIN, or EXPLAIN ANALYZE, which executes a statement.
	explains
	prepares
	executes
	// distributes: XA.
	distributes
	// hides: it does what its text does not say (BINLOG).
	hides
)

// classes is the table of first words (manuals: "SQL Statements", "Statements That
// Cause an Implicit Commit"). What is not in it is of unknownClass.
var classes = map[string]class{
	"(": reads, "SELECT": reads, "TABLE": reads, "VALUES": reads, "SHOW": reads, "HELP": reads, "DO": reads,
	"HANDLER": reads, "CHECK": reads, "CHECKSUM": reads, "OPTIMIZE": reads, "CACHE": reads,
	"START": reads, "COMMIT": reads, "ROLLBACK": reads, "SAVEPOINT": reads, "RELEASE": reads, "UNLOCK": reads,
	"USE": reads, "KILL": reads, "FLUSH": reads, "DEALLOCATE": reads, "SIGNAL": reads, "RESIGNAL": reads,
	"GET": reads, "GRANT": reads, "REVOKE": reads, "PURGE": reads, "RESET": reads,
	// What a procedure writes is not seen here.
	"CALL": reads,

	"INSERT": inserts, "REPLACE": inserts, "UPDATE": updates, "DELETE": deletes, "LOAD": loads, "WITH": withs,

	"CREATE": creates, "ALTER": alters, "DROP": drops, "TRUNCATE": replaces, "RENAME": replaces,
	"IMPORT": replaces, "REPAIR": replaces, "LOCK": locks,

	"BEGIN": begins, "SET": sets, "ANALYZE": analyzes, "EXPLAIN": explains, "DESCRIBE": explains, "DESC": explains,
	"PREPARE": prepares, "EXECUTE": executes, "XA": distributes, "BINLOG": hides,
}

// classOf is the class of a statement.
func (p piece) classOf() class {
	if p.symbol(0, '(') {
		return classes["("]
	}
	return classes[p.word(0)]
}
