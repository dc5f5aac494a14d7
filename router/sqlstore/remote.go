package sqlstore

// Remote reports whether the database is on another machine, as far as the
// configuration says.
func (c *Config) Remote() bool {
	if c.Postgres.Empty() {
		return false
	}
	settings, err := pgSettings(c)
	return err == nil && !local(settings)
}
