package main

import (
	"io"
	"net/http"
	"testing"

	"github.com/fenceproxy/fenceproxy/monitor"
)

func TestTheAdminServerServesUntilItIsStopped(t *testing.T) {
	a, err := startAdmin("127.0.0.1:0", monitor.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.stop()
	if _, err := startAdmin(a.addr, monitor.NewRegistry()); err == nil {
		t.Error("two servers on one address")
	}
	response, err := http.Get("http://" + a.addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || string(body) != "ok\n" {
		t.Errorf("status %d, %q, %v", response.StatusCode, body, err)
	}
	a.stop()
	if _, err := http.Get("http://" + a.addr + "/healthz"); err == nil {
		t.Error("it answers after it was stopped")
	}
}
