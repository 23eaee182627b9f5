package catalogue

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// grants are what an account may do: its own grants, those of its active roles, and
// what everybody may.
type grants struct {
	entries []grant
	// foldNames tells that the server compares names without regard to case.
	foldNames bool
}

// grant is one line of SHOW GRANTS.
type grant struct {
	grantee string
	// schema is a pattern, "*" for all; table is "*" for all.
	schema, table string
	privileges    []string
	// revoked tells that the privileges are taken out of global ones (MySQL manual,
	// "Privilege Restriction Using Partial Revokes").
	revoked bool
}

// readGrants reads SHOW GRANTS, which lists roles and PUBLIC with the account on
// MariaDB, and on MySQL the privileges of active roles among the account's own
// (manual: "SHOW GRANTS"). The tables of information_schema list the account alone.
func (s *session) readGrants(ctx context.Context, foldNames bool) (grants, error) {
	g := grants{foldNames: foldNames}
	err := s.each(ctx, "the account's grants", "SHOW GRANTS", nil, func(scan func(...any) error) error {
		var line string
		if err := scan(&line); err != nil {
			return err
		}
		if entry, ok := parseGrant(line); ok {
			g.entries = append(g.entries, entry)
		}
		return nil
	})
	return g, err
}

// parseGrant reads GRANT … ON schema.table TO grantee. Other lines give roles,
// privileges on routines, and the like.
func parseGrant(line string) (g grant, ok bool) {
	preposition := " TO "
	line, ok = strings.CutPrefix(line, "GRANT ")
	if !ok {
		if line, ok = strings.CutPrefix(line, "REVOKE "); !ok {
			return g, false
		}
		g.revoked, preposition = true, " FROM "
	}
	privileges, rest, ok := cutUnquoted(line, " ON ")
	if !ok {
		return g, false
	}
	level, grantee, ok := cutUnquoted(rest, preposition)
	if !ok {
		return g, false
	}
	schema, table, ok := cutUnquoted(level, ".")
	if !ok || strings.Contains(schema, " `") { // ON PROCEDURE `s`.`p`
		return g, false
	}
	g.grantee, _, _ = cutUnquoted(grantee, " ")
	g.schema, g.table = unquoted(schema), unquoted(table)
	for more := true; more; {
		var p string
		p, privileges, more = cutUnquoted(privileges, ", ")
		g.privileges = append(g.privileges, p)
	}
	return g, true
}

// cutUnquoted is strings.Cut at the first separator that is neither within quotes or
// backticks nor within parentheses.
func cutUnquoted(text, separator string) (before, after string, found bool) {
	var quote byte
	depth := 0
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case depth == 0 && strings.HasPrefix(text[i:], separator):
			return text[:i], text[i+len(separator):], true
		case c == '`' || c == '\'' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
	}
	return text, "", false
}

func unquoted(name string) string {
	if inner, ok := strings.CutPrefix(name, "`"); ok {
		return strings.ReplaceAll(strings.TrimSuffix(inner, "`"), "``", "`")
	}
	return name
}

func (g grant) holds(privilege string) bool {
	return slices.Contains(g.privileges, privilege) || slices.Contains(g.privileges, "ALL PRIVILEGES")
}

// everywhere tells that the account has a privilege on all schemas.
func (g grants) everywhere(privilege string) bool {
	return g.global(privilege) && !slices.ContainsFunc(g.entries, func(e grant) bool { return e.revoked && e.holds(privilege) })
}

func (g grants) global(privilege string) bool {
	return slices.ContainsFunc(g.entries, func(e grant) bool {
		return !e.revoked && e.schema == "*" && e.table == "*" && e.holds(privilege)
	})
}

// onSchema tells that the account has a privilege on all of a schema.
func (g grants) onSchema(privilege, schema string) bool {
	if g.global(privilege) && !slices.ContainsFunc(g.entries, func(e grant) bool {
		return e.revoked && e.holds(privilege) && g.matches(e.schema, schema)
	}) {
		return true
	}
	return slices.ContainsFunc(g.nearest(schema), func(e grant) bool { return e.holds(privilege) })
}

// onTable tells that the account has a privilege on a table, however it was given.
func (g grants) onTable(privilege, schema, table string) bool {
	return g.onSchema(privilege, schema) || slices.ContainsFunc(g.entries, func(e grant) bool {
		return !e.revoked && e.schema == schema && e.table == table && e.holds(privilege)
	})
}

// nearest are the grants on a schema, one a grantee: of several patterns that match,
// the server uses only the one whose first wildcard comes last (MariaDB manual,
// "GRANT", Database Privileges).
func (g grants) nearest(schema string) []grant {
	var found []grant
	for _, e := range g.entries {
		if e.revoked || e.schema == "*" || e.table != "*" || !g.matches(e.schema, schema) {
			continue
		}
		i := slices.IndexFunc(found, func(f grant) bool { return f.grantee == e.grantee })
		switch {
		case i < 0:
			found = append(found, e)
		case firstWildcard(e.schema) > firstWildcard(found[i].schema):
			found[i] = e
		}
	}
	return found
}

// pattern is how a GRANT to the account itself names a schema: as the pattern that
// is in force for it, since a nearer one would take that one's privileges away.
func (g grants) pattern(schema, account string) string {
	for _, e := range g.nearest(schema) {
		if e.grantee == account {
			return e.schema
		}
	}
	return strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`).Replace(schema)
}

func firstWildcard(pattern string) int {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '%', '_':
			return i
		}
	}
	return len(pattern)
}

func (g grants) matches(pattern, schema string) bool {
	if g.foldNames {
		pattern, schema = strings.ToLower(pattern), strings.ToLower(schema)
	}
	return like([]rune(pattern), []rune(schema))
}

// like is SQL's LIKE.
func like(pattern, text []rune) bool {
	for len(pattern) > 0 {
		c := pattern[0]
		if c == '%' {
			for i := range len(text) + 1 {
				if like(pattern[1:], text[i:]) {
					return true
				}
			}
			return false
		}
		if len(text) == 0 {
			return false
		}
		if c == '\\' && len(pattern) > 1 {
			pattern = pattern[1:]
			c = pattern[0]
		} else if c == '_' {
			c = text[0]
		}
		if c != text[0] {
			return false
		}
		pattern, text = pattern[1:], text[1:]
	}
	return len(text) == 0
}

// account is CURRENT_USER() as SHOW GRANTS and GRANT have it.
func account(currentUser string) (string, error) {
	at := strings.LastIndexByte(currentUser, '@')
	if at < 0 {
		return "", fmt.Errorf("CURRENT_USER() is %q, which has no @", currentUser)
	}
	return quoted(currentUser[:at]) + "@" + quoted(currentUser[at+1:]), nil
}
