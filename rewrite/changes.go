package rewrite

import (
	"bytes"
	"strings"
	"unsafe"
)

// follows are first words of statements that change none of the session's facts
// unless they name a variable of the identity.
var follows = map[string]bool{
	"select": true, "insert": true, "update": true, "delete": true, "replace": true, "load": true, "with": true,
	"values": true, "table": true, "do": true, "show": true, "explain": true, "describe": true, "desc": true,
	"commit": true, "rollback": true, "start": true, "savepoint": true, "release": true, "xa": true,
	"truncate": true, "rename": true, "alter": true, "lock": true, "unlock": true, "grant": true, "revoke": true,
	"check": true, "checksum": true, "optimize": true, "analyze": true, "repair": true, "flush": true, "kill": true,
	"handler": true, "prepare": true, "deallocate": true,
}

// longestFollows is the length of the longest of these words.
const longestFollows = 10

// readingWords are what a SET must mention to change how text is read, and
// factWords what it must mention to change a fact.
var (
	readingWords = newMatcher("sql_mode", "names", "char", "collation", "statement", "/*")
	factWords    = newMatcher("sql_mode", "names", "char", "collation", "statement", "/*", "timestamp", "fence_", "safe_updates", "big_selects", "max_join_size")
	schemaWords  = newMatcher("database", "schema")
	compoundWord = newMatcher("not", "fence_")
)

// MayChangeFacts tells that the statement may change what the proxy knows of the
// session: its default database, sql_mode, character set, clock, or identity. It
// errs on the side of true, and allocates nothing.
func MayChangeFacts(sql []byte) bool {
	// The text is only read, and not kept.
	text := unsafe.String(unsafe.SliceData(sql), len(sql))
	l := newLexer(text, 0)
	for {
		t := l.next()
		switch {
		case l.executable >= 0:
			return true
		case t.kind == symbolToken && text[t.start] == '(':
		case t.kind == wordToken:
			return changedBy(sql[t.start:t.end], sql) || several(text) || namesIdentity(sql)
		default:
			return t.kind != endToken
		}
	}
}

// changedBy tells that a statement with this first word may change a fact other
// than the identity.
func changedBy(first, sql []byte) bool {
	if len(first) > longestFollows {
		return true
	}
	var folded [longestFollows]byte
	for i, c := range first {
		folded[i] = lower(c)
	}
	switch name := folded[:len(first)]; string(name) {
	case "set":
		return factWords.in(sql)
	case "create", "drop":
		return schemaWords.in(sql)
	case "begin":
		return compoundWord.in(sql)
	default:
		return !follows[string(name)]
	}
}

// namesIdentity tells that a text may name a variable of the identity: by its name,
// or in the quotes of a string, in which escapes could spell any name.
func namesIdentity(sql []byte) bool {
	for rest := sql; ; {
		i := bytes.IndexByte(rest, '@')
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
		if len(rest) > 0 && (rest[0] == '\'' || rest[0] == '"') {
			return true
		}
		if hasPrefixFold(bytes.TrimPrefix(rest, []byte("`")), "fence_") {
			return true
		}
	}
}

// several tells that a text may have an executable comment or more than one
// statement, whatever the session's sql_mode and character set.
func several(text string) bool {
	if !suspicious(text) {
		return false
	}
	for _, mode := range []SQLMode{0, NoBackslashEscapes, ANSIQuotes} {
		if severalIn(text, mode) {
			return true
		}
	}
	return false
}

// suspicious tells that it takes a lexer to know: a semicolon with something
// behind it, or what begins an executable comment.
func suspicious(text string) bool {
	semicolon := strings.IndexByte(text, ';')
	return semicolon >= 0 && semicolon+1 < len(text) || strings.Contains(text, "/*!") || strings.Contains(text, "/*M!")
}

func severalIn(text string, mode SQLMode) bool {
	l := newLexer(text, mode)
	ended := false
	for {
		t := l.next()
		switch {
		case l.executable >= 0:
			return true
		case t.kind == endToken:
			return l.broken || hidingPair(text)
		case ended:
			return true
		case t.kind == symbolToken:
			ended = text[t.start] == ';'
		}
	}
}

// hidingPair tells that a backslash or backtick follows a byte that may begin a
// character with it, so that strings end elsewhere in some character sets.
func hidingPair(text string) bool {
	for i := 1; i < len(text); i++ {
		if (text[i] == '\\' || text[i] == '`') && text[i-1] >= 0x80 {
			return true
		}
	}
	return false
}
