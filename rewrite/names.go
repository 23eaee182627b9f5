package rewrite

import (
	"slices"
	"strings"
	"unicode"
)

// tableName is a table as a statement names it. An empty schema stands for the
// default database.
type tableName struct{ schema, name string }

// found is what a statement names, or writes: rules, without repetition, and
// whether the lease table is among it.
type found struct {
	rules []Rule
	lease bool
}

func (f found) nothing() bool { return len(f.rules) == 0 && !f.lease }

func (f *found) add(rule Rule) {
	if !slices.Contains(f.rules, rule) {
		f.rules = append(f.rules, rule)
	}
}

// lookUp finds the rules of tables.
func (j *judge) lookUp(tables ...tableName) found {
	var f found
	for _, t := range tables {
		for _, rule := range j.rules {
			if j.same(rule.Table, t) {
				f.add(rule)
			}
		}
		f.lease = f.lease || j.same(j.lease, t)
	}
	return f
}

// same tells that name means table, for the session.
func (j *judge) same(table Table, name tableName) bool {
	if !j.equal(table.Name, name.name) {
		return false
	}
	if name.schema == "" {
		return j.anySchema || j.equal(table.Schema, j.session.Database)
	}
	return j.equal(table.Schema, name.schema)
}

// equal compares names of tables and schemas as the server does.
func (j *judge) equal(a, b string) bool {
	if j.session.LowerCaseTableNames == 0 {
		return a == b
	}
	return strings.EqualFold(a, b) || foldName(a) == foldName(b)
}

// foldName is a name in lower case, as the server's: the Kelvin sign becomes k and
// the dotted capital I becomes i.
func foldName(name string) string { return strings.Map(unicode.ToLower, name) }

// equalAlias compares aliases and column qualifiers. It ignores case even where
// the server does not: to find one table too many is safe.
func equalAlias(a, b string) bool { return strings.EqualFold(a, b) || foldName(a) == foldName(b) }

// named finds what a statement names anywhere, by its identifiers. A name behind
// a dot is looked up with its schema, and also alone if the dot may be the one of
// ".name", which means the default database.
func (j *judge) named(p piece) found {
	var f found
	for i := range p.tokens {
		if schema, ok := p.droppedSchema(i); ok {
			f.merge(j.inSchema(schema))
		}
		name, ok := p.identifier(i)
		if !ok {
			continue
		}
		f.merge(j.namedAt(p, i, name))
	}
	return f
}

func (j *judge) namedAt(p piece, i int, name string) found {
	if !p.symbol(i-1, '.') {
		return j.lookUp(tableName{name: name})
	}
	schema, ok := p.identifier(i - 2)
	if !ok {
		return j.lookUp(tableName{name: name})
	}
	f := j.lookUp(tableName{schema, name})
	if p.tokens[i-2].end != p.tokens[i-1].start {
		f.merge(j.lookUp(tableName{name: name}))
	}
	return f
}

func (f *found) merge(other found) {
	for _, rule := range other.rules {
		f.add(rule)
	}
	f.lease = f.lease || other.lease
}

// namedInBytes finds the rules whose table's name occurs anywhere.
func (j *judge) namedInBytes() found {
	text := j.scan.sql
	if j.session.Charset == "latin5" {
		text = strings.ReplaceAll(text, string([]byte{dottedILatin}), "i")
	}
	text = foldName(text)
	var f found
	for _, rule := range j.rules {
		if strings.Contains(text, foldName(rule.Table.Name)) {
			f.add(rule)
		}
	}
	f.lease = strings.Contains(text, foldName(j.lease.Name))
	return f
}

// inSchema finds what a schema holds. It ignores case even where the server does
// not.
func (j *judge) inSchema(schema string) found {
	var f found
	for _, rule := range j.rules {
		if equalAlias(rule.Table.Schema, schema) {
			f.add(rule)
		}
	}
	f.lease = equalAlias(j.lease.Schema, schema)
	return f
}
