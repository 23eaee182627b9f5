package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fenceproxy/fenceproxy/lease"
)

func (p *program) leaseListCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List all leases, with the seconds left by the database's clock",
		Example: "  fenceproxy lease list -o json",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.withStore(c.Context(), func(store *lease.Store) error {
			leases, err := store.List(c.Context())
			if err != nil {
				return err
			}
			if *format == outputJSON {
				return printJSON(p.out, listed(leases))
			}
			return printTable(p.out, leaseRows(leases))
		})
	}
	return c
}

// listedLease is a lease as -o json prints it.
type listedLease struct {
	Lease       string    `json:"lease"`
	Owner       string    `json:"owner"`
	Token       uint64    `json:"token,string"`
	Held        bool      `json:"held"`
	SecondsLeft float64   `json:"seconds_left"`
	LeasedUntil time.Time `json:"leased_until"`
	AcquiredAt  time.Time `json:"acquired_at"`
	RenewedAt   time.Time `json:"renewed_at"`
	Metadata    string    `json:"metadata"`
}

func listed(leases []lease.Info) []listedLease {
	list := make([]listedLease, len(leases))
	for i, l := range leases {
		list[i] = listedLease{
			Lease: l.Name, Owner: l.Owner, Token: l.Token, Held: l.Held(), SecondsLeft: l.SecondsLeft,
			LeasedUntil: l.LeasedUntil.UTC(), AcquiredAt: l.AcquiredAt.UTC(), RenewedAt: l.RenewedAt.UTC(), Metadata: l.Metadata,
		}
	}
	return list
}

func leaseRows(leases []lease.Info) [][]string {
	rows := [][]string{{"LEASE", "TOKEN", "STATE", "SECONDS LEFT", "OWNER", "METADATA"}}
	for _, l := range leases {
		state := "expired"
		if l.Held() {
			state = "held"
		}
		rows = append(rows, []string{
			l.Name, strconv.FormatUint(l.Token, 10), state, strconv.FormatFloat(l.SecondsLeft, 'f', 1, 64), l.Owner, l.Metadata,
		})
	}
	return rows
}
