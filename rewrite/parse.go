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

// parse reads sql as the session would. The parser is another project's: where
// it panics on odd input, the text counts as one that it does not know.
func parse(s Session, sql string) (statements []ast.StmtNode, err error) {
	p := parsers.Get().(*parser.Parser)
	defer func() {
		if broken := recover(); broken != nil {
			// The parser's state is unknown: it does not go back to the pool.
			statements, err = nil, fmt.Errorf("the parser failed: %v", broken)
			return
		}
		parsers.Put(p)
	}()
	var mode mysql.SQLMode
	for ours, theirs := range map[SQLMode]mysql.SQLMode{
		ANSIQuotes: mysql.ModeANSIQuotes, NoBackslashEscapes: mysql.ModeNoBackslashEscapes,
		PipesAsConcat: mysql.ModePipesAsConcat, IgnoreSpace: mysql.ModeIgnoreSpace,
	} {
		if s.SQLMode&ours != 0 {
			mode |= theirs
		}
	}
	p.SetSQLMode(mode)
	statements, _, err = p.Parse(sql, "", "")
	// The parser writes its next result into the same slice.
	return slices.Clone(statements), err
}

// restored is a tree as text, for comparing trees.
func restored(node ast.Node) (string, error) {
	var b strings.Builder
	err := node.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b))
	return b.String(), err
}
