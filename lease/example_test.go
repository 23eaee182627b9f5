package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/fenceproxy/fenceproxy/lease"
)

// database opens the examples' database; a program would use its own.
func database() *sql.DB {
	db, err := sql.Open("mysql", server.DSN("app"))
	if err != nil {
		log.Fatal(err)
	}
	return db
}

func ExampleStore_Acquire() {
	db := database()
	defer func() { _ = db.Close() }()
	leases, err := lease.New(db, "app.fenced_job_leases")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	held, err := leases.Acquire(ctx, "example:acquire", 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("token", held.Token)

	_, err = leases.Acquire(ctx, "example:acquire", 30*time.Second)
	fmt.Println("another gets it:", !errors.Is(err, lease.ErrHeld))

	fmt.Println("release:", leases.Release(ctx, held.Claim))
	// Output:
	// token 1
	// another gets it: false
	// release: <nil>
}

func ExampleStore_KeepAlive() {
	db := database()
	defer func() { _ = db.Close() }()
	leases, err := lease.New(db, "app.fenced_job_leases")
	if err != nil {
		log.Fatal(err)
	}
	held, err := leases.AcquireWait(context.Background(), "example:keepalive", 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	alive, stop := leases.KeepAlive(context.Background(), held)
	defer stop()
	work := func(ctx context.Context) error { return ctx.Err() }
	if err := work(alive); err != nil {
		log.Fatal("stopped, because ", context.Cause(alive))
	}
	fmt.Println("done while the lease was held")
	// Output: done while the lease was held
}

func ExampleStore_Guard() {
	db := database()
	defer func() { _ = db.Close() }()
	leases, err := lease.New(db, "app.fenced_job_leases")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	held, err := leases.Acquire(ctx, "example:guard", 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE OR REPLACE TABLE example_runs (id INT PRIMARY KEY, status VARCHAR(20))"); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO example_runs VALUES (42, 'running')"); err != nil {
		log.Fatal(err)
	}
	guard, args := leases.Guard(held.Claim).Exists()
	result, err := db.ExecContext(ctx, "UPDATE example_runs SET status = 'done' WHERE id = 42 AND "+guard, args...)
	if err != nil {
		log.Fatal(err)
	}
	rows, _ := result.RowsAffected()
	fmt.Println(rows, "row")
	// Output: 1 row
}
