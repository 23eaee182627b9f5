package rewrite

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxDigestText is the longest text of a digest in bytes.
const maxDigestText = 1024

// Digest is the statement with its literals taken out, for logs: statements that
// differ in literals, white space and comments alone have one digest. Where it is
// not certain which bytes are literals, the text ends.
func Digest(s Session, sql string) (text, hash string) {
	c := cut(s, sql)
	var b strings.Builder
	for i := range c.trusted {
		appendDigest(&b, &c, i)
		if b.Len() > maxDigestText {
			break
		}
	}
	if c.opaque {
		b.WriteString(" ...")
	}
	text = collapse(b.String())
	sum := sha256.Sum256([]byte(text))
	if len(text) > maxDigestText {
		text = text[:maxDigestText]
	}
	return strings.ToValidUTF8(text, "?"), hex.EncodeToString(sum[:8])
}

func appendDigest(b *strings.Builder, c *scan, i int) {
	text := c.text(i)
	literal := c.tokens[i].kind == stringToken || c.tokens[i].kind == wordToken && text[0] >= '0' && text[0] <= '9'
	switch {
	case c.tokens[i].kind == stringToken && i > 0 && introduces(c, i-1):
		// x'00', N'text', _utf8'text': one literal with the word before it.
		return
	case literal:
		text = "?"
	case c.tokens[i].kind == wordToken && introduces(c, i) && i+1 < len(c.tokens) && c.tokens[i+1].kind == stringToken:
		text = "?"
	case c.tokens[i].kind == variableToken:
		// A variable's quoted name may be anything.
		if strings.ContainsAny(text, "'\"") {
			text = "@?"
		}
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(text)
}

// introduces tells that word i belongs to a string right behind it.
func introduces(c *scan, i int) bool {
	if c.tokens[i].kind != wordToken || i+1 >= len(c.tokens) || c.tokens[i+1].start != c.tokens[i].end {
		return false
	}
	text := c.text(i)
	return text[0] == '_' || strings.EqualFold(text, "x") || strings.EqualFold(text, "b") || strings.EqualFold(text, "n")
}

// collapse shortens lists of literals, and of lists.
func collapse(text string) string {
	for _, repeated := range []string{"? , ?", "( ... ) , ( ... )", "? . ?", "- ?", "? ?"} {
		short := "?"
		if repeated[0] == '(' {
			short = "( ... )"
			text = strings.ReplaceAll(text, "( ? )", "( ... )")
		}
		for strings.Contains(text, repeated) {
			text = strings.ReplaceAll(text, repeated, short)
		}
	}
	return text
}
