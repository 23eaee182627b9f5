package rewrite

// SQLMode holds the sql_mode flags that change how a statement reads.
type SQLMode uint8

const (
	ANSIQuotes SQLMode = 1 << iota
	NoBackslashEscapes
	PipesAsConcat
	IgnoreSpace
	Oracle
)

// Session is what a plan needs to know about the session that sends the
// statement. The proxy reads it from the server.
type Session struct {
	// Database is the default database, "" when there is none.
	Database string
	SQLMode  SQLMode
	// Charset is character_set_client, in lower case.
	Charset string
	// ConnectionCharset is character_set_connection, in lower case: statements in
	// string literals (PREPARE) are read in it. "" stands for Charset.
	ConnectionCharset string
	// LowerCaseTableNames is the server's variable of that name: 0 compares
	// table names exactly, 1 and 2 without regard to case.
	LowerCaseTableNames int
	// MultiStatements tells that the server splits one packet at semicolons.
	MultiStatements bool
	// LimitsJoins tells that the server refuses joins for the rows that they examine
	// (sql_safe_updates, or sql_big_selects = 0).
	LimitsJoins bool
	// Autocommit tells that the session is in autocommit mode.
	Autocommit bool
	// ForgedClock tells that the session's CURRENT_TIMESTAMP is not the
	// server's clock (SET timestamp).
	ForgedClock bool
	// HoldsGuard tells that the session's open transaction has a guard's lock.
	HoldsGuard bool
}
