package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// DSN is a data source name in the form of go-sql-driver/mysql. It may hold a
// password, so all ways of printing it leave that out; string(d) is the text.
type DSN string

// String is d without password and parameters.
func (d DSN) String() string {
	c, err := mysql.ParseDSN(string(d))
	if err != nil {
		return "(not a data source name)"
	}
	return fmt.Sprintf("%s@%s(%s)/%s", c.User, c.Net, c.Addr, c.DBName)
}

// GoString is String, for %#v.
func (d DSN) GoString() string { return d.String() }

// MarshalText is String, for encoders.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// LogValue is String, for slog.
func (d DSN) LogValue() slog.Value { return slog.StringValue(d.String()) }

// dsn reads a data source name. The driver's own messages are not repeated: they
// quote pieces of the text, and in one with a mistake any piece may be the
// password.
func (r *reader) dsn(v value) (d DSN, ok bool) {
	text, ok := r.text(v)
	if !ok {
		return "", false
	}
	if text == "" {
		r.problem(v.at, dsnForm, "%s is empty", v.path)
		return "", false
	}
	if _, err := mysql.ParseDSN(text); err == nil {
		return DSN(text), true
	}
	if parameter := badParameter(text); parameter != "" {
		r.problem(v.at, "", "%s has a parameter %s whose value the driver does not take", v.path, parameter)
		return "", false
	}
	r.problem(v.at, dsnForm, "%s is not a data source name of go-sql-driver/mysql", v.path)
	return "", false
}

const dsnForm = "write user:password@tcp(host:port)/database or user:password@unix(/path)/database"

// badParameter is the name of the first parameter whose value the driver refuses,
// and "" when the fault is elsewhere. The driver takes any value that can be
// unescaped for a name that it does not know, so the name is one of its own.
func badParameter(dsn string) string {
	_, parameters, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/')+1:], "?")
	for p := range strings.SplitSeq(parameters, "&") {
		name, setting, _ := strings.Cut(p, "=")
		if _, err := url.QueryUnescape(setting); err != nil {
			return ""
		}
		if _, err := mysql.ParseDSN("/?" + p); err != nil {
			return name
		}
	}
	return ""
}
