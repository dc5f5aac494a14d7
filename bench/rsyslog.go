package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// rsyslog is where install.sh puts it: Debian's packages of the two routers
// exclude each other.
func rsyslog() (program, modules string, err error) {
	root := os.Getenv("RSYSLOG_ROOT")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", "", err
		}
		root = filepath.Join(cache, "weir-bench", "rsyslog")
	}
	found, _ := filepath.Glob(filepath.Join(root, "usr/lib/*/rsyslog/ompgsql.so"))
	if len(found) == 0 {
		return "", "", fmt.Errorf("no rsyslog under %s: bench/install.sh puts it there", root)
	}
	return filepath.Join(root, "usr/sbin/rsyslogd"), filepath.Dir(found[0]), nil
}

// startRsyslog fills weir's default table. As it comes, transactions are what
// its main queue hands over at once, 256 messages. Tuned, a queue of the
// action's own makes them 1000. Both may wait for room for as long as it takes,
// and try again for ever: as it comes, messages are lost then.
func (l *lab) startRsyslog(ctx context.Context, dir string, port int, cfg peer) (*running, error) {
	program, modules, err := rsyslog()
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "in.sock")
	main, action := "", ""
	if cfg.tuned {
		main = ` queue.size="50000" queue.dequeueBatchSize="1024"`
		action = ` queue.type="LinkedList" queue.size="50000" queue.dequeueBatchSize="1000" queue.timeoutEnqueue="3600000"`
	}
	text := fmt.Sprintf(`global(workDirectory=%[1]q net.enableDNS="off")
main_queue(queue.timeoutEnqueue="3600000"%[4]s)
module(load="imptcp")
module(load="ompgsql")
input(type="imptcp" path=%[2]q)
template(name="row" type="string" option.stdsql="on" string="insert into logs (received_at, timestamp, facility, severity, hostname, app_name, proc_id, msg_id, structured_data, fields, message, peer) values ('%%timegenerated:::date-rfc3339%%', '%%timereported:::date-rfc3339%%', %%syslogfacility%%, %%syslogseverity%%, '%%hostname%%', '%%programname%%', '%%procid%%', NULL, NULL, NULL, '%%msg:2:$%%', NULL)")
action(type="ompgsql" server="127.0.0.1" port="%[3]d" user="postgres" pass="x" db="logs" template="row" action.resumeRetryCount="-1"%[5]s)
`, dir, socket, port, main, action)
	file := filepath.Join(dir, "rsyslog.conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	command := append(cfg.pin[:len(cfg.pin):len(cfg.pin)], program, "-n", "-f", file, "-i", filepath.Join(dir, "pid"), "-M", modules)
	return started(ctx, dir, socket, command)
}
