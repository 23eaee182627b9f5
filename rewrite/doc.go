// Package rewrite turns a statement, the facts of its session and the rules into
// a plan; it does no I/O.
//
// [Rules.Mentions] decides in a few hundred nanoseconds that most statements
// write no protected table. [Rules.Plan] reads the rest, with the TiDB parser
// where that understands the statement and with a lexer of this package's own
// where it does not. Guards are spliced into the user's text at byte offsets:
// SQL is never printed from a syntax tree, so literals, comments and hints reach
// the server as they were, and no placeholder is added. Each spliced text is
// parsed again and compared with the tree that it ought to have; where anything
// disagrees, the statement is bracketed instead.
package rewrite
