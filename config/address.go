package config

import (
	"net"
	"path"
	"strconv"
	"strings"
)

// maxSocketPath is the longest path of a unix socket in bytes: sun_path holds
// 108 with its final NUL (unix(7)).
const maxSocketPath = 107

// serverAddress reads an address that the proxy connects to.
func (r *reader) serverAddress(v value) (address string, ok bool) {
	text, ok := r.text(v)
	if !ok {
		return "", false
	}
	if socket, isUnix := strings.CutPrefix(text, "unix:"); isUnix {
		return text, r.socketPath(v, socket)
	}
	host, port, ok := r.hostPort(v, text)
	if !ok {
		return "", false
	}
	if host == "" || port == 0 {
		r.problem(v.at, "", "%s is %s: an address to connect to needs a host and a port", v.path, source(v))
		return "", false
	}
	return text, true
}

// listenAddress reads an address that the proxy listens on. Without a host it is
// every address of the machine; port 0 is one that the kernel chooses.
func (r *reader) listenAddress(v value) (address string, ok bool) {
	text, ok := r.text(v)
	if !ok {
		return "", false
	}
	if socket, isUnix := strings.CutPrefix(text, "unix:"); isUnix {
		return text, r.socketPath(v, socket)
	}
	_, _, ok = r.hostPort(v, text)
	return text, ok
}

// tcpListenAddress reads an address to listen on that is no unix socket.
func (r *reader) tcpListenAddress(v value) (address string, ok bool) {
	text, ok := r.text(v)
	if !ok {
		return "", false
	}
	_, _, ok = r.hostPort(v, text)
	return text, ok
}

func (r *reader) socketPath(v value, socket string) bool {
	if !path.IsAbs(socket) {
		r.problem(v.at, "write unix:/run/fenceproxy/mysql.sock", "%s is %s: a unix socket needs an absolute path", v.path, source(v))
		return false
	}
	if len(socket) > maxSocketPath {
		r.problem(v.at, "", "%s is a path of %d bytes, a unix socket's can have %d", v.path, len(socket), maxSocketPath)
		return false
	}
	return true
}

func (r *reader) hostPort(v value, text string) (host string, port int, ok bool) {
	host, portText, err := net.SplitHostPort(text)
	if err != nil {
		r.problem(v.at, "write host:port, or [::1]:port for IPv6", "%s is %s, not an address", v.path, source(v))
		return "", 0, false
	}
	number, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		r.problem(v.at, "", "%s is %s, whose port is not a number from 0 to 65535", v.path, source(v))
		return "", 0, false
	}
	return host, int(number), true
}
