package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/proxy/wire"
)

// session is one client connection and its backend connection. All of it
// belongs to the goroutine of run, but for drain and close.
type session struct {
	srv     *Server
	id      uint64
	binding *Binding // nil unless the listener has one
	log     *slog.Logger

	client  *wire.Conn
	backend *wire.Conn // nil until dialled

	user, program string
	login         *lease.Claim // the identity that came with the login, or nil
	capabilities  uint32       // agreed upon by client, proxy and server
	status        uint16       // the server's latest status flags

	facts      facts
	statements map[uint32]*statement
	lastID     uint32 // of the statement prepared last
	aborted    *abort // nil unless a rejection rolled the transaction back
	rowCount   rowCount
	// tablesLocked tells that the client may have tables locked, and clockSet that it
	// may have a clock of its own.
	tablesLocked, clockSet bool

	mu       sync.Mutex // guards what follows
	waiting  bool       // for the next command, with nothing of it read
	draining bool
	closed   bool
}

func newSession(s *Server, nc net.Conn, binding *Binding) *session {
	id := s.nextSession.Add(1)
	return &session{
		srv:        s,
		id:         id,
		binding:    binding,
		log:        s.Log.With("session", id, "client", nc.RemoteAddr().String()),
		client:     wire.NewConn(nc),
		statements: make(map[uint32]*statement),
	}
}

// Errors that end a session. They tell whom to blame, so that the other side
// can be told.
var (
	// errQuit: the client said goodbye, or is to be ended without a word.
	errQuit = errors.New("session ended")
	// errDrained: the server shuts down and the session is idle.
	errDrained = errors.New("server is shutting down")
)

// clientError wraps a failure of the client's connection.
type clientError struct{ error }

func (e clientError) Unwrap() error { return e.error }

// backendError wraps a failure of the backend's connection. Whether the server
// carried out the command that was under way is unknown.
type backendError struct{ error }

func (e backendError) Unwrap() error { return e.error }

func (s *session) run() {
	s.srv.Monitor.SessionOpened()
	defer s.srv.Monitor.SessionClosed()
	defer s.close()
	s.explain(s.serve())
}

func (s *session) serve() error {
	if err := s.connect(); err != nil {
		return err
	}
	for {
		if err := s.serveCommand(); err != nil {
			return err
		}
	}
}

// explain tells the client and the log why the session ends, where there is
// something to tell.
func (s *session) explain(err error) {
	var fromBackend backendError
	var asServer *wire.Error
	switch {
	case errors.Is(err, errQuit):
	case errors.Is(err, errDrained):
		// Numbered as the answer to the command that the client would send next.
		s.client.SetSequence(1)
		s.sendLast(&wire.Error{Number: 1053, State: "08S01", Message: "fenceproxy is shutting down"})
	case errors.As(err, &fromBackend):
		s.log.Warn("backend connection lost", "err", fromBackend.error)
		if errors.Is(err, wire.ErrMidPacket) {
			return
		}
		s.sendLast(&wire.Error{Number: 2013, State: "HY000", Message: "fenceproxy: lost connection to the backend; whether the last statement took effect is unknown"})
	case errors.As(err, &asServer):
		s.log.Info("session refused", "err", asServer.Message)
		s.sendLast(asServer)
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		s.log.Debug("client left")
	default:
		s.log.Info("session ended", "err", err)
	}
}

// lastWordsTimeout limits the wait for a client that does not read the error
// that ends its session.
const lastWordsTimeout = time.Second

func (s *session) sendLast(e *wire.Error) {
	_ = s.client.SetTimeout(lastWordsTimeout)
	_ = s.sendError(e)
}

// sendError answers the client's command with an error.
func (s *session) sendError(e *wire.Error) error {
	return s.send(wire.AppendError(nil, e))
}

// send writes packet to the client at once.
func (s *session) send(packet []byte) error {
	if err := s.client.WritePacket(packet); err != nil {
		return clientError{err}
	}
	if err := s.client.Flush(); err != nil {
		return clientError{err}
	}
	return nil
}

// awaitCommand waits until the client begins to send a command.
func (s *session) awaitCommand() error {
	for {
		if err := s.enterWait(); err != nil {
			return err
		}
		err := s.client.Wait()
		interrupted := s.leaveWait()
		if err == nil {
			return nil
		}
		if !interrupted || !errors.Is(err, os.ErrDeadlineExceeded) {
			return clientError{err}
		}
	}
}

// enterWait marks the session idle. A session that is to be drained ends here,
// unless the client has a transaction open.
func (s *session) enterWait() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errQuit
	}
	if s.draining && !s.inTransaction() {
		return errDrained
	}
	s.waiting = true
	return nil
}

// leaveWait tells whether the wait was interrupted by drain.
func (s *session) leaveWait() (interrupted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = false
	if s.draining && !s.closed {
		_ = s.client.SetReadDeadline(time.Time{})
	}
	return s.draining
}

// drain makes the session end at the next moment at which it is idle and
// outside a transaction. It returns at once.
func (s *session) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	if s.waiting {
		_ = s.client.SetReadDeadline(time.Unix(1, 0))
	}
}

// close closes both connections; the server then rolls back what is open.
func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	_ = s.client.Close()
	if s.backend != nil {
		_ = s.backend.Close()
	}
}

// setBackend hands the dialled connection to the session, or closes it when
// the session was closed meanwhile.
func (s *session) setBackend(nc net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close()
		return errQuit
	}
	s.backend = wire.NewConn(nc)
	return nil
}

func (s *session) dial() error {
	network, address := splitAddress(s.srv.Backend)
	ctx, cancel := context.WithTimeout(context.Background(), s.srv.ConnectTimeout)
	defer cancel()
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, address)
	s.srv.Monitor.BackendDialed(err)
	if err != nil {
		return err
	}
	return s.setBackend(nc)
}

// follow takes note of the server's latest status flags. A guard's lock ends with
// its transaction.
func (s *session) follow(status uint16) {
	s.status = status
	if status&wire.StatusInTransaction == 0 {
		s.facts.session.HoldsGuard = false
	}
}

// inTransaction tells that the next statement joins a transaction that only the
// client may end: an open one, or, without autocommit, the one it would begin.
func (s *session) inTransaction() bool {
	return s.status&wire.StatusInTransaction != 0 || s.status&wire.StatusAutocommit == 0
}
