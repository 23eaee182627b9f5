package rewrite

import "testing"

// TestNothingHidesBehindTextThatTheParserCannotRead: each would reach the tables,
// and none says so where a quick look would find it.
func TestNothingHidesBehindTextThatTheParserCannotRead(t *testing.T) {
	r, err := NewRules(Table{"app", "fenced_job_leases"}, []Rule{{Table: Table{"app", "runs"}, Lease: "job"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SELECT 1; PREPARE s FROM CONCAT('UPDATE ru', 'ns SET x = 1'); EXECUTE s",
		"SELECT 1; EXECUTE IMMEDIATE CONCAT('UPDATE ru', 'ns SET x = 1')",
		"BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT('UPDATE ru', 'ns SET x = 1'); END",
		"BEGIN NOT ATOMIC DROP DATABASE app; END",
		"DROP DATABASE app",
		"DROP /* c */ SCHEMA IF EXISTS `app`",
		"DROP /*! DATABASE */ app",
		"/*!50000 DROP*/ DATABASE app",
		"DO 1; DROP DATABASE APP",
	} {
		if !r.Mentions([]byte(sql)) {
			t.Errorf("%s: passed unread", sql)
		}
		if p := r.Plan(Session{Database: "other", MultiStatements: true}, sql); p.Kind != Refuse {
			t.Errorf("%s: %v, %s", sql, p.Kind, p.Why)
		}
	}
	for _, sql := range []string{"DROP TABLE app.schema_versions", "DROP DATABASE other", "DROP TABLE IF EXISTS other.runs"} {
		if p := r.Plan(Session{Database: "other"}, sql); p.Kind != Pass {
			t.Errorf("%s: %v, %s", sql, p.Kind, p.Why)
		}
	}
}
