package dbtest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childVariable makes the test binary a program that starts a server, tells
// where, and then waits to be killed.
const childVariable = "FENCEPROXY_DBTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	s, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Addr(), s.dir)
	select {}
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
	if got := one(t, a.Open(t, ""), "SELECT @@server_id"); got != "11" {
		t.Errorf("first server: id %s", got)
	}
	if got := one(t, b.Open(t, ""), "SELECT @@server_id"); got != "22" {
		t.Errorf("second server: id %s", got)
	}
}

func TestDataOutlivesRestartAndKill(t *testing.T) {
	s := New(t)
	db := s.Open(t, "")
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
	if got := one(t, db, "SELECT i FROM d.t"); got != "7" || s.Addr() != addr {
		t.Errorf("after a kill: %s at %s", got, s.Addr())
	}
}

func TestAPausedServerDoesNotAnswerUntilItIsResumed(t *testing.T) {
	s := New(t)
	db := s.Open(t, "")
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

// gone tells that nothing listens on addr and that dir does not exist.
func gone(addr, dir string) bool {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		_ = conn.Close()
		return false
	}
	_, err = os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}

func TestStopLeavesNothingBehind(t *testing.T) {
	s, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{s.process.cmd.Process.Pid, s.sweeper.cmd.Process.Pid}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if !gone(s.Addr(), s.dir) {
		t.Errorf("%s listens or %s is there", s.Addr(), s.dir)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is there: %v", pid, err)
		}
	}
}

func TestAKilledProgramLeavesNothingBehind(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
	if gone(addr, dir) {
		t.Fatalf("the program says %q, and nothing is there", line)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(10 * time.Second); !gone(addr, dir); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s listens or %s is there", addr, dir)
		}
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	_, err := Start(t.Context(), Options{Args: []string{"--no-such-option"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("got %v, want the server's own words", err)
	}
}

func TestALockWaitIsSeen(t *testing.T) {
	db := New(t).Open(t, "")
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (i INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO d.t VALUES (1)"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE d.t SET i = 2"); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := db.Exec("DELETE FROM d.t")
		waiting <- err
	}()
	WaitForLockWait(t, db, "DELETE FROM d.t")
	select {
	case err := <-waiting:
		t.Errorf("the statement did not wait: %v", err)
	default:
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}
