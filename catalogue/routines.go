package catalogue

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// routines reads the stored procedures, functions and packages (manual:
// "Information Schema ROUTINES Table") of all schemas, the server's own with them:
// some of sys run any text that they are given.
func (s *session) routines(ctx context.Context) ([]rewrite.Routine, error) {
	var routines []rewrite.Routine
	var programs []program
	packages := make(map[rewrite.Table]int) // where each is in routines
	err := s.each(
		ctx, "routines",
		"SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_DEFINITION, SQL_MODE FROM information_schema.ROUTINES"+
			" ORDER BY ROUTINE_TYPE", nil,
		func(scan func(...any) error) error {
			var r rewrite.Routine
			var p program
			var kind string
			var text sql.NullString
			if err := scan(&r.Name.Schema, &r.Name.Name, &kind, &text, &p.modes); err != nil {
				return err
			}
			p.text = text.String
			p.show = "SHOW CREATE " + kind + " " + quotedTable(r.Name)
			switch kind {
			case "PROCEDURE":
				r.Kind = rewrite.Procedure
			case "FUNCTION":
				r.Kind = rewrite.Function
			case "PACKAGE":
				r.Kind = rewrite.Package
				packages[r.Name] = len(routines)
			case "PACKAGE BODY":
				r.Kind = rewrite.Package
				// The package itself, sorted before it, only declares.
				if i, declared := packages[r.Name]; declared {
					programs[i] = p
					return nil
				}
			default:
				return fmt.Errorf("%s is a %s, which is not known", r.Name, kind)
			}
			routines, programs = append(routines, r), append(programs, p)
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	for i, p := range programs {
		if routines[i].Body, err = s.body(ctx, p); err != nil {
			return nil, err
		}
	}
	return routines, nil
}
