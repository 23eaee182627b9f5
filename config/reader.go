package config

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// reader walks the syntax tree and collects problems. It reads on after one, so
// that a person sees them all at once.
type reader struct {
	file     string
	env      func(string) (string, bool)
	problems []Problem
}

// position is a place in the file; both count from 1.
type position struct{ line, column int }

// value is a node of the tree, where it stands, and what it is called in
// messages ("protect[0].lease").
type value struct {
	node ast.Node
	at   position
	path string
}

// field is one key of a mapping.
type field struct {
	key      string
	required bool
	read     func(value)
}

func (r *reader) problem(at position, hint, format string, args ...any) {
	r.problems = append(r.problems, Problem{
		File: r.file, Line: at.line, Column: at.column,
		Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// mapping reads the fields of v. A mapping without content, as it is when
// everything in it is commented out, has no fields.
func (r *reader) mapping(v value, fields ...field) {
	var entries []*ast.MappingValueNode
	switch node := v.node.(type) {
	case *ast.MappingNode:
		entries = node.Values
	case *ast.NullNode, nil:
	default:
		r.wrongType(v, "keys and values")
		return
	}
	seen := make(map[string]position, len(entries))
	for _, entry := range entries {
		at := positionOf(entry.Key, v.at)
		key, ok := keyOf(entry.Key)
		if !ok {
			r.problem(at, "", "a key%s is not a plain name", in(v.path))
			continue
		}
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if i < 0 {
			r.problem(at, suggest(key, keysOf(fields)), "unknown key %q%s", key, in(v.path))
			continue
		}
		if first, again := seen[key]; again {
			r.problem(at, "remove one of them", "key %q%s is written twice, first in line %d", key, in(v.path), first.line)
			continue
		}
		seen[key] = at
		fields[i].read(value{entry.Value, positionOf(entry.Value, at), join(v.path, key)})
	}
	for _, f := range fields {
		if _, found := seen[f.key]; f.required && !found {
			r.problem(v.at, "", "%s is missing", join(v.path, f.key))
		}
	}
}

// list reads every element of v, which must have one at least.
func (r *reader) list(v value, read func(value)) {
	sequence, ok := v.node.(*ast.SequenceNode)
	if !ok {
		r.wrongType(v, "a list")
		return
	}
	if len(sequence.Values) == 0 {
		r.problem(v.at, "", "%s is empty", v.path)
	}
	for i, node := range sequence.Values {
		read(value{node, positionOf(node, v.at), fmt.Sprintf("%s[%d]", v.path, i)})
	}
}

// wrongType reports that v is not what its key takes.
func (r *reader) wrongType(v value, want string) {
	hint := ""
	_, isText := v.node.(*ast.StringNode)
	switch v.node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		hint = "this file knows no anchors, aliases and tags: write the value out"
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		if want == "text" {
			hint = "put it in quotes"
		}
	}
	if want == "a list" && isText {
		hint = "put it in brackets: [" + v.node.GetToken().Value + "]"
	}
	r.problem(v.at, hint, "%s takes %s, not %s", v.path, want, typeName(v.node))
}

func typeName(node ast.Node) string {
	switch node.(type) {
	case *ast.NullNode, nil:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	default:
		return "a YAML " + node.Type().YAMLName()
	}
}

// keyOf is a key's text. Numbers and the like are no keys of this file, but are
// named in messages as what they are.
func keyOf(key ast.MapKeyNode) (string, bool) {
	switch key := key.(type) {
	case *ast.StringNode:
		return key.Value, true
	case *ast.MergeKeyNode, *ast.IntegerNode, *ast.BoolNode, *ast.NullNode, *ast.FloatNode:
		return key.GetToken().Value, true
	default:
		return "", false
	}
}

// positionOf is where node begins; a node without a token of its own is where
// its parent is. A block mapping's token is its first colon, so its first key
// is taken.
func positionOf(node ast.Node, parent position) position {
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	if node == nil {
		return parent
	}
	token := node.GetToken()
	if token == nil || token.Position == nil || token.Position.Line < 1 || token.Position.Column < 1 {
		return parent
	}
	return position{token.Position.Line, token.Position.Column}
}

func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func in(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}
