package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fenceproxy/fenceproxy/config"
)

// configVariable names the configuration file where --config does not.
const configVariable = "FENCEPROXY_CONFIG"

// configFiles are looked for in this order where neither does.
var configFiles = []string{"./fenceproxy.yaml", "/etc/fenceproxy/fenceproxy.yaml"}

func configFilesText() string { return strings.Join(configFiles, " and ") }

var errNoConfig = errors.New("no configuration")

// loadConfig reads the configuration: the file at path or, if that is "", the
// first that the environment and the usual places have.
func loadConfig(path string) (*config.Config, error) {
	path, err := configPath(path)
	if err != nil {
		return nil, err
	}
	c, err := config.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no file %s", errNoConfig, path)
	}
	return c, err
}

func configPath(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	if path := os.Getenv(configVariable); path != "" {
		return path, nil
	}
	for _, path := range configFiles {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: there is neither %s; name a file with --config or $%s",
		errNoConfig, strings.Join(configFiles, " nor "), configVariable)
}

// connectTimeout is what a command waits for the server to answer at all.
const connectTimeout = 10 * time.Second

// openControl connects with the control account. Sessions are in UTC and times
// are read as times, whatever the DSN says: goose keeps local ones. The caller
// closes what it gets.
func openControl(ctx context.Context, c *config.Config) (*sql.DB, error) {
	driver, err := mysql.ParseDSN(string(c.Control.DSN))
	if err != nil {
		return nil, fmt.Errorf("control.dsn: %w", err)
	}
	driver.ParseTime, driver.Loc = true, time.UTC
	if driver.Params == nil {
		driver.Params = make(map[string]string)
	}
	driver.Params["time_zone"] = "'+00:00'"
	connector, err := mysql.NewConnector(driver)
	if err != nil {
		return nil, fmt.Errorf("control.dsn: %w", err)
	}
	db := sql.OpenDB(connector)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("connect to %s (control.dsn): %w", c.Control.DSN, err)
	}
	return db, nil
}

// withControl loads the configuration, connects, and runs f.
func (p *program) withControl(ctx context.Context, f func(*config.Config, *sql.DB) error) error {
	c, err := loadConfig(p.configFile)
	if err != nil {
		return err
	}
	db, err := openControl(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return f(c, db)
}
