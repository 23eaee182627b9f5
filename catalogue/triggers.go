package catalogue

import (
	"context"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// triggers reads the triggers (manual: "Information Schema TRIGGERS Table").
// MariaDB 12 can give one several events.
func (s *session) triggers(ctx context.Context) ([]rewrite.Trigger, error) {
	var triggers []rewrite.Trigger
	var programs []program
	err := s.each(
		ctx, "triggers",
		"SELECT TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, EVENT_MANIPULATION, ACTION_STATEMENT, SQL_MODE"+
			" FROM information_schema.TRIGGERS", nil,
		func(scan func(...any) error) error {
			var t rewrite.Trigger
			var p program
			var event string
			if err := scan(&t.Name.Schema, &t.Name.Name, &t.On.Schema, &t.On.Name, &event, &p.text, &p.modes); err != nil {
				return err
			}
			t.Event = changeOf(event)
			p.show = "SHOW CREATE TRIGGER " + quotedTable(t.Name)
			triggers, programs = append(triggers, t), append(programs, p)
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	for i, p := range programs {
		if triggers[i].Body, err = s.body(ctx, p); err != nil {
			return nil, err
		}
	}
	return triggers, nil
}
