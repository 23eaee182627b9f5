// Package proxy relays MySQL sessions and sees to it that no write to a
// protected table reaches the server unguarded.
//
// A [Server] accepts connections. Each client connection owns one backend
// connection: the session's state is the server's, the proxy only follows what
// it must know. One goroutine runs a session: it reads a command, lets package
// rewrite decide what becomes of the statement, carries that out, and judges
// the outcome. Bytes are framed by package wire.
package proxy
