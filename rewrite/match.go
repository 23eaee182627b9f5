package rewrite

import "strings"

// matcher finds any of a few ASCII words in bytes without regard to case. It
// allocates nothing.
type matcher struct {
	words []string // in lower case
	first [256]bool
}

func newMatcher(words ...string) matcher {
	var m matcher
	for _, w := range words {
		if w == "" {
			continue
		}
		w = strings.ToLower(w)
		m.words = append(m.words, w)
		m.first[w[0]] = true
		m.first[upper(w[0])] = true
	}
	return m
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}

// in tells that one of the words occurs in text.
func (m *matcher) in(text []byte) bool {
	for i, c := range text {
		if !m.first[c] {
			continue
		}
		for _, w := range m.words {
			if hasPrefixFold(text[i:], w) {
				return true
			}
		}
	}
	return false
}

// hasPrefixFold tells that text begins with word, which is in lower case.
func hasPrefixFold(text []byte, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if lower(text[i]) != word[i] {
			return false
		}
	}
	return true
}

// containsFold tells that word, in lower case, occurs in text.
func containsFold(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		j := 0
		for j < len(word) && lower(text[i+j]) == word[j] {
			j++
		}
		if j == len(word) {
			return true
		}
	}
	return false
}

// firstWord returns the statement's first word, after white space, opening
// parentheses and plain comments; nil if it begins with anything else, such as
// an executable comment. It allocates nothing.
func firstWord(sql []byte) []byte {
	for i := 0; i < len(sql); {
		switch c := sql[i]; {
		case c <= ' ' || c == '(':
			i++
		case c == '#' || c == '-' && i+1 < len(sql) && sql[i+1] == '-':
			for i < len(sql) && sql[i] != '\n' {
				i++
			}
		case c == '/' && i+2 < len(sql) && sql[i+1] == '*':
			if executableMarkerBytes(sql[i:]) {
				return nil
			}
			end := i + 2
			for end+1 < len(sql) && (sql[end] != '*' || sql[end+1] != '/') {
				end++
			}
			i = end + 2
		default:
			end := i
			for end < len(sql) && isWordByte(sql[end]) {
				end++
			}
			return sql[i:end]
		}
	}
	return nil
}

func executableMarkerBytes(rest []byte) bool {
	return rest[2] == '!' || len(rest) > 3 && (lower(rest[2]) == 'm' || rest[2] == 'T') && rest[3] == '!'
}

func isWord(word []byte, want string) bool {
	return len(word) == len(want) && hasPrefixFold(word, want)
}
