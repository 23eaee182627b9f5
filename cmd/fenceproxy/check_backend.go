package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/config"
)

// checkBackend verifies that backend.address and control.dsn lead to the same server:
// a lock that is taken through one is seen through the other. Names and ids that a
// server tells of itself are the same on its copies.
func (o *onlineChecks) checkBackend(ctx context.Context) error {
	backend, err := openBackend(o.config)
	if err != nil {
		return err
	}
	defer func() { _ = backend.Close() }()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	control, err := o.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("control connection: %w", err)
	}
	defer func() { _ = control.Close() }()
	name := "fenceproxy check " + rand.Text()
	var taken sql.NullInt64
	if err := control.QueryRowContext(ctx, "SELECT GET_LOCK(?, 0)", name).Scan(&taken); err != nil {
		return fmt.Errorf("take a lock on the control connection: %w", err)
	}
	if taken.Int64 != 1 {
		return fmt.Errorf("take a lock on the control connection: GET_LOCK gave %d", taken.Int64)
	}
	defer func() { _, _ = control.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK(?)", name) }()
	var holder sql.NullInt64
	if err := backend.QueryRowContext(ctx, "SELECT IS_USED_LOCK(?)", name).Scan(&holder); err != nil {
		o.warn("backend %s: the control account cannot log in there, so that it may be another server than the one of control.dsn: %v", o.config.Backend.Address, err)
		return nil
	}
	if !holder.Valid {
		o.fail("backend %s is another server than %s (control.dsn): leases would be read where no guard looks", o.config.Backend.Address, o.config.Control.DSN)
		return nil
	}
	o.ok("backend %s is the server of control.dsn", o.config.Backend.Address)
	return nil
}

// openBackend makes a pool for the control account at the backend's address. It does
// not connect.
func openBackend(c *config.Config) (*sql.DB, error) {
	driver, err := mysql.ParseDSN(string(c.Control.DSN))
	if err != nil {
		return nil, fmt.Errorf("control.dsn: %w", err)
	}
	path, isSocket := strings.CutPrefix(c.Backend.Address, "unix:")
	if isSocket {
		driver.Net, driver.Addr = "unix", path
	} else {
		driver.Net, driver.Addr = "tcp", c.Backend.Address
	}
	driver.DBName = "" // another server may not have it
	// The name in a certificate follows the address.
	if driver.TLS != nil && !isSocket {
		driver.TLS = driver.TLS.Clone()
		driver.TLS.ServerName, _, _ = net.SplitHostPort(driver.Addr)
	}
	connector, err := mysql.NewConnector(driver)
	if err != nil {
		return nil, fmt.Errorf("backend.address: %w", err)
	}
	return sql.OpenDB(connector), nil
}
