#!/bin/bash
# weft task: submitting, waiting, watching, listing and cancelling, with a real daemon and the demo agent.
. "$(dirname "$0")/hub.bash"

# ---- nobody there ----
for words in "task" "task submit hello" "task submit --wait hello" "task watch" "task get task-0000" "task stats"; do
    weft $words
    exits "$words without a daemon" 3
    like "$words: what to do" "weft start" "$err"
    is "$words: no data" "" "$out"
done
weft task list --json
is "without a daemon, for programs" 3 "$(field "$out" .error.exit)"

hub one

# ---- submit ----
weft task list
exits "an empty list" 0
is "an empty list is empty" "" "$out"
weft task submit echo hello
exits "submit" 0
is "submit prints the id and nothing else" task-0000 "$out"
is "no hint where there is no terminal" "" "$err"
until_true state task-0000 completed
weft task list
like "the list says who did it" "task-0000  completed  demo " "$out"
weft task get task-0000
like "get says who did it" "agent     demo" "$out"
like "get says in which conversation" "session   session-" "$out"
weft task get nobody
like "a refusal in plain words" "weft task: Task not found: nobody" "$err"
weft task get nobody -v
like "a refusal with all there is" "task.get: Task not found: nobody (-32000)" "$err"
weft task submit --json echo again
is "submit --json" task-0001 "$(field "$out" .taskId)"
printf 'echo from\na file\n' >prompt.md
weft task submit --wait @prompt.md
is "a prompt from a file" $'from\na file' "$out"
run timeout 120 "$weft" task submit --wait - <prompt.md
is "a prompt from standard input" $'from\na file' "$out"
printf 'a\0b' >nul
weft task submit @nul
exits "a prompt with a NUL" 2
weft task submit $'not \xff text'
exits "a prompt that is not UTF-8" 2
like "a prompt that is not UTF-8: says so" "not UTF-8" "$err"
weft task submit @.
like "a folder is no prompt" "Is a directory" "$err"
head -c 100000 /dev/zero | tr '\0' a >long.md
weft task submit --json @long.md
weft task list
[ ${#out} -lt 10000 ] && pass || fail "a long prompt does not make a long list" "${#out} characters"
weft task submit --agent nobody hello
exits "no such agent" 8
like "no such agent: what to do" "weft agents" "$err"
weft task submit --session nowhere hello
exits "no such session" 8
weft task submit --once k1 echo once
first=$out
weft task submit --once k1 echo once
is "the same key is the same task" "$first" "$out"
mkdir -p deep/down
cd deep/down || exit 1
weft task submit --wait echo from below
is "from a folder below" "from below" "$out"
cd ../..

# ---- wait ----
weft task submit --wait echo hello world
exits "wait: completed" 0
is "wait: what it says is data" "hello world" "$out"
is "wait: and nothing else is" "" "$(grep -v "^note: task-.* in the same files now" <<<"$err")" # the long one may still run
weft task submit --wait lines 3
is "wait: lines" $'line 1\nline 2\nline 3' "$out"
weft task submit --wait lines 20000
is "wait: many lines, none is missing" 20000 "$(wc -l <"$kit_said/out")"
is "wait: in order" "$(seq -f 'line %.0f' 20000 | cksum)" "$(cksum <"$kit_said/out")"
weft task submit --wait fail
exits "wait: failed" 1
like "wait: failed, why" "asked to fail" "$err"
like "wait: failed, what next" "weft task get task-" "$err"
weft task submit --wait crash
exits "wait: crashed" 1
weft task submit --wait --timeout 300ms slow 20s
exits "wait: ran into its timeout" 7
weft task submit --wait --json echo hello
exits "wait --json" 0
is "wait --json: one object" 1 "$(wc -l <<<"$out")"
is "wait --json: the task" completed "$(field "$out" .state)"
is "wait --json: its output" hello "$(field "$out" .output)"
weft task submit --wait --json fail
exits "wait --json: failed" 1
is "wait --json: failed, still the task" failed "$(field "$out" .state)"
like "wait --json: why" "asked to fail" "$(field "$out" .error)"
weft task submit --wait --json --timeout 300ms slow 20s
exits "wait --json: timeout" 7
weft task submit --wait --retries 1 fail
exits "wait: retried" 1
like "wait: retried, says so" "trying again" "$err"

# ---- list, get, stats ----
weft task list
exits "list" 0
like "list has a head" "ID " "$out"
weft task list -n 3
is "list -n 3" 4 "$(wc -l <<<"$out")"
weft task list -n 2 --json
is "list -n 2 --json" 2 "$(/usr/bin/python3 -c 'import json,sys; print(len(json.loads(sys.argv[1])["tasks"]))' "$out")"
weft task list --state failed
unlike "list --state failed" completed "$out"
like "list --state failed: they are there" failed "$out"
weft task get task-0000
exits "get" 0
like "get: state" "state     completed" "$out"
like "get: prompt" "prompt    echo hello" "$out"
weft task get task-0000 --output
is "get --output" hello "$out"
weft task get task-0000 --json
is "get --json" task-0000 "$(field "$out" .id)"
weft task get task-9999
exits "get: no such task" 5
like "get: no such task, what next" "weft task list" "$err"
weft task stats --json
is "stats" 0 "$(field "$out" .running)"
weft task stats
like "stats for people" "completed " "$out"

# ---- cancel ----
weft task submit slow 60s
id=$out
until_true state "$id" running
weft task cancel "$id"
exits "cancel" 0
like "cancel says so" "$id is cancelled" "$err"
until_true state "$id" cancelled && pass
weft task cancel "$id"
exits "cancel twice" 8
weft task cancel task-9999
exits "cancel: no such task" 5
timeout 120 "$weft" task submit --wait slow 60s >other.out 2>other.err &
waiter=$!
running() { [ "$(field "$(timeout 120 "$weft" task list --state running --json)" .tasks.0.state)" = running ]; }
until_true running
id=$(field "$(timeout 120 "$weft" task list --state running --json)" .tasks.0.id)
weft task cancel "$id"
ended "$waiter"
exits "cancelled by somebody else" 1
like "cancelled by somebody else: says so" "$id was cancelled" "$(cat other.err)"
# When it has shown the agent's question, it knows the task that it is to cancel.
timeout 120 "$weft" task submit --wait ask >other.out 2>other.err &
waiter=$!
until_true grep -q question- other.err
id=$(field "$(timeout 120 "$weft" task list --state running --json)" .tasks.0.id)
# timeout(1) passes it on.
kill -TERM "$waiter"
ended "$waiter"
until_true state "$id" cancelled && pass
like "a signal: says so" "cancelling $id" "$(cat other.err)"

# ---- watch ----
weft task watch task-0000
exits "watch: one that has ended" 0
is "watch: what it said" hello "$out"
weft task watch task-9999
exits "watch: no such task" 5
weft task submit slow 1s
weft task watch "$out"
exits "watch: one that runs" 0
like "watch: from its beginning" 'You said: "slow 1s"' "$out"
like "watch: to its end" "hang " "$out"
timeout 120 "$weft" task watch >all.out 2>all.err &
watcher=$!
timeout 120 "$weft" task watch --json >all.json 2>all.err &
programs=$!
saw() { timeout 120 "$weft" task submit --wait echo seen && grep -q "queued: echo seen" all.out && grep -q " | seen" all.out && grep -q '"type":"task.completed"' all.json; }
until_true saw && pass
like "watch: states" " completed" "$(cat all.out)"
kill -TERM "$watcher" "$programs"
ended "$watcher"
wait "$programs"

# ---- the queue ----
hub full
cat >.weft/config.json <<'END'
{ "tasks": { "max_queue": 1, "max_running": 1 } }
END
"$program" config check >check.out 2>&1 || fail "the configuration of this test" "$(cat check.out)"
weft restart
weft task submit slow 60s
until_true state "$out" running
weft task submit slow 60s
weft task submit echo late
exits "the queue is full" 6
like "the queue is full: what next" "weft task list" "$err"
weft task submit --wait echo late
exits "the queue is full, waiting" 6

weft task list --state queued --json
weft task cancel "$(field "$out" .tasks.0.id)"
person "number 1 in the queue=>\x03" "$weft" task submit --wait echo late
exits "waiting in the queue, until Ctrl-C" 130

# ---- an answer that is lost ----
# The task may have been stored or not: the same key says that one is meant.
cat >forgetful.py <<'END'
import json, socket
server = socket.socket(socket.AF_UNIX)
server.bind("forgetful.sock")
server.listen()
print("ready", flush=True)
def event(gseq, type, **data):
    return {"jsonrpc": "2.0", "method": "event", "params":
            {"gseq": gseq, "seq": gseq, "stream": "hub", "type": type, "time": 1, "data": {"taskId": "task-0007", **data}}}
for turn in range(2):
    stream = server.accept()[0].makefile("rw")
    for line in stream:
        ask = json.loads(line)
        if ask["method"] == "task.submit":
            print(ask["params"]["_meta"]["weft/idempotencyKey"], flush=True)
            if turn == 0:
                break
        result = {"task.submit": {"taskId": "task-0007", "state": "queued"}, "question.list": {"questions": []},
                  "event.subscribe": {"resumed": True, "epoch": "e" * 32, "head": 1}}[ask["method"]]
        stream.write(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": result}) + "\n")
        if ask["params"] and ask["params"].get("taskId"):
            stream.write(json.dumps(event(2, "task.completed", output="done")) + "\n")
        stream.flush()
    stream.close()
END
timeout 120 /usr/bin/python3 forgetful.py >keys 2>keys.err &
started+=($!)
until_true grep -q ready keys
weft task submit --wait --url unix:forgetful.sock do it once
exits "an answer that is lost" 0
is "an answer that is lost: the other one" "done" "$out"
is "an answer that is lost: sent twice" 3 "$(wc -l <keys)"
is "an answer that is lost: under one key" 2 "$(sort -u keys | wc -l)"

# ---- a daemon that goes away and comes back ----
hub again
timeout 120 "$weft" task submit --wait slow 60s >gone.out 2>gone.err &
waiter=$!
until_true grep -q "You said" gone.out
pid=$(cat .weft/daemon.pid)
kill -KILL "$pid"
until_true is_gone "$pid"
weft start
ended "$waiter"
unlike "killed meanwhile: the journal goes on" epochChanged "$(cat gone.err)"
exits "killed meanwhile: it failed" 1
like "killed meanwhile: says that it tries again" "trying again" "$(cat gone.err)"
like "killed meanwhile: why it failed" "The daemon stopped while it ran" "$(cat gone.err)"
like "killed meanwhile: what it said before" 'You said: "slow 60s"' "$(cat gone.out)"

# ---- a person ----
person "your answer=>9\n;;not one of the options=>1 fine by me\n" "$weft" task submit --wait please edit it
exits "a person allows it" 0
like "a person sees the change" "+ - please edit it" "$out"
like "a person sees the options" "1) Allow once" "$out"
like "and the agent went on" "has one more line" "$out"
person "your answer=>3\n" "$weft" task submit --wait please edit it
like "a person refuses it" "did not change anything" "$out"
person "running, =>\x03" "$weft" task submit --wait slow 60s
exits "Ctrl-C" 130
like "Ctrl-C cancels" "was cancelled" "$out"
like "Ctrl-C says what a second one does" "Ctrl-C again leaves without waiting for its end" "$out"
newest() { field "$(timeout 120 "$weft" task list -n 1 --json)" .tasks.0.id; }
# The hub stands still, so that the task cannot end before the second one. The bottom line is drawn twice in between: what comes
# at once after a signal is the same signal.
cat >still_hub.sh <<'END'
"$1" task submit --wait slow 60s &
waiter=$!
trap : INT
until "$1" task list --state running --json | grep -q '"slow 60s"'; do :; done
read -r line
kill -STOP "$(cat .weft/daemon.pid)"
echo the hub stands still
while kill -0 $waiter 2>/dev/null; do
    wait $waiter
    status=$?
done
kill -CONT "$(cat .weft/daemon.pid)"
exit $status
END
person "running, =>\n;;stands still=>\x03;;Ctrl-C again=>;;running, =>;;running, =>\x03" bash still_hub.sh "$weft"
exits "Ctrl-C twice" 130
id=$(newest)
like "Ctrl-C twice: what becomes of it" "$id is being cancelled; this does not wait for it: weft task get $id" "$out"
unlike "Ctrl-C twice: it does not go on" "goes on" "$out"
until_true state "$id" cancelled && pass

# Whoever only watches leaves it alone.
weft task submit slow 60s
id=$out
until_true state "$id" running
person "running, =>\x03" "$weft" task watch "$id"
exits "Ctrl-C while watching" 130
like "Ctrl-C while watching: it goes on" "$id goes on: weft task watch $id" "$out"
state "$id" running && pass || fail "Ctrl-C while watching left it alone"
for_long_enough "has not ended in time" task watch "$id"
exits "watching for so long at most" 7
like "watching for so long at most: says so" "$id has not ended in time" "$err"
for_long_enough "" task watch
exits "watching all for so long" 0

# Without a connection nothing can be cancelled, and that is said. The hub dies when the person has seen it run.
cat >without_hub.sh <<'END'
"$1" task submit --wait slow 60s &
waiter=$!
trap : INT
until "$1" task list --state running --json | grep -q '"slow 60s"'; do :; done
read -r line
kill -KILL "$(cat .weft/daemon.pid)"
wait $waiter
wait $waiter
END
weft task cancel "$id"
person "running, =>\n;;trying again=>\x03;;goes on=>" bash without_hub.sh "$weft"
like "Ctrl-C without a connection" "cannot be cancelled, and goes on: weft task cancel task-" "$(tr -s '\r\n ' ' ' <<<"$out")"
weft start

person "" "$weft" task submit echo hello
like "a hint at a terminal" "Watch it: weft task watch task-" "$out"
person "" env NO_COLOR=1 "$weft" task submit --wait $'echo a\x1b]0;title\x07b'
unlike "an agent's output does not steer the terminal" $'\x1b]0' "$out"
like "and is shown" 'a\u001b]0;title\u0007b' "$out"

# ---- a key stands for one task; a mistyped name is noticed ----
weft task submit --once key echo hello again
exits "submit with a key" 0
first=$out
weft task submit --once key echo hello again
is "the same key is the same task" "$first" "$out"
weft task submit --once key echo something else
exits "the same key for another prompt" 8
like "the same key for another prompt: why" "idempotency key was used before" "$err"
weft call task.submit prompt=x agnet=demo
exits "a param that is not there" 2
like "a param that is not there: what was meant" 'no param "agnet"; did you mean "agent"' "$err"
until_true state "$first" completed

close
