package config

import "strings"

// suggest is a hint that names the known word that is most like word, or "" when
// none is like it.
func suggest(word string, known []string) string {
	best, nearest := "", 3
	for _, k := range known {
		// Two slips in a word of three letters make another word.
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < nearest && d <= max(1, len(k)/3) {
			best, nearest = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// editDistance is the number of letters inserted, deleted, replaced, or swapped
// with their neighbour that turn a into b (optimal string alignment). Long words
// are no typing mistakes and are not compared.
func editDistance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	beforeLast, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
		beforeLast, last = last, row
	}
	return last[len(b)]
}
