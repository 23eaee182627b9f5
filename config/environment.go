package config

import (
	"regexp"
	"strings"
)

// sessionLease is the one ${…} that is no environment variable: the value of
// protect[].lease that takes the lease from the session's @fence_lease.
const sessionLease = "${session}"

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces every ${NAME} of text by the environment's NAME, once: what
// the environment holds is taken as it is. $${ stands for ${.
func (r *reader) expand(v value, text string) (expanded string, ok bool) {
	var b strings.Builder
	ok = true
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			b.WriteString(text)
			return b.String(), ok
		}
		if start > 0 && text[start-1] == '$' {
			b.WriteString(text[:start-1] + "${")
			text = text[start+2:]
			continue
		}
		b.WriteString(text[:start])
		name, rest, closed := strings.Cut(text[start+2:], "}")
		if !closed {
			r.problem(v.at, "close it with }, or write $${ for the characters ${ themselves", "%s has a ${ without its }", v.path)
			return "", false
		}
		text = rest
		substitute, found := r.variable(v, name)
		ok = ok && found
		b.WriteString(substitute)
	}
}

func (r *reader) variable(v value, name string) (text string, ok bool) {
	if name == "session" {
		r.problem(v.at, "", "%s: %s can only be the whole of a table's lease", v.path, sessionLease)
		return "", false
	}
	if !variableName.MatchString(name) {
		r.problem(v.at, "write ${NAME}, or $${ for the characters ${ themselves", "%s: %q is not the name of an environment variable", v.path, name)
		return "", false
	}
	text, ok = r.env(name)
	if !ok {
		r.problem(v.at, "set it, or write $${ for the characters ${ themselves", "%s needs the environment variable %s, which is not set", v.path, name)
	}
	return text, ok
}
