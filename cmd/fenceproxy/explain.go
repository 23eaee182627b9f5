package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// explainFlags describe the session that would send the statement.
type explainFlags struct {
	database, sqlMode, charset string
	lowerCaseTableNames        int
	multiStatements            bool
}

func (p *program) explainCommand() *cobra.Command {
	var flags explainFlags
	c := &cobra.Command{
		Use:   "explain [flags] STATEMENT",
		Short: "Show what becomes of a statement under the configuration",
		Long: `Print the plan for a statement, why it is that and no cheaper one, and exactly what
would be sent to the server. The statement - is read from standard input. No server
is asked: the flags say what the session is like. The guard reads the session's
identity from its variables @fence_owner and @fence_token (and @fence_lease), so
the text is the same for every session.`,
		Example: `  fenceproxy explain "UPDATE app.reconciliation_runs SET status = 'done' WHERE run_id = 42"
  fenceproxy explain --database app -o json - < job.sql`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().StringVarP(&flags.database, "database", "d", "", "the session's default `DATABASE`")
	c.Flags().StringVar(&flags.sqlMode, "sql-mode", "", "the session's sql_mode, as a comma-separated `LIST`")
	c.Flags().StringVar(&flags.charset, "charset", "utf8mb4", "the session's character_set_client")
	c.Flags().IntVar(&flags.lowerCaseTableNames, "lower-case-table-names", 0, "the server's variable of that name: 0, 1 or 2")
	c.Flags().BoolVar(&flags.multiStatements, "multi-statements", false, "the client may send several statements at once")
	format := outputFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		session, err := flags.session()
		if err != nil {
			return usageError{err}
		}
		statement, err := p.statement(args[0])
		if err != nil {
			return err
		}
		configuration, err := loadConfig(p.configFile)
		if err != nil {
			return err
		}
		rules, err := rewrite.NewRules(configuration.LeaseTable, configuration.Rules(), nil)
		if err != nil {
			return err
		}
		e := explanationOf(statement, rules.Plan(session, statement))
		if *format == outputJSON {
			return printJSON(p.out, e)
		}
		return e.print(p.out)
	}
	return c
}

func (f explainFlags) session() (rewrite.Session, error) {
	s := rewrite.Session{
		Database: f.database, Charset: strings.ToLower(f.charset),
		LowerCaseTableNames: f.lowerCaseTableNames, MultiStatements: f.multiStatements,
	}
	if f.lowerCaseTableNames < 0 || f.lowerCaseTableNames > 2 {
		return s, fmt.Errorf("--lower-case-table-names is %d, not 0, 1 or 2", f.lowerCaseTableNames)
	}
	var err error
	s.SQLMode, err = parseSQLMode(f.sqlMode)
	return s, err
}

// statement is the argument, or standard input for -, without the line's end.
func (p *program) statement(argument string) (string, error) {
	if argument != "-" {
		return argument, nil
	}
	text, err := io.ReadAll(p.in)
	if err != nil {
		return "", fmt.Errorf("read the statement from standard input: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// explanation is a plan as -o json prints it.
type explanation struct {
	Plan   string `json:"plan"`
	Reason string `json:"reason,omitempty"`
	Why    string `json:"why,omitempty"`
	Table  string `json:"table,omitempty"`
	Lease  string `json:"lease,omitempty"`
	Mode   string `json:"mode,omitempty"`
	// Sent are the statements that reach the server outside a transaction. In
	// one of the client's own, START TRANSACTION and COMMIT are left out.
	Sent []string `json:"sent"`
}

func explanationOf(statement string, plan rewrite.Plan) explanation {
	e := explanation{Plan: plan.Kind.String(), Why: plan.Why}
	if w := plan.Write; w.Table != (rewrite.Table{}) {
		e.Table, e.Lease, e.Mode = w.Table.String(), w.Lease, "enforce"
		if w.Lease == "" {
			e.Lease = "@fence_lease"
		}
	}
	switch plan.Kind {
	case rewrite.Pass:
		e.Sent = []string{statement}
	case rewrite.Join, rewrite.Exists:
		e.Sent = []string{plan.Text}
	case rewrite.Bracket:
		e.Sent = []string{rewrite.BeginStatement, plan.Guard, statement, rewrite.CommitStatement}
	case rewrite.Refuse:
		e.Reason, e.Sent = plan.Reason.String(), []string{}
	}
	if e.Table != "" && plan.Write.Mode == rewrite.Observe {
		e.Mode, e.Sent = "observe", []string{statement}
	}
	return e
}

func (e explanation) print(w io.Writer) error {
	var b strings.Builder
	line := func(key, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-7s%s\n", key, text)
		}
	}
	line("plan", e.Plan)
	line("reason", e.Reason)
	line("why", e.Why)
	line("table", e.Table)
	line("lease", e.Lease)
	line("mode", e.Mode)
	if e.Plan == rewrite.Bracket.String() && len(e.Sent) > 1 {
		b.WriteString("\nSent (in a transaction of the client's without the first and the last):\n\n")
	} else if len(e.Sent) > 0 {
		b.WriteString("\nSent:\n\n")
	} else {
		b.WriteString("\nNothing is sent.\n")
	}
	for _, s := range e.Sent {
		b.WriteString(strings.TrimSuffix(s, ";") + ";\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
