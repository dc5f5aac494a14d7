package sqlstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	pgConnectTimeout = 10 * time.Second // unless the connection string has connect_timeout
	pgUserTimeout    = 30 * time.Second // how long sent bytes may stay unacknowledged
	pgCloseTimeout   = time.Second      // for saying good-bye
)

// pgSettings makes the connection settings: those of the connection string and
// of libpq's environment variables, then ours.
func pgSettings(c *Config) (*pgconn.Config, error) {
	text, err := c.Postgres.Reveal()
	if err != nil {
		return nil, err
	}
	words, err := c.Libpq.words()
	if err != nil {
		return nil, err
	}
	for _, w := range words {
		text = addSetting(text, w[0], w[1])
	}
	settings, err := pgconn.ParseConfig(text)
	if err != nil {
		return nil, withoutString(err)
	}
	if !local(settings) && !saysTLS(text) {
		// pgx would try TLS without looking at the certificate, then clear text.
		if settings, err = pgconn.ParseConfig(addSetting(text, "sslmode", "verify-full")); err != nil {
			return nil, withoutString(err)
		}
	}
	if !c.Password.Empty() {
		if settings.Password, err = c.Password.Reveal(); err != nil {
			return nil, err
		}
	}
	if settings.ConnectTimeout == 0 {
		settings.ConnectTimeout = pgConnectTimeout
	}
	dialer := &net.Dialer{KeepAlive: 15 * time.Second, Control: userTimeout}
	settings.DialFunc = dialer.DialContext
	if settings.RuntimeParams["application_name"] == "" {
		settings.RuntimeParams["application_name"] = "weir"
	}
	settings.RuntimeParams["client_encoding"] = "UTF8"
	if settings.ValidateConnect == nil && c.Libpq.target(text) == "" {
		settings.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if limit := c.statementTimeout(); limit > 0 {
		settings.AfterNetConnect = patient(limit + min(limit, pgAnswerMargin))
	}
	return settings, nil
}

// withoutString keeps the connection string, which pgx puts into its error, out of it.
func withoutString(err error) error {
	if bad, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		bad.ConnString = ""
		what := strings.TrimPrefix(bad.Error(), "cannot parse ``: ")
		what, _, _ = strings.Cut(what, " (") // the cause may quote the string
		switch what {
		case "failed to parse as keyword/value":
			what = "neither postgres://… nor keywords with their values"
		case "failed to parse as URL":
			what = "not a URL that can be read"
		case "invalid port":
			what = "the port is no number"
		}
		return fmt.Errorf("connection string: %s", what)
	}
	return errors.New("connection string: cannot be read")
}

// local reports whether every host of the settings is this machine.
func local(c *pgconn.Config) bool {
	for _, f := range c.Fallbacks {
		if !here(f.Host) {
			return false
		}
	}
	return here(c.Host)
}

func here(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || ip != nil && ip.IsLoopback()
}

// saysTLS reports whether somebody chose an sslmode.
func saysTLS(text string) bool { return os.Getenv("PGSSLMODE") != "" || says(text, "sslmode") }

// says reports whether a connection string holds a setting.
func says(text, name string) bool {
	_, ok := said(text, name)
	return ok
}

// saysPassword reports whether a connection string holds a password.
func saysPassword(text string) bool {
	if u, err := url.Parse(text); err == nil && isURL(text) {
		if _, ok := u.User.Password(); ok {
			return true
		}
	}
	return says(text, "password")
}

// said is a setting of a connection string.
func said(text, name string) (value string, ok bool) {
	if isURL(text) {
		u, err := url.Parse(text)
		if err != nil || !u.Query().Has(name) {
			return "", false
		}
		return u.Query().Get(name), true
	}
	for rest := text; ; {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			return "", false
		}
		value = strings.TrimLeft(value, " \t\r\n")
		rest = behindValue(value)
		if strings.TrimSpace(key) == name {
			value = strings.TrimSpace(value[:len(value)-len(rest)])
			if quoted, ok := strings.CutPrefix(value, "'"); ok {
				value = strings.TrimSuffix(quoted, "'")
			}
			return strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(value), true
		}
	}
}

// behindValue is what follows the value, quoted or not, that s begins with.
func behindValue(s string) string {
	quoted := strings.HasPrefix(s, "'")
	if quoted {
		s = s[1:]
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case quoted && c == '\'', !quoted && strings.IndexByte(" \t\r\n", c) >= 0:
			return s[i+1:]
		}
	}
	return ""
}

func addSetting(text, name, value string) string {
	if !isURL(text) {
		return text + " " + name + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
	}
	base, query, ok := strings.Cut(text, "?")
	if ok && query != "" {
		query += "&"
	}
	return base + "?" + query + name + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20") // libpq knows no +
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// place tells where a connection goes, without secrets.
func place(c *pgconn.Config) string {
	return fmt.Sprintf("%s@%s/%s", c.User, net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), c.Database)
}
