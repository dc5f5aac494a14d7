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
	if *c.Create {
		c.Indexes = c.indexes()
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
	if err != nil || says(text, "service") || os.Getenv("PGSERVICE") != "" { // a file of libpq's has a say, too
		return
	}
	open := func(name, variable string) bool { return !says(text, name) && os.Getenv(variable) == "" }
	if c.Libpq.ConnectTimeout == 0 && open("connect_timeout", "PGCONNECT_TIMEOUT") {
		c.Libpq.ConnectTimeout = pgConnectTimeout
	}
	if c.Libpq.target(text) == "" {
		c.Libpq.TargetSession = "read-write"
	}
	if c.Libpq.mode(text) == "" && c.Libpq.roots(text) != systemRoots {
		c.Libpq.SSLMode = "prefer"
		if c.Remote() {
			c.Libpq.SSLMode = "verify-full"
		}
	}
	if c.Libpq.mode(text) == "disable" {
		return
	}
	if c.Libpq.SSLSNI == nil && open("sslsni", "PGSSLSNI") {
		c.Libpq.SSLSNI = &yes
	}
	if c.Libpq.SSLNegotiation == "" && open("sslnegotiation", "PGSSLNEGOTIATION") {
		c.Libpq.SSLNegotiation = "postgres"
	}
}
