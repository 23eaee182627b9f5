package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/lease"
)

func (p *program) leaseAcquireCommand() *cobra.Command {
	var (
		ttl, wait       time.Duration
		owner, metadata string
	)
	c := &cobra.Command{
		Use:   "acquire NAME",
		Short: "Take a lease and print the claim",
		Long: `Take a lease that is free or has expired, and print its claim as assignments for a
shell. Nothing renews it: renew it well before it expires, or use fenceproxy run.

Exits with 75 while another holds the lease.`,
		Example: `  eval "$(fenceproxy lease acquire admin:reconciliation --ttl 5m)"
  fenceproxy lease acquire admin:reconciliation --wait 10m -o json`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().DurationVar(&ttl, "ttl", defaultTTL, "time to live, by the database's clock (1s to 24h)")
	c.Flags().DurationVar(&wait, "wait", 0, "how long to wait while another holds it")
	c.Flags().StringVar(&owner, "owner", "", "`OWNER` token; no two processes may use the same (default 128 random bits)")
	c.Flags().StringVar(&metadata, "metadata", "", "`TEXT` for people, kept beside the lease")
	format := outputFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		options := []lease.Option{lease.WithMetadata(metadata)}
		if owner != "" {
			options = append(options, lease.WithOwner(owner))
		}
		return p.withStore(c.Context(), func(store *lease.Store) error {
			l, err := acquire(c.Context(), store, args[0], ttl, wait, options)
			if err != nil {
				return err
			}
			if *format == outputJSON {
				return printJSON(p.out, claimOf(l))
			}
			return printClaim(p.out, l.Claim)
		})
	}
	return c
}

// acquire tries once, or until wait is over. The error is lease.ErrHeld when
// another had the lease all the time.
func acquire(ctx context.Context, store *lease.Store, name string, ttl, wait time.Duration, options []lease.Option) (*lease.Lease, error) {
	if wait <= 0 {
		return store.Acquire(ctx, name, ttl, options...)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l, err := store.AcquireWait(waiting, name, ttl, options...)
	if err == nil || waiting.Err() == nil || ctx.Err() != nil {
		return l, err
	}
	var held *lease.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("waited %v: %w", wait, held)
	}
	return nil, fmt.Errorf("waited %v: %w: %w", wait, lease.ErrHeld, err)
}

// acquired is a lease as -o json prints it. Tokens are text: they have 64 bits.
type acquired struct {
	Lease       string    `json:"lease"`
	Owner       string    `json:"owner"`
	Token       uint64    `json:"token,string"`
	LeasedUntil time.Time `json:"leased_until"`
}

func claimOf(l *lease.Lease) acquired {
	return acquired{Lease: l.Name, Owner: l.Owner, Token: l.Token, LeasedUntil: l.LeasedUntil.UTC()}
}

// printClaim prints assignments that a POSIX shell can evaluate.
func printClaim(w io.Writer, c lease.Claim) error {
	_, err := fmt.Fprintf(w, "%s=%s\n%s=%s\n%s=%d\n",
		leaseVariable, shellWord(c.Name), ownerVariable, shellWord(c.Owner), tokenVariable, c.Token)
	return err
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_:./@%+,-]+$`)

// shellWord quotes text where a shell would read more into it. Names and owners
// hold no single quote (lease.ValidName).
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + text + "'"
}
