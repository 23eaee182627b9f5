package proxy_test

import (
	"testing"
	"time"
)

// TestSettingsDoNotChangeAGuardedWrite runs the holder's writes under settings that
// a guard might stumble over, each set right before the write, and compares with the
// same straight at the server.
func TestSettingsDoNotChangeAGuardedWrite(t *testing.T) {
	settings := []string{
		"SET sql_safe_updates = 1",
		"SET sql_big_selects = 0, max_join_size = 1",
		"SET sql_select_limit = 0",
		"SET insert_id = 500",
		"SET last_insert_id = 77",
		"SET TRANSACTION READ ONLY",
		"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
		"SET SESSION TRANSACTION READ ONLY",
		"START TRANSACTION READ ONLY",
		"START TRANSACTION WITH CONSISTENT SNAPSHOT",
		"SET autocommit = 0",
		"SET time_zone = '+05:00'",
		"SET NAMES latin1",
		"SET NAMES gbk",
		"SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
		"SET collation_connection = swe7_swedish_ci",
		"SET character_set_results = NULL",
		"SET sql_mode = 'ANSI'",
		"SET sql_mode = 'ORACLE'",
		"SET sql_mode = 'NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO,PAD_CHAR_TO_FULL_LENGTH'",
		"SET optimizer_switch = 'subquery_cache=off,materialization=off,semijoin=off,exists_to_in=off,derived_merge=off'",
		"SET max_error_count = 0",
		"SET sql_notes = 0",
		"SET unique_checks = 0, foreign_key_checks = 0",
		"SET tmp_memory_table_size = 0, join_cache_level = 8, join_buffer_size = 128",
	}
	statements := []string{
		"UPDATE runs SET status = 'done' WHERE id = 1",
		"UPDATE runs SET status = 'done'",
		"UPDATE runs SET kind = 'b', amount = 1234.50 WHERE n > 10",
		"UPDATE runs SET amount = 12345678.9",
		"UPDATE runs SET n = n + 1, status = n WHERE id = 3",
		"UPDATE runs r JOIN notes ON notes.id = r.id SET r.status = 'joined'",
		"DELETE FROM runs WHERE id = 2",
		"DELETE FROM runs",
		"DELETE r FROM runs r JOIN notes ON notes.id = r.id WHERE r.id = 1",
		"INSERT INTO runs (status, n) VALUES ('one', 41), ('two', 42)",
		"INSERT INTO runs (id, status) VALUES (0, RPAD('\xc3\xa9\\\\', 60, 'x'))",
	}
	for _, setting := range settings {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			mustExec(t, f.direct, `ALTER TABLE runs ADD touched TIMESTAMP NULL INVISIBLE ON UPDATE CURRENT_TIMESTAMP,
				ADD is_touched INT AS (touched IS NOT NULL) VIRTUAL, ADD twice INT AS (n * 2) STORED,
				ADD kind ENUM('a','b') NULL, ADD amount DECIMAL(6,2) NULL, ADD CHECK (n < 9000)`)
			through, plain := f.worker(f.acquire(time.Hour)), f.connectTo(server.Addr())
			for _, statement := range statements {
				compare(t, f, through, plain, setting, statement)
			}
		})
	}
}
