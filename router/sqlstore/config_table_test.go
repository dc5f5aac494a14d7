package sqlstore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router/config"
)

func TestConfigurationOfTables(t *testing.T) {
	read := func(text string) (Config, error) {
		var c Config
		doc := config.Parse(&c, config.Options{}, "weir.yaml", []byte("sqlite: logs.db\ntable: 'audit.logs_${app_name}'\n"+text))
		return c, doc.Err()
	}
	no := false
	c, err := read("max_tables: 5\ncreate: false\nalter: true\non_conflict: ignore\non_schema_error: reject\n")
	if want := (Tables{MaxTables: 5, Create: &no, Alter: true, OnConflict: &OnConflict{Ignore: true}, OnSchemaError: "reject"}); err != nil || !cmp.Equal(want, c.Tables) {
		t.Errorf("%v %s", err, cmp.Diff(want, c.Tables))
	}
	c, err = read("create_suffix: STRICT\non_conflict: {key: [hostname, app_name], update: [message]}\n")
	if want := (Tables{CreateSuffix: "STRICT", OnConflict: &OnConflict{Key: []string{"hostname", "app_name"}, Update: []string{"message"}}}); err != nil || !cmp.Equal(want, c.Tables) {
		t.Errorf("%v %s", err, cmp.Diff(want, c.Tables))
	}
	c, err = read("columns: {a: hostname, b: message, c: severity}\nindexes: []\non_conflict: {key: [b]}\n")
	if got := c.updates(); err != nil || !cmp.Equal(got, []string{"a", "c"}) {
		t.Errorf("%v %v", err, got)
	}
	for text, want := range map[string]string{
		"on_conflict: replace\n":                                 "ignore, or {key:",
		"on_conflict: {update: [message]}\n":                     "key",
		"on_conflict: {key: []}\n":                               "no column says what a conflict is",
		"on_conflict: {key: [hostname], update: [hostname]}\n":   "hostname is part of the key",
		"on_conflict: {key: [hostname, hostname]}\n":             "hostname is there already",
		"on_conflict: {key: [host]}\n":                           "no column host",
		"create_suffix: 'WITH (a = 1)) --'\n":                    "create_suffix",
		"create_suffix: \"COMMENT 'x; y'\"\nmax_tables: 20000\n": "20000 tables",
		"create: false\ncreate_suffix: STRICT\n":                 "create_suffix has no effect",
		"create: false\nindexes: [message]\n":                    "indexes has no effect",
		"on_schema_error: ignore\n":                              "wait or reject",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for name, want := range map[string]string{"${app_name}": "whoever sends messages could name any table", "weir_positions": "weir's own", "logs_${timestamp}": "a table for each moment"} {
		bad := (&Config{SQLite: "logs.db", Table: config.Template(name)}).Check()
		if len(bad) != 1 || !strings.Contains(bad[0].What+bad[0].Hint, want) {
			t.Errorf("%s: %v", name, bad)
		}
	}
}
