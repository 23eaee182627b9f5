// Package dsn points a data source name at another address; it changes nothing
// else in it.
//
// It knows the forms that programs are configured with: URLs (mysql://,
// mariadb://, mysql+pymysql:// and the like), JDBC URLs, and the form of
// go-sql-driver/mysql. The text around the address is kept byte for byte, so
// that passwords with odd escapes stay as the program expects them.
package dsn

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
)

// ErrForm tells that a text is in none of the known forms. Its message never
// repeats the text, which may hold a password.
var ErrForm = errors.New("not a data source name in a known form (mysql://…, jdbc:mysql://… or user:password@tcp(host:port)/db)")

// Point returns text with its address replaced by host and port.
func Point(text, host, port string) (string, error) {
	if rest, ok := strings.CutPrefix(text, "jdbc:"); ok {
		pointed, err := pointURL(rest, host, port)
		if err != nil {
			return "", err
		}
		return "jdbc:" + pointed, nil
	}
	if scheme.MatchString(text) {
		return pointURL(text, host, port)
	}
	return pointDriver(text, host, port)
}

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// mysqlScheme are the schemes of MySQL's and MariaDB's own URLs, with the driver
// that SQLAlchemy, Rails or Connector/J put behind it.
var mysqlScheme = regexp.MustCompile(`^(?i:mysql|mysql2|mysqlx?|mariadb|trilogy)([+:][a-z0-9_+:]+)?://`)

// pointURL replaces the authority's address. Several hosts, as JDBC allows, and
// a bracketed IPv6 address are replaced as one.
func pointURL(text, host, port string) (string, error) {
	prefix := mysqlScheme.FindString(text)
	if prefix == "" {
		return "", fmt.Errorf("%w: the URL's scheme is not MySQL's or MariaDB's", ErrForm)
	}
	rest := text[len(prefix):]
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	user := ""
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user = authority[:at+1]
	}
	return prefix + user + net.JoinHostPort(host, port) + rest[end:], nil
}

// driverAddress is the protocol and address of go-sql-driver's form; both may
// be left out (manual: github.com/go-sql-driver/mysql, "DSN (Data Source Name)").
var driverAddress = regexp.MustCompile(`^(?:[A-Za-z0-9]+(?:\([^)]*\))?)?$`)

// pointDriver replaces protocol(address). As for the driver, the address ends at
// the last slash of all, and begins after the last @ before it: a password may hold
// either.
func pointDriver(text, host, port string) (string, error) {
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return "", ErrForm
	}
	start := strings.LastIndexByte(text[:slash], '@') + 1
	if !driverAddress.MatchString(text[start:slash]) {
		return "", ErrForm
	}
	return text[:start] + "tcp(" + net.JoinHostPort(host, port) + ")" + text[slash:], nil
}
