#!/bin/bash
# --timeout is obeyed by every verb that has it: 7 when something that was waited for did not come, 0 when so much time was
# all that was asked for.
. "$(dirname "$0")/hub.bash"

# ---- somebody who takes every connection and never says a word ----
cat >silent.py <<'END'
import socket
s = socket.socket(socket.AF_UNIX)
s.bind("silent.sock")
s.listen(64)
print("ready", flush=True)
kept = []
while True:
    kept.append(s.accept())
END
/usr/bin/python3 silent.py >silent.out 2>&1 &
started+=($!)
until_true grep -q ready silent.out
silent=unix:$there/silent.sock

# All at once: each waits a little longer for the other side to hang up.
verbs=("call $silent daemon.status" "methods $silent" "describe $silent task.submit" "ping $silent" "bench $silent --count 1"
    "task list --url $silent" "task get task-0000 --url $silent" "task cancel task-0000 --url $silent" "task stats --url $silent"
    "task watch --url $silent" "task watch task-0000 --url $silent" "answer --url $silent" "answer question-1 allow --url $silent"
    "agents --url $silent" "agents use demo --url $silent" "automation --url $silent" "automation disable --url $silent"
    "events --url $silent" "events -f --url $silent" "listen -n 1 $silent")
pids=()
for i in "${!verbs[@]}"; do
    # The verb is split into words on purpose.
    # shellcheck disable=SC2086
    timeout 120 "$weft" ${verbs[i]} --timeout 200ms >"out.$i" 2>"err.$i" &
    pids[i]=$!
done
for i in "${!verbs[@]}"; do
    ended "${pids[i]}"
    err=$(cat "err.$i")
    exits "nobody answers: ${verbs[i]}" 7
    case ${verbs[i]} in
    listen*) like "nobody answers: ${verbs[i]}: says so" "did not come in time" "$err" ;;
    *) like "nobody answers: ${verbs[i]}: what next" "Wait longer with --timeout" "$err" ;;
    esac
done
for_long_enough "" listen "$silent"
exits "listening for a while" 0
is "listening for a while: nothing is said" "" "$err"
weft listen "$silent" --json -n 2 -t 200ms
exits "waiting for two that do not come" 7
like "waiting for two that do not come: as JSON" '"exit":7' "$out$err"

# ---- somebody who says a few things ----
cat >talker.py <<'END'
import json, sys
for n in range(3):
    print(json.dumps({"jsonrpc": "2.0", "method": "said", "params": {"n": n}}), flush=True)
sys.stdin.read()
END
weft listen "exec:/usr/bin/python3 talker.py" -n 3 -t 30s
exits "they came in time" 0
is "all of them" 3 "$(wc -l <<<"$out")"
for_long_enough "1 more" listen "exec:/usr/bin/python3 talker.py" -n 4
exits "one did not come" 7
like "one did not come: says so" "1 more" "$err"

# ---- a real hub ----
hub real
weft task submit --wait echo one
weft events -t 30s
exits "all events, in time" 0
like "all events: the last" "task-0000 completed" "$out"
shows_all() { timeout 120 "$program" events -f -t "$((limit += 1))s" --json >shown && grep -q task.completed shown; }
limit=0
until_true shows_all
weft events -f -t "${limit}s" --json
exits "following for a while" 0
for_long_enough "" events -f --since now
exits "following from now on for a while" 0
is "following from now on: nothing happened" "" "$out"
for_long_enough "" listen
exits "listening to it for a while" 0
close
