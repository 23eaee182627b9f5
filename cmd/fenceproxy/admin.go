package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fenceproxy/fenceproxy/monitor"
)

const (
	// adminHeaderTimeout keeps idle connections from piling up.
	adminHeaderTimeout = 10 * time.Second
	// adminStopTimeout lets a scrape that is under way come to its end.
	adminStopTimeout = 5 * time.Second
)

// adminServer is the HTTP server of metrics and health.
type adminServer struct {
	addr   string // where it listens, with the port that the kernel chose
	server *http.Server
	done   chan struct{}
}

// startAdmin serves on address until stop.
func startAdmin(address string, g prometheus.Gatherer) (*adminServer, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("admin server: %w", err)
	}
	a := &adminServer{
		addr:   l.Addr().String(),
		server: &http.Server{Handler: monitor.NewAdmin(g), ReadHeaderTimeout: adminHeaderTimeout},
		done:   make(chan struct{}),
	}
	go func() {
		defer close(a.done)
		_ = a.server.Serve(l) // always http.ErrServerClosed or a broken listener's error
	}()
	return a, nil
}

// stop ends the server and waits for it. It is safe to call twice.
func (a *adminServer) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), adminStopTimeout)
	defer cancel()
	if err := a.server.Shutdown(ctx); err != nil {
		_ = a.server.Close()
	}
	<-a.done
}
