package sqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

// checkText is what check says of a destination.
func checkText(text string) string {
	var c Config
	if err := config.Parse(&c, config.Options{}, "weir.yaml", []byte(text)).Err(); err != nil {
		return err.Error()
	}
	return ""
}

func TestMistakesInConnectionString(t *testing.T) {
	for text, want := range map[string]string{
		"postgres: host=db prot=5432":                                                `unknown word "prot" in the connection string`,
		"postgres: postgres://weir@db/logs?conect_timeout=5":                         "try: connect_timeout",
		"postgres: host=db username=weir":                                            "try: user",
		"postgres: host=db Host=db":                                                  "try: host",
		"postgres: host=db keepalives=1":                                             "weir has no keepalives",
		"postgres: postgres://weir@db/logs?sslmode=sometimes":                        "try: disable, allow, prefer, require, verify-ca or verify-full",
		"postgres: host=db sslmode = 'verify-al'":                                    "try: verify-ca",
		"{postgres: host=db, sslmode: verify-ca, sslrootcert: system}":               "sslmode verify-ca is too weak",
		"postgres: host=db sslrootcert=system sslmode=require":                       "sslmode require is too weak",
		"{postgres: host=db sslmode=verify-ca, sslrootcert: system}":                 "try: sslmode: verify-full",
		"{postgres: host=db, sslmode: verify-full, sslrootcert: system}":             "",
		"postgres: host=db search_path=audit TimeZone=UTC my.own=1 options='-c a=b'": "",
		"{postgres: host=db, connections: 0}":                                        "connections: 0 is none",
		"{postgres: host=db, table: 'l_${app_name}', max_tables: 0}":                 "max_tables: 0 is none",
		"{sqlite: a.db, columns: {a: recieved_at}}":                                  "try: received_at",
		"{sqlite: a.db, columns: {a: {from: field.uid}}}":                            "try: fields.uid",
	} {
		if got := checkText(text); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Every parameter that a session may set may stand in a connection string.
func TestParametersOfServerAreNotTakenForMistakes(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	names := server.Query(t, dsn, "SELECT name FROM pg_settings WHERE context IN ('user', 'superuser', 'backend', 'superuser-backend')")
	if len(names) < 100 {
		t.Fatal(names)
	}
	for _, name := range names {
		if got := checkText(fmt.Sprintf("postgres: host=db %s=1", name)); got != "" {
			t.Error(got)
		}
	}
}

func TestWhoeverIsBetweenIsTold(t *testing.T) {
	for text, want := range map[string]string{
		"host=db": "", "host=127.0.0.1 sslmode=disable": "", "host=/tmp sslmode=prefer": "", "host=db sslmode=verify-ca": "",
		"host=db sslmode=disable": "clear text", "host=db sslmode=allow": "clear text", "host=/tmp,db sslmode=prefer": "clear text",
		"host=db sslmode=require": "whose certificate",
	} {
		t.Setenv("HOME", t.TempDir())
		if _, got := (&Config{Postgres: config.PlainSecret(text)}).Exposed(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestEqualAttemptsAreToldOnce(t *testing.T) {
	err := oneLine{errors.New("a: refused\nb: refused\na: refused")}
	if got := err.Error(); got != "a: refused; b: refused" {
		t.Error(got)
	}
	d := open(t, "", Config{Postgres: config.PlainSecret("host=127.0.0.1 port=1 sslmode=prefer")})
	if err := d.tryWrite(messages(1)...); strings.Count(err.Error(), "refused") != 1 {
		t.Error(err)
	}
}

// A key beside the connection string reaches libpq's parser as it was written, whichever form the string has.
func TestASettingBesideTheConnectionStringIsTakenAsItIs(t *testing.T) {
	for _, dsn := range []string{"postgres://u@h/d", "postgres://u@h/d?connect_timeout=3", "host=h user=u dbname=d"} {
		for _, value := range []string{"my key", "a+b", "a&b=c", `it's \ this`, "100%", "ü"} {
			text := addSetting(dsn, "application_name", value)
			c, err := pgconn.ParseConfig(text)
			if err != nil || c.RuntimeParams["application_name"] != value {
				t.Errorf("%s: %v", text, err)
			}
			if got, ok := said(text, "application_name"); !ok || got != value {
				t.Errorf("%s says %q", text, got)
			}
		}
	}
}
