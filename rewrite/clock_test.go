package rewrite_test

import "testing"

// TestTheGuardIsRightInTheHourThatDaylightSavingRepeats: on 2026-10-25 in Berlin,
// 02:50 comes at 00:50 UTC, and 02:10, for the second time, at 01:10 UTC. As local
// times the later one looks earlier.
func TestTheGuardIsRightInTheHourThatDaylightSavingRepeats(t *testing.T) {
	t.Setenv("TZ", "Europe/Berlin") // the server takes its time zone from there
	w := newWorld(t)
	const first0250, second0210 = "1792889400", "1792890600"
	s := sessionOf(t, "")
	for _, tt := range []struct {
		now, until string
		current    bool
	}{
		{first0250, second0210, true},
		{second0210, first0250, false},
		{first0250, first0250, false},
	} {
		conn, err := w.admin.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			"USE app",
			"SET time_zone = '+00:00'",
			"REPLACE INTO fenced_job_leases VALUES ('job', 'A', 7, FROM_UNIXTIME(" + tt.until + "))",
			"SET time_zone = DEFAULT, timestamp = " + tt.now + ", @fence_owner = 'A', @fence_token = 7",
		} {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		for _, sql := range []string{"UPDATE runs SET a = 1", "DELETE FROM runs", "INSERT INTO runs (id) VALUES (1)"} {
			rows, err := conn.QueryContext(t.Context(), w.rules.Plan(s, sql).Guard)
			if err != nil {
				t.Fatal(err)
			}
			if got := rows.Next(); got != tt.current {
				t.Errorf("at %s, leased until %s: current %v", tt.now, tt.until, got)
			}
			_ = rows.Close()
		}
		_ = conn.Close()
	}
}
