package rewrite

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// maxDigestText is the longest text of a digest in bytes.
const maxDigestText = 1024

// Digest is the statement with its literals taken out, for logs: statements that
// differ in literals, white space and comments alone have one text and one hash.
//
// No part of a literal shows, even if sql_mode is not what s says: what is a
// literal to some reading is one to the digest. Where the text cannot be read with
// certainty, it ends with "...".
func Digest(s Session, sql string) (text, hash string) {
	var d digest
	d.read(s, sql)
	d.flush()
	sum := sha256.Sum256([]byte(d.text.String()))
	return shorten(d.text.String()), hex.EncodeToString(sum[:8])
}

func shorten(text string) string {
	if len(text) <= maxDigestText {
		return text
	}
	const dots = " ..."
	end := maxDigestText - len(dots)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}

// digest writes words with single spaces, and shortens lists of literals and lists
// of such lists to their first.
type digest struct {
	text strings.Builder
	// pending are the words that may be the beginning of another list, which is
	// then left out: "," "(" "?" ")".
	pending []string
	// last is the last word written, and list tells that it closes a list of
	// nothing but literals.
	last string
	list bool
	// inList tells that all since the last opening parenthesis are literals.
	inList bool
}

// read lexes sql with and without backslash escapes at once. Where the two differ
// in what is a token, the text is a literal until they meet again.
func (d *digest) read(s Session, sql string) {
	a := newLexer(sql, s.SQLMode&^NoBackslashEscapes)
	b := newLexer(sql, s.SQLMode|NoBackslashEscapes)
	limit := trustedBytes(s, &a)
	foreign := encodings[s.Charset] == utf8Encoding && utf8.ValidString(sql)
	for {
		t := a.next()
		if other := b.next(); t != other || a.pos != b.pos {
			t = token{stringToken, min(t.start, other.start), t.end}
			a.broken = !meet(&a, &b) || a.broken
		}
		if a.broken || t.end > limit || a.executable >= 0 || a.foreign >= 0 && !foreign {
			d.word("...")
			return
		}
		if t.kind == endToken {
			return
		}
		d.token(sql[t.start:t.end], t.kind)
	}
}

// meet moves the lexer that is behind until both are at the same place. It tells
// whether they met before the end.
func meet(a, b *lexer) bool {
	for a.pos != b.pos {
		behind := a
		if b.pos < a.pos {
			behind = b
		}
		if behind.next().kind == endToken {
			return false
		}
	}
	a.last, a.lastEnd, b.last, b.lastEnd = stringToken, a.pos, stringToken, b.pos
	return true
}

func (d *digest) token(text string, kind tokenKind) {
	switch kind {
	case stringToken, numberToken:
		text = "?"
	case quotedToken:
		if text[0] == '"' {
			text = "?" // a string, should sql_mode be another
		}
	case variableToken:
		if strings.ContainsAny(text, "'\"") {
			text = "@?"
		}
	case wordToken, symbolToken, endToken:
	}
	d.word(text)
}

func (d *digest) word(w string) {
	if w == "?" && d.joins() {
		return
	}
	if len(d.pending) > 0 {
		if d.continues(w) {
			return
		}
		d.flush()
	}
	switch {
	case d.list && w == ",":
		d.pending = append(d.pending, w)
	case d.inList && w == "," && d.last == "?":
		d.pending = append(d.pending, w)
	default:
		d.write(w)
	}
}

// joins tells that another literal right here belongs to the one before: x'00' and
// _utf8'text' are a word and a string, and a sign belongs to its number.
func (d *digest) joins() bool {
	return len(d.pending) == 0 && d.last == "?"
}

// continues takes w as part of a list that is left out, if it can be that.
func (d *digest) continues(w string) bool {
	switch n := len(d.pending); {
	case n == 1 && d.inList && w == "?":
		d.pending = d.pending[:0]
		return true
	case n == 1 && d.list && w == "(", n > 1 && w == "?", n > 2 && w == "," && d.pending[n-1] == "?":
		d.pending = append(d.pending, w)
		return true
	case n > 2 && w == ")" && d.pending[n-1] == "?":
		d.pending = d.pending[:0]
		return true
	}
	return false
}

// flush writes what turned out to be no list.
func (d *digest) flush() {
	for _, w := range d.pending {
		d.write(w)
	}
	d.pending = d.pending[:0]
}

func (d *digest) write(w string) {
	d.list = w == ")" && d.inList && d.last == "?"
	d.inList = w == "(" || d.inList && (w == "?" || w == ",")
	d.last = w
	if d.text.Len() > 0 {
		d.text.WriteByte(' ')
	}
	d.text.WriteString(strings.ToValidUTF8(w, "?"))
}
