package rewrite

import "strings"

// scan is a text cut into statements.
type scan struct {
	sql string
	// pieces are the statements between semicolons; empty ones are left out.
	pieces []piece
	// opaque tells that where tokens begin and end depends on what the proxy
	// cannot know: names are then looked for in the bytes. The first trusted
	// bytes are certain all the same.
	opaque  bool
	trusted int
}

// headTokens is how many tokens of an INSERT or REPLACE are kept: enough for its
// modifiers and its table. Its values may be millions.
const headTokens = 24

// cut lexes sql. Of an INSERT or REPLACE only the head is kept, and where nothing
// can follow it, nothing else is read.
func cut(s Session, sql string) scan {
	l := newLexer(sql, s.SQLMode)
	c := scan{sql: sql}
	p := piece{sql: sql}
	long := false
	for {
		t := l.next()
		if t.kind == endToken || t.kind == symbolToken && sql[t.start] == ';' {
			if len(p.tokens) > 0 {
				c.pieces = append(c.pieces, p)
			}
			if t.kind == endToken {
				break
			}
			p, long = piece{sql: sql}, false
			continue
		}
		if long && len(p.tokens) == headTokens {
			if !s.MultiStatements {
				l.sql = sql[:l.pos]
			}
			continue
		}
		p.tokens = append(p.tokens, t)
		if len(p.tokens) == 1 {
			long = p.is(0, "INSERT") || p.is(0, "REPLACE")
		}
	}
	c.trusted = trustedBytes(s, &l)
	c.opaque = l.broken || c.trusted < len(l.sql)
	return c
}

// lex cuts sql into tokens, and tells whether all of them are certain.
func lex(s Session, sql string) (tokens []token, certain bool) {
	l := newLexer(sql, s.SQLMode)
	for t := l.next(); t.kind != endToken; t = l.next() {
		tokens = append(tokens, t)
	}
	return tokens, !l.broken && trustedBytes(s, &l) == len(sql)
}

// piece is one statement's tokens.
type piece struct {
	sql    string
	tokens []token
}

// from is the piece that begins at token i.
func (p piece) from(i int) piece {
	return piece{p.sql, p.tokens[min(i, len(p.tokens)):]}
}

func (p piece) text(i int) string {
	if i < 0 || i >= len(p.tokens) {
		return ""
	}
	return p.sql[p.tokens[i].start:p.tokens[i].end]
}

// word is token i in upper case if it is a keyword or may be one, else "". A word
// after a dot is a name, whatever it spells.
func (p piece) word(i int) string {
	if i < 0 || i >= len(p.tokens) || p.tokens[i].kind != wordToken || p.symbol(i-1, '.') {
		return ""
	}
	return strings.ToUpper(p.text(i))
}

// is tells that token i is the keyword want.
func (p piece) is(i int, want string) bool {
	return i >= 0 && i < len(p.tokens) && p.tokens[i].kind == wordToken && !p.symbol(i-1, '.') &&
		strings.EqualFold(p.text(i), want)
}

// symbol tells that token i is the symbol want.
func (p piece) symbol(i int, want byte) bool {
	return i >= 0 && i < len(p.tokens) && p.tokens[i].kind == symbolToken && p.sql[p.tokens[i].start] == want
}

// find is the index of the first of words that stands outside parentheses from
// token i on, or -1.
func (p piece) find(i int, words ...string) int {
	depth := 0
	for ; i < len(p.tokens); i++ {
		switch {
		case p.symbol(i, '('):
			depth++
		case p.symbol(i, ')'):
			depth--
		case depth != 0:
		default:
			for _, w := range words {
				if p.is(i, w) {
					return i
				}
			}
		}
	}
	return -1
}

// identifier is the name that token i spells, if it can be one.
func (p piece) identifier(i int) (name string, ok bool) {
	if i < 0 || i >= len(p.tokens) {
		return "", false
	}
	switch p.tokens[i].kind {
	case wordToken:
		return p.text(i), true
	case quotedToken:
		text := p.text(i)
		if len(text) < 2 {
			return "", false
		}
		quote := text[:1]
		return strings.ReplaceAll(text[1:len(text)-1], quote+quote, quote), true
	case endToken, numberToken, stringToken, variableToken, symbolToken:
	}
	return "", false
}

// table reads a table's name at token i: name, schema.name, or .name, which means
// the default database. next is the token behind it.
func (p piece) table(i int) (name tableName, next int, ok bool) {
	if p.symbol(i, '.') {
		i++
	}
	first, ok := p.identifier(i)
	if !ok {
		return tableName{}, i, false
	}
	if !p.symbol(i+1, '.') {
		return tableName{name: first}, i + 1, true
	}
	second, ok := p.identifier(i + 2)
	return tableName{first, second}, i + 3, ok
}
