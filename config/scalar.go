package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// text reads v as text and replaces ${NAME} in it. ok is false when a problem
// was reported.
func (r *reader) text(v value) (s string, ok bool) {
	switch node := v.node.(type) {
	case *ast.StringNode:
		return r.expand(v, node.Value)
	case *ast.LiteralNode:
		return r.expand(v, strings.TrimSuffix(node.Value.Value, "\n"))
	default:
		r.wrongType(v, "text")
		return "", false
	}
}

// source is v as the file has it, for messages: what the environment put in may
// be a secret.
func source(v value) string {
	if block, ok := v.node.(*ast.LiteralNode); ok {
		return strconv.Quote(block.Value.Value)
	}
	return strconv.Quote(v.node.GetToken().Value)
}

// number reads an integer from least to most, from the file or the environment.
func (r *reader) number(v value, least, most int) (n int, ok bool) {
	text, ok := r.numeral(v, "a number")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		r.problem(v.at, "", "%s is %s, not a number from %d to %d", v.path, source(v), least, most)
		return 0, false
	}
	return n, true
}

// numeral is the text of a number, or of text with a variable in it.
func (r *reader) numeral(v value, want string) (text string, ok bool) {
	switch node := v.node.(type) {
	case *ast.IntegerNode:
		return strings.ReplaceAll(node.GetToken().Value, "_", ""), true
	case *ast.StringNode:
		return r.expand(v, node.Value)
	default:
		r.wrongType(v, want)
		return "", false
	}
}

func (r *reader) boolean(v value) (b, ok bool) {
	switch node := v.node.(type) {
	case *ast.BoolNode:
		return node.Value, true
	case *ast.StringNode:
		text, ok := r.expand(v, node.Value)
		if !ok {
			return false, false
		}
		switch text {
		case "true":
			return true, true
		case "false":
			return false, true
		}
		r.problem(v.at, "", "%s is %s, not true or false", v.path, source(v))
		return false, false
	default:
		r.wrongType(v, "true or false")
		return false, false
	}
}

// duration reads a time with its unit, such as 500ms or 1m30s, from least up.
func (r *reader) duration(v value, least time.Duration) (d time.Duration, ok bool) {
	if node, isNumber := v.node.(*ast.IntegerNode); isNumber {
		r.problem(v.at, "write "+node.GetToken().Value+"s for seconds", "%s is %s, a time without a unit", v.path, source(v))
		return 0, false
	}
	text, ok := r.text(v)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		r.problem(v.at, "write it like 500ms, 5s or 1m30s", "%s is %s, not a time", v.path, source(v))
		return 0, false
	}
	if d < least {
		r.problem(v.at, "", "%s is %s, less than %s", v.path, source(v), least)
		return 0, false
	}
	return d, true
}

var (
	sizeForm = regexp.MustCompile(`^([0-9]+) ?([A-Za-z]*)$`)
	sizeUnit = map[string]int{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// size reads a number of bytes, with or without a unit.
func (r *reader) size(v value, least, most int) (bytes int, ok bool) {
	text, ok := r.numeral(v, "a size")
	if !ok {
		return 0, false
	}
	match := sizeForm.FindStringSubmatch(text)
	if match == nil {
		r.problem(v.at, "write it like 65536, 64KiB, 64MiB or 1GiB", "%s is %s, not a size", v.path, source(v))
		return 0, false
	}
	unit, known := sizeUnit[match[2]]
	if !known {
		r.problem(v.at, "the units are B, KiB, MiB and GiB", "%s is %s, a size in an unknown unit", v.path, source(v))
		return 0, false
	}
	n, err := strconv.Atoi(match[1])
	if err != nil || n > math.MaxInt/unit || n*unit < least || n*unit > most {
		r.problem(v.at, "", "%s is %s, not a size from %s to %s", v.path, source(v), sizeText(least), sizeText(most))
		return 0, false
	}
	return n * unit, true
}

// sizeText is n in the largest unit that leaves no fraction.
func sizeText(n int) string {
	for _, unit := range []string{"GiB", "MiB", "KiB"} {
		if n%sizeUnit[unit] == 0 {
			return strconv.Itoa(n/sizeUnit[unit]) + unit
		}
	}
	return strconv.Itoa(n) + "B"
}

// choice is one value of a closed enumeration and its name in the file.
type choice[T any] struct {
	name  string
	value T
}

// choose reads the name of one of the choices.
func choose[T any](r *reader, v value, choices []choice[T]) (chosen T, ok bool) {
	text, ok := r.text(v)
	if !ok {
		return chosen, false
	}
	names := make([]string, len(choices))
	for i, c := range choices {
		if c.name == text {
			return c.value, true
		}
		names[i] = c.name
	}
	r.problem(v.at, suggest(text, names), "%s is %s, not one of %s", v.path, source(v), strings.Join(names, ", "))
	return chosen, false
}
