package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/monitor"
	"github.com/fenceproxy/fenceproxy/proxy/wire"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Options configure a Server. All fields are required.
type Options struct {
	// Backend is the server's address: host:port, or unix:/path.
	Backend string
	Rules   *rewrite.Rules
	// Leases reads the lease table on a control connection of the proxy's own.
	Leases  *lease.Store
	Monitor *monitor.Monitor
	Log     *slog.Logger
	// MaxConnections is the number of client connections above which a new one
	// is answered with error 1040.
	MaxConnections int
	// MaxStatement is the longest command in bytes that is read into memory.
	MaxStatement int
	// ConnectTimeout limits the dial to the backend, LoginTimeout the handshake
	// and authentication.
	ConnectTimeout time.Duration
	LoginTimeout   time.Duration
}

// Server accepts client connections and runs their sessions.
type Server struct {
	Options
	nextSession atomic.Uint64

	mu        sync.Mutex // guards what follows
	draining  bool
	sessions  map[*session]struct{}
	listeners map[net.Listener]struct{}
	done      sync.WaitGroup // sessions
}

// ErrServerClosed is returned by Serve after Shutdown.
var ErrServerClosed = errors.New("proxy: server is shut down")

// NewServer makes a Server. It opens no connection.
func NewServer(o Options) *Server {
	return &Server{
		Options:   o,
		sessions:  make(map[*session]struct{}),
		listeners: make(map[net.Listener]struct{}),
	}
}

// Listen opens a listener for address: host:port, or unix:/path.
func Listen(address string) (net.Listener, error) {
	network, address := splitAddress(address)
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

func splitAddress(address string) (network, rest string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "unix", path
	}
	return "tcp", address
}

// Serve accepts connections on l until Shutdown, and returns ErrServerClosed
// then. Sessions accepted here carry binding's identity; it may be nil. Serve
// closes l.
func (s *Server) Serve(l net.Listener, binding *Binding) error {
	if !s.addListener(l) {
		_ = l.Close()
		return ErrServerClosed
	}
	defer s.closeListener(l)
	var pause time.Duration
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.start(nc, binding)
			continue
		}
		if s.isDraining() {
			return ErrServerClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept: %w", err)
		}
		// Out of file descriptors, or a client that left before it was
		// accepted: the listener itself goes on.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.Log.Warn("accept failed", "err", err, "pause", pause)
		time.Sleep(pause)
	}
}

func (s *Server) start(nc net.Conn, binding *Binding) {
	ss := newSession(s, nc, binding)
	switch s.add(ss) {
	case admitted:
		go func() {
			defer s.done.Done()
			defer s.remove(ss)
			ss.run()
		}()
	case full:
		// A goroutine of its own: a client that does not read must not stop
		// the accept loop.
		go func() {
			defer s.done.Done()
			ss.refuseEarly(&wire.Error{Number: 1040, State: "08004", Message: "Too many connections (fenceproxy limits.max_connections)"})
		}()
	case closed:
		_ = nc.Close()
	}
}

type admission int

const (
	admitted admission = iota
	full
	closed
)

func (s *Server) add(ss *session) admission {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return closed
	}
	s.done.Add(1)
	if len(s.sessions) >= s.MaxConnections {
		return full
	}
	s.sessions[ss] = struct{}{}
	return admitted
}

func (s *Server) remove(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ss)
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) closeListener(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
	_ = l.Close()
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Shutdown stops accepting, ends idle sessions, lets commands and open
// transactions come to their end until ctx ends, and then closes what is left.
// It returns ctx's error when it had to, and nil otherwise. It is safe to call
// before Serve, and twice.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	for l := range s.listeners {
		_ = l.Close()
	}
	for ss := range s.sessions {
		ss.drain()
	}
	s.mu.Unlock()

	finished := make(chan struct{})
	go func() {
		s.done.Wait()
		close(finished)
	}()
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for ss := range s.sessions {
		ss.close()
	}
	s.mu.Unlock()
	<-finished
	return ctx.Err()
}
