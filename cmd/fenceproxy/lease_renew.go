package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/lease"
)

func (p *program) leaseRenewCommand() *cobra.Command {
	var (
		flags claimFlags
		ttl   time.Duration
	)
	c := &cobra.Command{
		Use:   "renew [NAME]",
		Short: "Extend a lease that is still held",
		Long: `Extend a lease to --ttl from now and print its new end. A lease that has expired
cannot be renewed, even if nobody has taken it since: exits with 76.`,
		Example: "  fenceproxy lease renew admin:reconciliation --owner 5f0c --token 8 --ttl 5m",
		Args:    cobra.MaximumNArgs(1),
	}
	flags.add(c)
	c.Flags().DurationVar(&ttl, "ttl", defaultTTL, "time to live from now, by the database's clock (1s to 24h)")
	c.RunE = func(c *cobra.Command, args []string) error {
		claim, err := flags.claim(args)
		if err != nil {
			return err
		}
		return p.withStore(c.Context(), func(store *lease.Store) error {
			until, err := store.Renew(c.Context(), claim, ttl)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.out, until.UTC().Format(time.RFC3339Nano))
			return err
		})
	}
	return c
}
