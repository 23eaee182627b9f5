package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func (p *program) checkCommand() *cobra.Command {
	var (
		online   bool
		appUsers []string
	)
	c := &cobra.Command{
		Use:   "check",
		Short: "Validate the configuration, and with --online the server",
		Long: `Validate the configuration file. With --online, connect with the control account
and verify that the server is recent enough, that the lease table is as fenceproxy
migrate made it, that the protected tables exist and are InnoDB, that the backend is
the server of the control account, that this account may see every view, trigger,
routine and foreign key that writes protected tables, and that the accounts have the
grants that guards need. What is missing is printed with the statement that puts it
right. Events and tables of engines whose writes cannot be guarded are warned of.
Nothing is changed.

The control account needs SELECT, INSERT and UPDATE on the lease table, and to see
the catalogue SELECT, SHOW VIEW, TRIGGER and EVENT on *.*. Accounts of applications
need SELECT on the lease table, since guards run in their sessions. (MySQL before
8.0.22 wants LOCK TABLES of them, too.) To verify those, the control account must be
able to read the mysql schema. Roles are followed on MariaDB; for MySQL, grant to
the account itself.

One line a check is printed; the exit status is 1 when one failed. Warnings fail
nothing.`,
		Example: `  fenceproxy check -c fenceproxy.yaml
  fenceproxy check --online --app-user app@10.0.0.% --app-user 'reports@%'`,
		Args: cobra.NoArgs,
	}
	c.Flags().BoolVar(&online, "online", false, "verify against the server, too")
	c.Flags().StringArrayVar(&appUsers, "app-user", nil, "account `USER@HOST` whose grants are verified; can be repeated (needs --online)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		accounts, err := parseAccounts(appUsers)
		if err != nil {
			return usageError{err}
		}
		if len(accounts) > 0 && !online {
			return usageError{fmt.Errorf("--app-user needs --online: grants are on the server")}
		}
		path, err := configPath(p.configFile)
		if err != nil {
			return err
		}
		configuration, err := loadConfig(path)
		if err != nil {
			return err
		}
		report := &checkReport{w: p.out}
		report.ok("configuration %s", path)
		if !online {
			return report.result()
		}
		db, err := openControl(c.Context(), configuration)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		checks := &onlineChecks{checkReport: report, config: configuration, db: db}
		if err := checks.run(c.Context(), accounts); err != nil {
			return err
		}
		return report.result()
	}
	return c
}

// checkReport prints a line for each check, and counts those that failed.
type checkReport struct {
	w      io.Writer
	failed int
}

func (r *checkReport) ok(format string, args ...any) {
	_, _ = fmt.Fprintf(r.w, "ok    "+format+"\n", args...)
}

// warn tells what an operator should know and may well have meant.
func (r *checkReport) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(r.w, "WARN  "+format+"\n", args...)
}

func (r *checkReport) fail(format string, args ...any) {
	r.failed++
	_, _ = fmt.Fprintf(r.w, "FAIL  "+format+"\n", args...)
}

// remedy prints what puts the last failure or warning right.
func (r *checkReport) remedy(text string) { _, _ = fmt.Fprintln(r.w, "      "+text) }

func (r *checkReport) result() error {
	if r.failed == 0 {
		return nil
	}
	if r.failed == 1 {
		return fmt.Errorf("one check failed")
	}
	return fmt.Errorf("%d checks failed", r.failed)
}
