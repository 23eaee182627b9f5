package rewrite

import "strings"

// End says whether a statement ends a transaction.
type End uint8

const (
	NoEnd End = iota
	// EndCommit: COMMIT, or a statement that commits implicitly.
	EndCommit
	// EndRollback: ROLLBACK, but not to a savepoint.
	EndRollback
)

// EndOf tells what a statement does to an open transaction. A packet of several
// statements ends none, whatever they are.
func EndOf(s Session, sql string) End {
	c := cut(s, sql)
	if c.opaque || c.several {
		return NoEnd
	}
	switch word := c.keyword(0); word {
	case "COMMIT":
		return EndCommit
	case "ROLLBACK":
		if c.hasWord(1, "TO") {
			return NoEnd
		}
		return EndRollback
	case "BEGIN":
		if c.is(1, "NOT") {
			return NoEnd
		}
		return EndCommit
	case "START":
		return EndCommit
	case "SET":
		return endOfSet(s, &c)
	case "CREATE", "DROP":
		if c.is(1, "TEMPORARY") || c.is(3, "TEMPORARY") {
			return NoEnd
		}
		return EndCommit
	case "LOAD":
		return NoEnd
	default:
		if commits[word] {
			return EndCommit
		}
		return NoEnd
	}
}

// commits are the first words of further statements that commit implicitly
// (manual: "Statements That Cause an Implicit Commit").
var commits = map[string]bool{
	"ALTER": true, "TRUNCATE": true, "RENAME": true, "LOCK": true, "GRANT": true, "REVOKE": true,
	"ANALYZE": true, "OPTIMIZE": true, "REPAIR": true, "CHECK": true, "CACHE": true, "FLUSH": true,
	"RESET": true, "INSTALL": true, "UNINSTALL": true, "CHANGE": true, "STOP": true,
}

// endOfSet finds SET autocommit = 1 in a session that is not in autocommit mode,
// and SET PASSWORD.
func endOfSet(s Session, c *scan) End {
	if c.is(1, "PASSWORD") {
		return EndCommit
	}
	if s.Autocommit {
		return NoEnd
	}
	for i := range c.tokens {
		name := strings.ToLower(strings.TrimLeft(c.text(i), "@"))
		name = strings.TrimPrefix(strings.TrimPrefix(name, "session."), "local.")
		if name != "autocommit" {
			continue
		}
		value := i + 1
		if c.is(value, ":") {
			value++
		}
		if !c.is(value, "=") {
			continue
		}
		switch strings.ToUpper(strings.Trim(c.text(value+1), `'"`)) {
		case "1", "ON", "TRUE", "DEFAULT":
			return EndCommit
		}
	}
	return NoEnd
}
