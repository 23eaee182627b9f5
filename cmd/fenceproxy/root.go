package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// program is what the subcommands share.
type program struct {
	in       io.Reader
	out, err io.Writer
	// configFile is the value of --config, "" when it was not given.
	configFile string
}

const exitCodesHelp = `Exit status:
  0   done
  1   failed, or a check found something wrong
  2   bad usage, or the configuration is not valid
  75  the lease is held by another (EX_TEMPFAIL: try again later)
  76  the lease was lost
fenceproxy run exits with its command's status otherwise.`

// newRoot makes the command tree. It keeps no state outside, so that tests can
// make as many as they like.
func newRoot(in io.Reader, out, errs io.Writer) *cobra.Command {
	p := &program{in: in, out: out, err: errs}
	root := &cobra.Command{
		Use:   "fenceproxy",
		Short: "Let only the holder of a lease write to protected tables",
		Long: `fenceproxy stands between programs and their MySQL or MariaDB server. A write to
a protected table goes through only while its writer holds the table's lease, as
the database itself judges in the same transaction. A worker that lost its lease
gets an error instead of overwriting its successor's work.

` + exitCodesHelp,
		Example: `  fenceproxy migrate up -c fenceproxy.yaml
  fenceproxy check --online --app-user app@%
  fenceproxy serve
  fenceproxy run --lease admin:reconciliation -- php artisan reconcile
  fenceproxy explain "UPDATE runs SET status = 'done' WHERE id = 42"`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().StringVarP(&p.configFile, "config", "c", "",
		"configuration `FILE` (default $"+configVariable+", else the first there is of "+configFilesText()+")")
	root.AddCommand(
		newServe(&p.configFile),
		newRun(&p.configFile),
		p.checkCommand(),
		p.migrateCommand(),
		p.leaseCommand(),
		p.explainCommand(),
		newDemo(),
		p.versionCommand(),
	)
	return root
}

// runCommandLine runs one command line and returns its exit status.
func runCommandLine(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot(in, out, errs)
	root.SetArgs(args)
	began := false
	onBegin(root, func() { began = true })
	err := root.ExecuteContext(ctx)
	// Whatever fails before a command begins is the command line's fault.
	if err != nil && !began {
		err = usageError{err}
	}
	printError(errs, err)
	return exitStatus(err)
}

// onBegin calls f when c or a command below it begins to run. Cobra's own hooks
// run before it has checked for required flags.
func onBegin(c *cobra.Command, f func()) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			f()
			return run(c, args)
		}
	}
	for _, sub := range c.Commands() {
		onBegin(sub, f)
	}
}

// showHelp is what a command that only has commands below it does by itself. A
// command that cannot run would take any argument for granted.
func showHelp(c *cobra.Command, _ []string) error { return c.Help() }
