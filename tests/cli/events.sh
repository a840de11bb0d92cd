#!/bin/bash
# weft events: the journal, from any position; following it over restarts; gaps in words.
. "$(dirname "$0")/hub.bash"

weft events
exits "without a daemon" 3

epoch_like=0123456789abcdef0123456789abcdef
hub journal
weft task submit --wait echo one
weft events
exits "events" 0
like "the first" "the hub started: " "$(head -n 1 <<<"$out")"
like "what happened" "task-0000 queued: echo one" "$out"
like "and how it ended" "task-0000 completed" "$out"
weft events -v
like "-v has the data" 'task.completed {"taskId":"task-0000"' "$out"
all=$(wc -l <<<"$out")
weft events --json
is "one object per line" "$all" "$(wc -l <<<"$out")"
is "its position" 1 "$(field "$(head -n 1 <<<"$out")" .gseq)"
weft events --since 2 --json
is "behind a position" 3 "$(field "$(head -n 1 <<<"$out")" .gseq)"
weft events --since "$all"
exits "behind the last" 0
is "is nothing" "" "$out"
weft events --type task.queued --type hub. --json
is "only some types" 2 "$(wc -l <<<"$out")"
weft task submit --wait echo two
weft events --task task-0001 --type task. --json
unlike "only one task" task-0000 "$out"
like "only one task: it is there" task.completed "$out"
weft events --since 1h --json
like "since a time ago" task-0000 "$out"
for since in "1h ago" -1h yesterday "$(date -d yesterday +%Y-%m-%d)" "$(date -d yesterday +'%Y-%m-%d %H:%M')" \
    "$(date -u -d yesterday +%Y-%m-%dT%H:%M:%SZ)"; do
    weft events --since "$since" --json
    exits "since $since" 0
    like "since $since: what happened" task-0001 "$out"
done
for since in 11:60 "half past" 24:00 2026-02-30 10x 11:00: abc:5 11:5 :5 5: "$epoch_like:5x"; do
    weft events --since "$since"
    exits "since \"$since\" is a mistake" 2
    like "since \"$since\": says so" "--since does not understand \"$since\"" "$err"
done
for since in 11:00 23:59:59 00:00 2:05 today; do
    weft events --since "$since"
    exits "since $since is a time" 0
    unlike "since $since is no epoch" "started anew" "$err"
done
weft events --since 2100-01-01T00:00:00Z
is "since a time to come" "" "$out"
weft events --since now
is "from now on, and no longer" "" "$out"
weft events -v --since now
epoch=$(sed -n 's/^epoch \([0-9a-f]*\),.*/\1/p' <<<"$err")
is "-v says the epoch" 32 "${#epoch}"
weft events --since "$epoch:2" --json
is "behind a position of an epoch" 3 "$(field "$(head -n 1 <<<"$out")" .gseq)"

# ---- gaps ----
weft events --since 99999
exits "a position to come" 0
like "a position to come: in words" "no such position yet" "$err"
is "a position to come: nothing" "" "$out"
weft events --since 00000000000000000000000000000000:5 --json
like "a position of another epoch: in words" "started anew" "$err"
is "a position of another epoch: from the beginning" 1 "$(field "$(head -n 1 <<<"$out")" .gseq)"

# What is no longer kept: a hub that has trimmed, as no short test can make a real one do.
cat >trimmed.py <<'END'
import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    after = ask["params"].get("after")
    answer = {"resumed": after == 0, "epoch": "e" * 32, "head": 9}
    if after:
        answer["reason"] = "trimmed"
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": answer}), flush=True)
    for gseq in [] if after else [8, 9]:
        event = {"gseq": gseq, "seq": 1, "stream": "hub", "type": "notice", "time": 1, "data": {}}
        print(json.dumps({"jsonrpc": "2.0", "method": "event", "params": event}), flush=True)
END
weft events --url "exec:/usr/bin/python3 trimmed.py" --since 3 --json
exits "a position that was trimmed" 0
like "a position that was trimmed: in words" "no longer kept" "$err"
is "a position that was trimmed: from the oldest" "8 9" "$(sed 's/.*"gseq":\([0-9]*\).*/\1/' <<<"$out" | paste -sd' ')"

# A hub that is slow has not lost anything: it is waited for. One that answers and sends no more has no more.
cat >slow.py <<'END'
import json, sys, time
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    if ask["method"] != "event.subscribe":
        send(id=ask["id"], result={})
        continue
    send(id=ask["id"], result={"resumed": True, "epoch": "e" * 32, "head": 9})
    for gseq in [7, 8, 9][: int(sys.argv[1])]:
        time.sleep(2.5 if gseq == 8 else 0)
        send(method="event", params={"gseq": gseq, "seq": 1, "stream": "hub", "type": "notice", "time": 1, "data": {}})
END
weft events --url "exec:/usr/bin/python3 slow.py 3" --json
exits "a slow hub" 0
is "a slow hub: all of it" "7 8 9" "$(sed 's/.*"gseq":\([0-9]*\).*/\1/' <<<"$out" | paste -sd' ')"
weft events --url "exec:/usr/bin/python3 slow.py 1" --json
exits "a hub that has no more" 0
is "a hub that has no more: what there was" "7" "$(sed 's/.*"gseq":\([0-9]*\).*/\1/' <<<"$out" | paste -sd' ')"

# ---- following ----
"$weft" events -f --json >follow.out 2>follow.err &
follower=$!
started+=("$follower")
until_true grep -q task-0001 follow.out
weft task submit --wait echo three
until_true grep -q '"task.completed","time":"[^"]*","data":{"taskId":"task-0002"' follow.out
pid=$(cat .weft/daemon.pid)
kill -KILL "$pid"
until_true is_gone "$pid"
weft start
weft task submit --wait echo four
until_true grep -q '"task.completed","time":"[^"]*","data":{"taskId":"task-0003"' follow.out
like "following over a crash: says so" "trying again" "$(cat follow.err)"
is "following over a crash: says once that it resumed" 1 "$(grep -c 'resumed behind event [0-9]*, nothing was missed' follow.err)"
positions=$(/usr/bin/python3 -c '
import json
print(*[json.loads(line)["gseq"] for line in open("follow.out")])')
is "following over a crash: every event once, in order" "$(seq -s ' ' "$(wc -w <<<"$positions")")" "$positions"
kill -TERM "$follower"
ended "$follower"
exits "a signal ends it well" 0
timeout 120 "$weft" events -f --since now --type task. --task task-0005 --json >some.out 2>some.err &
follower=$!
busy() { timeout 120 "$program" task submit --wait echo busy && [ "$(timeout 120 "$program" task stats --json | sed 's/.*"total":\([0-9]*\).*/\1/')" -gt 6 ]; }
until_true busy
kill -TERM "$follower"
wait "$follower"
unlike "following some: no others" task-0006 "$(cat some.out)"

# The journal is begun anew while somebody follows.
timeout 120 "$weft" events -f --json >anew.out 2>anew.err &
follower=$!
until_true grep -q task-0003 anew.out
weft stop
rm -f .weft/weft.db*
weft start
until_true grep -q "started anew" anew.err
pass
started_twice() { [ "$(grep -c '"gseq":1,' anew.out)" = 2 ]; }
until_true started_twice && pass
kill -TERM "$follower"
wait "$follower"

# ---- at a terminal ----
person 'the hub started=>\x03' "$program" events -f
exits "Ctrl-C ends it" 0
is "the shell's next line is not behind the ^C" '\n' "$(tail -c 1 "$kit_said/out" | od -An -c | tr -d ' ')"

# ---- nobody reads ----
run bash -c 'timeout 120 "$0" events | head -n 1' "$weft"
like "a pipe that is closed" "the hub started" "$out"
close
