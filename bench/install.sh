#!/bin/sh
# install.sh -- what the comparisons need beside Go: syslog-ng with its SQL
# destination, and PostgreSQL (Debian 12 packages; run as root). No service is
# started: where no policy-rc.d says so already, one that denies it is put in
# place meanwhile.
set -eu
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends \
    syslog-ng-core syslog-ng-mod-sql libdbd-sqlite3 libdbd-pgsql postgresql-15 util-linux
dpkg-query -W -f '${Package} ${Version}\n' syslog-ng-core libdbd-sqlite3 libdbd-pgsql postgresql-15
