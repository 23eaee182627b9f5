package monitor

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// The number and SQLSTATE of the error that a rejected write gets: those of a
// SIGNAL without a number of its own (ER_SIGNAL_EXCEPTION, "unhandled
// user-defined exception"). They are chosen by what clients do with them: drivers
// and frameworks retry 1205 and 1213, go-sql-driver can make a bad connection of
// 1290, 1792 and 1836, and others take classes 08 and 40 for an invitation to try
// again. 1644 of class 45 surfaces once, and reaches programs that have handlers
// for it as a trigger's veto would.
const (
	ErrorNumber = 1644
	SQLState    = "45000"
)

// Longest parts of a message in bytes, so that all of it fits in the 511 that
// clients keep of an error (MYSQL_ERRMSG_SIZE is 512, with a final NUL).
const (
	maxName   = 64  // of a schema, a table, an owner
	maxLease  = 128 // no lease has a longer name
	maxToken  = 20  // digits of the largest BIGINT UNSIGNED
	maxDetail = 160
)

// Message is the text of the client's error: what was rejected, why, and what to
// do where the session itself can do something. It is one line.
func (r Rejection) Message() string {
	what := "statement"
	if r.Table != (rewrite.Table{}) {
		what = "write to " + clip(r.Table.Schema, maxName) + "." + clip(r.Table.Name, maxName)
	}
	return "fenceproxy: " + what + " rejected: " + r.because()
}

func (r Rejection) because() string {
	lease, owner, token := clip(r.Lease, maxLease), clip(r.Owner, maxName), clip(r.Token, maxToken)
	switch r.Reason {
	case rewrite.Unfenced:
		problem := "the session has no identity"
		if r.Detail != "" {
			problem = clip(r.Detail, maxDetail)
		}
		return problem + "; set @fence_owner and @fence_token, send them as connection attributes, or use fenceproxy run"
	case rewrite.StaleToken:
		return fmt.Sprintf("stale token %s, lease '%s' is at token %d (owner %s)", token, lease, r.CurrentToken, clip(r.CurrentOwner, maxName))
	case rewrite.WrongOwner:
		return fmt.Sprintf("token %s of lease '%s' is held by owner %s, not by owner %s", token, lease, clip(r.CurrentOwner, maxName), owner)
	case rewrite.Expired:
		if !r.HasLease {
			return fmt.Sprintf("lease '%s' (owner %s, token %s) is lost", lease, owner, token)
		}
		return fmt.Sprintf("lease '%s' (owner %s, token %s) expired at %s%s; acquire it again", lease, owner, token,
			r.LeasedUntil.UTC().Format(timeFormat), r.sinceExpiry())
	case rewrite.NoLease:
		return fmt.Sprintf("there is no lease '%s'; acquire it first", lease)
	case rewrite.Unsupported:
		return "it cannot be guarded: " + clip(r.Detail, maxDetail)
	case rewrite.RowToken:
		return fmt.Sprintf("the row belongs to another generation than token %s of lease '%s'", token, lease)
	case rewrite.Forbidden:
		return "it could break the fence: " + clip(r.Detail, maxDetail)
	case rewrite.NoReason:
	}
	return "no reason was given"
}

// sinceExpiry compares the database's clock with the proxy's, so it says nothing
// where they disagree.
func (r Rejection) sinceExpiry() string {
	ago := r.Time.Sub(r.LeasedUntil)
	if r.Time.IsZero() || ago < 0 {
		return ""
	}
	if ago < time.Second {
		return fmt.Sprintf(" (%s ago)", ago.Round(time.Millisecond))
	}
	return fmt.Sprintf(" (%s ago)", ago.Round(100*time.Millisecond))
}

// clip makes text printable on one line and at most limit bytes long. What a
// session says of itself can be anything.
func clip(text string, limit int) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(text, "?"))
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	cut := limit - len(ellipsis)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + ellipsis
}
