#!/bin/bash
# weft sub: streams, once and followed; over a crash of the hub and from one run to the next, without a gap or a double.
. "$(dirname "$0")/hub.bash"

weft sub tasks
exits "without a daemon" 3
weft sub
exits "without a stream" 2

hub streams
weft sub nothing
exits "no such stream" 5
like "and where to find them" "weft sub -h" "$err"
like "no such stream: says so" "no stream" "$err"
weft sub taskOutput
exits "a param is missing" 8
weft sub tasks --once
exits "a state that is empty" 0
is "a state that is empty: its value" "[]" "$out"
weft task submit --wait echo one
weft sub tasks --once
like "a state" '"id":"task-0000"' "$out"
weft sub tasks -1 --json
is "with its position" "seq journal value" "$(/usr/bin/python3 -c 'import json, sys; print(*json.loads(sys.argv[1]))' "$out")"
weft sub taskOutput taskId=task-0000 --once
like "a log from its beginning" '"taskId":"task-0000"' "$out"
weft sub events --once --timeout 10ms
exits "nothing came in time" 7
weft sub tasks '[1]' --once
exits "params that are a list" 2
like "params that are a list: it says so" "the params of a stream are an object" "$err"

# ---- on a terminal ----
if script -qec true /dev/null >/dev/null 2>&1; then
    on_terminal() { run script -qec "$(printf '%q ' "$@")" /dev/null </dev/null; }
    weft task submit --wait $'echo \x1b[31mred'
    TERM=xterm on_terminal "$weft" sub tasks --once
    like "a table: its head" "STARTEDAT" "$out"
    like "a table: a task" "task-0000  completed" "$out"
    unlike "a table: nothing steers the terminal" $'\x1b[31mred' "$out"
    TERM=xterm on_terminal env NO_COLOR=1 "$weft" sub tasks --once --json
    like "--json is a line there, too" '{"seq":' "$out"
    TERM=xterm person 'task-0000=>\x03' "$weft" sub tasks
    exits "Ctrl-C ends the table" 0
    like "the table is drawn from the first line" $'\x1b[H\x1b[J' "$out"
    # A list that is empty takes the place of the table, too.
    TERM=xterm script -qfec "$(printf '%q ' "$weft" sub questions)" questions.out </dev/null >/dev/null 2>&1 &
    table=$!
    started+=("$table")
    drawn_empty() { [ "$(grep -ac $'\x1b\\[H\x1b\\[J(empty)' questions.out)" = "$1" ]; }
    until_true drawn_empty 1
    weft task submit ask
    until_true grep -qa question-0000 questions.out
    weft answer question-0000 deny
    until_true drawn_empty 2
    kill -TERM "$table"
    ended "$table"
    # What is said of a crash stays below the table, which is drawn over everything.
    TERM=xterm script -qfec "$(printf '%q ' "$weft" sub tasks)" table.out </dev/null >/dev/null 2>&1 &
    table=$!
    started+=("$table")
    until_true grep -q task-0000 table.out
    pid=$(cat .weft/daemon.pid)
    kill -KILL "$pid"
    until_true is_gone "$pid"
    weft start
    until_true grep -q "nothing was missed" table.out
    weft task submit --wait echo after
    until_true grep -q $'\x1b\\[2mresumed behind [0-9]*; nothing was missed\x1b' table.out
    kill -TERM "$table"
    ended "$table"
else
    skip "a table on a terminal" "script(1) of util-linux is not installed"
fi

# ---- over a crash ----
"$weft" sub events --json >events.out 2>events.err &
follower=$!
"$weft" sub tasks --json >tasks.out 2>tasks.err &
tasks=$!
started+=("$follower" "$tasks")
until_true test -s tasks.out
begun() { timeout 120 "$program" task submit --wait echo begun && [ -s events.out ]; }
until_true begun
resumed() { [ "$(grep -c 'nothing was missed' "$1")" = "$2" ]; }
for crash in 1 2 3; do
    pid=$(cat .weft/daemon.pid)
    kill -KILL "$pid"
    until_true is_gone "$pid"
    weft start
    weft task submit --wait "echo after crash $crash"
    until_true resumed events.err $crash
    until_true resumed tasks.err $crash
done
weft events --type task.completed --json
newest=$(tail -n 1 <<<"$out" | sed 's/.*"taskId":"\([^"]*\)".*/\1/')
has_newest() { grep -q '"task.completed".*"taskId":"'"$newest"'"' events.out; }
until_true has_newest
completed() { tail -n 1 tasks.out | grep -q '"id":"'"$newest"'","threadId":"[^"]*","state":"completed"'; }
until_true completed
kill -TERM "$follower" "$tasks"
ended "$follower"
exits "a signal ends it well" 0
weft events --json
printf '%s\n' "$out" >all.out
is "every event once, in order" same "$(/usr/bin/python3 - <<'END'
import json
got = [json.loads(line) for line in open("events.out")]
seqs = [one["seq"] for one in got]
every = [json.loads(line)["gseq"] for line in open("all.out")]
wanted = [n for n in every if seqs[0] <= n <= seqs[-1]]
print("same" if seqs == wanted and all(one["value"]["gseq"] == one["seq"] for one in got) else (seqs, wanted))
END
)"
is "a state rises" same "$(/usr/bin/python3 - <<'END'
import json
seqs = [json.loads(line)["seq"] for line in open("tasks.out")]
print("same" if seqs == sorted(set(seqs)) else seqs)
END
)"

# ---- from one run to the next ----
"$weft" sub events types:='["task."]' --position here --json >first.out 2>first.err &
follower=$!
started+=("$follower")
begun() { timeout 120 "$program" task submit --wait echo begun && [ -s first.out ]; }
until_true begun
kill -TERM "$follower"
ended "$follower"
is "the file is private" 600 "$(stat -c %a here)"
seen=$(tail -n 1 first.out | sed 's/{"seq":\([0-9]*\).*/\1/')
weft task submit --wait echo between
weft events --type task. --since "$seen" --json
missed=$(head -n 1 <<<"$out" | sed 's/.*"gseq":\([0-9]*\).*/\1/')
weft sub events types:='["task."]' --position here --json --once
like "the next run goes on" "{\"seq\":$missed," "$out"
like "the next run says so" "resumed behind $seen; nothing was missed" "$err"
weft sub tasks --position here --once
exits "another stream's file" 1
like "another stream's file: says so" "position of another stream" "$err"
weft sub tasks --position no/where --once
exits "a position that cannot be saved" 1
like "a position that cannot be saved: says so" "no/where: the position cannot be saved: No such file or directory" "$err"
like "a position that cannot be saved: the value is shown" '"id":"task-0000"' "$out"
echo broken >here
weft sub taskOutput taskId=task-0000 --position here --once
exits "a damaged file" 0
like "a damaged file: says so" "the file with the position is damaged; it begins anew" "$err"
close
