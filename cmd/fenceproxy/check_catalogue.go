package main

import (
	"context"

	"github.com/fenceproxy/fenceproxy/catalogue"
	"github.com/fenceproxy/fenceproxy/config"
	"github.com/fenceproxy/fenceproxy/rewrite"
)

// checkCatalogue verifies that the proxy can see what writes protected tables without
// being named, and reports what no guard can stand before.
func (o *onlineChecks) checkCatalogue(ctx context.Context) error {
	rules, err := rewrite.NewRules(o.config.LeaseTable, o.config.Rules(), nil)
	if err != nil {
		return err
	}
	s, err := survey(ctx, catalogue.New(o.db), o.config, rules)
	if err != nil {
		return err
	}
	near := s.Near()
	for _, g := range near {
		if o.config.Catalogue.Incomplete == config.IncompleteRefuse {
			o.fail("catalogue: %s", g.Problem)
		} else {
			o.warn("catalogue: %s", g.Problem)
		}
		o.remedies(g)
	}
	for _, g := range s.Far() {
		o.warn("catalogue: %s", g.Problem)
		o.remedies(g)
	}
	if len(near) == 0 {
		c := s.Catalogue
		o.ok("catalogue: %d views, %d triggers, %d routines, %d foreign keys that change rows",
			len(c.Views), len(c.Triggers), len(c.Routines), len(c.ForeignKeys))
	}
	for _, w := range s.Writers {
		state := ""
		if !w.event.Enabled {
			state = " (not enabled)"
		}
		o.warn("event %s%s may write %s: the server runs it by itself, so no guard stands before it", w.event.Name, state, w.names())
	}
	for _, t := range s.Remote {
		o.warn("table %s has engine %s: if it leads to a protected table, no guard stands before writes of it", t.Name, t.Engine)
	}
	return nil
}

func (o *onlineChecks) remedies(g catalogue.Gap) {
	for _, remedy := range g.Remedies {
		o.remedy(remedy)
	}
}
