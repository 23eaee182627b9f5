package rewrite

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the values of literals
)

// parsers are reused: a parser is large, and not safe for concurrent use.
var parsers = sync.Pool{New: func() any { return parser.New() }}

// parse reads blanked text. The parser is another project's: where it panics on
// odd input, the text counts as one that it does not know.
func parse(s Session, blanked string) (statement ast.StmtNode, err error) {
	p := parsers.Get().(*parser.Parser)
	defer func() {
		if broken := recover(); broken != nil {
			// The parser's state is unknown: it does not go back to the pool.
			statement, err = nil, fmt.Errorf("the parser failed: %v", broken)
			return
		}
		parsers.Put(p)
	}()
	var mode mysql.SQLMode
	if s.SQLMode&PipesAsConcat != 0 {
		mode |= mysql.ModePipesAsConcat
	}
	if s.SQLMode&IgnoreSpace != 0 {
		mode |= mysql.ModeIgnoreSpace
	}
	p.SetSQLMode(mode)
	statements, _, err := p.Parse(blanked, "", "")
	if err != nil {
		return nil, err
	}
	if len(statements) != 1 {
		return nil, fmt.Errorf("%d statements where one was expected", len(statements))
	}
	return statements[0], nil
}

// parsePiece is the tree of an UPDATE or DELETE, or nil if the parser does not
// know it, or knows another statement by its words.
func (j *judge) parsePiece(p piece) ast.StmtNode {
	if p.is(0, "DELETE") && p.is(1, "HISTORY") {
		return nil // MariaDB's own; the parser takes HISTORY for a table
	}
	blanked, ok := blank(p)
	if !ok {
		return nil
	}
	st, err := parse(j.session, blanked)
	if err != nil {
		return nil
	}
	switch st.(type) {
	case *ast.UpdateStmt, *ast.DeleteStmt:
		return st
	default:
		return nil
	}
}

// maxParsedTokens bounds what the parser is given. Its trees may be as deep as a
// text is long, and are walked by recursion, which ends the program where the
// stack does; and it takes quadratic time for joins (20,000 of them: one second).
const maxParsedTokens = 1 << 14

// blank is the piece's text as the parser is given it, of the same length: without
// comments, with strings whose contents are taken out, and with identifiers quoted
// by backticks. So the parser cannot find other ends of strings and comments than
// the lexer did, whatever their character set; and it need not know sql_mode for
// that. ok is false where a token cannot be given so.
func blank(p piece) (text string, ok bool) {
	if len(p.tokens) == 0 || len(p.tokens) > maxParsedTokens {
		return "", false
	}
	start := p.tokens[0].start
	out := slices.Repeat([]byte{' '}, p.tokens[len(p.tokens)-1].end-start)
	for i, t := range p.tokens {
		to := out[t.start-start : t.end-start]
		text := p.sql[t.start:t.end]
		switch t.kind {
		case stringToken:
			if !p.blankString(i, to) {
				return "", false
			}
			continue
		case quotedToken:
			if text[0] == '"' && strings.ContainsAny(text[1:len(text)-1], "\"`") {
				return "", false
			}
			copy(to, text)
			to[0], to[len(to)-1] = '`', '`'
			continue
		case variableToken:
			if strings.ContainsAny(text, "'\"") {
				text = "@v"
			}
		case wordToken:
			if !plainName(text) {
				return "", false
			}
		case numberToken, symbolToken, endToken:
		}
		copy(to, text)
	}
	return string(out), true
}

// blankString writes 'a', or two quotes for an empty string. The digits of x'1F' and b'01'
// stay: they are no other characters.
func (p piece) blankString(i int, to []byte) bool {
	text := p.text(i)
	if i > 0 && p.tokens[i-1].end == p.tokens[i].start && (p.is(i-1, "x") || p.is(i-1, "b")) {
		copy(to, text)
		return isRadix('x', text[1:len(text)-1])
	}
	copy(to, "'a'")
	if len(to) == len("''") {
		to[1] = '\''
	}
	return true
}

// restored is a tree as text, for comparing trees.
func restored(node ast.Node) (string, error) {
	var b strings.Builder
	err := node.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b))
	return b.String(), err
}
