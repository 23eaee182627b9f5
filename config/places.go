package config

import (
	"strings"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// places remembers where in the file values stand that must agree with others.
type places struct {
	*reader
	listen  map[string]position
	table   map[rewrite.Table]position
	backend position
}

// addListen reports an address that something listens on already. Port 0 is a
// new port each time.
func (p *places) addListen(v value, address string) {
	if strings.HasSuffix(address, ":0") && !strings.HasPrefix(address, "unix:") {
		return
	}
	if first, again := p.listen[address]; again {
		p.problem(v.at, "remove one of them", "%s is %s, which is listened on already, see line %d", v.path, source(v), first.line)
		return
	}
	p.listen[address] = v.at
}

// addTable reports a table that has a rule already.
func (p *places) addTable(v value, t rewrite.Table) {
	if first, again := p.table[t]; again {
		p.problem(v.at, "remove one of them", "%s is %s, which has a rule already, see line %d", v.path, source(v), first.line)
		return
	}
	p.table[t] = v.at
}

// check reports what is wrong between keys, whatever order they come in.
func (p *places) check(c *Config) {
	if first, again := p.listen[c.Backend.Address]; again {
		p.problem(p.backend, "", "backend.address is what the proxy itself listens on, see line %d", first.line)
	}
	if at, protected := p.table[c.LeaseTable]; protected {
		p.problem(at, "remove the rule", "%s is the lease table: it is guarded by itself", c.LeaseTable)
	}
}
