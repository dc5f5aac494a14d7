#!/bin/sh
# Draws the terminals of the manual: what the real program really prints. From the top of the repository, on Linux with Go
# and script(1). It has a network of its own where the system allows that; else the ports 5514 and 9600 have to be free.
set -eu
export TZ=UTC LC_ALL=C.UTF-8 TERM=xterm-256color
images=$(cd "$(dirname "$0")" && pwd)
if [ -z "${drawing:-}" ]; then
	drawing=$(mktemp -d)
	export drawing
	trap 'rm -rf "$drawing"' EXIT
	GOBIN="$drawing" go install github.com/charmbracelet/freeze@v0.2.2
	go build -o "$drawing/weir" ./cmd/weir
	if unshare -rn true 2>/dev/null; then
		unshare -rn sh -c 'ip link set lo up && exec "$0"' "$0"
	else
		"$0"
	fi
	exit
fi
dir="$drawing"
export PATH="$dir:$PATH"
trap 'kill $(cat "$dir"/*.pid 2>/dev/null) 2>/dev/null || true' EXIT
cd "$dir"

# screen NAME: what is on standard input becomes NAME.svg. Where it was drawn is nobody's business.
screen() {
	tr -d '\r' | sed "s#$dir#/etc/weir#g" >"$1.txt"
	freeze "$1.txt" --language ansi --output "$images/$1.svg" --window --padding 14,40,14,14 --font.size 13 --line-height 1.25 \
		--font.family 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace' </dev/null >/dev/null
	echo "$1.svg has $(wc -c <"$images/$1.svg") bytes"
}

# typed COMMAND: the prompt, the command and what it prints on a terminal, whatever its exit code is.
typed() {
	printf '\033[1;32m$\033[0m %s\n' "$1"
	script -qefc "stty cols 150 rows 60; $1" /dev/null </dev/null || true
}

# ready FILE: waits until a weir that prints into FILE runs.
ready() {
	for _ in $(seq 100); do
		grep -q 'weir runs' "$1" 2>/dev/null && return
		sleep 0.1
	done
	cat "$1" >&2
	exit 1
}

send() { weir loggen --tcp 127.0.0.1:5514 --file - >/dev/null; }

lines() {
	cat <<'LINES'
<86>1 2026-11-30T22:15:03.112Z web1 sshd 4211 - - Accepted publickey for deploy from 198.51.100.20 port 50114 ssh2
<30>1 2026-11-30T22:15:03.318Z web1 systemd 1 - - Started shop.service - The shop.
<14>1 2026-11-30T22:15:04.002Z web1 shop 4242 - - order 4711 of customer 812, 3 items, 59.90 EUR
<12>1 2026-11-30T22:15:04.871Z web2 shop 991 - - payment provider answers slowly: 2.4 s
<11>1 2026-11-30T22:15:05.460Z web2 shop 991 - - payment of order 4712 failed: card 4111 1111 1111 1111 of bob@example.com refused
<166>Nov 30 2026 22:15:05 fw1 : %ASA-4-106023: Deny tcp src outside:198.51.100.7/4711 dst inside:10.1.1.5/22
<78>1 2026-11-30T22:16:01.007Z db1 CRON 1771 - - (postgres) CMD (/usr/local/bin/backup --incremental)
<30>1 2026-11-30T22:16:02.519Z db1 postgres 311 - - checkpoint complete: wrote 1204 buffers (7.3%)
<0>1 2026-11-30T22:16:09.773Z db1 kernel - - - EXT4-fs error (device sda1): ext4_find_entry: inode #2: reading directory lblock 0
LINES
}

# run: the built-in configuration, and the account at its end.
script -qefc 'stty cols 150; exec weir run' /dev/null </dev/null >run.out &
echo $! >run.pid
ready run.out
lines | send
sleep 1.5
typed 'weir logs' | screen logs
pkill -INT -P "$(cat run.pid)"
while kill -0 "$(cat run.pid)" 2>/dev/null; do sleep 0.1; done
{ printf '\033[1;32m$\033[0m weir run\n'; cat run.out; } | screen run

# status: a central database that is away, a filter, a flood.
cat >weir.yaml <<'YAML'
state_dir: state
admin: { listen: 127.0.0.1:9600 }
sources:
  edge: { listen: [tcp://127.0.0.1:5514, udp://127.0.0.1:5514] }
filters:
  redact: { module: stock:redact }
destinations:
  archive: { sqlite: logs.db, retention: { age: 30d } }
  central:
    postgres: postgres://weir@127.0.0.1:1/logs
    buffer: { disk: 256MiB, when_full: drop_oldest }
routes:
  main: { from: [edge], filters: [redact], to: [archive, central] }
  errors: { from: [edge], match: { severity: "<=err" }, to: [archive] }
YAML
script -qefc 'stty cols 150; exec weir run' /dev/null </dev/null >second.out &
echo $! >second.pid
ready second.out
lines >some
weir loggen --tcp 127.0.0.1:5514 --file some --loop --rate 2000 --interval 12s >/dev/null &
sleep 11
typed 'weir status' | screen status
wait $!
pkill -INT -P "$(cat second.pid)"

# check: several mistakes at once.
cat >weir.yaml <<'YAML'
memory: 64
sources:
  edge:
    listen: [tcp://0.0.0.0:5514, udp://5514]
    timezone: Europe/Berlln
filters:
  redact: { module: stock:redakt }
destinations:
  archive:
    sqlite: logs.db
    flush_linse: 500
routes:
  main:
    from: [edge]
    match: { severity: "<=warnign", peer: 10.0.0.0/40 }
    filters: [redcat]
    to: [archive]
YAML
typed 'weir check' | screen check
