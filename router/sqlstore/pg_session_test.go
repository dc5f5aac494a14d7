package sqlstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

func TestPostgresCrashLosesNothing(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET application_name = 'weir test'"}})
	d.mustWrite(messages(1)...)
	for _, mode := range []routertest.StopMode{routertest.StopFast, routertest.StopImmediate} {
		d.query("TRUNCATE logs")
		d.mustWrite(messages(1000)...)
		d.server.Stop(mode)
		for range 2 {
			if err := d.tryWrite(messages(1000)...); err == nil || router.IsPermanent(err) || router.IsNeedsOperator(err) {
				t.Errorf("Write = %v", err)
			}
		}
		d.server.Start(t)
		d.mustWrite(messages(1000)...)
		d.server.Stop(mode) // nobody hears of a restart between two transactions
		d.server.Start(t)
		d.mustWrite(messages(1000)...)
		d.want("SELECT count(*), count(DISTINCT xmin::text) FROM logs", "3000|3")
	}
}

func TestPostgresTerminatedSessionIsReplaced(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET TIME ZONE 'Asia/Tokyo'", "SET lock_timeout = '5s'"}}, "CREATE TABLE zones (zone text)",
		`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO zones VALUES (current_setting('TimeZone')); RETURN NULL; END $$`)
	for range 3 {
		for err := errors.New("first"); err != nil; {
			err = d.tryWrite(messages(10)...)
			if err != nil && (router.IsNeedsOperator(err) || router.IsPermanent(err)) {
				t.Fatal(err)
			}
		}
		d.query("DROP TRIGGER IF EXISTS note ON logs; CREATE TRIGGER note AFTER INSERT ON logs FOR EACH STATEMENT EXECUTE FUNCTION note()")
		d.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	}
	d.want("SELECT zone FROM zones", "Asia/Tokyo", "Asia/Tokyo")
	d.want("SELECT count(*) FROM logs", "30")
	if n := counted(t, d.metrics.connects); n != 3 {
		t.Errorf("%v connections", n)
	}
}

func TestPostgresSessionStatementIsNamedWhenItFails(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET TIME ZONE 'UTC'", "SET lock_timeout = 'soon'"}})
	err := d.Connect(t.Context())
	if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), `"SET lock_timeout = 'soon'"`) || !strings.Contains(err.Error(), "invalid value for parameter") {
		t.Errorf("Connect = %v", err)
	}
}

func TestPostgresAbsentServerPasses(t *testing.T) {
	d := open(t, "", Config{Postgres: config.PlainSecret("postgres://weir:sesame@127.0.0.1:1/logs")})
	err := d.tryWrite(messages(1)...)
	if err == nil || router.IsNeedsOperator(err) || router.IsPermanent(err) || strings.Contains(err.Error(), "sesame") {
		t.Errorf("Write = %v", err)
	}
}

func TestPostgresUnknownDatabaseNeedsAnOperator(t *testing.T) {
	server, _ := routertest.Postgres(t)
	d := open(t, "", Config{Postgres: config.PlainSecret(server.DSN("nowhere"))})
	if err := d.tryWrite(messages(1)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "3D000") {
		t.Errorf("Write = %v", err)
	}
}

func TestPostgresInsertPrivilegeIsEnough(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET ROLE app"}, Columns: columns("message", "message")},
		"DO $$ BEGIN IF to_regrole('app') IS NULL THEN CREATE ROLE app; END IF; END $$", "CREATE TABLE logs (message text); GRANT INSERT ON logs TO app", positionsFor("app"))
	d.mustWrite(messages(3)...)
	d.want("SELECT count(*) FROM logs", "3")
	d.query("REVOKE INSERT ON logs FROM app")
	if err := d.tryWrite(messages(3)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("Write = %v", err)
	}
}

func TestPostgresWriteEndsWithItsContext(t *testing.T) {
	d := openPG(t, Config{})
	d.mustWrite(messages(1)...)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Write(ctx, messages(1), d.keep); !errors.Is(err, context.Canceled) {
		t.Errorf("Write = %v", err)
	}
	d.mustWrite(messages(1)...)
}
