package main

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestLeasesFromTheShell(t *testing.T) {
	server, db := openServer(t)
	c := cli{t: t, config: configFor(t, server.DSN("app"))}
	c.want(exitFailed, "fenceproxy: ", "lease", "list")
	c.must("migrate", "up")

	if out := c.must("lease", "list"); strings.TrimSpace(out) != "LEASE  TOKEN  STATE  SECONDS LEFT  OWNER  METADATA" {
		t.Errorf("an empty list prints %q", out)
	}

	const name = "admin:$(reconciliation)&"
	assignments := c.must("lease", "acquire", name, "--ttl", "5m", "--metadata", "by hand")
	shell := exec.Command("sh", "-c", assignments+`printf '%s\n' "$FENCE_LEASE" "$FENCE_OWNER" "$FENCE_TOKEN"`)
	evaluated, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, evaluated)
	}
	claim := strings.Split(strings.TrimSpace(string(evaluated)), "\n")
	if len(claim) != 3 || claim[0] != name || len(claim[1]) != 32 || claim[2] != "1" {
		t.Fatalf("%q evaluates to %q", assignments, claim)
	}

	c.want(exitHeld, "is held by "+claim[1], "lease", "acquire", name)
	c.want(exitHeld, "waited 50ms: lease '"+name+"' is held by", "lease", "acquire", name, "--wait", "50ms")
	c.want(exitUsage, "bad lease name", "lease", "acquire", "two words")
	c.want(exitUsage, "bad lease owner", "lease", "acquire", "job", "--owner", "it's")
	c.want(exitUsage, "bad lease TTL", "lease", "acquire", "job", "--ttl", "1ms")

	list := decode[[]listedLease](t, c.must("lease", "list", "-o", "json"))
	if len(list) != 1 || list[0].Lease != name || list[0].Owner != claim[1] || list[0].Token != 1 || !list[0].Held ||
		list[0].SecondsLeft < 200 || list[0].SecondsLeft > 300 || list[0].Metadata != "by hand" {
		t.Errorf("list: %+v", list)
	}

	t.Setenv(leaseVariable, claim[0])
	t.Setenv(ownerVariable, claim[1])
	t.Setenv(tokenVariable, claim[2])
	until, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(c.must("lease", "renew", "--ttl", "1h")))
	if err != nil || time.Until(until) < 50*time.Minute || time.Until(until) > 70*time.Minute {
		t.Errorf("renewed until %v, %v", until, err)
	}
	c.want(exitLost, "", "lease", "renew", "--token", "2")
	c.want(exitLost, "", "lease", "release", "--owner", "somebody")
	c.want(exitLost, "", "lease", "renew", "other")
	if out := c.must("lease", "release"); out != "" {
		t.Errorf("release prints %q", out)
	}
	c.want(exitLost, "expired", "lease", "release")
	if out := c.must("lease", "list"); !strings.Contains(out, "expired") {
		t.Errorf("a released lease is listed so:\n%s", out)
	}

	second := decode[acquired](t, c.must("lease", "acquire", name, "--owner", "B", "--wait", "10s", "-o", "json"))
	if second.Lease != name || second.Owner != "B" || second.Token != 2 || time.Until(second.LeasedUntil) < 20*time.Second {
		t.Errorf("acquired %+v", second)
	}
	c.want(exitLost, "at token 2 (owner B)", "lease", "renew")

	var token uint64
	if err := db.QueryRow("SELECT fence_token FROM app.fenced_job_leases").Scan(&token); err != nil || token != 2 {
		t.Errorf("the table has token %s, %v", strconv.FormatUint(token, 10), err)
	}
}

func TestMigrateFromTheShell(t *testing.T) {
	server, db := openServer(t)
	c := cli{t: t, config: configFor(t, server.DSN("app"))}
	execSQL(t, db, "SET GLOBAL time_zone = '+05:00'")
	before := decode[[]migrationState](t, c.must("migrate", "status", "-o", "json"))
	if len(before) == 0 || before[0].AppliedAt != nil {
		t.Errorf("before: %+v", before)
	}
	if out := c.must("migrate", "status"); !strings.Contains(out, "pending") {
		t.Errorf("status before: %s", out)
	}
	if out := c.must("migrate", "up"); !strings.HasPrefix(out, "applied 1 ") || !strings.HasSuffix(out, "app.fenced_job_leases is up to date\n") {
		t.Errorf("up: %q", out)
	}
	if out := c.must("migrate", "up"); out != "app.fenced_job_leases is up to date\n" {
		t.Errorf("up again: %q", out)
	}
	after := decode[[]migrationState](t, c.must("migrate", "status", "-o", "json"))
	if len(after) != len(before) || after[0].AppliedAt == nil || time.Since(*after[0].AppliedAt).Abs() > time.Minute {
		t.Errorf("after: %+v", after)
	}
	execSQL(t, db, "ALTER TABLE app.fenced_job_leases MODIFY fence_token INT NOT NULL")
	c.want(exitFailed, "fence_token", "migrate", "up")
}
