package rewrite

import "unsafe"

// plain are first words of statements that neither set a variable of the system nor
// lock tables, nor run text that may.
var plain = map[string]bool{
	"select": true, "insert": true, "update": true, "delete": true, "replace": true, "load": true, "with": true,
	"values": true, "table": true, "do": true, "show": true, "explain": true, "describe": true, "desc": true,
	"commit": true, "rollback": true, "start": true, "savepoint": true, "release": true,
	"create": true, "alter": true, "drop": true, "truncate": true, "rename": true, "grant": true, "revoke": true,
}

var (
	clockWord = newMatcher("timestamp")
	flushWord = newMatcher("flush")
)

// MayLast tells what a statement may do, or prepare, that lasts and that the server
// does not tell: whether it locks tables (by LOCK TABLES, or by FLUSH TABLES), and
// whether it sets the session's clock, which may then stand still. It errs on the
// side of true, and allocates nothing.
func MayLast(sql []byte) (locksTables, setsClock bool) {
	if isPlain(sql) {
		return false, false
	}
	return flushWord.in(sql) || namesLockTables(sql), clockWord.in(sql)
}

// isPlain tells that a text is certainly one of the plain statements.
func isPlain(sql []byte) bool {
	text := unsafe.String(unsafe.SliceData(sql), len(sql)) // only read, and not kept
	l := newLexer(text, 0)
	first := l.next()
	if l.executable >= 0 || first.end-first.start > longestFollows {
		return false
	}
	var folded [longestFollows]byte
	for i, c := range sql[first.start:first.end] {
		folded[i] = lower(c)
	}
	return plain[string(folded[:first.end-first.start])] && !several(text)
}

// namesLockTables finds LOCK TABLE or LOCK TABLES anywhere, in a string too.
func namesLockTables(sql []byte) bool {
	const lock = "lock"
	for i := range sql {
		if !hasPrefixFold(sql[i:], lock) || i > 0 && isWordByte(sql[i-1]) {
			continue
		}
		behind := sql[i+len(lock):]
		l := newLexer(unsafe.String(unsafe.SliceData(behind), len(behind)), 0)
		l.skip()
		if l.pos > 0 && hasPrefixFold(behind[l.pos:], "table") {
			return true
		}
	}
	return false
}
