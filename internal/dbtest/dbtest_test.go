package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, s *Server) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func one(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var v string
	if err := db.QueryRow(query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func TestTwoServersAtOnceAreApart(t *testing.T) {
	a, b := New(t, "--server-id=11"), New(t, "--server-id=22")
	if got := one(t, open(t, a), "SELECT @@server_id"); got != "11" {
		t.Errorf("first server: id %s", got)
	}
	if got := one(t, open(t, b), "SELECT @@server_id"); got != "22" {
		t.Errorf("second server: id %s", got)
	}
}

func TestDataOutlivesRestartAndKill(t *testing.T) {
	s := New(t)
	db := open(t, s)
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (i INT)", "INSERT INTO d.t VALUES (7)"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	addr := s.Addr()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := one(t, db, "SELECT i FROM d.t"); got != "7" || s.Addr() != addr {
		t.Errorf("after a restart: %s at %s", got, s.Addr())
	}
	s.Kill()
	if err := db.Ping(); err == nil {
		t.Error("a killed server answers")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	one(t, db, "SELECT COUNT(*) FROM d.t")
}

func TestAPausedServerDoesNotAnswerUntilItIsResumed(t *testing.T) {
	s := New(t)
	db := open(t, s)
	one(t, db, "SELECT 1")
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := db.PingContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("paused: %v", err)
	}
	s.Resume()
	if err := db.PingContext(t.Context()); err != nil {
		t.Errorf("resumed: %v", err)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	s, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	pid := s.process.cmd.Process.Pid
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", s.dir, err)
	}
	if p, err := os.FindProcess(pid); err == nil && p.Signal(nil) == nil {
		t.Errorf("process %d still runs", pid)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	_, err := Start(t.Context(), Options{Args: []string{"--no-such-option"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("got %v, want the server's own words", err)
	}
}
