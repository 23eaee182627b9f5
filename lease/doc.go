// Package lease acquires, renews and releases leases in a database table, and
// judges everything by the database's own clock.
//
// A [Store] works on one lease table. [Store.Acquire] takes a free or expired
// lease and gives it the next fence token; [Store.KeepAlive] renews it and tells
// when it is lost. A lease decides who may start. Who may still finish is decided
// by the write itself: through fenceproxy, or with the SQL that [Store.Guard]
// renders for programs that fence their own statements.
//
// The table is the one that package migrations makes. A row is never deleted, so
// a lease's token only ever grows. Times on the local clock are used for nothing
// but to schedule renewals and to stop early.
package lease
