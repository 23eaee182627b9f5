package main

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/migrations"
)

func (p *program) migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Create the lease table, and show its version",
		Long: `Create or upgrade the table named by lease_table, with the control account. That
needs CREATE, ALTER, INSERT and SELECT in its schema for once: point control.dsn at
an administrator's account in a configuration of its own if the proxy's is to go
without. The schema must exist.`,
		Example: `  fenceproxy migrate up
  fenceproxy migrate status -o json`,
	}
	c.Args, c.RunE = cobra.NoArgs, showHelp
	c.AddCommand(p.migrateUpCommand(), p.migrateStatusCommand())
	return c
}

func (p *program) migrateUpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Apply what is pending; again, it changes nothing",
		Long: `Apply the migrations that are pending, and verify the table. A table of that name
that fenceproxy did not make is left alone if it is as it must be; else the error
names every difference.`,
		Example: "  fenceproxy migrate up -c fenceproxy.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withControl(c.Context(), func(configuration *config.Config, db *sql.DB) error {
				table := configuration.LeaseTable.String()
				applied, err := migrations.Up(c.Context(), db, table)
				for _, m := range applied {
					_, _ = fmt.Fprintf(p.out, "applied %d %s\n", m.Version, m.Name)
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.out, "%s is up to date\n", table)
				return err
			})
		},
	}
}

func (p *program) migrateStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "status",
		Short:   "List the migrations, applied and pending",
		Example: "  fenceproxy migrate status -o json",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.withControl(c.Context(), func(configuration *config.Config, db *sql.DB) error {
			all, err := migrations.Status(c.Context(), db, configuration.LeaseTable.String())
			if err != nil {
				return err
			}
			if *format == outputJSON {
				return printJSON(p.out, migrationStates(all))
			}
			rows := [][]string{{"VERSION", "NAME", "APPLIED"}}
			for _, m := range all {
				appliedAt := "pending"
				if !m.AppliedAt.IsZero() {
					appliedAt = m.AppliedAt.UTC().Format(time.RFC3339)
				}
				rows = append(rows, []string{fmt.Sprint(m.Version), m.Name, appliedAt})
			}
			return printTable(p.out, rows)
		})
	}
	return c
}

// migrationState is a migration as -o json prints it; AppliedAt is null while it
// is pending.
type migrationState struct {
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"`
}

func migrationStates(all []migrations.Migration) []migrationState {
	states := make([]migrationState, len(all))
	for i, m := range all {
		states[i] = migrationState{Version: m.Version, Name: m.Name}
		if !m.AppliedAt.IsZero() {
			appliedAt := m.AppliedAt.UTC()
			states[i].AppliedAt = &appliedAt
		}
	}
	return states
}
