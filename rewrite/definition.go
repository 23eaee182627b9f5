package rewrite

import "slices"

const definitionWhy = "it commits before it acts, so that no guard can hold; run schema changes straight at the database"

// objects are what CREATE, ALTER and DROP are about, in all that may follow these
// words.
var objects = []string{
	"TABLE", "TABLES", "SEQUENCE", "VIEW", "INDEX", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE",
	"DATABASE", "SCHEMA", "USER", "ROLE", "SERVER", "PREPARE", "TABLESPACE", "LOGFILE", "INSTANCE",
}

// stored are the objects whose definition has names that are looked up in the
// object's own schema, and statements of its own.
var stored = map[string]bool{"VIEW": true, "TRIGGER": true, "PROCEDURE": true, "FUNCTION": true, "EVENT": true, "PACKAGE": true}

// outside are the objects that hold no rows and no statements.
var outside = map[string]bool{
	"USER": true, "ROLE": true, "SERVER": true, "PREPARE": true, "TABLESPACE": true, "LOGFILE": true, "INSTANCE": true,
}

// objectWord is the index of the word that says what a CREATE, ALTER or DROP is
// about, or -1. Modifiers come before it, some with a value behind an equals sign.
func (p piece) objectWord() int {
	for i := 1; i < len(p.tokens); i++ {
		if p.symbol(i-1, '=') {
			continue
		}
		if slices.Contains(objects, p.word(i)) {
			return i
		}
	}
	return -1
}

// planCreate lets a table be made from a protected one, which only reads it.
func (j *judge) planCreate(p piece) Plan {
	i := p.objectWord()
	object := p.word(i)
	switch {
	case outside[object]:
		return pass(noneWhy)
	case object == "TABLE", object == "SEQUENCE":
		i++
		if p.is(i, "IF") {
			i += 3
		}
		if target, _, ok := p.table(i); ok {
			return j.define(j.lookUp(target))
		}
	case object == "DATABASE", object == "SCHEMA":
		if !p.is(1, "OR") {
			return pass(noneWhy)
		}
		return j.planSchema(p, i)
	case stored[object]:
		j.anySchema = true
	}
	return j.define(j.named(p))
}

// planAlter refuses a change of a table whose text names a protected one, but for
// a foreign key's REFERENCES.
func (j *judge) planAlter(p piece) Plan {
	object := p.word(p.objectWord())
	switch {
	case outside[object], object == "DATABASE", object == "SCHEMA":
		return pass(noneWhy)
	case stored[object]:
		j.anySchema = true
	}
	var f found
	for i := range p.tokens {
		if name, ok := p.identifier(i); ok && !p.referenced(i) {
			f.merge(j.namedAt(p, i, name))
		}
	}
	return j.define(f)
}

// referenced tells that token i is the table of a foreign key's REFERENCES.
func (p piece) referenced(i int) bool {
	return p.is(i-1, "REFERENCES") || p.symbol(i-1, '.') && p.is(i-3, "REFERENCES")
}

func (j *judge) planDrop(p piece) Plan {
	i := p.objectWord()
	switch object := p.word(i); {
	case outside[object]:
		return pass(noneWhy)
	case object == "DATABASE", object == "SCHEMA":
		return j.planSchema(p, i)
	}
	return j.define(j.named(p))
}

// planSchema judges what drops the schema whose object word is token i.
func (j *judge) planSchema(p piece, i int) Plan {
	if name, ok := p.droppedSchema(i); ok {
		return j.define(j.inSchema(name))
	}
	return j.define(j.named(p))
}

// droppedSchema is the schema of a DROP DATABASE or CREATE OR REPLACE DATABASE
// whose object word is token i.
func (p piece) droppedSchema(i int) (name string, ok bool) {
	if !p.is(i, "DATABASE") && !p.is(i, "SCHEMA") || !p.is(i-1, "DROP") && !p.is(i-1, "REPLACE") {
		return "", false
	}
	i++
	if p.is(i, "IF") {
		i += 2
	}
	return p.identifier(i)
}

// planReplace judges TRUNCATE, RENAME and their like.
func (j *judge) planReplace(p piece) Plan {
	if p.is(1, "USER") {
		return pass(noneWhy)
	}
	return j.define(j.named(p))
}

func (j *judge) define(f found) Plan {
	if f.nothing() {
		return pass(noneWhy)
	}
	return j.refuse(f, definitionWhy)
}

// planLock lets a protected table be locked for reading. Under LOCK TABLES …
// WRITE the guard could not read the lease table, and a lock on that would keep
// every lease from being renewed.
func (j *judge) planLock(p piece) Plan {
	if f := j.named(p); f.lease {
		return j.refuse(f, definitionWhy)
	}
	for start, i := 0, 0; i <= len(p.tokens); i++ {
		if i < len(p.tokens) && !p.symbol(i, ',') {
			continue
		}
		one := piece{p.sql, p.tokens[start:i]}
		start = i + 1
		if f := j.named(one); len(f.rules) > 0 && one.find(0, "WRITE") >= 0 {
			return j.refuse(f, "under LOCK TABLES … WRITE the lease table could not be read")
		}
	}
	return pass(noneWhy)
}
