package rewrite

import "strings"

// tokenKind is what a lexer can tell of a token without a grammar.
type tokenKind uint8

const (
	endToken      tokenKind = iota
	wordToken               // keyword or unquoted identifier
	numberToken             // 1, 1.5, .5e-3, 0x1F, 0b01
	quotedToken             // `identifier`, or "identifier" under ANSI_QUOTES
	stringToken             // 'text', or "text" without ANSI_QUOTES
	variableToken           // @name, @`name`, @'name', @@name
	symbolToken             // one byte of anything else
)

// token is a piece of a statement, by byte offsets.
type token struct {
	kind       tokenKind
	start, end int
}

// lexer cuts a statement into tokens as the server's lexer does (MariaDB
// sql/sql_lex.cc; manuals: "String Literals", "Identifier Names", "Comment
// Syntax"). It allocates nothing.
//
// What the server makes of an executable comment depends on its version; its
// content is cut into tokens and executable is set, so that the caller trusts
// nothing from there on.
type lexer struct {
	sql  string
	pos  int
	mode SQLMode
	// last is the kind of the last token, and lastEnd its end: a name may follow
	// a dot that follows a name.
	last    tokenKind
	lastEnd int
	// executable is the offset of the first executable comment, or -1.
	executable int
	inside     bool // an executable comment
	// broken tells that a string, quoted identifier or comment has no end, or
	// that there is a NUL byte outside these. The server refuses such a text.
	broken bool
	// foreign is the offset of the first byte from 0x80 outside strings, quoted
	// identifiers and comments, or -1.
	foreign int
}

func newLexer(sql string, mode SQLMode) lexer {
	return lexer{sql: sql, mode: mode, executable: -1, foreign: -1}
}

// next returns the next token; endToken at the end, again and again.
func (l *lexer) next() token {
	l.skip()
	start := l.pos
	if start == len(l.sql) {
		return token{endToken, start, start}
	}
	kind := l.scan(l.sql[start])
	l.last, l.lastEnd = kind, l.pos
	return token{kind, start, l.pos}
}

func (l *lexer) scan(c byte) tokenKind {
	switch {
	case c >= '0' && c <= '9' && !l.afterNameDot():
		return l.number()
	case isWordByte(c):
		l.word()
		return wordToken
	case c == '\'' || c == '"' && l.mode&ANSIQuotes == 0:
		l.quoted(c, l.mode&NoBackslashEscapes == 0)
		return stringToken
	case c == '`' || c == '"':
		l.quoted(c, false)
		return quotedToken
	case c == '@':
		l.variable()
		return variableToken
	case c == '.' && l.digit(l.pos+1) && !l.afterName():
		l.pos++
		l.fraction()
		return numberToken
	default:
		l.broken = l.broken || c == 0
		l.pos++
		return symbolToken
	}
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '$' || c >= 0x80
}

func (l *lexer) digit(i int) bool { return i < len(l.sql) && l.sql[i] >= '0' && l.sql[i] <= '9' }

// afterName tells that a name ends right here, so that a dot belongs to it.
func (l *lexer) afterName() bool {
	return l.lastEnd == l.pos && (l.last == wordToken || l.last == quotedToken)
}

// afterNameDot tells that the last byte is a dot that stood behind a name.
func (l *lexer) afterNameDot() bool {
	return l.last == symbolToken && l.lastEnd == l.pos && l.pos > 1 && l.sql[l.pos-1] == '.' &&
		(isWordByte(l.sql[l.pos-2]) || l.sql[l.pos-2] == '`' || l.sql[l.pos-2] == '"')
}

func (l *lexer) word() {
	for l.pos < len(l.sql) && isWordByte(l.sql[l.pos]) {
		if l.sql[l.pos] >= 0x80 && l.foreign < 0 {
			l.foreign = l.pos
		}
		l.pos++
	}
}

// number moves past a number, or past an identifier that begins with digits. An
// exponent ends a number even where letters follow: 1e5WHERE is two tokens, and
// 15WHERE is an identifier.
func (l *lexer) number() tokenKind {
	start := l.pos
	if rest := l.sql[start:]; strings.HasPrefix(rest, "0x") || strings.HasPrefix(rest, "0b") {
		l.word()
		if isRadix(l.sql[start+1], l.sql[start+2:l.pos]) {
			return numberToken
		}
		return wordToken
	}
	for l.digit(l.pos) {
		l.pos++
	}
	if l.exponent() {
		return numberToken
	}
	if l.pos < len(l.sql) && isWordByte(l.sql[l.pos]) {
		l.word()
		return wordToken
	}
	if l.pos < len(l.sql) && l.sql[l.pos] == '.' {
		l.pos++
		l.fraction()
	}
	return numberToken
}

func isRadix(radix byte, digits string) bool {
	for _, c := range []byte(digits) {
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if !hex || radix == 'b' && c > '1' {
			return false
		}
	}
	return digits != ""
}

func (l *lexer) fraction() {
	for l.digit(l.pos) {
		l.pos++
	}
	l.exponent()
}

// exponent moves past e, a sign and digits, if they are there.
func (l *lexer) exponent() bool {
	i := l.pos
	if i >= len(l.sql) || lower(l.sql[i]) != 'e' {
		return false
	}
	i++
	if i < len(l.sql) && (l.sql[i] == '+' || l.sql[i] == '-') {
		i++
	}
	if !l.digit(i) {
		return false
	}
	for l.digit(i) {
		i++
	}
	l.pos = i
	return true
}

// quoted moves past a quoted piece. A doubled quote stands for one.
func (l *lexer) quoted(quote byte, backslash bool) {
	for l.pos++; l.pos < len(l.sql); l.pos++ {
		switch c := l.sql[l.pos]; {
		case c == '\\' && backslash:
			l.pos++
		case c != quote:
		case l.pos+1 < len(l.sql) && l.sql[l.pos+1] == quote:
			l.pos++
		default:
			l.pos++
			return
		}
	}
	l.pos = len(l.sql)
	l.broken = true
}

// variable moves past @name or @@name. The name may be quoted in any way, and
// has dots.
func (l *lexer) variable() {
	for l.pos < len(l.sql) && l.sql[l.pos] == '@' {
		l.pos++
	}
	if l.pos == len(l.sql) {
		return
	}
	switch c := l.sql[l.pos]; c {
	case '\'', '"':
		l.quoted(c, l.mode&NoBackslashEscapes == 0 && (c == '\'' || l.mode&ANSIQuotes == 0))
	case '`':
		l.quoted(c, false)
	default:
		for l.pos < len(l.sql) && (isWordByte(l.sql[l.pos]) || l.sql[l.pos] == '.') {
			l.word()
			if l.pos < len(l.sql) && l.sql[l.pos] == '.' {
				l.pos++
			}
		}
	}
}
