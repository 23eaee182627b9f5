package lease_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/internal/dbtest"
)

func TestAnySessionSettingsGiveTheSameTimes(t *testing.T) {
	root := server.Open(t, "app")
	for i, settings := range []map[string]string{
		{"time_zone": "'+13:00'"},
		{"time_zone": "'-11:30'"},
		{"sql_mode": "''"},
		{"sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"},
		{"sql_mode": "'TRADITIONAL'"},
		{"sql_mode": "'ORACLE'"},
		{"character_set_client": "latin1", "collation_connection": "latin1_german1_ci"},
	} {
		for _, driver := range []string{"parseTime=true&loc=Asia%2FTokyo", "clientFoundRows=true", "interpolateParams=true"} {
			parameters := "?" + driver
			for name, value := range settings {
				parameters += "&" + name + "=" + url.QueryEscape(value)
			}
			db := server.Open(t, parameters)
			db.SetMaxOpenConns(1)
			s := newStore(t, db)
			name := fmt.Sprintf("settings-%d-%d", i, len(driver))
			const session = "SELECT CONCAT_WS(' ', @@time_zone, @@innodb_lock_wait_timeout, @@sql_mode)"
			before := one(t, db, session)
			l := acquire(t, s, name, 90*time.Second)
			left := one(t, root, "SELECT TIMESTAMPDIFF(SECOND, CURRENT_TIMESTAMP(3), leased_until) FROM fenced_job_leases WHERE lease_name = '"+name+"'")
			if left != "89" && left != "90" {
				t.Errorf("%v %s: %s s left on the server", settings, driver, left)
			}
			if d := time.Until(l.LeasedUntil); d < 80*time.Second || d > 91*time.Second {
				t.Errorf("%v %s: %v left here", settings, driver, d)
			}
			if until, err := s.Renew(t.Context(), l.Claim, time.Hour); err != nil || time.Until(until) < 59*time.Minute {
				t.Errorf("%v %s: renewed until %v, %v", settings, driver, until, err)
			}
			if err := s.Release(t.Context(), l.Claim); err != nil {
				t.Errorf("%v %s: %v", settings, driver, err)
			}
			if after := one(t, db, session); after != before {
				t.Errorf("%v %s: the session became %q, it was %q", settings, driver, after, before)
			}
		}
	}
}

// TestTheHourThatDaylightSavingRepeats: in Central Europe's time, 02:00 to 03:00 on
// 2026-10-25 comes twice, and a comparison of local times is wrong both ways.
func TestTheHourThatDaylightSavingRepeats(t *testing.T) {
	// mariadbd takes its SYSTEM time zone from its environment. The rule in full
	// needs no time zone files.
	t.Setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
	local := dbtest.New(t)
	if err := prepare(local); err != nil {
		t.Fatal(err)
	}
	change := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC) // 03:00 becomes 02:00
	for i, tt := range []struct {
		name             string
		acquired, judged time.Duration // from the change
		ttl              time.Duration
		held             bool
	}{
		{"ends in the second 02:xx, judged in the first", -40 * time.Minute, -10 * time.Minute, time.Hour, true},
		{"ended in the first 02:xx, judged in the second", -45 * time.Minute, 10 * time.Minute, 15 * time.Minute, false},
		{"begins and ends in the second", 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, true},
		{"ended in the second", 10 * time.Minute, 50 * time.Minute, 30 * time.Minute, false},
		{"lasts from before to after both", -2 * time.Hour, 30 * time.Minute, 4 * time.Hour, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := local.Open(t, "app")
			db.SetMaxOpenConns(1) // the test sets this session's clock
			clock := func(fromChange time.Duration) {
				t.Helper()
				if _, err := db.Exec(fmt.Sprintf("SET timestamp = %d", change.Add(fromChange).Unix())); err != nil {
					t.Fatal(err)
				}
			}
			s := newStore(t, db)
			clock(tt.acquired)
			l := acquire(t, s, fmt.Sprintf("hour-%d", i), tt.ttl)
			if want := change.Add(tt.acquired + tt.ttl); !l.LeasedUntil.Equal(want) {
				t.Errorf("it ends at %v, want %v", l.LeasedUntil.UTC(), want)
			}
			clock(tt.judged)
			f, err := s.Check(t.Context(), l.Claim)
			if err != nil {
				t.Fatal(err)
			}
			if left := tt.acquired + tt.ttl - tt.judged; f.Holds() != tt.held || f.Current.SecondsLeft != left.Seconds() {
				t.Errorf("Check: held %v with %v s left, want %v with %v", f.Holds(), f.Current.SecondsLeft, tt.held, left.Seconds())
			}
			text, args := s.Guard(l.Claim).Exists()
			var passes int
			if err := db.QueryRow("SELECT COUNT(*) FROM (SELECT 1) AS o WHERE "+text, args...).Scan(&passes); err != nil {
				t.Fatal(err)
			}
			if (passes == 1) != tt.held {
				t.Errorf("the guard lets %d rows pass, want held = %v", passes, tt.held)
			}
			if _, err := s.Renew(t.Context(), l.Claim, tt.ttl); (err == nil) != tt.held {
				t.Errorf("renew: %v, want held = %v", err, tt.held)
			}
		})
	}
}
