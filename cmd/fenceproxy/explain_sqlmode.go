package main

import (
	"fmt"
	"strings"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

const ansi = rewrite.ANSIQuotes | rewrite.PipesAsConcat | rewrite.IgnoreSpace

// readingModes are the flags of sql_mode that change how a statement reads, and
// those that stand for several of them (MariaDB manual, "SQL_MODE").
var readingModes = map[string]rewrite.SQLMode{
	"ANSI_QUOTES": rewrite.ANSIQuotes, "NO_BACKSLASH_ESCAPES": rewrite.NoBackslashEscapes,
	"PIPES_AS_CONCAT": rewrite.PipesAsConcat, "IGNORE_SPACE": rewrite.IgnoreSpace,
	"ANSI": ansi, "DB2": ansi, "MAXDB": ansi, "MSSQL": ansi, "POSTGRESQL": ansi, "ORACLE": ansi | rewrite.Oracle,
}

// otherModes change what a statement does, and not how it reads. They are known
// so that a server's whole sql_mode can be given, and a typing mistake is found.
const otherModes = " ALLOW_INVALID_DATES EMPTY_STRING_IS_NULL ERROR_FOR_DIVISION_BY_ZERO HIGH_NOT_PRECEDENCE" +
	" MYSQL323 MYSQL40 NO_AUTO_CREATE_USER NO_AUTO_VALUE_ON_ZERO NO_DIR_IN_CREATE NO_ENGINE_SUBSTITUTION NO_FIELD_OPTIONS" +
	" NO_KEY_OPTIONS NO_TABLE_OPTIONS NO_UNSIGNED_SUBTRACTION NO_ZERO_DATE NO_ZERO_IN_DATE ONLY_FULL_GROUP_BY" +
	" PAD_CHAR_TO_FULL_LENGTH REAL_AS_FLOAT SIMULTANEOUS_ASSIGNMENT STRICT_ALL_TABLES STRICT_TRANS_TABLES" +
	" TIME_ROUND_FRACTIONAL TIME_TRUNCATE_FRACTIONAL TRADITIONAL "

// parseSQLMode reads a comma-separated list of modes in either case.
func parseSQLMode(list string) (rewrite.SQLMode, error) {
	var mode rewrite.SQLMode
	if list == "" {
		return mode, nil
	}
	for name := range strings.SplitSeq(strings.ToUpper(list), ",") {
		flags, reads := readingModes[name]
		if !reads && !strings.Contains(otherModes, " "+name+" ") {
			return mode, fmt.Errorf("--sql-mode: %q is no mode", name)
		}
		mode |= flags
	}
	return mode, nil
}
