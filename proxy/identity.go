package proxy

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Connection attributes that carry a fence identity.
const (
	attributeLease = "fence_lease"
	attributeOwner = "fence_owner"
	attributeToken = "fence_token"
)

// identity is a session's fence identity, as the variables @fence_lease,
// @fence_owner and @fence_token on the server have it. The server's are the
// truth: the guard reads them there.
type identity struct {
	lease, owner, token string
	hasOwner, hasToken  bool
}

// claim is what the session says of itself towards the lease of w. A problem is
// a sentence for a person that says why there is no identity.
func (id identity) claim(w rewrite.Write) (c lease.Claim, problem string) {
	c = lease.Claim{Name: w.Lease, Owner: id.owner}
	if c.Name == "" {
		c.Name = id.lease
	}
	switch {
	case !id.hasOwner && !id.hasToken:
		return c, "the session has no identity"
	case !id.hasOwner || id.owner == "":
		return c, "@fence_token is set, @fence_owner is not"
	case !id.hasToken:
		return c, "@fence_owner is set, @fence_token is not"
	case c.Name == "":
		return c, "@fence_lease is not set, and the table's rule takes the lease from it"
	}
	token, err := strconv.ParseUint(id.token, 10, 64)
	if err != nil {
		return c, fmt.Sprintf("@fence_token is %q, not an integer from 0 to 18446744073709551615", id.token)
	}
	c.Token = token
	return c, ""
}

// identityFromAttributes reads the identity that a client claims in its
// connection attributes; nil when it claims none.
func identityFromAttributes(attributes map[string]string) (*lease.Claim, error) {
	name, hasLease := attributes[attributeLease]
	owner, hasOwner := attributes[attributeOwner]
	token, hasToken := attributes[attributeToken]
	if !hasLease && !hasOwner && !hasToken {
		return nil, nil
	}
	if !hasOwner || owner == "" {
		return nil, fmt.Errorf("connection attribute %s is missing: %s and %s go together", attributeOwner, attributeOwner, attributeToken)
	}
	if !hasToken {
		return nil, fmt.Errorf("connection attribute %s is missing: %s and %s go together", attributeToken, attributeOwner, attributeToken)
	}
	number, err := strconv.ParseUint(token, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("connection attribute %s is %q, not an integer from 0 to 18446744073709551615", attributeToken, token)
	}
	return &lease.Claim{Name: name, Owner: owner, Token: number}, nil
}

// identityStatement is the SET that gives the server the session's identity. It
// is pure ASCII without a quote, so that no sql_mode or character set changes
// how it reads.
func identityStatement(c lease.Claim) string {
	var b strings.Builder
	b.WriteString("SET @fence_owner = ")
	b.WriteString(hexString(c.Owner))
	b.WriteString(", @fence_token = ")
	b.WriteString(strconv.FormatUint(c.Token, 10))
	b.WriteString(", @fence_lease = ")
	b.WriteString(hexString(c.Name))
	return b.String()
}

func hexString(s string) string {
	if s == "" {
		return "NULL"
	}
	return "CONVERT(0x" + hex.EncodeToString([]byte(s)) + " USING utf8mb4)"
}
