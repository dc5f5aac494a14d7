package sqlstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

func TestPostgresTypes(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	server.Exec(t, dsn, "CREATE EXTENSION citext; CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE DOMAIN port AS int CHECK (VALUE > 0)")
	var types, want []string
	var values []router.Value
	add := func(sqlType string, v router.Value, w string) {
		types, values, want = append(types, sqlType), append(values, v), append(want, w)
	}
	check := func() {
		t.Helper()
		var create, ask []string
		cfg := Config{Postgres: config.PlainSecret(dsn)}
		m := message("m")
		for i, v := range values {
			name := fmt.Sprintf("v%d", i)
			create, ask = append(create, name+" "+types[i]), append(ask, name)
			cfg.Columns = append(cfg.Columns, columns(name, "fields."+name)...)
			with(m, name, v)
		}
		server.Exec(t, dsn, "DROP TABLE IF EXISTS logs; CREATE TABLE logs ("+strings.Join(create, ", ")+")")
		d := open(t, "", cfg)
		d.mustWrite(m)
		got := server.Query(t, dsn, "SET TIME ZONE 'UTC'; SELECT "+strings.Join(ask, ", ")+" FROM logs")
		if diff := cmp.Diff(want, strings.Split(got[0], "|")); diff != "" {
			t.Error(diff)
		}
		d.Close()
	}
	add("boolean", text("yes"), "t")
	add("smallint", router.IntValue(-3), "-3")
	add("integer", text(" 70000 "), "70000")
	add("bigint", router.FloatValue(5), "5")
	add("real", text("1.5"), "1.5")
	add("double precision", router.FloatValue(1e300), "1e+300")
	add("double precision", text("-Infinity"), "-Infinity")
	add("text", router.BoolValue(true), "true")
	add("varchar(3)", text("abc   "), "abc")
	add("char(3)", text("ab"), "ab ")
	add("citext", text("Ab"), "Ab")
	add("mood", text("bad"), "bad")
	add("port", router.IntValue(80), "80")
	add("json", router.Value{Kind: router.Object, Bytes: []byte(`{"a":1}`)}, `{"a":1}`)
	add("jsonb", text("abc"), `"abc"`)
	add("jsonb", router.Value{Kind: router.Array, Bytes: []byte(`[1,"\u0000"]`)}, "[1, \"\uFFFD\"]")
	add("bytea", router.Value{Kind: router.Bytes, Bytes: []byte{0, 0xff}}, `\x00ff`)
	add("uuid", text("{A0EEBC99-9C0B4EF8-bb6d6bb9-bd380a11}"), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
	check() // binary COPY

	add("date", text("Jan 8, 1999"), "1999-01-08")
	add("timestamptz", text("1999-01-08 04:05:06 -8:00"), "1999-01-08 12:05:06+00")
	add("inet", text("192.0.2.0/24"), "192.0.2.0/24")
	add("numeric(10,2)", router.FloatValue(1.005), "1.01")
	add("interval", text("1 day"), "1 day")
	add("text[]", text(`{a,"b c"}`), `{a,"b c"}`)
	add("int4range", text("[1,5)"), "[1,5)")
	check() // text COPY
}

func TestPostgresTimesIntoEveryTimeType(t *testing.T) {
	d := openPG(t, Config{Columns: columns("a", "timestamp", "b", "timestamp", "c", "timestamp", "d", "timestamp")},
		"CREATE TABLE logs (a timestamptz, b timestamp, c date, d bigint)")
	old := message("old")
	old.Timestamp = -1
	d.mustWrite(message("m"), old)
	d.want("SET TIME ZONE 'UTC'; SELECT * FROM logs",
		"2026-01-02 03:04:04.678901+00|2026-01-02 03:04:04.678901|2026-01-02|1767323044678901000",
		"1969-12-31 23:59:59.999999+00|1969-12-31 23:59:59.999999|1969-12-31|-1")
}

func TestPostgresMakesTextStorable(t *testing.T) {
	d := openPG(t, Config{AddColumns: columns("raw", "raw")})
	m := message("a\x00b Bl\xe5b\xe6r")
	m.Raw = []byte("\x00\xe5")
	with(m, "deep", router.Value{Kind: router.Object, Bytes: []byte(`{"a":"\ud800x\u0000\ud83d\ude00","n":1e999999}`)})
	with(m, "nest", router.Value{Kind: router.Array, Bytes: []byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))})
	d.mustWrite(m)
	d.want("SELECT message, fields->'deep', raw FROM logs", "a\uFFFDb Bl\uFFFDb\uFFFDr|"+`{"a": "`+"\uFFFDx\uFFFD\U0001f600"+`", "n": "1e999999"}|\x00e5`)
	if n := counted(t, d.metrics.repaired); n != 2 {
		t.Errorf("%v values repaired", n)
	}
}
