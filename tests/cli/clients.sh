#!/bin/bash
# The clients of examples/ and docs/protocol.md: they submit, follow, answer, and go on after a kill -9 of themselves and of the hub.
. "$(dirname "$0")/hub.bash"

clients=("/usr/bin/python3 $SOURCE/examples/client.py")
if [ -n "$NODE" ]; then
    clients+=("$NODE $SOURCE/examples/client.mjs")
else
    skip "client.mjs" "needs Node 20 or later"
fi

submitted() { # FILE
    grep -q '"task"' "$1" && [ "$(field "$(cat "$1")" .task)" != null ]
}
running() { # FILE
    state "$(field "$(cat "$1")" .task)" running
}

hub clients
for client in "${clients[@]}"; do
    name=${client##*/}
    # A question is answered, the text is shown, the status is the task's.
    run timeout 60 $client "one.$name" "edit $name"
    exits "$name: a task with a question" 0
    like "$name: what the agent says" "You said: \"edit $name\"" "$out"
    like "$name: it was allowed" "Done:" "$out"
    sed 's/"after": *[0-9]*/"after":0/' "one.$name" >"again.$name"
    run timeout 60 $client "again.$name" "edit $name"
    exits "$name: all of it once more, from the beginning" 0
    like "$name: which is the same" "You said: \"edit $name\"" "$out"
    run timeout 60 $client "two.$name" "fail"
    exits "$name: a task that fails" 1

    # Killed while the task runs, it goes on with the same task and sees its end.
    $client "three.$name" "slow 3s" >three.out 2>&1 &
    pid=$!
    until_true submitted "three.$name"
    kill -9 $pid
    wait $pid 2>/dev/null
    run timeout 60 $client "three.$name" "slow 3s"
    exits "$name: after its own kill -9" 0
    is "$name: one task was made" 1 "$(timeout 20 "$program" task list --json | grep -o '"prompt":"slow 3s"' | wc -l)"

    # The hub is killed and comes back: the client finds it again and hears how the task ended.
    timeout 120 $client "four.$name" "slow 60s" >four.out 2>&1 &
    pid=$!
    until_true submitted "four.$name"
    until_true running "four.$name"
    kill -9 "$(cat .weft/daemon.pid)"
    timeout 60 "$program" start >start.out 2>&1 || fail "the hub starts again" "$(cat start.out)"
    ended $pid
    exits "$name: after a kill -9 of the hub the task has failed" 1

    # Another journal: events are missing, and the client says what is so.
    sed 's/\("epoch": *"\)[^"]*/\1another/' "one.$name" >"five.$name"
    run timeout 60 $client "five.$name" "edit $name"
    exits "$name: with a position of another journal it reads the state anew" 0
    timeout 20 "$program" task list --json | grep -q '"prompt":"slow 3s"' && pass || fail "the tasks are still there"
    timeout 60 "$program" stop --force >/dev/null 2>&1
    rm -rf .weft
    timeout 60 "$program" start >start.out 2>&1 || fail "a new hub starts" "$(cat start.out)"
done
close
