package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/lease"
)

// The environment variables that hand a claim from one command to the next.
const (
	leaseVariable = "FENCE_LEASE"
	ownerVariable = "FENCE_OWNER"
	tokenVariable = "FENCE_TOKEN"
)

// defaultTTL is long against a hiccup of the network, and short against the
// patience of whoever waits for a dead worker's lease.
const defaultTTL = 30 * time.Second

func (p *program) leaseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lease",
		Short: "Acquire, renew, release and list leases",
		Long: `Work on the lease table from a shell. A script that only wants to run one command
under a lease is better served by fenceproxy run, which renews the lease and stops
the command when it is lost.`,
		Example: `  eval "$(fenceproxy lease acquire admin:reconciliation --ttl 5m)"
  export FENCE_LEASE FENCE_OWNER FENCE_TOKEN
  fenceproxy lease renew --ttl 5m
  fenceproxy lease release
  fenceproxy lease list`,
	}
	c.Args, c.RunE = cobra.NoArgs, showHelp
	c.AddCommand(p.leaseAcquireCommand(), p.leaseRenewCommand(), p.leaseReleaseCommand(), p.leaseListCommand())
	return c
}

// withStore connects to the lease table and runs f.
func (p *program) withStore(ctx context.Context, f func(*lease.Store) error) error {
	return p.withControl(ctx, func(c *config.Config, db *sql.DB) error {
		store, err := lease.New(db, c.LeaseTable.String())
		if err != nil {
			return err
		}
		return f(store)
	})
}

// claimFlags are how a command is told which claim it works on.
type claimFlags struct{ owner, token string }

func (f *claimFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.owner, "owner", "", "`OWNER` token of the claim (default $"+ownerVariable+")")
	c.Flags().StringVar(&f.token, "token", "", "fence `TOKEN` of the claim (default $"+tokenVariable+")")
}

// claim puts together what the arguments, the flags and the environment say.
func (f *claimFlags) claim(args []string) (lease.Claim, error) {
	name := os.Getenv(leaseVariable)
	if len(args) > 0 {
		name = args[0]
	}
	owner, token := f.owner, f.token
	if owner == "" {
		owner = os.Getenv(ownerVariable)
	}
	if token == "" {
		token = os.Getenv(tokenVariable)
	}
	switch {
	case name == "":
		return lease.Claim{}, usageError{fmt.Errorf("which lease? Give its NAME, or set %s", leaseVariable)}
	case owner == "":
		return lease.Claim{}, usageError{fmt.Errorf("whose lease? Give --owner, or set %s", ownerVariable)}
	case token == "":
		return lease.Claim{}, usageError{fmt.Errorf("which token? Give --token, or set %s", tokenVariable)}
	}
	number, err := strconv.ParseUint(token, 10, 64)
	if err != nil {
		return lease.Claim{}, usageError{fmt.Errorf("token %q is not a number", token)}
	}
	return lease.Claim{Name: name, Owner: owner, Token: number}, nil
}
