package rewrite

import (
	"fmt"
	"strings"
)

// Plan judges one packet's text. It never fails: what cannot be understood and
// may write a protected table is bracketed where that is sound, and refused where
// it is not.
func (r *Rules) Plan(s Session, sql string) Plan {
	j := judge{Rules: r, session: s, scan: cut(s, sql)}
	p := j.plan()
	if p.Kind == Join || p.Kind == Exists || p.Kind == Bracket {
		if s.ForgedClock {
			return Plan{Kind: Refuse, Write: p.Write, Reason: Forbidden, Why: "SET timestamp has changed the session's clock, by which the lease would be judged; SET timestamp = DEFAULT first"}
		}
		p.Guard = r.bracket(p.Write.Lease)
	}
	return p
}

// judge is the work on one text.
type judge struct {
	*Rules
	session Session
	scan    scan
}

func (j *judge) plan() Plan {
	if j.scan.opaque {
		return j.planOpaque()
	}
	statements, err := parse(j.session, j.scan.sql)
	switch {
	case err != nil:
		return j.planTokens()
	case len(statements) > 1 || j.scan.several:
		return j.planSeveral(statements)
	case len(statements) == 0:
		return Plan{Kind: Pass, Why: "there is no statement in it"}
	default:
		return j.planParsed(statements[0])
	}
}

// planOpaque judges a text in which only the first tokens are certain. Names are
// looked for in its bytes, so that none can hide.
func (j *judge) planOpaque() Plan {
	named, leaseNamed := j.namedInBytes()
	if len(named) == 0 && !leaseNamed && !j.dynamic() {
		return Plan{Kind: Pass, Why: "it names no protected table"}
	}
	several := strings.Contains(j.scan.sql, ";") && !j.onlyFinalSemicolon()
	class := classes[j.scan.keyword(j.scan.firstWord())]
	switch {
	case several || class == unknownClass || class == defines:
		return j.refuse(named, leaseNamed, "it has executable comments or characters that may hide where strings end, and is not plain DML")
	case class == reads:
		return Plan{Kind: Pass, Why: "it only reads"}
	default:
		return j.bracketNamed(named, "it has executable comments or characters that may hide where strings end")
	}
}

// onlyFinalSemicolon tells that nothing but white space follows the first
// semicolon.
func (j *judge) onlyFinalSemicolon() bool {
	_, rest, _ := strings.Cut(j.scan.sql, ";")
	return strings.TrimSpace(rest) == ""
}

// firstWord is the index of the first token after opening parentheses.
func (c *scan) firstWord() int {
	i := 0
	for c.is(i, "(") {
		i++
	}
	return i
}

// planTokens judges a statement that the parser cannot read: MariaDB's own
// syntax, newer syntax, or a mistake. The server's own error is the best answer
// to a mistake, so DML with one is bracketed and sent.
func (j *judge) planTokens() Plan {
	named, leaseNamed := j.namedInTokens()
	if j.scan.several {
		// The statements may change how the next is read.
		named, leaseNamed = j.namedInBytes()
	}
	first := j.scan.firstWord()
	word := j.scan.keyword(first)
	if j.scan.several && j.dynamic() {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	if word == "EXECUTE" && j.scan.is(first+1, "IMMEDIATE") {
		return j.planImmediate(first + 2)
	}
	if word == "PREPARE" || (word != "CREATE" && word != "ALTER" && classes[word] == unknownClass && j.dynamic()) {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	if len(named) == 0 && !leaseNamed {
		return Plan{Kind: Pass, Why: "it names no protected table"}
	}
	if j.scan.several {
		return j.refuse(named, leaseNamed, severalWhy)
	}
	class := classes[word]
	if word == "SET" && j.scan.is(first+1, "STATEMENT") {
		class = j.setStatementClass(first)
	}
	if word == "ANALYZE" || word == "EXPLAIN" {
		class = j.analyzeClass(first)
	}
	switch class {
	case reads:
		return Plan{Kind: Pass, Why: "it only reads"}
	case writes:
		return j.bracketNamed(named, "the parser does not know its syntax")
	case unknownClass, defines:
	}
	return j.refuse(named, leaseNamed, "it is not a statement that can be guarded")
}

const (
	dynamicWhy = "it runs a statement from text that cannot be judged; send the statement itself, or prepare it with the binary protocol"
	severalWhy = "one packet has several statements, of which one may write it; send them one by one"
)

// setStatementClass is the class of the statement behind MariaDB's SET STATEMENT
// … FOR; the bracket's guard runs outside it.
func (j *judge) setStatementClass(first int) class {
	depth := 0
	for i := first; i < len(j.scan.tokens); i++ {
		switch {
		case j.scan.is(i, "("):
			depth++
		case j.scan.is(i, ")"):
			depth--
		case depth == 0 && j.scan.is(i, "FOR"):
			return classes[j.scan.keyword(i+1)]
		}
	}
	return unknownClass
}

// analyzeClass is the class of what ANALYZE or EXPLAIN is about. MariaDB's ANALYZE
// executes the statement; ANALYZE TABLE writes statistics only.
func (j *judge) analyzeClass(first int) class {
	executes := j.scan.is(first, "ANALYZE") || j.scan.is(first+1, "ANALYZE")
	for i := first + 1; i < len(j.scan.tokens); i++ {
		if c := classes[j.scan.keyword(i)]; c == writes || c == reads {
			if !executes {
				return reads
			}
			return c
		}
	}
	return unknownClass
}

// dynamic tells that the text may run a statement that it builds.
func (j *judge) dynamic() bool {
	return containsFold(j.scan.sql, "prepare") || containsFold(j.scan.sql, "immediate")
}

// namedInBytes finds the rules whose table's name occurs anywhere.
func (j *judge) namedInBytes() (named []Rule, lease bool) {
	for _, rule := range j.rules {
		if containsFold(j.scan.sql, strings.ToLower(rule.Table.Name)) || j.dropsSchema(rule.Table.Schema) {
			named = append(named, rule)
		}
	}
	return named, containsFold(j.scan.sql, strings.ToLower(j.lease.Name)) || j.dropsSchema(j.lease.Schema)
}

// dropsSchema tells that the text may have a DROP DATABASE of schema in it.
func (j *judge) dropsSchema(schema string) bool {
	return containsFold(j.scan.sql, "drop") && containsFold(j.scan.sql, strings.ToLower(schema)) &&
		(containsFold(j.scan.sql, "database") || containsFold(j.scan.sql, "schema"))
}

// namedInTokens finds the rules whose table is named by an identifier that is
// not plainly another schema's.
func (j *judge) namedInTokens() (named []Rule, lease bool) {
	for i := range j.scan.tokens {
		name, ok := j.scan.identifier(i)
		if !ok {
			continue
		}
		schema := ""
		if i >= 2 && j.scan.text(i-1) == "." {
			schema, _ = j.scan.identifier(i - 2)
		}
		for _, rule := range j.rules {
			if j.sameTable(rule.Table, schema, name) {
				named = append(named, rule)
			}
		}
		lease = lease || j.sameTable(j.lease, schema, name)
	}
	for i := range j.scan.tokens {
		schema := j.droppedSchema(i)
		if schema == "" {
			continue
		}
		for _, rule := range j.rules {
			if strings.EqualFold(rule.Table.Schema, schema) {
				named = append(named, rule)
			}
		}
		lease = lease || strings.EqualFold(j.lease.Schema, schema)
	}
	return named, lease
}

// droppedSchema is the schema that a DROP DATABASE beginning at token i drops.
func (j *judge) droppedSchema(i int) string {
	if !j.scan.is(i, "DROP") || !j.scan.is(i+1, "DATABASE") && !j.scan.is(i+1, "SCHEMA") {
		return ""
	}
	i += 2
	if j.scan.is(i, "IF") && j.scan.is(i+1, "EXISTS") {
		i += 2
	}
	if i >= len(j.scan.tokens) {
		return ""
	}
	name, _ := j.scan.identifier(i)
	return name
}

// sameTable tells that schema.name is table, for the session. An empty schema
// stands for the default database.
func (j *judge) sameTable(table Table, schema, name string) bool {
	equal := func(a, b string) bool { return a == b }
	if j.session.LowerCaseTableNames != 0 {
		equal = strings.EqualFold
	}
	if !equal(table.Name, name) {
		return false
	}
	if schema == "" {
		return equal(table.Schema, j.session.Database)
	}
	return equal(table.Schema, schema)
}

// bracketNamed brackets a statement that writes the tables of rules, as far as is
// known. Without one it writes the lease table at most, as a program does that
// keeps its own lease.
func (j *judge) bracketNamed(named []Rule, why string) Plan {
	if len(named) == 0 {
		return Plan{Kind: Pass, Why: "it writes no protected table"}
	}
	w, ok := merge(named)
	if !ok {
		return Plan{Kind: Refuse, Write: w, Reason: Unsupported, Why: twoLeasesWhy}
	}
	return Plan{Kind: Bracket, Write: w, Why: why}
}

const twoLeasesWhy = "it writes tables under two leases, and a session holds one; write them one by one"

// refuse refuses a statement that names the tables of rules, or the lease table.
func (j *judge) refuse(named []Rule, lease bool, why string) Plan {
	if lease {
		return Plan{Kind: Refuse, Reason: Forbidden, Why: fmt.Sprintf("it may change what %s is; send it straight to the database", j.lease)}
	}
	if len(named) == 0 {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: why}
	}
	w, _ := merge(named)
	return Plan{Kind: Refuse, Write: w, Reason: Unsupported, Why: why}
}

// merge is the strictest policy of rules, which is not empty. ok is false when
// they are under different leases.
func merge(rules []Rule) (w Write, ok bool) {
	w = Write(rules[0])
	ok = true
	for _, rule := range rules[1:] {
		ok = ok && rule.Lease == w.Lease
		w.Mode = min(w.Mode, rule.Mode)
		w.OnUnfenced = min(w.OnUnfenced, rule.OnUnfenced)
		w.OnReject = min(w.OnReject, rule.OnReject)
	}
	return w, ok
}
