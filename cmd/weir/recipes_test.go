package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/router/routertest"
)

var (
	sqlFence = regexp.MustCompile("(?ms)^```sql\n(.*?)^```")
	roleWeir = regexp.MustCompile(`\bweir\b`)
	listens  = regexp.MustCompile(`(?m)^  (\w+):\n    listen: .*$`)
	server   = regexp.MustCompile(`(?m)^    postgres: postgres://\w+@\S+`)
)

// A recipe is a page whose files run against a real database. Their sources listen on TCP, the first one on port 5514.
type recipe struct {
	*page
	server *routertest.PostgresServer
	dsn    string
	text   string
}

// openRecipe puts a recipe's files into a folder. The role weir of its SQL is another one here, where weir owns the server.
func openRecipe(t *testing.T, name string, files ...string) *recipe {
	t.Helper()
	text, err := os.ReadFile("../../docs/recipes/" + name)
	if err != nil {
		t.Fatal(err)
	}
	r := &recipe{page: newPage(t, name), text: string(text)}
	r.server, r.dsn = routertest.Postgres(t)
	for _, f := range files {
		deployTo(t, r.dir, "../../deploy/"+f)
		own := filepath.Join(r.dir, filepath.Base(f))
		file, err := os.ReadFile(own)
		if err != nil {
			t.Fatal(err)
		}
		port := 5513
		s := listens.ReplaceAllStringFunc(string(file), func(source string) string {
			port++
			name, _, _ := strings.Cut(source, "\n")
			return fmt.Sprintf("%s\n    listen: [tcp://127.0.0.1:%d]", name, port)
		})
		s = regexp.MustCompile(`(?m)^    receive_buffer: .*\n`).ReplaceAllString(s, "")
		s = regexp.MustCompile(`(?m)^admin: .*$`).ReplaceAllString(s, "admin: { listen: unix://admin.sock }")
		s = server.ReplaceAllLiteralString(s, "    postgres: "+r.as(t, "role_"+strings.TrimSuffix(name, ".md")))
		if err := os.WriteFile(own, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// as is the database for another role.
func (r *recipe) as(t *testing.T, role string) string {
	t.Helper()
	u, err := url.Parse(r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

// sql runs a block of the page, with words replaced.
func (r *recipe) sql(t *testing.T, block int, replace ...string) {
	t.Helper()
	u, err := url.Parse(r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	role := "role_" + strings.TrimSuffix(r.name, ".md")
	text := roleWeir.ReplaceAllString(sqlFence.FindAllStringSubmatch(r.text, -1)[block][1], role)
	text = strings.NewReplacer(append(replace, "CREATE DATABASE logs;\n", "", "DATABASE logs", "DATABASE "+strings.TrimPrefix(u.Path, "/"))...).Replace(text)
	r.server.Exec(t, r.dsn, text)
}

// What the recipe of the centre says, with its four tables and a role that owns nothing else.
func TestTheRecipeOfTheCentreWorks(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	r := openRecipe(t, "central.md", "central/10-central.yaml", "central/20-web.yaml", "central/20-network.yaml", "central/20-security.yaml")
	r.sql(t, 0)
	for _, team := range []string{"web", "network", "security", "unclaimed"} {
		r.sql(t, 1, "web", team, "alice", "alice_"+team)
	}
	r.command(t, "weir check -c . --connect\n")
	r.background(t, "weir run -c .\n")
	r.command(t, `weir loggen --tcp 127.0.0.1:5514 --file - <<'E'
<34>Oct 11 22:14:15 web1 su[231]: failed for bob
<13>Nov 30 21:00:00 shop2 shop: order
<13>Nov 30 21:00:00 db1 postgres[3]: checkpoint
<86>Nov 30 21:00:00 db1 sshd[9]: Accepted
E
`)
	r.session(t, `$ weir logs web -c .
2026-11-30 21:00:00.123 web1 su[231]: failed for bob
2026-11-30 21:00:00.123 shop2 shop: order
$ weir logs security -c .
2026-11-30 21:00:00.123 web1 su[231]: failed for bob
2026-11-30 21:00:00.123 db1 sshd[9]: Accepted
$ weir logs unclaimed -c . --since 24h
2026-11-30 21:00:00.123 db1 postgres[3]: checkpoint
$ weir logs network -c .
no messages
`)
	if got := r.server.Query(t, r.as(t, "alice_web"), "SELECT hostname FROM web.logs ORDER BY 1"); strings.Join(got, " ") != "shop2 web1" {
		t.Errorf("a reader of the team reads %v", got)
	}
	if got := r.server.Query(t, r.dsn, "SELECT has_schema_privilege('alice_web', 'security', 'USAGE')"); strings.Join(got, "") != "f" && strings.Join(got, "") != "false" {
		t.Errorf("who reads web.logs may look into security: %v", got)
	}
}

// What rsyslog wrote into SystemEvents, weir writes into it. The table is that of rsyslog's Debian package.
func TestTheRecipeOfRsyslogFillsItsTable(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	r := openRecipe(t, "rsyslog.md", "rsyslog.yaml")
	r.server.Exec(t, r.dsn, `CREATE TABLE SystemEvents (ID serial not null primary key, CustomerID bigint, ReceivedAt timestamp without time zone NULL,
		DeviceReportedTime timestamp without time zone NULL, Facility smallint NULL, Priority smallint NULL, FromHost varchar(60) NULL, Message text,
		NTSeverity int NULL, EventSource varchar(60), InfoUnitID int NULL, SysLogTag varchar(60), SystemID int NULL)`)
	r.sql(t, 0)
	r.sql(t, 1) // the table beside it
	r.background(t, "weir run -c .\n")
	r.command(t, `weir loggen --tcp 127.0.0.1:5514 --file - <<'E'
<34>Oct 11 22:14:15 web1 su[231]: failed for bob
<13>Nov 30 21:00:00 web1 app: no pid
<165>1 2026-11-30T20:00:00.123Z host.example evntslog 42 ID47 - An application
<22>Nov 30 21:00:00 mx1 postfix/smtpd[9]: connect
<86>Nov 30 21:00:00 web1 sshd[9]: information
E
`)
	rows := "SELECT format('%s|%s|%s|%s|%s|%s|%s', to_char(devicereportedtime, 'MM-DD HH24:MI'), facility, priority, fromhost, message, infounitid, syslogtag) FROM systemevents ORDER BY message"
	want := strings.Join([]string{
		"11-30 20:00|20|5|host.example| An application|1|evntslog[42]:",
		"11-30 20:00|2|6|mx1| connect|1|postfix/smtpd[9]:",
		"10-11 20:14|4|2|web1| failed for bob|1|su[231]:",
		"11-30 20:00|1|5|web1| no pid|1|app:",
	}, "\n")
	var got string
	within(t, patience, func() bool {
		got = strings.Join(r.server.Query(t, r.dsn, rows), "\n")
		return got == want
	}, func() string { return "systemevents has\n" + got + "\nwant\n" + want + "\n" + r.shown() })
}
