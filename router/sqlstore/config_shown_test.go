package sqlstore

import (
	"testing"
	"time"

	"github.com/weirlog/weir/router/config"
)

func TestWhatIsCompletedPassesCheck(t *testing.T) {
	for _, text := range []string{
		"sqlite: a.db", "sqlite: a.db\ntable: l_${app_name}", "postgres: host=db", "postgres: host=db connect_timeout=3",
		"{postgres: host=db, pooler: true}", "{postgres: host=db, partition: {by: day}}", "{sqlite: a.db, create: false}",
		"{postgres: host=db, explicit_commits: false, statement_timeout: off}",
	} {
		var c Config
		if err := config.Parse(&c, config.Options{}, "weir.yaml", []byte(text)).Err(); err != nil {
			t.Fatal(err)
		}
		if c.Complete(); len(c.Check()) > 0 {
			t.Errorf("%s: %v", text, c.Check())
		}
	}
	c := Config{Postgres: config.PlainSecret("host=db"), Table: "l_${app_name}"}
	c.Complete()
	if !*c.Create || c.OnSchemaError != "wait" || !*c.ExplicitCommits || c.MaxTables != 100 || c.Connections != 1 ||
		*c.StatementTimeout != time.Minute || c.Libpq.ConnectTimeout != 10*time.Second {
		t.Errorf("%+v", c)
	}
}
