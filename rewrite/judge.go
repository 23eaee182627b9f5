package rewrite

import (
	"fmt"
	"strings"
)

// Plan judges one packet's text. It never fails: what cannot be understood and may
// write a protected table is bracketed where that is sound, and refused where it
// is not.
func (r *Rules) Plan(s Session, sql string) Plan {
	j := judge{Rules: r, session: s, scan: cut(s, sql)}
	p := j.plan()
	if p.guarded() {
		if readsCounts(s, sql) {
			return Plan{Kind: Refuse, Write: p.Write, Reason: Unsupported, Why: countsWhy}
		}
		p.Guard = r.bracketGuard(p.Write.Lease)
	}
	return p.Under(s)
}

// PlanPrepared judges a text that is prepared now and executed later, each time
// under what Plan.Under makes of the plan. The server reads the text again once a
// table has changed: with the sql_mode of its preparation, but in the character
// set that the session has by then (measured on MariaDB 10.11).
func (r *Rules) PlanPrepared(s Session, sql string) Plan {
	s.ForgedClock, s.HoldsGuard = false, false
	if hidingPair(sql) {
		s.Charset = "" // as one that may hide where strings end
	}
	return r.Plan(s, sql)
}

// judge is the work on one text.
type judge struct {
	*Rules
	session Session
	scan    scan
	// anySchema matches unqualified names in any schema: the schema in which they
	// are looked up is not known.
	anySchema bool
	// whole tells that the text is one plain statement, into which a guard can be
	// spliced.
	whole bool
}

const (
	noneWhy    = "it writes no protected table"
	dynamicWhy = "it runs a statement from text that cannot be judged; send the statement itself, or prepare it with the binary protocol"
	severalWhy = "one packet has several statements, of which one may write it; send them one by one"
	unsureWhy  = "it has executable comments or characters that may hide where strings end"
	syntaxWhy  = "its syntax is not known to the parser"
)

func pass(why string) Plan { return Plan{Kind: Pass, Why: why} }

func (j *judge) plan() Plan {
	pieces := j.scan.pieces
	switch {
	case j.scan.opaque:
		return j.planOpaque()
	case len(pieces) == 0:
		return pass("there is no statement in it")
	case len(pieces) == 1:
		j.whole = true
		return j.planPiece(pieces[0])
	default:
		return j.planSeveral()
	}
}

// planPiece judges one statement whose tokens are certain.
func (j *judge) planPiece(p piece) Plan {
	switch p.classOf() {
	case reads:
		return pass("it writes no table")
	case inserts:
		return j.planInsert(p)
	case updates, deletes:
		return j.planChange(p)
	case loads:
		return j.planLoad(p)
	case withs:
		return j.planWith(p)
	case creates:
		return j.planCreate(p)
	case alters:
		return j.planAlter(p)
	case drops:
		return j.planDrop(p)
	case replaces:
		return j.planReplace(p)
	case locks:
		return j.planLock(p)
	case begins:
		if len(p.tokens) == 1 || p.is(1, "WORK") {
			return pass("it writes no table")
		}
		return j.planUnknown(p)
	case sets:
		return j.planSet(p)
	case analyzes:
		return j.planAnalyze(p)
	case explains:
		return j.planExplain(p)
	case prepares:
		return j.planPrepare(p)
	case executes:
		return j.planExecute(p)
	case distributes:
		return Plan{Kind: Pass, Why: noneWhy, unlocks: p.is(1, "PREPARE")}
	case hides:
		return Plan{Kind: Refuse, Reason: Unsupported, Why: "what it writes cannot be read from its text"}
	case unknownClass:
	}
	return j.planUnknown(p)
}

// planUnknown judges what is not in the table of statements: it is refused if it
// names a protected table, or may run a statement from text.
func (j *judge) planUnknown(p piece) Plan {
	f := j.named(p)
	if !f.nothing() {
		return j.refuse(f, "it is not a statement that can be guarded")
	}
	if runsText(p) {
		return Plan{Kind: Refuse, Reason: Unsupported, Why: dynamicWhy}
	}
	return pass("it names no protected table")
}

func runsText(p piece) bool {
	for i := range p.tokens {
		if w := p.word(i); w == "PREPARE" || w == "IMMEDIATE" {
			return true
		}
	}
	return false
}

// planOpaque judges a text of which only the first bytes are certain. Behind them
// names are looked for in the bytes, so that none can hide.
func (j *judge) planOpaque() Plan {
	head := piece{sql: j.scan.sql}
	if len(j.scan.pieces) > 0 {
		for _, t := range j.scan.pieces[0].tokens {
			if t.end > j.scan.trusted || t.end == j.scan.trusted && t.end < len(head.sql) {
				break
			}
			head.tokens = append(head.tokens, t)
		}
	}
	f := j.namedInBytes()
	class := head.classOf()
	hidesText := class != reads && j.mayRunText()
	if f.nothing() && !hidesText {
		return pass("it names no protected table")
	}
	if j.session.MultiStatements && !onlyFinalSemicolon(j.scan.sql) {
		return j.refuse(f, unsureWhy+", and may be several statements")
	}
	switch class {
	case reads:
		return pass("it writes no table")
	case sets, explains:
		if len(head.tokens) > 2 && !head.is(1, "STATEMENT") && !head.is(1, "ANALYZE") {
			return pass("it writes no table")
		}
	case withs:
		if head.word(head.find(1, withVerbs...)) == "SELECT" {
			return pass("it writes no table")
		}
		return j.bracket(f, unsureWhy)
	case inserts:
		if target, next, ok := head.insertTarget(); ok && next < len(head.tokens) {
			f = j.lookUp(target)
		}
		return j.bracket(f, unsureWhy)
	case updates, deletes, loads:
		return j.bracket(f, unsureWhy)
	case unknownClass, creates, alters, drops, replaces, locks, begins, analyzes, prepares, executes, distributes, hides:
	}
	return j.refuse(f, unsureWhy+", and is not plain DML")
}

// mayRunText tells that a word occurs in the bytes which runs a statement from
// text, or drops a schema.
func (j *judge) mayRunText() bool { return j.hidden.in([]byte(j.scan.sql)) }

// onlyFinalSemicolon tells that nothing but white space follows the first
// semicolon.
func onlyFinalSemicolon(sql string) bool {
	_, rest, _ := strings.Cut(sql, ";")
	return strings.TrimSpace(rest) == ""
}

// planSeveral judges a packet of several statements: it passes if each would. What
// may change the default database or how text is read makes what follows it
// uncertain.
func (j *judge) planSeveral() Plan {
	uncertain, unlocks := false, false
	for _, p := range j.scan.pieces {
		if compound(p) {
			return j.sentAlone(j.planPiece(j.rest(p)))
		}
		if uncertain {
			if f := j.namedInBytes(); !f.nothing() || j.mayRunText() {
				return j.refuse(f, severalWhy)
			}
		}
		plan := j.planPiece(p)
		if plan.Kind != Pass {
			return j.sentAlone(plan)
		}
		unlocks = unlocks || plan.unlocks
		uncertain = uncertain || changesReading(p)
	}
	return Plan{Kind: Pass, Why: fmt.Sprintf("none of its %d statements writes a protected table", len(j.scan.pieces)), unlocks: unlocks}
}

// sentAlone is the plan for a packet of several statements of which one has plan.
func (j *judge) sentAlone(plan Plan) Plan {
	if plan.Kind == Pass || plan.Kind == Refuse {
		return plan
	}
	return Plan{Kind: Refuse, Write: plan.Write, Reason: Unsupported, Why: severalWhy}
}

// rest is everything from p's first token on, semicolons and all, as one piece.
func (j *judge) rest(p piece) piece {
	start := p.tokens[0].start
	tokens, _ := lex(j.session, j.scan.sql[start:])
	for i := range tokens {
		tokens[i].start += start
		tokens[i].end += start
	}
	return piece{j.scan.sql, tokens}
}

// compound tells that a statement may have statements with semicolons within it.
func compound(p piece) bool {
	switch p.classOf() {
	case unknownClass:
		return true
	case begins:
		return len(p.tokens) > 1 && !p.is(1, "WORK")
	case creates, alters:
		i := p.objectWord()
		return i < 0 || stored[p.word(i)]
	case reads, inserts, updates, deletes, loads, withs, drops, replaces, locks, sets, analyzes, explains, prepares, executes, distributes, hides:
	}
	return false
}

// changesReading tells that a statement may change the default database, sql_mode
// or character set of those behind it.
func changesReading(p piece) bool {
	switch p.classOf() {
	case reads:
		return p.is(0, "USE") || p.is(0, "CALL")
	case sets:
		return readingWords.in([]byte(p.sql[p.tokens[0].start:p.tokens[len(p.tokens)-1].end]))
	case creates, drops:
		object := p.word(p.objectWord())
		return object == "DATABASE" || object == "SCHEMA"
	case executes, unknownClass, begins:
		return true
	case inserts, updates, deletes, loads, withs, alters, replaces, locks, analyzes, explains, prepares, distributes, hides:
	}
	return false
}

// bracket brackets DML that writes what is found, as far as is known. Without a
// protected table it writes the lease table at most, as a program does that keeps
// its own lease.
func (j *judge) bracket(f found, why string) Plan {
	if len(f.rules) == 0 {
		return pass(noneWhy)
	}
	w, ok := merge(f.rules)
	if !ok {
		return Plan{Kind: Refuse, Write: w, Reason: Unsupported, Why: "it writes tables under two leases, and a session holds one; write them one by one"}
	}
	return Plan{Kind: Bracket, Write: w, Why: why}
}

// refuse refuses a statement that names what is found.
func (j *judge) refuse(f found, why string) Plan {
	p := Plan{Kind: Refuse, Reason: Unsupported, Why: why}
	if len(f.rules) > 0 {
		p.Write, _ = merge(f.rules)
	}
	if f.lease {
		p.Reason = Forbidden
		p.Why = fmt.Sprintf("it may change what the lease table %s is; send it straight to the database", j.lease)
	}
	return p
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
