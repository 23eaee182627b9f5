package rewrite

// class says what a statement that begins with a word can do to a table that it
// names. One table decides for all that the parser cannot read, and for what may
// stand inside a bracket.
type class uint8

const (
	// unknownClass: it may write, in ways that are not known.
	unknownClass class = iota
	// reads: it writes no table.
	reads
	// writes: it is DML. A bracket is sound: the statement does not commit before
	// it writes, so the guard's lock is held while it does.
	writes
	// defines: it commits implicitly before it acts, which would end the
	// bracket's transaction and let the guard's lock go. It cannot be guarded.
	defines
)

// classes are the first words of statements (manuals: "SQL Statements",
// "Statements That Cause an Implicit Commit").
var classes = map[string]class{
	"SELECT": reads, "SHOW": reads, "DESC": reads, "DESCRIBE": reads, "EXPLAIN": reads, "TABLE": reads,
	"VALUES": reads, "DO": reads, "HELP": reads, "HANDLER": reads, "CHECKSUM": reads,
	"BEGIN": unknownClass, "START": reads, "COMMIT": reads, "ROLLBACK": reads, "SAVEPOINT": reads, "RELEASE": reads,
	"USE": reads, "KILL": reads, "FLUSH": reads, "DEALLOCATE": reads, "SIGNAL": reads, "RESIGNAL": reads,
	"GRANT": reads, "REVOKE": reads, "CHECK": reads, "OPTIMIZE": reads, "REPAIR": reads, "UNLOCK": reads,
	"CALL": reads, "GET": reads,

	"INSERT": writes, "UPDATE": writes, "DELETE": writes, "REPLACE": writes, "LOAD": writes, "WITH": writes,

	"CREATE": defines, "ALTER": defines, "DROP": defines, "TRUNCATE": defines, "RENAME": defines, "LOCK": defines,
	"IMPORT": defines,
}
