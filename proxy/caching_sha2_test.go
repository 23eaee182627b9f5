package proxy_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	mysqlserver "github.com/go-mysql-org/go-mysql/server"
	"github.com/go-sql-driver/mysql"
)

// sha2Server is a scripted MySQL 8 server: MariaDB 10.11 has no
// caching_sha2_password. It answers every query with an OK.
type sha2Server struct {
	net.Listener
	config   *mysqlserver.Server
	accounts *mysqlserver.InMemoryProvider
}

type okHandler struct{ mysqlserver.EmptyHandler }

func (okHandler) HandleQuery(string) (*gomysql.Result, error) { return &gomysql.Result{}, nil }

func newSHA2Server(t *testing.T) *sha2Server {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})

	s := &sha2Server{accounts: mysqlserver.NewInMemoryProvider()}
	s.config = mysqlserver.NewServer("8.0.12", gomysql.DEFAULT_COLLATION_ID, gomysql.AUTH_CACHING_SHA2_PASSWORD, publicPEM, tlsConfig)
	s.accounts.AddUser("sha2", "secret")
	if s.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			nc, err := s.Accept()
			if err != nil {
				return
			}
			done.Go(func() { s.serve(nc) })
		}
	})
	t.Cleanup(func() {
		_ = s.Close()
		done.Wait()
	})
	return s
}

func (s *sha2Server) serve(nc net.Conn) {
	defer func() { _ = nc.Close() }()
	c, err := s.config.NewCustomizedConn(nc, s.accounts, okHandler{})
	if err != nil {
		return
	}
	for c.HandleCommand() == nil && !c.Closed() {
	}
}

// TestCachingSHA2: the first login exchanges the password under the server's RSA
// key, the second is fast. The proxy relays both without knowing either.
func TestCachingSHA2(t *testing.T) {
	backend := newSHA2Server(t)
	f := setup(t, backendAt(backend.Addr().String()))
	for _, login := range []string{"full authentication", "fast authentication"} {
		db := open(t, fmt.Sprintf("sha2:secret@tcp(%s)/", f.addr))
		if err := db.Ping(); err != nil {
			t.Errorf("%s: %v", login, err)
		}
		_ = db.Close()
	}
	var e *mysql.MySQLError
	if err := open(t, fmt.Sprintf("sha2:wrong@tcp(%s)/", f.addr)).Ping(); !errors.As(err, &e) || e.Number != 1045 {
		t.Errorf("wrong password: %v", err)
	}
}
