// Package wire encodes and decodes MySQL packets; it never decides.
//
// It knows bytes, lengths and sequence ids, and nothing about fencing, rules
// or sessions. A [Conn] frames one side of a connection; the Decode functions
// read one packet each, through a [Cursor] that checks every length, and the
// Append functions write one.
//
// The format is the MySQL client/server protocol 4.1, as in the manual's
// "Client/Server Protocol" chapter and MariaDB's "Clients & Utilities:
// Client/Server Protocol" pages.
package wire
