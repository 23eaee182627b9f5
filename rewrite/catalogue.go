package rewrite

// Catalogue is what a server has that may write a table which the statement does
// not name. Names are as the server stores them.
type Catalogue struct {
	Views       []View
	Triggers    []Trigger
	Routines    []Routine
	ForeignKeys []ForeignKey
}

// View is a view, whose definition is as information_schema.VIEWS prints it in the
// default sql_mode: every table with its schema, every name in backticks.
type View struct {
	Name       Table
	Definition string
}

// Trigger runs its body for each row of a table that is inserted, updated or
// deleted.
type Trigger struct {
	Name  Table
	On    Table
	Event Change
	Body  Body
}

// Routine is a stored procedure or function, or a package with all that is in it.
type Routine struct {
	Name Table
	Kind RoutineKind
	Body Body
}

// RoutineKind says how a routine is called.
type RoutineKind uint8

const (
	Procedure RoutineKind = iota
	Function
	// Package is MariaDB's: a name before the names of its procedures and functions.
	Package
)

// Body is a stored program's text and how it is read.
type Body struct {
	// Text is "" where the catalogue does not show it: what the program does is then
	// not known.
	Text string
	// SQLMode and Charset (character_set_client, in lower case) are those of its
	// creation.
	SQLMode SQLMode
	Charset string
}

// ForeignKey makes a change of the rows of Parent change rows of Child.
type ForeignKey struct {
	Name   string
	Child  Table
	Parent Table
	// ParentColumns are the columns that the key refers to: an UPDATE that assigns
	// none of them does nothing to the child. nil stands for any column, and is to be
	// given where one of them may change without being assigned: it is generated, or
	// ON UPDATE CURRENT_TIMESTAMP.
	ParentColumns []string
	// OnDelete is what a DELETE of the parent does to the child: DeleteRow, UpdateRow,
	// or 0 for nothing; OnUpdate the same for an UPDATE.
	OnDelete, OnUpdate Change
}

// Change is a set of ways to change rows.
type Change uint8

const (
	InsertRow Change = 1 << iota
	UpdateRow
	DeleteRow
)
