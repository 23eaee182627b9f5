package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// Table names a table. Both parts are as the server stores them.
type Table struct{ Schema, Name string }

func (t Table) String() string { return t.Schema + "." + t.Name }

// Mode says whether a rule's rejections take effect.
type Mode uint8

const (
	// Enforce rejects what the guard does not let through.
	Enforce Mode = iota
	// Observe runs every statement as it is and reports what Enforce would
	// have rejected.
	Observe
)

// OnUnfenced says what becomes of a write by a session without an identity.
type OnUnfenced uint8

const (
	UnfencedReject OnUnfenced = iota
	UnfencedObserve
	UnfencedAllow
)

// OnReject says how a rejection reaches the client.
type OnReject uint8

const (
	// RejectError answers with an error packet.
	RejectError OnReject = iota
	// RejectZeroRows answers with an OK that affected no row.
	RejectZeroRows
)

// Rule protects one table.
type Rule struct {
	Table Table
	// Lease is the lease's name, or "" for the session's @fence_lease.
	Lease      string
	Mode       Mode
	OnUnfenced OnUnfenced
	OnReject   OnReject
}

// Rules are a set of rules, compiled. They do not change, and are safe for
// concurrent use.
type Rules struct {
	lease        Table
	leaseColumns map[string]bool // in lower case
	rules        []Rule
	guards       map[string]guard // by lease
	// mentions are the words without which a statement is passed unread, and
	// hidden are those of them that are no table's name.
	mentions matcher
	hidden   matcher
	// always tells that a protected name's bytes in a statement are not certain:
	// it is not ASCII, or is doubled in parts where it is quoted. Every statement
	// is then read.
	always bool
}

// standardLeaseColumns are the columns of the lease table that package
// migrations makes.
var standardLeaseColumns = []string{
	"lease_name", "owner_token", "fence_token", "leased_until",
	"acquired_at", "renewed_at", "renewals", "metadata",
}

// ErrRule tells that a rule cannot be used.
var ErrRule = errors.New("bad rule")

// NewRules compiles rules. leaseColumns are the columns that the lease table has;
// nil stands for those of package migrations.
func NewRules(leaseTable Table, rules []Rule, leaseColumns []string) (*Rules, error) {
	if leaseColumns == nil {
		leaseColumns = standardLeaseColumns
	}
	r := &Rules{lease: leaseTable, leaseColumns: make(map[string]bool), rules: slices.Clone(rules)}
	for _, c := range leaseColumns {
		r.leaseColumns[strings.ToLower(c)] = true
	}
	if err := validTable("lease table", leaseTable); err != nil {
		return nil, err
	}
	r.guards = make(map[string]guard)
	seen := make(map[Table]bool)
	words := []string{leaseTable.Name}
	r.always = uncertain(leaseTable.Name)
	for _, rule := range rules {
		if err := r.validRule(rule); err != nil {
			return nil, err
		}
		if seen[rule.Table] {
			return nil, fmt.Errorf("%w: table %s is protected twice", ErrRule, rule.Table)
		}
		seen[rule.Table] = true
		words = append(words, rule.Table.Name)
		r.always = r.always || uncertain(rule.Table.Name)
		g, err := r.newGuard(rule.Lease)
		if err != nil {
			return nil, err
		}
		r.guards[rule.Lease] = g
	}
	r.hidden = newMatcher(hiddenWords...)
	r.mentions = newMatcher(append(words, hiddenWords...)...)
	return r, nil
}

// hiddenWords are of statements that may write a table which they do not name:
// they build statements from text, drop a whole schema, or apply events.
var hiddenWords = []string{"prepare", "immediate", "database", "schema", "binlog"}

// uncertain tells that a name may be spelled with other bytes.
func uncertain(name string) bool {
	return asciiPrefix(name) < len(name) || strings.ContainsAny(name, "`\"")
}

func (r *Rules) validRule(rule Rule) error {
	if err := validTable("protected table", rule.Table); err != nil {
		return err
	}
	if equalTables(rule.Table, r.lease) {
		return fmt.Errorf("%w: the lease table %s cannot be protected itself", ErrRule, r.lease)
	}
	if rule.Lease == "" {
		return nil
	}
	if len(rule.Lease) > maxLeaseName {
		return fmt.Errorf("%w: lease name of %s is longer than %d bytes", ErrRule, rule.Table, maxLeaseName)
	}
	for _, c := range []byte(rule.Lease) {
		if c <= ' ' || c > '~' || strings.IndexByte("'\"`\\;", c) >= 0 {
			return fmt.Errorf("%w: lease name %q of %s contains %q; allowed are printable ASCII characters but space, quotes, backslash and semicolon", ErrRule, rule.Lease, rule.Table, c)
		}
	}
	return nil
}

// maxLeaseName is the length of the column lease_name.
const maxLeaseName = 128

func validTable(what string, t Table) error {
	if t.Schema == "" || t.Name == "" || strings.ContainsRune(t.Schema+t.Name, 0) {
		return fmt.Errorf("%w: %s %q needs a schema and a name", ErrRule, what, t.String())
	}
	return nil
}

func equalTables(a, b Table) bool {
	return strings.EqualFold(a.Schema, b.Schema) && strings.EqualFold(a.Name, b.Name)
}

// Mentions is the quick path: false only if the statement surely writes no
// protected table directly. It looks for the names of the protected tables and of
// the lease table in the bytes, and for what writes without naming: PREPARE,
// EXECUTE IMMEDIATE, DROP DATABASE, BINLOG. It allocates nothing.
//
// A SELECT is no mention whatever it names. The proxy then need not ask for the
// session's facts before it, which would disturb the ROW_COUNT() or FOUND_ROWS() that it
// may read.
func (r *Rules) Mentions(sql []byte) bool {
	return (r.always || r.mentions.in(sql) || hidesLetters(sql)) && !onlySelects(sql)
}

// onlySelects tells that a text is certainly one SELECT, whatever the session's
// sql_mode and character set: nothing follows a semicolon, wherever that may be.
func onlySelects(sql []byte) bool {
	text := unsafe.String(unsafe.SliceData(sql), len(sql)) // only read, and not kept
	l := newLexer(text, 0)
	first := l.next()
	return l.executable < 0 && strings.EqualFold(text[first.start:first.end], "SELECT") && !suspicious(text)
}

// The characters that servers which fold the case of table names take for an ASCII
// letter (measured): the Kelvin sign is a k, and the dotted capital I an i.
var (
	kelvinSign   = []byte("\u212a")
	dottedI      = []byte("\u0130")
	dottedILatin = byte(0xdd) // in latin5
)

// hidesLetters tells that one of these characters may be among the bytes.
func hidesLetters(sql []byte) bool {
	return bytes.IndexByte(sql, dottedILatin) >= 0 || bytes.Contains(sql, dottedI) || bytes.Contains(sql, kelvinSign)
}

// AnyEnforced tells that some rule rejects writes.
func (r *Rules) AnyEnforced() bool {
	return slices.ContainsFunc(r.rules, func(rule Rule) bool { return rule.Mode == Enforce })
}
