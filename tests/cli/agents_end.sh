#!/bin/bash
# F11 and F12 with the finished daemon: agents that do not behave, a daemon that is killed, and nothing that stays behind.
. "$(dirname "$0")/kit.bash"

unset WEFT_STORE_KIND # what was running must be remembered
naughty=$(dirname "$weft")/tests/agent_naughty
mark=NAUGHTY_MARK=$$.$RANDOM
if [ ! -x "$naughty" ]; then
    skip "agents that do not behave" "agent_naughty is not built"
    close
fi
trap '"$weft" stop >/dev/null 2>&1; finish_all; rm -rf "$there" "$kit_said"' EXIT

mkdir -m 700 .weft
(umask 077 && cat >.weft/config.json) <<E2
{
    "agents": {
        "family": {"driver": "cli", "command": ["$naughty", "ignore", "family", "left", "linger"]},
        "deaf": {"driver": "cli", "command": ["$naughty", "ignore", "family", "linger"]},
        "flood": {"driver": "cli", "command": ["$naughty", "flood=300000000", "say=\\nnext\\n", "exit=0"]},
        "bytes": {"driver": "cli", "command": ["$naughty", "bytes", "exit=0"]},
        "silent": {"driver": "cli", "command": ["$naughty", "silent", "linger"]},
        "leaver": {"driver": "cli", "command": ["$naughty", "left", "exit=0"]},
    },
    "tasks": {"grace_ms": 200},
}
E2
trust

alive() { # how many processes carry the mark, but the daemon
    local count=0 file pid
    for file in /proc/[0-9]*/environ; do
        pid=${file#/proc/}
        pid=${pid%/environ}
        if [ "$pid" != "$(cat .weft/daemon.pid 2>/dev/null)" ] && grep -qaF "$mark" "$file" 2>/dev/null; then
            count=$((count + 1))
        fi
    done
    echo $count
}

until_alive() { # NAME TEST COUNT SECONDS: test -eq, -ge
    local until=$((SECONDS + $4)) count
    while count=$(alive) && ! [ "$count" "$2" "$3" ] && [ $SECONDS -lt $until ]; do
        sleep 0.05
    done
    if [ "$count" "$2" "$3" ]; then pass; else fail "$1" "wanted: $2 $3 processes" "got:    $count"; fi
}

run env "$mark" "$weft" start
exits "the daemon starts" 0

# ---- F12 ----
# Written as bytes: what the shell makes of \u depends on the locale.
bad=$'\xef\xbf\xbd' euro=$'\xe2\x82\xac'
run timeout 120 "$weft" task submit --wait --agent bytes x
exits "NUL and what is not UTF-8" 0
is "it comes as text" $'a'"$bad"b"$bad$bad"'('"$euro$bad$bad$bad"$'\n'"$bad" "$out"
run timeout 120 "$weft" task submit --wait --agent flood x
exits "300 MB without a newline" 0
is "the line is cut" $'\xe2\x80\xa6 (299737856 bytes cut)\nnext' "${out:262144}"
run timeout 120 "$weft" task submit --wait --agent silent x
exits "one that closes its output and lives is ended" 1
like "by a signal" "signal 15" "$err"
run timeout 120 "$weft" task submit --wait --agent leaver x
exits "one that leaves something behind" 0
until_alive "nothing of all that is left" -eq 0 120

run "$weft" task submit --agent deaf x
deaf=$out
until_alive "a family runs, with its guard" -ge 8 120
run timeout 120 "$weft" task cancel "$deaf"
exits "it is cancelled" 0
until_alive "though it ignores SIGTERM" -eq 0 120

# ---- F11 ----
run "$weft" task submit --agent family x
first=$out
run "$weft" task submit --agent family x
second=$out
until_alive "two families run, with their guards" -ge 18 120
kill -9 "$(cat .weft/daemon.pid)"
until_alive "the daemon is killed: all of them go" -eq 0 120

run env "$mark" "$weft" start
exits "it starts again" 0
for task in "$first" "$second"; do
    run "$weft" task get "$task" --json
    like "$task has failed" '"failed"' "$out"
    like "because of the daemon" 'The daemon stopped while it ran' "$out"
done
until_alive "and nothing of them runs again" -eq 0 120
run timeout 120 "$weft" stop
exits "it stops" 0
close
