#!/bin/sh
# The second database of a pair: a copy of the first, which it follows. postgres-standby.sh HOST, as the user postgres, with
# PGDATA set and the password in /run/secrets/db.password.
set -eu
PGPASSFILE=${PGPASSFILE:-/tmp/pgpass}
password=${PASSWORD_FILE:-/run/secrets/db.password}
export PGPASSFILE
(umask 077 && printf '*:*:*:replicator:%s\n' "$(cat "$password")" >"$PGPASSFILE")
chmod 700 "$PGDATA"
while [ ! -s "$PGDATA/PG_VERSION" ]; do
    # What an attempt left that was broken off would be in the way.
    find "$PGDATA" -mindepth 1 -delete
    pg_basebackup -h "$1" -p "${PGPORT:-5432}" -U replicator -D "$PGDATA" -R -X stream || sleep 1
done
exec postgres
