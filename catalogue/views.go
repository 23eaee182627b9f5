package catalogue

import (
	"context"
	"database/sql"
	"slices"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// systemSchemas are the server's own, and installers the accounts that define what
// it comes with. Such views are over the server's own tables, and are left out; a
// view that somebody has added to these schemas is not.
var (
	systemSchemas = []string{"information_schema", "mysql", "performance_schema", "sys"}
	installers    = []string{"mariadb.sys@localhost", "mysql.sys@localhost", "mysql.infoschema@localhost"}
)

// views reads the views (manual: "Information Schema VIEWS Table"). A definition is
// printed anew by MariaDB, and kept as printed by MySQL 8, both with backticks and
// with backslashes as escapes, whatever the sql_mode of its creation.
func (s *session) views(ctx context.Context) ([]rewrite.View, error) {
	var views []rewrite.View
	err := s.each(
		ctx, "views",
		"SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION, DEFINER FROM information_schema.VIEWS", nil,
		func(scan func(...any) error) error {
			var v rewrite.View
			var definition sql.NullString
			var definer string
			if err := scan(&v.Name.Schema, &v.Name.Name, &definition, &definer); err != nil {
				return err
			}
			if slices.Contains(systemSchemas, v.Name.Schema) && slices.Contains(installers, definer) {
				return nil
			}
			v.Definition = definition.String
			views = append(views, v)
			return nil
		},
	)
	return views, err
}
