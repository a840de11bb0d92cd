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
run timeout 120 "$weft" chat <lines
exits "lines of a file" 0
is "each is answered, empty ones are none" $'one\ntwo' "$out"
is "and nothing else is said" "" "$err"
run timeout 120 bash -c 'printf "echo one\nfail\necho last" | "$0" chat' "$weft"
exits "lines of a pipe, one fails" 1
like "the others are answered all the same" $'\nlast' "$out"
like "why it failed" "asked to fail" "$err"
before=$(field "$(timeout 120 "$weft" call session.list limit=1)" .total)
run timeout 120 "$weft" chat <lines
weft call session.list limit=1
is "one conversation is one session" "$((before + 1))" "$(field "$out" .total)"
is "with all its messages" 2 "$(field "$out" .sessions.0.tasks)"
session=$(field "$out" .sessions.0.id)
weft chat --session "$session" echo three
is "going on with it" three "$out"
weft call session.list limit=1
is "is the same session" "3" "$(field "$out" .sessions.0.tasks)"
run timeout 120 "$weft" chat --json <lines
is "for programs, one task per line" 2 "$(wc -l <<<"$out")"
run timeout 120 "$weft" chat </dev/null
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

# ---- editing at a terminal ----
last_prompt() { # N: of the newest but N tasks
    field "$(timeout 20 "$program" task list -n 5 --json)" ".tasks.$1.prompt"
}
person "> =>ecko hi\x1b[D\x1b[D\x1b[D\x1b[D\x7fh\n;;hi\r\n=>\x04" "$weft" chat
exits "a message that was edited" 0
is "arrow keys and backspace" "echo hi" "$(last_prompt 0)"
person "> =>\x1b[200~echo one\rtwo\r\nthree\x1b[201~\n;;three\r\n=>\x04" "$weft" chat
exits "a message that was pasted" 0
is "pasted text is one message" $'echo one\ntwo\nthree' "$(last_prompt 0)"
person "> =>\x1b[A\x1b[A\n;;hi\r\n=>\x04" "$weft" chat
is "Up has messages of an earlier conversation" "echo hi" "$(last_prompt 0)"
person "> =>\x12two\n;;three\r\n=>\x04" "$weft" chat
is "Ctrl-R finds one" $'echo one\ntwo\nthree' "$(last_prompt 0)"
is "they are kept where nobody else reads them" 600 "$(stat -c %a "$XDG_STATE_HOME/weft/chat_history")"
person "> =>some words;;some words=>\x03;;> =>echo kept\n;;kept\r\n=>\x04" "$weft" chat
exits "Ctrl-C drops what was typed" 0
is "and what is typed then is sent" "echo kept" "$(last_prompt 0)"
person "> =>echo alt\x1b\nline\n;;line\r\n=>\x04" "$weft" chat
is "Alt-Enter begins a line" $'echo alt\nline' "$(last_prompt 0)"
person "> =>\x04" bash -c '"$0" chat; stty -a' "$weft"
like "the terminal is put back" " icanon" "$out"
like "and pasting is as it was" $'\x1b[?2004l' "$out"
person "> =>slow 60s\n;;running, =>\x03;;was cancelled=>\x04" bash -c 'trap : INT; "$0" chat; stty -a' "$weft"
like "also after Ctrl-C" " icanon" "$out"
run timeout 60 env TERM=dumb /usr/bin/python3 "$SOURCE/tests/cli/person.py" "> =>echo plain\n;;plain=>;;> =>\x04" "$weft" chat
exits "a terminal that cannot move its cursor" 0
unlike "gets no control sequences" $'\x1b' "$out"

# ---- messages while an answer comes ----
person "> =>slow 4s\n;;running=>echo queued one\n;;1 waits=>echo queued two\n;;2 wait=>\x04" "$weft" chat
exits "messages while an answer comes" 0
like "are queued, and that is said" "queued as task-" "$out"
is "each is shown, and answered" "2 2" "$(grep -o 'queued one' <<<"$out" | wc -l) $(grep -o 'queued two' <<<"$out" | wc -l)"
weft call session.list limit=1
is "all in one conversation" 3 "$(field "$out" .sessions.0.tasks)"
person "> =>slow 2s\n;;running=>echo last words\n;;1 waits=>\x04" "$weft" chat
exits "Ctrl-D while answers come" 0
is "waits for them" 2 "$(grep -o 'last words' <<<"$out" | wc -l)"
person "> =>edit it\n;;running=>typed ahead;;your answer=>1\n;;one more line=>\x15echo behind\n;;behind\r\n=>\x04" "$weft" chat
exits "a question while something is typed" 0
is "what was typed is still there, and can be cut" "echo behind" "$(last_prompt 0)"

# ---- going on ----
weft chat --continue echo again
is "going on with the last conversation" again "$out"
weft call session.list limit=1
is "is the same session again" 3 "$(field "$out" .sessions.0.tasks)"
person "continuing session-=>echo once more\n;;once more\r\n=>\x04" "$weft" chat --continue
exits "going on at a terminal" 0
# What is typed before the editor has the terminal, Ctrl-D among it, is what was said. (read takes the first line alone.)
person "ready=>go\necho typed before\n\x04" bash -c 'echo ready; read -r; exec "$0" chat' "$weft"
exits "keys before the editor is there" 0
is "a message among them is sent" "echo typed before" "$(last_prompt 0)"
weft chat --continue --session x hello
exits "with two conversations" 2
weft chat --continue --agent nobody hello
exits "with a conversation that is not there" 5

# ---- what the hub does not take ----
WEFT_TASKS_MAX_RUNNING=1 WEFT_TASKS_MAX_QUEUE=1 hub full
weft task submit slow 60s
weft task submit slow 60s
waiting=$out
person "> =>echo one\n;;Queue full=>;;> =>echo two\n;;Queue full=>;;> =>\x04" "$weft" chat
exits "a full queue does not end a conversation" 0
printf 'echo one\necho two\n' >lines
run timeout 120 "$weft" chat <lines
exits "a script is told" 6
weft task cancel "$waiting"
person "> =>hello\n;;no agent=>" "$weft" chat --agent nobody
exits "nobody to talk with" 8
close
