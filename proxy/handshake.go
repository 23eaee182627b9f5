package proxy

import (
	"errors"
	"fmt"

	"github.com/fenceproxy/fenceproxy/lease"
	"github.com/fenceproxy/fenceproxy/proxy/wire"
)

const (
	// maxLogin is the longest packet in bytes before authentication has ended:
	// connection attributes are at most 64 KiB, and so are a PAM answer's rows.
	maxLogin = 256 << 10

	// hiddenCapabilities are not offered to clients, since the proxy does not
	// speak them: TLS, compression, and those that change how a command or a
	// result set is framed.
	hiddenCapabilities = wire.ClientSSL | wire.ClientCompress | wire.ClientZstd |
		wire.ClientOptionalMetadata | wire.ClientQueryAttributes | wire.ClientMultiFactor
	// offeredExtended are MariaDB's extended capabilities that change nothing
	// but the column definitions.
	offeredExtended = wire.MariaDBExtendedMetadata
	// framingCapabilities change every later byte: a client that sets one which
	// it was not offered cannot be understood.
	framingCapabilities = wire.ClientSSL | wire.ClientCompress | wire.ClientZstd
)

// Error numbers of the handshake, as the server gives them.
const (
	numberBadHandshake   = 1043
	numberUnknownCommand = 1047
	numberOldAuth        = 1251
	numberCannotConnect  = 2003
)

// refuseEarly answers a new connection with an error in place of the greeting.
func (s *session) refuseEarly(e *wire.Error) {
	defer s.close()
	_ = s.client.SetTimeout(lastWordsTimeout)
	_ = s.send(wire.AppendEarlyError(nil, e))
}

// connect dials the backend and relays the greeting and the authentication
// exchange. The proxy learns no password: it only reads who the client is and
// what it can do.
func (s *session) connect() error {
	if err := s.dial(); err != nil {
		s.log.Warn("backend cannot be reached", "backend", s.srv.Backend, "err", err)
		s.refuseEarly(&wire.Error{Number: numberCannotConnect, Message: fmt.Sprintf("fenceproxy: cannot connect to the backend %s", s.srv.Backend)})
		return errQuit
	}
	_ = s.client.SetTimeout(s.srv.LoginTimeout)
	_ = s.backend.SetTimeout(s.srv.LoginTimeout)

	greeting, err := s.relayGreeting()
	if err != nil {
		return err
	}
	response, err := s.readResponse(greeting)
	if err != nil {
		return err
	}
	login, err := s.loginIdentity(response.Attributes)
	if err != nil {
		return &wire.Error{Number: numberBadHandshake, State: "08S01", Message: "fenceproxy: " + err.Error()}
	}
	if err := s.toBackend(response.Packet()); err != nil {
		return err
	}
	if err := s.completeLogin(response.User, response.Attributes, login); err != nil {
		return err
	}
	_ = s.client.SetTimeout(0)
	_ = s.backend.SetTimeout(0)
	return nil
}

// relayGreeting sends the server's greeting on, with the capabilities taken out
// that the proxy does not speak.
func (s *session) relayGreeting() (*wire.Greeting, error) {
	packet, err := s.backend.ReadPacket(maxLogin)
	if err != nil {
		s.refuseEarly(&wire.Error{Number: numberCannotConnect, Message: fmt.Sprintf("fenceproxy: the backend %s closed the connection before it greeted", s.srv.Backend)})
		return nil, errQuit
	}
	if len(packet) > 0 && packet[0] == wire.HeaderERR {
		// Too many connections, or a blocked host: the server's own words.
		_ = s.send(packet)
		return nil, errQuit
	}
	greeting, err := wire.DecodeGreeting(append([]byte(nil), packet...))
	if err != nil {
		s.log.Warn("backend greeting cannot be read", "backend", s.srv.Backend, "err", err)
		s.refuseEarly(&wire.Error{Number: numberCannotConnect, Message: "fenceproxy: backend: " + err.Error()})
		return nil, errQuit
	}
	greeting.Narrow(^hiddenCapabilities, offeredExtended)
	return greeting, s.send(greeting.Packet())
}

// readResponse reads the client's answer to the greeting.
func (s *session) readResponse(greeting *wire.Greeting) (*wire.Response, error) {
	packet, err := s.client.ReadPacket(maxLogin)
	if err != nil {
		return nil, s.badHandshake(err)
	}
	response, err := wire.DecodeResponse(append([]byte(nil), packet...))
	if errors.Is(err, wire.ErrProtocol) {
		return nil, &wire.Error{Number: numberOldAuth, State: "08004", Message: "fenceproxy: " + err.Error()}
	}
	if err != nil {
		return nil, s.badHandshake(err)
	}
	if response.Capabilities&framingCapabilities&^greeting.Capabilities != 0 {
		return nil, &wire.Error{Number: numberBadHandshake, State: "08S01", Message: "fenceproxy: the client asks for TLS or compression, which the proxy did not offer; connect without"}
	}
	response.Narrow(greeting.Capabilities, greeting.Extended)
	s.capabilities = response.Capabilities
	s.facts.session.MultiStatements = s.capabilities&wire.ClientMultiStatements != 0
	return response, nil
}

// badHandshake is what a client is told whose bytes are not the protocol. A
// client that left is told nothing.
func (s *session) badHandshake(err error) error {
	if errors.Is(err, wire.ErrShort) || errors.Is(err, wire.ErrTooLong) || isSequenceError(err) {
		s.log.Info("handshake cannot be read", "err", err)
		return &wire.Error{Number: numberBadHandshake, State: "08S01", Message: "Bad handshake"}
	}
	return clientError{err}
}

func isSequenceError(err error) bool {
	var sequence *wire.SequenceError
	return errors.As(err, &sequence)
}

// loginIdentity is the identity that comes with a login: the listener's, or
// else the one in the connection attributes; nil when there is neither.
func (s *session) loginIdentity(attributes map[string]string) (*lease.Claim, error) {
	if s.binding != nil {
		return &s.binding.claim, nil
	}
	return identityFromAttributes(attributes)
}

// authenticate relays packets until the server accepts or refuses, and returns
// its last packet unsent. Packets alternate, but for one: after caching_sha2's
// "fast authentication succeeded" the server goes on by itself.
func (s *session) authenticate() (final, error) {
	for {
		packet, err := s.backend.ReadPacket(maxLogin)
		if err != nil {
			return final{}, backendError{err}
		}
		if len(packet) == 0 {
			return final{}, backendError{wire.ErrShort}
		}
		if packet[0] == wire.HeaderOK || packet[0] == wire.HeaderERR {
			return s.decodeFinal(packet)
		}
		serverGoesOn := len(packet) == 2 && packet[0] == wire.HeaderMoreData && packet[1] == fastAuthSuccess
		if err := s.send(packet); err != nil {
			return final{}, err
		}
		if serverGoesOn {
			continue
		}
		answer, err := s.client.ReadPacket(maxLogin)
		if err != nil {
			return final{}, s.badHandshake(err)
		}
		if err := s.toBackend(answer); err != nil {
			return final{}, err
		}
	}
}

// completeLogin sees a login through, once the client's packet that began it has
// been sent on.
func (s *session) completeLogin(user string, attributes map[string]string, login *lease.Claim) error {
	ok, err := s.authenticate()
	if err != nil {
		return err
	}
	if ok.failed() {
		return s.endRefused(ok)
	}
	s.begin(user, attributes, login)
	return s.finishLogin(ok)
}

// fastAuthSuccess is caching_sha2_password's fast_auth_success.
const fastAuthSuccess = 3

// begin records who logged in. What was known of the session before is void.
func (s *session) begin(user string, attributes map[string]string, login *lease.Claim) {
	s.user = user
	s.login = login
	s.program = attributes["program_name"]
	if s.program == "" {
		s.program = attributes["_program_name"]
	}
	s.forget()
}

// forget drops what ends with a login or a COM_RESET_CONNECTION.
func (s *session) forget() {
	s.facts.stale = true
	clear(s.statements)
	s.lastID = 0
	s.aborted = nil
	s.rowCount = rowCount{}
	s.tablesLocked, s.clockSet = false, false
}

// finishLogin gives the server the session's identity, if it came with the
// login, and then passes on ok, the server's answer to the login or reset.
func (s *session) finishLogin(ok final) error {
	s.follow(ok.ok.Status)
	if s.login == nil {
		return s.finish(ok)
	}
	ok = ok.clone()
	r, err := s.exec(identityStatement(*s.login))
	if err != nil {
		return err
	}
	if r.failed() {
		// An account whose password has expired may do nothing else. Without
		// its variables the session is unfenced, which rejects its writes.
		s.log.Warn("identity could not be set", "user", s.user, "err", r.err)
	}
	return s.finish(ok)
}

// endRefused passes the server's refusal on.
func (s *session) endRefused(refusal final) error {
	s.log.Info("login refused", "err", refusal.err.Message)
	if err := s.finish(refusal); err != nil {
		return err
	}
	return errQuit
}

// changeUser relays COM_CHANGE_USER and the authentication that follows.
func (s *session) changeUser() error {
	packet, err := s.client.ReadPacket(maxLogin)
	if err != nil {
		return clientError{err}
	}
	change, err := wire.DecodeChangeUser(packet, s.capabilities)
	if err != nil {
		return s.sendError(&wire.Error{Number: numberUnknownCommand, State: "08S01", Message: "fenceproxy: " + err.Error()})
	}
	login, err := s.loginIdentity(change.Attributes)
	if err != nil {
		return s.sendError(&wire.Error{Number: numberUnknownCommand, State: "08S01", Message: "fenceproxy: " + err.Error()})
	}
	s.backend.SetSequence(0)
	if err := s.toBackend(packet); err != nil {
		return err
	}
	return s.completeLogin(change.User, change.Attributes, login)
}
