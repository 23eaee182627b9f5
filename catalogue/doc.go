// Package catalogue reads from a server what may write a table that a statement
// does not name, and what of it the account may not see; it decides nothing.
//
// [Reader.Read] makes the rewrite.Catalogue that statements are judged by.
// [Reader.Inspect] tells what it leaves out: information_schema shows an account
// only the objects that it has some privilege on, without a word about the others.
//
// MariaDB 10.11 is what all of this was measured on. What differs on MySQL 8
// follows its manual and source, and is marked as such.
package catalogue
