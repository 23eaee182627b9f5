package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is everything that is wrong with a configuration file.
type Error struct {
	// Problems are in the file's order; there is at least one.
	Problems []Problem
}

// Error is one line a problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Problem is one thing that is wrong, and where.
type Problem struct {
	File string
	// Line and Column count from 1. For a missing key they are the mapping's
	// that lacks it.
	Line, Column int
	Message      string
	// Hint says what to do, "" when the message does.
	Hint string
}

// String is file:line:column, as editors and compilers have it, and the text.
func (p Problem) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	return text
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
