#!/bin/sh
# install.sh -- what the comparisons need beside Go: syslog-ng with its SQL
# destination, rsyslog with ompgsql, PostgreSQL, a C compiler and SQLite's
# library (Debian 12 packages; run as root). No service is started: where no
# policy-rc.d says so already, one that denies it is put in place meanwhile.
#
# Debian's syslog-ng-core and rsyslog exclude each other, so rsyslog's packages
# are unpacked into $RSYSLOG_ROOT, where the commands look for them too, and only
# the libraries that it needs are installed.
set -eu
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
: "${RSYSLOG_ROOT:=${XDG_CACHE_HOME:-$HOME/.cache}/weir-bench/rsyslog}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends \
    syslog-ng-core syslog-ng-mod-sql libdbd-sqlite3 libdbd-pgsql postgresql-15 util-linux \
    libestr0 libfastjson4 liblognorm5 libpq5 gcc libc6-dev libsqlite3-dev
mkdir -p "$RSYSLOG_ROOT"
unpack=$(mktemp -d)
chmod 755 "$unpack"
(cd "$unpack" && apt-get download -q rsyslog rsyslog-pgsql && for d in *.deb; do dpkg -x "$d" "$RSYSLOG_ROOT"; done)
rm -r "$unpack"
"$RSYSLOG_ROOT/usr/sbin/rsyslogd" -v | head -n 1
dpkg-query -W -f '${Package} ${Version}\n' syslog-ng-core libdbd-sqlite3 libdbd-pgsql postgresql-15 libsqlite3-dev
