package rewrite

import "strings"

// matcher finds any of a few ASCII words in bytes without regard to case. It
// allocates nothing.
//
// Each word is looked for by the byte of it that is rarest in SQL, so that most
// bytes of a text cost one look into a table.
type matcher struct {
	words []word
	// heads are, for each byte, the index in words of the first word that is
	// looked for by it, plus one; words with the same rare byte are neighbours.
	heads [256]uint8
}

type word struct {
	text string // in lower case
	rare int    // the offset of its rarest byte
}

// frequent are the letters of SQL, the most frequent first.
const frequent = "etaoinsrdlcu_mpfhgbywvkxjqz"

func newMatcher(texts ...string) matcher {
	byRare := make(map[byte][]word)
	for _, text := range texts {
		w := word{text: strings.ToLower(text)}
		for i := range len(w.text) {
			if rarity(w.text[i]) > rarity(w.text[w.rare]) {
				w.rare = i
			}
		}
		byRare[w.text[w.rare]] = append(byRare[w.text[w.rare]], w)
	}
	var m matcher
	for c := range 256 {
		if words := byRare[byte(c)]; words != nil {
			m.heads[c] = uint8(min(len(m.words)+1, 255))
			m.heads[upper(byte(c))] = m.heads[c]
			m.words = append(m.words, words...)
		}
	}
	return m
}

// rarity is greater for rarer bytes. Digits and others are rarer than letters.
func rarity(c byte) int {
	if i := strings.IndexByte(frequent, c); i >= 0 {
		return i
	}
	return len(frequent)
}

// in tells that one of the words occurs in text.
func (m *matcher) in(text []byte) bool {
	for i, c := range text {
		if head := m.heads[c]; head != 0 && m.around(text, i, int(head)-1) {
			return true
		}
	}
	return false
}

// around tells that a word from number n on has its rare byte at text[i].
func (m *matcher) around(text []byte, i, n int) bool {
	rare := lower(text[i])
	for ; n < len(m.words); n++ {
		w := &m.words[n]
		if w.text[w.rare] > rare {
			return false
		}
		if start := i - w.rare; start >= 0 && hasPrefixFold(text[start:], w.text) {
			return true
		}
	}
	return false
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

// hasPrefixFold tells that text begins with prefix, which is in lower case.
func hasPrefixFold(text []byte, prefix string) bool {
	if len(text) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(text[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// containsFold tells that part, in lower case, occurs in text.
func containsFold(text, part string) bool {
	for i := 0; i+len(part) <= len(text); i++ {
		j := 0
		for j < len(part) && lower(text[i+j]) == part[j] {
			j++
		}
		if j == len(part) {
			return true
		}
	}
	return false
}
