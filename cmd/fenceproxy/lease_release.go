package main

import (
	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/lease"
)

func (p *program) leaseReleaseCommand() *cobra.Command {
	var flags claimFlags
	c := &cobra.Command{
		Use:   "release [NAME]",
		Short: "End a lease now, so that another can take it at once",
		Long: `End a lease now. Its fence token stays, and the next holder's is one higher.
Exits with 76 when it was lost or had expired before.`,
		Example: "  fenceproxy lease release admin:reconciliation --owner 5f0c --token 8",
		Args:    cobra.MaximumNArgs(1),
	}
	flags.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		claim, err := flags.claim(args)
		if err != nil {
			return err
		}
		return p.withStore(c.Context(), func(store *lease.Store) error { return store.Release(c.Context(), claim) })
	}
	return c
}
