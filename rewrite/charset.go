package rewrite

import (
	"unicode"
	"unicode/utf8"
)

// encoding says what a client character set makes of bytes from 0x80.
type encoding uint8

const (
	// hiding: a character's second byte may be a backslash, a quote or a letter,
	// or is not known: nothing behind the first such byte is certain.
	hiding encoding = iota
	// singleByte: strings end where bytes say, but outside of strings a byte may
	// be white space (0xA0 in latin1).
	singleByte
	// utf8Encoding: outside of strings, such bytes are parts of names.
	utf8Encoding
)

// encodings are the client character sets of the servers (manual: "Supported
// Character Sets and Collations"). swe7 is left out on purpose: its letters take
// the places of brackets, the backslash and the backtick.
var encodings = map[string]encoding{
	"utf8": utf8Encoding, "utf8mb3": utf8Encoding, "utf8mb4": utf8Encoding,

	"armscii8": singleByte, "ascii": singleByte, "binary": singleByte, "cp1250": singleByte,
	"cp1251": singleByte, "cp1256": singleByte, "cp1257": singleByte, "cp850": singleByte,
	"cp852": singleByte, "cp866": singleByte, "dec8": singleByte, "geostd8": singleByte,
	"greek": singleByte, "hebrew": singleByte, "hp8": singleByte, "keybcs2": singleByte,
	"koi8r": singleByte, "koi8u": singleByte, "latin1": singleByte, "latin2": singleByte,
	"latin5": singleByte, "latin7": singleByte, "macce": singleByte, "macroman": singleByte,
	"tis620": singleByte,

	"big5": hiding, "cp932": hiding, "eucjpms": hiding, "euckr": hiding, "gb18030": hiding,
	"gb2312": hiding, "gbk": hiding, "sjis": hiding, "ujis": hiding,
}

// trustedBytes is how much of the text a lexer that has read all of it can have
// cut as the server does.
func trustedBytes(s Session, l *lexer) int {
	if s.Charset == "swe7" {
		return 0
	}
	limit := len(l.sql)
	if l.executable >= 0 {
		limit = l.executable
	}
	switch encodings[s.Charset] {
	case hiding:
		limit = min(limit, asciiPrefix(l.sql))
	case singleByte:
		if l.foreign >= 0 {
			limit = min(limit, l.foreign)
		}
	case utf8Encoding:
		if l.foreign >= 0 && !utf8.ValidString(l.sql) {
			limit = min(limit, l.foreign)
		}
	}
	return limit
}

func asciiPrefix(sql string) int {
	for i := range len(sql) {
		if sql[i] >= 0x80 {
			return i
		}
	}
	return len(sql)
}

// plainName tells that every reader of UTF-8 takes word for one identifier: it has
// no character that some take for white space.
func plainName(word string) bool {
	for _, c := range word {
		if c >= 0x80 && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return true
}
