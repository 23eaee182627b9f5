package rewrite_test

import (
	"testing"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

func TestWhatLastsIsSeen(t *testing.T) {
	for sql, want := range map[string]struct{ locks, clock bool }{
		"LOCK TABLES a WRITE":                         {locks: true},
		"/* c */ lock\ttable a READ":                  {locks: true},
		"LOCK /* c */ TABLES a WRITE":                 {locks: true},
		"DO 1; LOCK TABLES a WRITE":                   {locks: true},
		"SELECT 1; LOCK TABLES a WRITE":               {locks: true},
		"PREPARE s FROM 'LOCK TABLES a WRITE'":        {locks: true},
		"/*! LOCK TABLES a WRITE */":                  {locks: true},
		"FLUSH TABLES a FOR EXPORT":                   {locks: true},
		"SET STATEMENT x = 1 FOR FLUSH TABLES":        {locks: true},
		"UNLOCK TABLES":                               {},
		"SET innodb_lock_wait_timeout = 5":            {},
		"INSERT INTO t VALUES ('lock tables, flush')": {},
		"SET timestamp = 1":                           {clock: true},
		"SET @@session.TIMESTAMP := 1":                {clock: true},
		"DO 1; SET timestamp = 1":                     {clock: true},
		"EXECUTE IMMEDIATE 'SET timestamp = 1'":       {clock: true},
		"PREPARE s FROM 'SET timestamp = 1'":          {clock: true},
		"BEGIN NOT ATOMIC SET timestamp = 1; END":     {clock: true},
		"UPDATE t SET timestamp = 1":                  {},
		"CREATE TABLE t (a TIMESTAMP)":                {},
		"SET time_zone = 'UTC'":                       {},
		"":                                            {},
	} {
		locks, clock := rewrite.MayLast([]byte(sql))
		if locks != want.locks || clock != want.clock {
			t.Errorf("MayLast(%s) = %v, %v", sql, locks, clock)
		}
	}
}
