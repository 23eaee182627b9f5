package rewrite

import "slices"

// planInsert brackets an INSERT or REPLACE. As INSERT … SELECT … FROM the lease
// table it would be one statement, but would keep its meaning in the plainest
// cases only. The target is the one table that it writes, in all its forms.
func (j *judge) planInsert(p piece) Plan {
	target, _, ok := p.insertTarget()
	if !ok {
		return j.bracket(j.named(p), syntaxWhy)
	}
	return j.bracket(j.lookUp(target), "an INSERT keeps its meaning only as it is")
}

// insertModifiers may stand between INSERT and its table.
var insertModifiers = []string{"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"}

func (p piece) insertTarget() (target tableName, next int, ok bool) {
	i := 1
	for slices.Contains(insertModifiers, p.word(i)) {
		i++
	}
	return p.table(i)
}

// planLoad brackets LOAD DATA and LOAD XML.
func (j *judge) planLoad(p piece) Plan {
	if !p.is(1, "DATA") && !p.is(1, "XML") {
		return pass("it loads no rows")
	}
	for i := range p.tokens {
		if !p.is(i, "INTO") || !p.is(i+1, "TABLE") {
			continue
		}
		if target, _, ok := p.table(i + 2); ok {
			return j.bracket(j.lookUp(target), "LOAD keeps its meaning only as it is")
		}
	}
	return j.bracket(j.named(p), syntaxWhy)
}
