package lease_test

import (
	"testing"
	"time"

	"github.com/fenceproxy/fenceproxy/lease"
)

func TestTheGuardFencesAProgramsOwnWrites(t *testing.T) {
	db := server.Open(t, "app")
	s := newStore(t, db)
	if _, err := db.Exec("CREATE OR REPLACE TABLE runs (id INT PRIMARY KEY, n INT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO runs VALUES (1, 0)"); err != nil {
		t.Fatal(err)
	}
	a := acquire(t, s, "guarded", time.Minute)
	write := func(c lease.Claim) (affected int64) {
		g := s.Guard(c)
		join, joinArgs := g.Join()
		exists, existsArgs := g.Exists()
		for query, args := range map[string][]any{
			"UPDATE runs " + join + " SET runs.n = runs.n + 1 WHERE runs.id = 1": joinArgs,
			"UPDATE runs SET n = n + 1 WHERE id = 1 AND " + exists:               existsArgs,
		} {
			r, err := db.Exec(query, args...)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := r.RowsAffected()
			affected += n
		}
		return affected
	}
	if n := write(a.Claim); n != 2 {
		t.Errorf("the holder changed %d rows", n)
	}
	if err := s.Release(t.Context(), a.Claim); err != nil {
		t.Fatal(err)
	}
	if n := write(a.Claim); n != 0 {
		t.Errorf("after the release %d rows were changed", n)
	}
	if got := one(t, db, "SELECT n FROM runs"); got != "2" {
		t.Errorf("n is %s", got)
	}
}
