package sqlstore

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
)

func TestPatienceEndsWhenNothingMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		conn, _ := patient(70*time.Second)(context.Background(), nil, ours)
		answer := func(after time.Duration) {
			time.Sleep(after)
			theirs.Write([]byte("x"))
		}
		one := make([]byte, 1)
		for range 3 { // each byte is news
			go answer(69 * time.Second)
			if _, err := conn.Read(one); err != nil {
				t.Fatal(err)
			}
		}
		// So is each that we write while a read waits.
		go func() {
			for range 3 {
				time.Sleep(50 * time.Second)
				conn.Write([]byte("y"))
			}
			theirs.Write([]byte("z"))
		}()
		go func() {
			for range 3 {
				theirs.Read(make([]byte, 1))
			}
		}()
		if _, err := conn.Read(one); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := conn.Read(one)
		var timeout net.Error
		if err == nil || errors.As(err, &timeout) || !strings.Contains(err.Error(), "nothing was heard of the server for 1m10s") || time.Since(began) != 70*time.Second {
			t.Errorf("Read = %v after %v", err, time.Since(began))
		}
		// A context that ends goes before it, and its timeout stays one.
		conn.SetDeadline(time.Now().Add(time.Second))
		if _, err := conn.Read(one); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read = %v", err)
		}
	})
}

func TestPostgresStatementsAreLimited(t *testing.T) {
	minute, off := 2*time.Minute, time.Duration(0)
	for _, c := range []struct {
		limit *time.Duration
		own   []string
		want  string
	}{
		{nil, nil, "1min|30s|2min"}, {&minute, nil, "2min|1min|4min"}, {&off, nil, "0|0|0"},
		{nil, []string{"SET statement_timeout = '5s'"}, "5s|30s|2min"},
	} {
		d := openPG(t, Config{StatementTimeout: c.limit, SessionStatements: c.own, Columns: columns("message", "message")},
			`CREATE TABLE limits (s text); CREATE TABLE logs (message text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 INSERT INTO limits VALUES (concat_ws('|', current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'))); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT ON logs FOR EACH STATEMENT EXECUTE FUNCTION note()`)
		d.mustWrite(messages(1)...)
		d.want("SELECT s FROM limits", c.want)
	}
}

// A table that somebody locks is not the fault of a row, however long it takes.
func TestPostgresLockedTableCostsNoRow(t *testing.T) {
	for _, own := range [][]string{{"SET lock_timeout = '20ms'"}, {"SET statement_timeout = '1s'"}} {
		d := openPG(t, Config{SessionStatements: own})
		d.mustWrite(messages(1)...)
		unlock := d.session("BEGIN; LOCK TABLE logs IN ACCESS EXCLUSIVE MODE")
		for range 4 { // more often than a slow transaction is tried whole
			if err := d.tryWrite(messages(1)...); err == nil || router.IsPermanent(err) || router.IsNeedsOperator(err) {
				t.Errorf("%v: Write = %v", own, err)
			}
		}
		unlock()
		d.mustWrite(messages(1)...)
		d.wantLetters()
		d.want("SELECT count(*) FROM logs", "2")
	}
}

// session runs sql over a connection that stays open until its end is called.
func (r *pgRig) session(sql string) (end func()) {
	r.t.Helper()
	conn, err := pgconn.Connect(r.t.Context(), r.dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := conn.Exec(r.t.Context(), sql).ReadAll(); err != nil {
		r.t.Fatal(err)
	}
	return func() { conn.Close(context.Background()) }
}
