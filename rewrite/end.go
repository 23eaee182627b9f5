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
// statements, or with an executable comment, ends none: more than an end may be in
// it.
func EndOf(s Session, sql string) End {
	c := cut(s, sql)
	if c.opaque || len(c.pieces) != 1 {
		return NoEnd
	}
	p := c.pieces[0]
	switch word := p.word(0); word {
	case "COMMIT":
		return EndCommit
	case "ROLLBACK":
		if p.find(1, "TO") >= 0 {
			return NoEnd
		}
		return EndRollback
	case "BEGIN":
		return commitsIf(len(p.tokens) == 1 || p.is(1, "WORK"))
	case "SET":
		return endOfSet(s, p)
	case "CREATE":
		return commitsIf(!p.is(1, "TEMPORARY") && !p.is(3, "TEMPORARY"))
	case "DROP":
		return commitsIf(!p.is(1, "TEMPORARY") && !p.is(1, "PREPARE"))
	case "ANALYZE":
		return commitsIf(strings.HasPrefix(p.word(p.find(1, "TABLE", "TABLES", "SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH")), "TABLE"))
	default:
		return commitsIf(commits[word])
	}
}

func commitsIf(yes bool) End {
	if yes {
		return EndCommit
	}
	return NoEnd
}

// commits are the first words of further statements that commit implicitly
// (manual: "Statements That Cause an Implicit Commit").
var commits = map[string]bool{
	"START": true, "ALTER": true, "TRUNCATE": true, "RENAME": true, "LOCK": true, "GRANT": true, "REVOKE": true,
	"OPTIMIZE": true, "REPAIR": true, "CHECK": true, "FLUSH": true,
	"RESET": true, "INSTALL": true, "UNINSTALL": true, "CHANGE": true, "STOP": true,
}

// endOfSet finds SET autocommit = 1 in a session that is not in autocommit mode,
// and SET PASSWORD.
func endOfSet(s Session, p piece) End {
	if p.is(1, "PASSWORD") {
		return EndCommit
	}
	if s.Autocommit {
		return NoEnd
	}
	for i := 1; i < len(p.tokens); i++ {
		name := strings.TrimLeft(strings.ToLower(p.text(i)), "@")
		name = strings.TrimPrefix(strings.TrimPrefix(name, "session."), "local.")
		if name != "autocommit" || p.is(i-1, "GLOBAL") {
			continue
		}
		value := i + 1
		if p.symbol(value, ':') {
			value++
		}
		if !p.symbol(value, '=') || value+2 < len(p.tokens) && !p.symbol(value+2, ',') {
			continue
		}
		switch strings.ToUpper(strings.Trim(p.text(value+1), `'"`)) {
		case "1", "ON", "TRUE", "DEFAULT":
			return EndCommit
		}
	}
	return NoEnd
}
