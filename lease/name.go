package lease

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

const (
	// maxName is the length of the columns lease_name and owner_token.
	maxName = 128
	// MinTTL and MaxTTL bound a lease's time to live: renewals need some round
	// trips, and a lease that outlives its job by days helps nobody.
	MinTTL = time.Second
	MaxTTL = 24 * time.Hour
	// quoting are the characters that would need escaping where a name stands in
	// a statement; without them no sql_mode and no character set can change how
	// it reads.
	quoting = "'\"`\\;"
)

// ValidName tells what is wrong with a lease's name: 1 to 128 printable ASCII
// characters but space, quotes, backslash and semicolon. The error is ErrName.
func ValidName(name string) error {
	if problem := wordProblem(name); problem != "" {
		return fmt.Errorf("%w %q: %s", ErrName, name, problem)
	}
	return nil
}

func validOwner(owner string) error {
	if problem := wordProblem(owner); problem != "" {
		return fmt.Errorf("%w %q: %s", ErrOwner, owner, problem)
	}
	return nil
}

func wordProblem(word string) string {
	if word == "" {
		return "it is empty"
	}
	if len(word) > maxName {
		return fmt.Sprintf("it is %d bytes long, %d are allowed", len(word), maxName)
	}
	for _, c := range []byte(word) {
		if c <= ' ' || c > '~' || strings.IndexByte(quoting, c) >= 0 {
			return fmt.Sprintf("it contains %q; allowed are printable ASCII characters but space and %s", c, quoting)
		}
	}
	return ""
}

func validTTL(ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL {
		return fmt.Errorf("%w %v: allowed are %v to %v", ErrTTL, ttl, MinTTL, MaxTTL)
	}
	return nil
}

var tableName = regexp.MustCompile(`^([0-9A-Za-z_$]{1,64})\.([0-9A-Za-z_$]{1,64})$`)

// quoteTable turns schema.name into its quoted form.
func quoteTable(table string) (string, error) {
	parts := tableName.FindStringSubmatch(table)
	if parts == nil {
		return "", fmt.Errorf("%w %q: want schema.name, of ASCII letters, digits, _ and $", ErrTable, table)
	}
	return "`" + parts[1] + "`.`" + parts[2] + "`", nil
}
