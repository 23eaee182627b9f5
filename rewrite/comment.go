package rewrite

import "strings"

// skip moves past white space and comments.
func (l *lexer) skip() {
	for l.pos < len(l.sql) {
		rest := l.sql[l.pos:]
		switch c := rest[0]; {
		case isSpace(c):
			l.pos++
		case c == '#', beginsLineComment(rest):
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
	l.broken = l.broken || l.inside
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// beginsLineComment tells that rest begins with two dashes and white space, a
// control character or the end.
func beginsLineComment(rest string) bool {
	return strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' ' || rest[2] == 0x7f)
}

// skipLine moves past a comment that the end of its line ends. A NUL byte ends it
// too, and with it the text: the server takes it for the end of its input.
func (l *lexer) skipLine(rest string) {
	end := strings.IndexAny(rest, "\n\x00")
	if end < 0 {
		l.pos = len(l.sql)
		return
	}
	l.broken = l.broken || rest[end] == 0
	l.pos += end + 1
}

// comment moves past a comment, or into an executable one.
func (l *lexer) comment(rest string) {
	if marker := executableMarker(rest); marker > 0 {
		if l.executable < 0 {
			l.executable = l.pos
		}
		l.inside = true
		l.pos += marker
		for l.digit(l.pos) {
			l.pos++
		}
		return
	}
	end := strings.Index(rest[2:], "*/")
	if end < 0 {
		l.broken = true
		l.pos = len(l.sql)
		return
	}
	l.pos += end + 4
}

// executableMarker is the length of the marker that begins an executable comment,
// and 0 for another comment: /*!, and MariaDB's /*M!.
func executableMarker(rest string) int {
	switch {
	case strings.HasPrefix(rest, "/*!"):
		return 3
	case strings.HasPrefix(rest, "/*M!"):
		return 4
	default:
		return 0
	}
}
