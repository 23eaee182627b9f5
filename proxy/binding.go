package proxy

import (
	"sync/atomic"

	"github.com/fenceproxy/fenceproxy/lease"
)

// Binding gives every session of one listener the same identity, for programs
// that know nothing of leases.
type Binding struct {
	claim   lease.Claim
	revoked atomic.Bool
}

// NewBinding binds sessions to claim.
func NewBinding(claim lease.Claim) *Binding { return &Binding{claim: claim} }

// Revoke fences the binding's sessions at once: every later write to a table
// under its lease is rejected, whatever the database says. It cannot be undone.
func (b *Binding) Revoke() { b.revoked.Store(true) }

func (b *Binding) isRevoked() bool { return b != nil && b.revoked.Load() }
