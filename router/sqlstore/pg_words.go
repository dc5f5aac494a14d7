package sqlstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router/config"
)

// libpqWords are the keywords of a connection string (PostgreSQL manual,
// "Parameter Key Words"). pgx knows most of them; what it does not know it sends
// to the server, as a parameter of the session.
var libpqWords = strings.Fields(`host hostaddr port dbname user password passfile require_auth channel_binding connect_timeout
 client_encoding options application_name fallback_application_name keepalives keepalives_idle keepalives_interval
 keepalives_count tcp_user_timeout replication gssencmode sslmode requiressl sslnegotiation sslcompression sslcert sslkey
 sslpassword sslcertmode sslrootcert sslcrl sslcrldir sslsni requirepeer ssl_min_protocol_version ssl_max_protocol_version
 min_protocol_version max_protocol_version krbsrvname gsslib gssdelegation service servicefile target_session_attrs
 load_balance_hosts`)

// serverWords are those that a server takes too.
var serverWords = []string{"application_name", "client_encoding", "options", "replication", "tcp_user_timeout"}

// strangeWords tells of what a server would refuse as a parameter that it does
// not know: libpq's own keywords, and those that somebody has misspelt.
func strangeWords(settings *pgconn.Config) (bad []config.Problem) {
	for name := range settings.RuntimeParams {
		p := config.Problem{Path: "postgres", Part: name}
		switch near := config.Typo(name, libpqWords); {
		case slices.Contains(serverWords, name) || near == "":
			continue
		case near == name:
			p.What, p.Hint = fmt.Sprintf("weir has no %s in a connection string", name), "leave it out"
		default:
			p.What, p.Hint = fmt.Sprintf("unknown word %q in the connection string", name), near
		}
		bad = append(bad, p)
	}
	slices.SortFunc(bad, func(a, b config.Problem) int { return cmp.Compare(a.What, b.What) })
	return bad
}
