// Package rewrite turns a statement, the facts of its session and the rules into
// a plan; it does no I/O.
//
// [Rules.Mentions] decides in a fraction of a microsecond that most statements
// write no protected table. [Rules.Plan] judges the rest. Which kind of statement
// it is, and which tables an INSERT, a LOAD DATA or a definition is about, is read
// off the tokens of a lexer that cuts text as the server does. UPDATE and DELETE
// are parsed as well, by the TiDB parser, which sees the text with its comments
// and the contents of its strings blanked out: the two readings cannot then differ
// in where a string ends.
//
// Guards are spliced into the user's own text at byte offsets. SQL is never
// printed from a syntax tree, so literals, comments and hints reach the server as
// they were, and no placeholder is added. Each spliced text is parsed again and
// compared with the tree that it ought to have. Where anything disagrees, or is
// not understood, a statement that may write a protected table is bracketed if
// that is sound, and refused if it is not; it is never passed.
package rewrite
