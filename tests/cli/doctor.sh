#!/bin/bash
# weft doctor: what is well, and what is not.
. "$(dirname "$0")/hub.bash"

mkdir none
cd none || exit 1
weft doctor
exits "nothing here" 0
for check in version configuration folder daemon journal port agents disk descriptors watching clock; do
    like "it looks at: $check" "$check " "$out"
done
unlike "nothing here, no problem" "problem  " "$out"
weft doctor --json
is "for programs" true "$(field "$out" .ok)"
is "for programs: a check" version "$(field "$out" .checks.0.check)"
[ -e .weft ] && fail "looking leaves nothing behind" || pass
cd ..

hub one
weft doctor
exits "a daemon runs" 0
like "a daemon runs: says so" "runs, pid $(cat .weft/daemon.pid), healthy" "$out"
like "the journal is its own" "the hub has it" "$out"
like "its port" "http://127.0.0.1:" "$out"
chmod 755 .weft
weft doctor
exits "a folder others can look into" 1
like "a folder others can look into: says so" ".weft has mode 755" "$out"
like "a folder others can look into: what to do" "chmod 700 .weft" "$out"
weft doctor --json
is "a problem, for programs" false "$(field "$out" .ok)"
chmod 700 .weft
pid=$(cat .weft/daemon.pid)
kill -STOP "$pid"
run timeout 120 "$program" doctor
exits "a daemon that is stuck" 1
like "a daemon that is stuck: says so" "does not answer" "$out"
kill -CONT "$pid"
echo 1 >.weft/daemon.pid
weft doctor
like "a pid file that lies" "does not say $pid" "$out"
weft stop
weft task list
weft doctor
exits "none runs" 0
like "the journal is checked in full" "checked in full, " "$out"

# ---- damage ----
/usr/bin/python3 - <<'PY'
with open(".weft/weft.db", "r+b") as file:
    file.seek(4096)
    file.write(b"\xff" * 4096)
PY
before=$(cksum <.weft/weft.db)
weft doctor
exits "a damaged journal" 1
like "a damaged journal: a problem" "problem  journal" "$out"
like "a damaged journal: what to do" "Nothing was changed" "$out"
is "a damaged journal: nothing was changed" "$before" "$(cksum <.weft/weft.db)"

hub two
echo '{ "no_such_key": 1, "rate_per_minute": "many" }' >.weft/config.json
weft doctor
exits "a wrong configuration" 1
like "a wrong configuration: where" ".weft/config.json:1:" "$out"
echo '{ "default_agent": "goose" }' >.weft/config.json
if ! command -v goose >/dev/null; then
    weft doctor
    exits "a configuration that is not on record" 1
    like "a configuration that is not on record: says so" ".weft/config.json is not the one that was trusted" "$out"
    like "a configuration that is not on record: what to do" "weft trust" "$out"
    trust
    weft doctor
    exits "a default agent that is not installed" 1
    like "a default agent that is not installed: which" "goose" "$out"
else
    skip "a default agent that is not installed" "goose is"
fi
close
