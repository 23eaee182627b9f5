package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/proxy"
)

func newServe(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Accept MySQL connections and guard their writes",
		Long: `Listens on the configured addresses and relays every session to the backend,
guarding writes to protected tables.

SIGTERM and SIGINT drain: no new connection is accepted, idle sessions end, and
open transactions may come to their end for up to limits.drain_timeout. A second
signal ends at once.`,
		Example: `  fenceproxy serve -c /etc/fenceproxy/fenceproxy.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(*path)
			if err != nil {
				return err
			}
			return serve(c.Context(), cfg, c.ErrOrStderr())
		},
	}
}

// serve runs the proxy until ctx ends, and then drains it.
func serve(ctx context.Context, cfg *config.Config, logTo io.Writer) error {
	log := newLogger(logTo, cfg.Log)
	e, err := newEngine(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer e.close()
	listeners, err := listenAll(cfg.Listen)
	if err != nil {
		return err
	}
	if cfg.Admin.Listen != "" {
		page, err := startAdmin(cfg.Admin.Listen, e.registry)
		if err != nil {
			closeAll(listeners)
			return err
		}
		defer page.stop()
		log.Info("admin server listens", "address", page.addr)
	}

	var group errgroup.Group
	for _, l := range listeners {
		log.Info("listening", "address", l.Addr().String(), "backend", cfg.Backend.Address)
		group.Go(func() error { return e.proxy.Serve(l, nil) })
	}
	served := make(chan error, 1)
	go func() { served <- group.Wait() }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	log.Info("draining", "timeout", cfg.Limits.DrainTimeout.String())
	drain, cancel := context.WithTimeout(context.Background(), cfg.Limits.DrainTimeout)
	defer cancel()
	if err := e.proxy.Shutdown(drain); err != nil {
		log.Warn("sessions were closed at the end of the drain timeout")
	}
	if err := <-served; !errors.Is(err, proxy.ErrServerClosed) {
		return err
	}
	log.Info("stopped")
	return nil
}

// listenAll opens every address, or none.
func listenAll(addresses []string) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, address := range addresses {
		l, err := listen(address)
		if err != nil {
			closeAll(listeners)
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// listen opens one address. A socket file that nobody listens on any more, left
// by a crash, is removed first.
func listen(address string) (net.Listener, error) {
	path, isSocket := strings.CutPrefix(address, "unix:")
	if isSocket {
		if err := removeStaleSocket(path); err != nil {
			return nil, err
		}
	}
	l, err := proxy.Listen(address)
	if err != nil || !isSocket {
		return l, err
	}
	// Any local account may connect, as to the server's own socket: the server
	// authenticates.
	if err := os.Chmod(path, 0o666); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func removeStaleSocket(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("listen on unix:%s: the file exists and is not a socket", path)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return fmt.Errorf("listen on unix:%s: another process listens there", path)
	}
	return os.Remove(path)
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}
