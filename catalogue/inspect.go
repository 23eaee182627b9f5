package catalogue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Report is what a server has beside its catalogue, and what the account cannot see.
type Report struct {
	Server Server
	// Events are the scheduled events. The server runs them by itself, so that no
	// session's statement stands for what they write.
	Events []Event
	// Remote are the tables of engines that pass writes on to other tables, which may
	// be on this very server.
	Remote []RemoteTable
	Gaps   []Gap
}

// Server is what kind of server it is.
type Server struct {
	// Version is VERSION().
	Version string
	MariaDB bool
	// LowerCaseTableNames is the variable of that name: other than 0, names are
	// compared without regard to case.
	LowerCaseTableNames int
	// Account is the account's name as GRANT takes it.
	Account string
}

// Event is a scheduled event.
type Event struct {
	Name    rewrite.Table
	Enabled bool
	Body    rewrite.Body
}

// RemoteTable is a table that is a door to another.
type RemoteTable struct {
	Name   rewrite.Table
	Engine string
}

// remoteEngines write other tables: on another server, or in another file or table
// of this one (manuals: "FederatedX", "CONNECT", "Spider", "MERGE").
var remoteEngines = []string{"CONNECT", "FEDERATED", "MRG_MyISAM", "SPIDER"}

// Gap is something that the account cannot see.
type Gap struct {
	// Schema is the schema of a protected table, when what cannot be seen is there,
	// and "" otherwise.
	Schema string
	// Problem is a sentence without its full stop.
	Problem string
	// Remedies are the statements that an administrator closes it by.
	Remedies []string
}

// Near are the gaps in the schemas of protected tables.
func (r Report) Near() []Gap { return r.gaps(func(g Gap) bool { return g.Schema != "" }) }

// Far are the gaps elsewhere.
func (r Report) Far() []Gap { return r.gaps(func(g Gap) bool { return g.Schema == "" }) }

func (r Report) gaps(which func(Gap) bool) []Gap {
	return slices.DeleteFunc(slices.Clone(r.Gaps), func(g Gap) bool { return !which(g) })
}

// Inspect looks for what Read leaves out. schemas are those of the protected tables.
func (r *Reader) Inspect(ctx context.Context, schemas []string) (report Report, err error) {
	err = r.withSession(ctx, func(s *session) error {
		report, err = s.inspect(ctx, schemas)
		return err
	})
	return report, err
}

func (s *session) inspect(ctx context.Context, schemas []string) (r Report, err error) {
	if r.Server, err = s.server(ctx); err != nil {
		return r, err
	}
	g, err := s.readGrants(ctx, r.Server.LowerCaseTableNames != 0)
	if err != nil {
		return r, err
	}
	views, err := s.views(ctx)
	if err != nil {
		return r, err
	}
	if r.Events, err = s.events(ctx); err != nil {
		return r, err
	}
	if r.Remote, err = s.remoteTables(ctx); err != nil {
		return r, err
	}
	r.Gaps = gaps(g, r.Server, views, schemas)
	return r, nil
}

func (s *session) server(ctx context.Context) (v Server, err error) {
	var user string
	row := s.QueryRowContext(ctx, "SELECT VERSION(), @@lower_case_table_names, CURRENT_USER()")
	if err := row.Scan(&v.Version, &v.LowerCaseTableNames, &user); err != nil {
		return v, fmt.Errorf("ask the server for its version: %w", err)
	}
	v.MariaDB = strings.Contains(v.Version, "MariaDB")
	v.Account, err = account(user)
	return v, err
}

// events reads the scheduled events (manual: "Information Schema EVENTS Table").
func (s *session) events(ctx context.Context) ([]Event, error) {
	var events []Event
	var programs []program
	err := s.each(
		ctx, "events",
		"SELECT EVENT_SCHEMA, EVENT_NAME, EVENT_DEFINITION, SQL_MODE, STATUS FROM information_schema.EVENTS", nil,
		func(scan func(...any) error) error {
			var e Event
			var p program
			var status string
			if err := scan(&e.Name.Schema, &e.Name.Name, &p.text, &p.modes, &status); err != nil {
				return err
			}
			e.Enabled = status == "ENABLED"
			p.show = "SHOW CREATE EVENT " + quotedTable(e.Name)
			events, programs = append(events, e), append(programs, p)
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	for i, p := range programs {
		if events[i].Body, err = s.body(ctx, p); err != nil {
			return nil, err
		}
	}
	return events, nil
}

func (s *session) remoteTables(ctx context.Context) ([]RemoteTable, error) {
	var tables []RemoteTable
	err := s.each(
		ctx, "the engines of tables",
		"SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE ENGINE IN ('"+strings.Join(remoteEngines, "', '")+"')", nil,
		func(scan func(...any) error) error {
			var t RemoteTable
			if err := scan(&t.Name.Schema, &t.Name.Name, &t.Engine); err != nil {
				return err
			}
			tables = append(tables, t)
			return nil
		},
	)
	return tables, err
}
