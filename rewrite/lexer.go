package rewrite

import "strings"

// tokenKind is what a lexer can tell of a token without a grammar.
type tokenKind uint8

const (
	endToken      tokenKind = iota
	wordToken               // keyword, unquoted identifier, or number
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

// lexer cuts a statement into tokens, exactly as the server's lexer does where
// it matters here: where strings, quoted identifiers and comments begin and end
// (manuals: "String Literals", "Schema Object Names", "Comments").
//
// What the server makes of an executable comment depends on its version; its
// content is lexed as tokens and executable is set, so that the caller trusts
// nothing from there on.
type lexer struct {
	sql  string
	pos  int
	mode SQLMode
	// executable is the offset of the first executable comment, or -1.
	executable int
	inside     bool // an executable comment
	// unterminated tells that a string, quoted identifier or comment has no end.
	unterminated bool
}

func newLexer(sql string, mode SQLMode) *lexer {
	return &lexer{sql: sql, mode: mode, executable: -1}
}

// next returns the next token; endToken at the end, again and again.
func (l *lexer) next() token {
	l.skip()
	start := l.pos
	if start == len(l.sql) {
		return token{endToken, start, start}
	}
	switch c := l.sql[start]; {
	case isWordByte(c):
		l.word()
		return token{wordToken, start, l.pos}
	case c == '\'' || c == '"' && l.mode&ANSIQuotes == 0:
		l.quoted(c, l.mode&NoBackslashEscapes == 0)
		return token{stringToken, start, l.pos}
	case c == '`' || c == '"':
		l.quoted(c, false)
		return token{quotedToken, start, l.pos}
	case c == '@':
		l.variable()
		return token{variableToken, start, l.pos}
	default:
		l.pos++
		return token{symbolToken, start, l.pos}
	}
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '$' || c >= 0x80
}

func (l *lexer) word() {
	for l.pos < len(l.sql) && isWordByte(l.sql[l.pos]) {
		l.pos++
	}
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
	l.unterminated = true
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
			l.pos++
		}
	}
}

// skip moves past white space and comments.
func (l *lexer) skip() {
	for l.pos < len(l.sql) {
		rest := l.sql[l.pos:]
		switch c := rest[0]; {
		case c <= ' ':
			l.pos++
		case c == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
			l.skipLine(rest)
		case strings.HasPrefix(rest, "/*"):
			l.comment(rest)
		case l.inside && strings.HasPrefix(rest, "*/"):
			l.inside = false
			l.pos += 2
		default:
			return
		}
	}
	if l.inside {
		l.unterminated = true
	}
}

func (l *lexer) skipLine(rest string) {
	end := strings.IndexByte(rest, '\n')
	if end < 0 {
		end = len(rest) - 1
	}
	l.pos += end + 1
}

// comment moves past a comment, or into an executable one: /*! and /*M!, and /*T!
// which only the parser that this package uses would execute.
func (l *lexer) comment(rest string) {
	if marker := executableMarker(rest); marker > 0 {
		if l.executable < 0 {
			l.executable = l.pos
		}
		l.inside = true
		l.pos += marker
		for l.pos < len(l.sql) && l.sql[l.pos] >= '0' && l.sql[l.pos] <= '9' {
			l.pos++
		}
		return
	}
	end := strings.Index(rest[2:], "*/")
	if end < 0 {
		l.unterminated = true
		l.pos = len(l.sql)
		return
	}
	l.pos += end + 4
}

// executableMarker is the length of the marker that begins an executable
// comment, and 0 for another comment.
func executableMarker(rest string) int {
	switch {
	case strings.HasPrefix(rest, "/*!"):
		return 3
	case strings.HasPrefix(rest, "/*M!"), strings.HasPrefix(rest, "/*T!"), strings.HasPrefix(rest, "/*m!"):
		return 4
	default:
		return 0
	}
}

// scan is a statement cut into tokens, with what the tokens alone tell.
type scan struct {
	sql    string
	tokens []token
	// opaque tells that where tokens begin and end depends on what the proxy
	// cannot know: names are then looked for in the bytes.
	opaque bool
	// trusted is the number of leading tokens that hold all the same.
	trusted int
	// several tells that more follows a semicolon.
	several bool
}

// unsafeCharsets have characters whose second byte is a backslash, a quote or a
// backtick to one who reads bytes.
var unsafeCharsets = map[string]bool{
	"big5": true, "cp932": true, "sjis": true, "gbk": true, "gb18030": true, "gb2312": true,
	"eucjpms": true, "ujis": true, "euckr": true,
}

// cut lexes sql whole.
func cut(s Session, sql string) scan {
	l := newLexer(sql, s.SQLMode)
	c := scan{sql: sql}
	limit := len(sql)
	if unsafeCharsets[s.Charset] {
		limit = asciiPrefix(sql)
	}
	for {
		t := l.next()
		if !c.opaque && t.end <= limit && l.executable < 0 && !l.unterminated {
			c.trusted = len(c.tokens) + 1
		}
		if t.kind == endToken {
			break
		}
		if n := len(c.tokens); n > 0 && c.is(n-1, ";") {
			c.several = true
		}
		c.tokens = append(c.tokens, t)
	}
	c.trusted = min(c.trusted, len(c.tokens))
	c.opaque = l.executable >= 0 || l.unterminated || limit < len(sql) || strings.Contains(sql, "/*T")
	return c
}

func asciiPrefix(sql string) int {
	for i := range len(sql) {
		if sql[i] >= 0x80 {
			return i
		}
	}
	return len(sql)
}

func (c *scan) text(i int) string {
	if i < 0 || i >= len(c.tokens) {
		return ""
	}
	return c.sql[c.tokens[i].start:c.tokens[i].end]
}

// is tells that token i is the symbol or, without regard to case, the keyword
// want. A word after a dot is a name, whatever it spells.
func (c *scan) is(i int, want string) bool {
	if i < 0 || i >= len(c.tokens) {
		return false
	}
	switch c.tokens[i].kind {
	case symbolToken:
		return c.text(i) == want
	case wordToken:
		return strings.EqualFold(c.text(i), want) && (i == 0 || c.tokens[i-1].kind != symbolToken || c.text(i-1) != ".")
	case endToken, quotedToken, stringToken, variableToken:
	}
	return false
}

// keyword is token i in upper case if it is a word that can be trusted, else "".
func (c *scan) keyword(i int) string {
	if i >= c.trusted || i >= len(c.tokens) || c.tokens[i].kind != wordToken {
		return ""
	}
	return strings.ToUpper(c.text(i))
}

// hasWord tells that a keyword occurs as a token from i on.
func (c *scan) hasWord(i int, word string) bool {
	for ; i < len(c.tokens); i++ {
		if c.is(i, word) {
			return true
		}
	}
	return false
}

// identifier is the name that token i spells, if it can be one.
func (c *scan) identifier(i int) (name string, ok bool) {
	switch c.tokens[i].kind {
	case wordToken:
		return c.text(i), true
	case quotedToken:
		text := c.text(i)
		if len(text) < 2 {
			return "", false
		}
		quote := text[:1]
		return strings.ReplaceAll(text[1:len(text)-1], quote+quote, quote), true
	case endToken, stringToken, variableToken, symbolToken:
	}
	return "", false
}
