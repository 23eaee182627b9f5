package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// The privileges that make information_schema complete (measured on MariaDB 10.11;
// MySQL 8 by its manual). There is none that shows a trigger without allowing to
// make one.
//
//   - TRIGGER shows triggers, and as any privilege but SELECT it shows foreign keys
//     and lists tables and views.
//   - A view's definition takes SELECT and SHOW VIEW on the view.
//   - A routine of another account is shown by SELECT on mysql.proc, from MariaDB
//     11.3 on also by SHOW CREATE ROUTINE; on MySQL 8 by SELECT on everything, from
//     8.0.20 on also by SHOW_ROUTINE. Whoever may only execute it sees its name.
//   - EVENT shows events.
func gaps(g grants, v Server, views []rewrite.View, schemas []string) []Gap {
	f := finder{grants: g, server: v}
	schemas = slices.Compact(slices.Sorted(slices.Values(schemas)))
	for _, schema := range schemas {
		f.triggers(schema)
	}
	if !g.everywhere("TRIGGER") {
		f.add("", "triggers, foreign keys and views of some schemas may be hidden", f.grant("TRIGGER", "*.*"))
	}
	f.routines(schemas)
	f.views(views, schemas)
	if !g.everywhere("EVENT") {
		f.add("", "events of some schemas may be hidden", f.grant("EVENT", "*.*"))
	}
	return f.gaps
}

// finder collects gaps.
type finder struct {
	grants
	server Server
	gaps   []Gap
}

func (f *finder) add(schema, problem string, remedies ...string) {
	f.gaps = append(f.gaps, Gap{Schema: schema, Problem: problem, Remedies: remedies})
}

func (f *finder) grant(privileges, level string) string {
	return "GRANT " + privileges + " ON " + level + " TO " + f.server.Account + ";"
}

func (f *finder) triggers(schema string) {
	if f.onSchema("TRIGGER", schema) {
		return
	}
	f.add(schema, fmt.Sprintf("triggers, foreign keys and views of schema %s may be hidden", schema),
		f.grant("TRIGGER", quoted(f.pattern(schema, f.server.Account))+".*"))
}

func (f *finder) routines(schemas []string) {
	if f.showsRoutines("") {
		return
	}
	remedy := f.grant("SELECT", "`mysql`.`proc`")
	if !f.server.MariaDB {
		remedy = f.grant("SHOW_ROUTINE", "*.*")
	}
	for _, schema := range schemas {
		if !f.showsRoutines(schema) {
			f.add(schema, fmt.Sprintf("routines of schema %s, or what they do, may be hidden", schema), remedy)
		}
	}
	f.add("", "routines of some schemas, or what they do, may be hidden", remedy)
}

// showsRoutines tells that the routines of a schema are visible; "" stands for all.
func (f *finder) showsRoutines(schema string) bool {
	if !f.server.MariaDB {
		return f.everywhere("SELECT") || f.everywhere("SHOW_ROUTINE")
	}
	return f.onTable("SELECT", "mysql", "proc") || f.everywhere("SHOW CREATE ROUTINE") ||
		schema != "" && f.onSchema("SHOW CREATE ROUTINE", schema)
}

// manyViews is above how many views of one schema a grant is for the whole schema.
const manyViews = 5

// views reports the views whose definition is not shown, a gap a schema.
func (f *finder) views(views []rewrite.View, schemas []string) {
	hidden := make(map[string][]string)
	for _, v := range views {
		if v.Definition == "" {
			hidden[v.Name.Schema] = append(hidden[v.Name.Schema], v.Name.Name)
		}
	}
	for _, schema := range slices.Sorted(maps.Keys(hidden)) {
		names := hidden[schema]
		of := ""
		if slices.ContainsFunc(schemas, func(s string) bool { return s == schema || f.foldNames && strings.EqualFold(s, schema) }) {
			of = schema
		}
		if len(names) > manyViews {
			f.add(of, fmt.Sprintf("the definitions of %d views of schema %s are hidden", len(names), schema),
				f.grant("SELECT, SHOW VIEW", quoted(f.pattern(schema, f.server.Account))+".*"))
			continue
		}
		var remedies []string
		for _, name := range names {
			remedies = append(remedies, f.grant("SELECT, SHOW VIEW", quotedTable(rewrite.Table{Schema: schema, Name: name})))
		}
		f.add(of, fmt.Sprintf("the definitions of these views of schema %s are hidden: %s", schema, strings.Join(names, ", ")), remedies...)
	}
}
