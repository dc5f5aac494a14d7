package sqlstore

import "github.com/jackc/pgx/v5/pgconn"

// Remote reports whether the database is on another machine, as far as the
// configuration says.
func (c *Config) Remote() bool {
	if c.Postgres.Empty() {
		return false
	}
	settings, err := pgSettings(c)
	return err == nil && !local(settings)
}

// Exposed is what somebody between weir and a server on another machine can do,
// because of the sslmode that the configuration chose; "" when that is nothing.
func (c *Config) Exposed() (mode, what string) {
	if c.Postgres.Empty() {
		return "", ""
	}
	settings, err := pgSettings(c)
	if err != nil {
		return "", ""
	}
	text, _ := c.Postgres.Reveal() // it was read a moment ago
	for _, f := range append([]*pgconn.FallbackConfig{{Host: settings.Host, TLSConfig: settings.TLSConfig}}, settings.Fallbacks...) {
		switch {
		case here(f.Host):
		case f.TLSConfig == nil:
			return c.Libpq.mode(text), "rows and the password may go over the network in clear text"
		case f.TLSConfig.InsecureSkipVerify && f.TLSConfig.VerifyPeerCertificate == nil:
			what = "nobody looks whose certificate the server shows"
		}
	}
	if what == "" {
		return "", ""
	}
	return c.Libpq.mode(text), what
}
