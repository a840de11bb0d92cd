#!/bin/bash
# weft chat: a conversation in one session, at a terminal and without one.
. "$(dirname "$0")/hub.bash"

weft chat hello
exits "without a daemon" 3

hub talk
weft chat echo hi there
exits "one message" 0
is "one message, one answer" "hi there" "$out"
weft task list -n 1 --json
is "it was sent by chat.send" ipc-chat "$(field "$out" .tasks.0.metadata.source)"
weft chat --agent demo echo hi
is "with an agent" hi "$out"
weft chat fail
exits "an answer that fails" 1
like "an answer that fails: why" "asked to fail" "$err"
weft chat --agent nobody hello
exits "nobody to talk to" 8
like "nobody to talk to: what next" "weft agents" "$err"
weft chat --session nowhere hello
exits "no such conversation" 8
weft chat --json echo hi
is "one message, for programs" hi "$(field "$out" .output)"

# ---- without a terminal: one message per line ----
printf 'echo one\n\necho two\n' >lines
run timeout 60 "$weft" chat <lines
exits "lines of a file" 0
is "each is answered, empty ones are none" $'one\ntwo' "$out"
is "and nothing else is said" "" "$err"
run timeout 60 bash -c 'printf "echo one\nfail\necho last" | "$0" chat' "$weft"
exits "lines of a pipe, one fails" 1
like "the others are answered all the same" $'\nlast' "$out"
like "why it failed" "asked to fail" "$err"
before=$(field "$(timeout 20 "$weft" call session.list limit=1)" .total)
run timeout 60 "$weft" chat <lines
weft call session.list limit=1
is "one conversation is one session" "$((before + 1))" "$(field "$out" .total)"
is "with all its messages" 2 "$(field "$out" .sessions.0.tasks)"
session=$(field "$out" .sessions.0.id)
weft chat --session "$session" echo three
is "going on with it" three "$out"
weft call session.list limit=1
is "is the same session" "3" "$(field "$out" .sessions.0.tasks)"
run timeout 60 "$weft" chat --json <lines
is "for programs, one task per line" 2 "$(wc -l <<<"$out")"
run timeout 60 "$weft" chat </dev/null
exits "nothing to say" 0
is "nothing to say, nothing answered" "" "$out$err"

# ---- at a terminal ----
person "> =>echo one\n;;one=>;;> =>echo two\n;;two=>;;> =>\x04" "$weft" chat
exits "a conversation" 0
like "how to end it" "Ctrl-D ends" "$out"
like "how to go on with it" "weft chat --session session-" "$out"
person "> =>edit it\n;;your answer=>1\n;;one more line=>;;> =>\x04" "$weft" chat
exits "a question in between" 0
like "shows what would change" "+ - edit it" "$out"
person "> =>slow 60s\n;;running, =>\x03;;was cancelled=>;;> =>echo on\n;;on=>;;> =>\x04" "$weft" chat
exits "Ctrl-C ends an answer, not the conversation" 0
person "> =>\x03" "$weft" chat
exits "Ctrl-C in between ends it" 0

# ---- what the hub does not take ----
WEFT_TASKS_MAX_RUNNING=1 WEFT_TASKS_MAX_QUEUE=1 hub full
weft task submit slow 60s
weft task submit slow 60s
waiting=$out
person "> =>echo one\n;;Queue full=>;;> =>echo two\n;;Queue full=>;;> =>\x04" "$weft" chat
exits "a full queue does not end a conversation" 0
printf 'echo one\necho two\n' >lines
run timeout 60 "$weft" chat <lines
exits "a script is told" 6
weft task cancel "$waiting"
person "> =>hello\n;;no agent=>" "$weft" chat --agent nobody
exits "nobody to talk with" 8
close
