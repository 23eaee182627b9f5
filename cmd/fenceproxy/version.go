package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/monitor"
)

func (p *program) versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and Go version",
		Example: "  fenceproxy version -o json",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		build := monitor.ReadBuild()
		if *format == outputJSON {
			return printJSON(p.out, build)
		}
		_, err := fmt.Fprintf(p.out, "fenceproxy %s\ncommit %s\n%s\n", build.Version, build.Commit, build.Go)
		return err
	}
	return c
}
