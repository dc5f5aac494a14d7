package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// A peer is another router's configuration.
type peer struct {
	database string // where its rows go; in its own words
	tuned    bool   // transactions of 1000 rows, and what it needs to fill them
	pin      []string
}

// startSyslogNG fills weir's default table. As it comes each row is a
// transaction. Tuned, it has explicit commits, and a window that exceeds a
// transaction, without which it never fills one. Flow control it has in any
// case: without, messages are lost.
func (l *lab) startSyslogNG(ctx context.Context, dir string, cfg peer) (*running, error) {
	socket := filepath.Join(dir, "in.sock")
	window, commits := "", "flags(dont-create-tables)"
	if cfg.tuned {
		window = "max-connections(20) log-iw-size(400000)"
		commits = "flags(dont-create-tables, explicit-commits) batch-lines(1000) batch-timeout(200) log-fifo-size(200000)"
	}
	text := fmt.Sprintf(`@version: 3.38
options { keep-hostname(yes); use-dns(no); stats-freq(0); frac-digits(6); };
source s_in { unix-stream("%s" %s flags(expect-hostname)); };
destination d_out { sql(
    %s
    table("logs")
    columns("received_at", "timestamp", "facility", "severity", "hostname", "app_name",
            "proc_id", "msg_id", "structured_data", "fields", "message", "peer")
    values("$R_ISODATE", "$S_ISODATE", "$FACILITY_NUM", "$LEVEL_NUM", "$HOST", "$PROGRAM",
           "$PID", "$MSGID", "", "", "$MESSAGE", "")
    indexes() null("") %s
); };
log { source(s_in); destination(d_out); flags(flow-control); };
`, socket, window, cfg.database, commits)
	file := filepath.Join(dir, "syslog-ng.conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	command := append(cfg.pin[:len(cfg.pin):len(cfg.pin)], "syslog-ng", "-F", "--no-caps", "-e", "-f", file,
		"-R", filepath.Join(dir, "persist"), "-c", filepath.Join(dir, "ctl"), "-p", filepath.Join(dir, "pid"))
	return started(ctx, dir, socket, command)
}
