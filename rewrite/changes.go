package rewrite

import "bytes"

// followed are first words of statements that change none of the session's facts
// unless they name a variable of the identity.
var followed = map[string]bool{
	"select": true, "insert": true, "update": true, "delete": true, "replace": true, "show": true,
	"commit": true, "rollback": true, "start": true, "savepoint": true, "release": true,
	"explain": true, "describe": true, "desc": true, "do": true, "load": true, "truncate": true,
	"with": true, "values": true, "create": true, "alter": true, "lock": true, "unlock": true,
	"prepare": true, "deallocate": true, "kill": true, "flush": true, "analyze": true,
}

// factWords are what a SET must mention to change a fact.
var factWords = newMatcher("fence_", "sql_mode", "names", "char", "collation", "timestamp", "statement", "/*", "default")

var (
	identityWord = newMatcher("fence_")
	compoundWord = newMatcher("atomic", "fence_")
)

// MayChangeFacts tells that the statement may change what the proxy knows of the
// session: its default database, sql_mode, character set, clock, or identity. It
// errs on the side of true, and allocates nothing.
func MayChangeFacts(sql []byte) bool {
	word := firstWord(sql)
	if semicolon := bytes.IndexByte(sql, ';'); semicolon >= 0 && len(bytes.TrimSpace(sql[semicolon+1:])) > 0 {
		return true
	}
	if executableComment(sql) {
		return true
	}
	switch {
	case isWord(word, "set"):
		return factWords.in(sql)
	case isFollowed(word):
		return identityWord.in(sql)
	case isWord(word, "begin"):
		return compoundWord.in(sql)
	default:
		return true
	}
}

// longestFollowed is the length of the longest of the followed words.
const longestFollowed = 10

func isFollowed(word []byte) bool {
	if len(word) == 0 || len(word) > longestFollowed {
		return false
	}
	var folded [longestFollowed]byte
	for i, c := range word {
		folded[i] = lower(c)
	}
	return followed[string(folded[:len(word)])]
}

func executableComment(sql []byte) bool {
	for {
		i := bytes.Index(sql, []byte("/*"))
		if i < 0 || i+2 >= len(sql) {
			return false
		}
		if executableMarkerBytes(sql[i:]) {
			return true
		}
		sql = sql[i+2:]
	}
}
