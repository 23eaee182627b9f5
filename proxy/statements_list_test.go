package proxy_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// statement is one entry of testdata/statements.txt, which tells what its keys
// mean.
type statement struct {
	title    string
	before   []string
	session  []string
	begin    string // "" stands for the usual way
	end      string
	text     string
	prepared string // "" for the text itself
	params   []string
	file     string
	plan     []plannedWrite
	// current is what the holder gets, by statement of the packet; inTransaction the
	// same in a transaction.
	current       []outcome
	inTransaction []outcome
	// lost is what a session that has lost its lease gets, where it is not the
	// rejection: the server finds another fault first.
	lost []outcome
	// unpreparable is the server's error to COM_STMT_PREPARE, 0 for none.
	unpreparable int
	// runsAnyway are the statements of a rejected packet that run before the
	// rejected one.
	runsAnyway string
	undo       []string
	// awaits is the issue without which the proxy does not do this yet.
	awaits string
}

// plannedWrite is the plan of one statement of a packet, and the protected table
// that the plan names, "" for none.
type plannedWrite struct{ kind, table string }

// outcome is what a client gets for one statement.
type outcome struct {
	kind string // ok, rows, error, refused
	// n is the number of affected rows, of rows, or of the error; -1 for any, of
	// rows that are not the same each time.
	n      int
	reason string // of refused
}

const anyNumber = -1

func readStatements(t testing.TB) []statement {
	t.Helper()
	text, err := os.ReadFile("testdata/statements.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []statement
	titles := make(map[string]bool)
	for i, block := range strings.Split(string(text), "\n== ")[1:] {
		s, err := parseStatement(block)
		if err != nil {
			t.Fatalf("statement %d, %q: %v", i+1, s.title, err)
		}
		if titles[s.title] {
			t.Fatalf("the title %q occurs twice", s.title)
		}
		titles[s.title] = true
		list = append(list, s)
	}
	return list
}

func parseStatement(block string) (statement, error) {
	title, rest, _ := strings.Cut(block, "\n")
	s := statement{title: title}
	for _, field := range fields(rest) {
		key, value, ok := strings.Cut(field, ":")
		if !ok {
			return s, fmt.Errorf("line %q has no key", field)
		}
		if err := s.set(key, strings.TrimSpace(value)); err != nil {
			return s, fmt.Errorf("%s: %w", key, err)
		}
	}
	if s.text == "" || s.plan == nil || s.current == nil {
		return s, errors.New("it needs sql, plan and current")
	}
	return s, nil
}

// fields are the "key: value" lines of a block; what is indented goes on with the
// line before.
func fields(block string) []string {
	var found []string
	for line := range strings.Lines(block) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"), line == "":
		case strings.HasPrefix(line, "  ") && len(found) > 0:
			found[len(found)-1] += "\n" + line[2:]
		default:
			found = append(found, line)
		}
	}
	return found
}

func (s *statement) set(key, value string) (err error) {
	switch key {
	case "before":
		s.before = append(s.before, value)
	case "session":
		s.session = append(s.session, value)
	case "begin":
		s.begin = value
	case "end":
		s.end = value
	case "sql":
		s.text = value
	case "prepared":
		if number, ok := strings.CutPrefix(value, "error "); ok {
			s.unpreparable, err = strconv.Atoi(number)
			return err
		}
		s.prepared = value
	case "params":
		for param := range strings.SplitSeq(value, ",") {
			s.params = append(s.params, strings.TrimSpace(param))
		}
	case "file":
		s.file = strings.TrimPrefix(value, "\n") + "\n"
	case "plan":
		s.plan, err = parsePlan(value)
	case "current":
		s.current, err = parseOutcomes(value)
	case "in a transaction":
		s.inTransaction, err = parseOutcomes(value)
	case "lost":
		s.lost, err = parseOutcomes(value)
	case "runs anyway":
		s.runsAnyway = value
	case "awaits":
		s.awaits = value
	case "undo":
		s.undo = append(s.undo, value)
	default:
		err = errors.New("there is no such key")
	}
	return err
}

func parsePlan(text string) (plan []plannedWrite, err error) {
	for one := range strings.SplitSeq(text, ";") {
		kind, table, _ := strings.Cut(strings.TrimSpace(one), " ")
		switch kind {
		case "pass", "join", "exists", "bracket", "refuse":
		default:
			return nil, fmt.Errorf("there is no plan %q", kind)
		}
		plan = append(plan, plannedWrite{kind, table})
	}
	return plan, nil
}

func parseOutcomes(text string) (all []outcome, err error) {
	for one := range strings.SplitSeq(text, ";") {
		kind, value, _ := strings.Cut(strings.TrimSpace(one), " ")
		o := outcome{kind: kind, n: anyNumber}
		switch kind {
		case "ok":
			o.n, err = strconv.Atoi(strings.TrimPrefix(value, "affected="))
		case "rows":
			if value != "" {
				o.n, err = strconv.Atoi(value)
			}
		case "error":
			o.n, err = strconv.Atoi(value)
		case "refused":
			o.reason = value
		default:
			err = fmt.Errorf("there is no outcome %q", kind)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

var hexBytes = regexp.MustCompile(`\{hex ([0-9a-f]+)\}`)

// fill puts values in the place of what stands in braces.
func fill(text, schema, file, unique string) string {
	text = strings.NewReplacer("{schema}", schema, "{file}", file, "{unique}", unique).Replace(text)
	return hexBytes.ReplaceAllStringFunc(text, func(placeholder string) string {
		decoded, err := hex.DecodeString(hexBytes.FindStringSubmatch(placeholder)[1])
		if err != nil {
			return placeholder
		}
		return string(decoded)
	})
}
