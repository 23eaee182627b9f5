package monitor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/monitor"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// stale is the rejection of DESIGN's story; its parts are changed by the tests.
func stale() monitor.Rejection {
	return monitor.Rejection{
		Time:    time.Date(2026, 3, 1, 12, 0, 12, 340e6, time.UTC),
		Session: 42, Client: "10.0.0.7:51000", User: "app", Program: "php", Database: "app",
		Table: rewrite.Table{Schema: "app", Name: "reconciliation_runs"},
		Lease: "admin:reconciliation", RuleLease: "admin:reconciliation", Owner: "A", Token: "7",
		HasLease: true, CurrentOwner: "B", CurrentToken: 8, LeasedUntil: time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC),
		Plan: rewrite.Join, Reason: rewrite.StaleToken,
		Statement: "UPDATE reconciliation_runs SET status = ?", Digest: "0123456789abcdef",
	}
}

func TestTheClientsErrorSaysWhatHappenedAndWhatToDo(t *testing.T) {
	tests := []struct {
		name   string
		change func(*monitor.Rejection)
		want   string
	}{
		{
			"a stale token", func(*monitor.Rejection) {},
			"fenceproxy: write to app.reconciliation_runs rejected: stale token 7, lease 'admin:reconciliation' is at token 8 (owner B)",
		},
		{
			"no identity at all", func(r *monitor.Rejection) { r.Reason, r.Owner, r.Token = rewrite.Unfenced, "", "" },
			"fenceproxy: write to app.reconciliation_runs rejected: the session has no identity; set @fence_owner and @fence_token, send them as connection attributes, or use fenceproxy run",
		},
		{
			"half an identity", func(r *monitor.Rejection) {
				r.Reason, r.Detail = rewrite.Unfenced, "@fence_owner is set, @fence_token is not"
			},
			"fenceproxy: write to app.reconciliation_runs rejected: @fence_owner is set, @fence_token is not; set @fence_owner and @fence_token, send them as connection attributes, or use fenceproxy run",
		},
		{
			"the owner of another", func(r *monitor.Rejection) { r.Reason, r.CurrentToken = rewrite.WrongOwner, 7 },
			"fenceproxy: write to app.reconciliation_runs rejected: token 7 of lease 'admin:reconciliation' is held by owner B, not by owner A",
		},
		{
			"an expired lease", func(r *monitor.Rejection) { r.Reason = rewrite.Expired },
			"fenceproxy: write to app.reconciliation_runs rejected: lease 'admin:reconciliation' (owner A, token 7) expired at 2026-03-01T12:00:00.005Z (12.3s ago); acquire it again",
		},
		{
			"a lease that has just expired", func(r *monitor.Rejection) {
				r.Reason, r.Time = rewrite.Expired, r.LeasedUntil.Add(3*time.Millisecond)
			},
			"fenceproxy: write to app.reconciliation_runs rejected: lease 'admin:reconciliation' (owner A, token 7) expired at 2026-03-01T12:00:00.005Z (3ms ago); acquire it again",
		},
		{
			"an expiry that the proxy's clock has not reached", func(r *monitor.Rejection) {
				r.Reason, r.Time = rewrite.Expired, r.LeasedUntil.Add(-time.Minute)
			},
			"fenceproxy: write to app.reconciliation_runs rejected: lease 'admin:reconciliation' (owner A, token 7) expired at 2026-03-01T12:00:00.005Z; acquire it again",
		},
		{
			"a lost lease that could not be looked at", func(r *monitor.Rejection) { r.Reason, r.HasLease = rewrite.Expired, false },
			"fenceproxy: write to app.reconciliation_runs rejected: lease 'admin:reconciliation' (owner A, token 7) is lost",
		},
		{
			"a lease that is not there", func(r *monitor.Rejection) { r.Reason, r.HasLease = rewrite.NoLease, false },
			"fenceproxy: write to app.reconciliation_runs rejected: there is no lease 'admin:reconciliation'; acquire it first",
		},
		{
			"a statement that cannot be guarded", func(r *monitor.Rejection) {
				r.Reason, r.Plan, r.Detail = rewrite.Unsupported, rewrite.Refuse, "TRUNCATE commits at once"
			},
			"fenceproxy: write to app.reconciliation_runs rejected: it cannot be guarded: TRUNCATE commits at once",
		},
		{
			"a forbidden statement without a protected table", func(r *monitor.Rejection) {
				r.Reason, r.Plan, r.Table, r.Detail = rewrite.Forbidden, rewrite.Refuse, rewrite.Table{}, "it drops the lease table"
			},
			"fenceproxy: statement rejected: it could break the fence: it drops the lease table",
		},
		{
			"a row of another generation", func(r *monitor.Rejection) { r.Reason = rewrite.RowToken },
			"fenceproxy: write to app.reconciliation_runs rejected: the row belongs to another generation than token 7 of lease 'admin:reconciliation'",
		},
		{
			"an owner that is no text", func(r *monitor.Rejection) { r.CurrentOwner = "B\n\xff\x00" },
			"fenceproxy: write to app.reconciliation_runs rejected: stale token 7, lease 'admin:reconciliation' is at token 8 (owner B???)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := stale()
			tt.change(&r)
			if got := r.Message(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNoMessageIsLongerThanClientsKeep(t *testing.T) {
	const kept = 511
	for _, text := range []string{strings.Repeat("x", 5000), strings.Repeat("é", 5000)} {
		for _, reason := range rewrite.Reasons() {
			r := stale()
			r.Reason = reason
			r.Table = rewrite.Table{Schema: text, Name: text}
			r.Lease, r.Owner, r.Token, r.CurrentOwner, r.Detail = text, text, text, text, text
			r.CurrentToken = 1<<64 - 1
			got := r.Message()
			if len(got) > kept || strings.ContainsRune(got, '\ufffd') {
				t.Errorf("%s: %d bytes, want at most %d of valid text: %s", reason, len(got), kept, got)
			}
			if strings.HasSuffix(got, "no reason was given") {
				t.Errorf("%s has no message", reason)
			}
		}
	}
}
