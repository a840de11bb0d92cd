#!/bin/sh
# Once, when the first database of a pair has been made and still listens to nobody else: a role for the second one, and the
# setting by which commits wait for it. That holds from the next start on, which is the one that is served.
set -eu
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -v password="$(cat "$POSTGRES_PASSWORD_FILE")" <<'SQL'
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'password';
ALTER SYSTEM SET synchronous_standby_names = '*';
SQL
echo "host replication replicator all scram-sha-256" >>"$PGDATA/pg_hba.conf"
