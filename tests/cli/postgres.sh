#!/bin/bash
# A hub whose journal is in PostgreSQL, which is started for the test: it keeps what it says it has when it is killed, a second hub
# is refused, a journal in a file moves there, and no password is shown.
. "$(dirname "$0")/hub.bash"

programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
if [ ! -x "$programs/initdb" ]; then
    skip postgres "PostgreSQL is not installed"
    close
    exit 0
fi

# ---- the server, in a folder of its own; it refuses to run as root ----
server=$(mktemp -d)
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    chown postgres: "$server"
    as_user=(setpriv --reuid postgres --regid postgres --clear-groups)
fi
end_server() {
    [ -z "${server_pid-}" ] || { kill -QUIT "$server_pid" && wait "$server_pid"; } 2>/dev/null
    rm -rf "$server"
}
trap 'is_the_script && { end_hubs; finish_all; end_server; rm -rf "$there" "$kit_said"; }' EXIT
(cd / && "${as_user[@]}" "$programs/initdb" -D "$server/data" -U weft -A trust -E UTF8 --no-locale -N) >/dev/null 2>&1 ||
    fail "initdb"
(cd / && exec "${as_user[@]}" "$programs/postgres" -D "$server/data" -k "$server" -c listen_addresses= -c fsync=off \
    -c dynamic_shared_memory_type=mmap) >/dev/null 2>&1 &
server_pid=$!
until_true "$programs/pg_isready" -q -h "$server"
sql() {
    "$programs/psql" -h "$server" -U weft -d postgres -qtA -c "$1"
}
url="postgresql:///postgres?host=$server&user=weft"
at() { # SCHEMA
    sql "CREATE SCHEMA $1"
    export WEFT_STORE_KIND=postgres WEFT_STORE_URL="$url&options=-csearch_path%3D$1"
}

# ---- one hub, and a second ----
at first
hub one
weft task submit --wait "echo this is kept"
exits "a task" 0
weft task submit "sleep for a long time"
kill -9 "$(cat .weft/daemon.pid)"
hub one
weft task list
like "what was done before the kill" "this is kept" "$out"
is "every position is there" t "$(sql "SELECT count(*) = max(gseq) FROM first.weft_event")"
weft doctor
like "doctor" "the hub has it" "$out"
mkdir "$there/two"
cd "$there/two" || exit 1
weft serve
exits "a second hub" 6
like "why" "the journal is in use by another hub" "$err"
unlike "the URL is not shown" "$server" "$err"
cd "$there/one" || exit 1
weft stop
weft doctor
like "doctor without a daemon" "postgres: " "$out"
like "its version" "; version " "$out"
like "and whom it waits for" "commits wait for no standby" "$out"

# ---- the database is away for a while ----
hub one
kill -STOP "$server_pid"
sql_pids=$(pgrep -P "$server_pid" | tr '\n' ' ')
# shellcheck disable=SC2086 # several numbers
kill -KILL $sql_pids
kill -CONT "$server_pid"
until_true "$programs/pg_isready" -q -h "$server"
weft task submit --wait "echo after the crash"
exits "a task after the database has crashed" 0
is "every position is there after the crash" t "$(sql "SELECT count(*) = max(gseq) FROM first.weft_event")"
weft stop

# ---- standbys that there are not ----
WEFT_STORE_STANDBYS=1 weft serve
exits "no standby" 1
like "no standby" "does not wait for a standby" "$err"

# ---- several hubs take turns ----
WEFT_STORE_KIND=sqlite weft serve --wait
exits "only PostgreSQL can be waited for" 2
like "only PostgreSQL can be waited for" "only a journal on PostgreSQL" "$err"
child=$(WEFT_STORE_KIND=postgres WEFT_STORE_WAIT=true timeout 60 "$program" serve --stdio <<<'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}')
like "a child does not wait" '"result":{"a":1}' "$child"
at turns
export WEFT_STORE_LEASE_MS=600000 WEFT_STORE_WAIT=true
WEFT_STORE_HUB=north hub north
WEFT_STORE_HUB=south hub south
like "a hub that waits says for whom" "north has the journal; waiting for it" "$(cat start.out)"
weft task submit --wait "echo by way of the other"
exits "a task at the one that waits" 0
like "a task at the one that waits" "by way of the other" "$out"
weft status
like "whose status it is" "for its journal, which north has" "$out"
weft status --json
is "whose status it is, for programs" north "$(field "$out" .waitsFor)"
weft doctor
like "the hubs: one" "north has the journal" "$out"
like "the hubs: the other" "south waits for it" "$out"
unlike "the URL is not shown" "$server" "$out$err"
cd "$there/north" || exit 1
weft stop
cd "$there/south" || exit 1
leads() {
    ! grep -q waitsFor .weft/endpoint.json
}
until_true leads
weft task list
like "it has taken over" "by way of the other" "$out"
weft status
unlike "it waits no more" "waits" "$out"
weft events --json
like "the journal says who" '"hub":"south"' "$out"
weft stop

# ---- one that cannot take the journal says so, and so does who asks it ----
sql "UPDATE turns.weft_state SET owner = 'somebody'" >/dev/null
WEFT_STORE_HUB=west hub west
like "why it is not taken" "keeps no lease" "$(cat start.out)"
unlike "nobody has it" "another hub has" "$(cat start.out)"
like "what to try" "the agent answers" "$(cat start.out)"
weft doctor
like "doctor of one that waits in vain" "waits for its journal, pid" "$out"
sql "UPDATE turns.weft_state SET owner = ''" >/dev/null
until_true leads
weft stop
unset WEFT_STORE_LEASE_MS WEFT_STORE_WAIT
at after

# ---- passwords ----
for with in "postgresql://weft:open-sesame@db/weft" "postgresql://db/weft?password=open-sesame"; do
    WEFT_STORE_URL=$with weft serve
    like "a password is refused" "a password does not belong here" "$err"
    unlike "a password is not shown" "open-sesame" "$out$err"
    weft store copy sqlite:.weft/weft.db "$with"
    exits "nor on a command line" 2
    unlike "and not shown" "open-sesame" "$out$err"
done

# ---- a journal that moves ----
unset WEFT_STORE_KIND WEFT_STORE_URL
hub three
weft task submit --wait "echo this moves"
exits "a task in a file" 0
weft events --json
before=$(head -n 10 <<<"$out")
sql "CREATE SCHEMA moved"
weft store copy sqlite:.weft/weft.db "$url&options=-csearch_path%3Dmoved"
exits "not while the hub runs" 6
weft stop
weft store copy sqlite:.weft/weft.db "$url&options=-csearch_path%3Dmoved"
exits "the journal moves" 0
like "it says what to do" "weft config set store.kind postgres" "$err"
weft store copy sqlite:.weft/weft.db "$url&options=-csearch_path%3Dmoved"
exits "not twice" 1
export WEFT_STORE_KIND=postgres WEFT_STORE_URL="$url&options=-csearch_path%3Dmoved"
hub three
weft task list
like "the task has moved" "this moves" "$out"
weft events --json
is "its events have the same positions" "$before" "$(head -n 10 <<<"$out")"

weft task submit --wait "echo at the database"
weft events --json
before=$(head -n 20 <<<"$out")

# ---- and back ----
weft stop
here=$WEFT_STORE_URL
unset WEFT_STORE_KIND WEFT_STORE_URL
weft store copy "$here" sqlite:.weft/weft.db
exits "not over a journal that is there" 1
like "it says so" "there is a journal already" "$err"
weft store copy sqlite:a sqlite:b
exits "one is a database" 2
mkdir aside && mv .weft/weft.db* aside
weft store copy "$here" sqlite:.weft/weft.db
exits "the journal comes back" 0
like "it says what to do" "weft config set store.kind sqlite" "$err"
hub three
weft task list
like "with what was done there" "at the database" "$out"
weft events --json
is "its events still have the same positions" "$before" "$(head -n 20 <<<"$out")"
weft stop

# ---- a database that has lost something while no hub ran ----
export WEFT_STORE_KIND=postgres WEFT_STORE_URL=$here
sql "BEGIN; DELETE FROM moved.weft_event WHERE gseq = (SELECT head FROM moved.weft_state); UPDATE moved.weft_state SET head = head - 1; COMMIT"
weft serve
exits "a journal without its end" 1
like "what is missing" "the journal has lost its end: event" "$err"
like "and what to do" "remove .weft/postgres-mark" "$err"
weft doctor
like "doctor says it too" "lost its end" "$out"
rm .weft/postgres-mark
hub three
weft stop

cd "$there" || exit 1
close
