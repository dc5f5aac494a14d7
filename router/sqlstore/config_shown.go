package sqlstore

import "os"

// Complete puts in what holds where the configuration says nothing, so that it
// can be shown. It adds nothing that Check would refuse, and what libpq's
// environment variables may say stays theirs.
func (c *Config) Complete() {
	yes := true
	if c.Table == "" {
		c.Table = "logs"
	}
	if c.Create == nil {
		c.Create = &yes
	}
	if c.OnSchemaError == "" {
		c.OnSchemaError = "wait"
	}
	if c.ExplicitCommits == nil {
		c.ExplicitCommits = &yes
	}
	if names, err := parseNaming(string(c.Table)); err == nil && names.fixed == "" {
		c.MaxTables = c.maxTables()
	}
	if c.Postgres.Empty() {
		return
	}
	c.Connections = max(1, c.Connections)
	if c.StatementTimeout == nil {
		limit := pgStatementTimeout
		c.StatementTimeout = &limit
	}
	text, err := c.Postgres.Reveal()
	if err == nil && c.Libpq.ConnectTimeout == 0 && !says(text, "connect_timeout") && os.Getenv("PGCONNECT_TIMEOUT") == "" {
		c.Libpq.ConnectTimeout = pgConnectTimeout
	}
}
