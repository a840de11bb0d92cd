#!/bin/bash
# weft task retry, --on-question, and how many tasks there are.
. "$(dirname "$0")/hub.bash"

hub project
newest() {
    field "$("$program" task list --json -n 1)" .tasks.0.id
}

# ---- a question, and nobody there ----
weft task submit --wait --on-question allow "write a file"
exits "what is allowed is done" 0
is "the file is there" yes "$([ -f weft-demo.txt ] && echo yes)"
like "that it was answered is said" "allowed, as --on-question says" "$err"
rm -f weft-demo.txt
weft task submit --wait --on-question deny "write a file"
is "what is denied is not" no "$([ -f weft-demo.txt ] && echo yes || echo no)"
like "and that is said, too" "denied, as --on-question says" "$err"
weft task submit --wait --on-question fail "write a file"
exits "a task that fails at a question" 1
like "why" "its agent asks something" "$err"
weft task list --state cancelled --json
like "it is cancelled" '"state":"cancelled"' "$out"
weft task submit --on-question deny "hello"
exits "without --wait nobody answers" 2
weft task submit --wait --on-question maybe "hello"
exits "an unknown way" 2

# ---- again ----
weft task submit --wait "hello"
first=$(newest)
weft task retry --wait "$first"
exits "the same again" 0
second=$(newest)
unlike "is another task" "$first" "$second"
weft task get --json "$second"
like "with the same prompt" '"prompt":"hello"' "$out"
like "which says whose" "\"weft/retryOf\":\"$first\"" "$out"
weft task retry --wait "$second"
third=$(newest)
weft task get --json "$third"
like "and again" "\"weft/retryOf\":\"$second\"" "$out"
unlike "without the first" "$first" "$out"
session=$(field "$("$program" call task.about "taskIds=[\"$second\"]" --json)" .tasks.0.sessionId)
weft task submit --wait --session "$session" "and more"
talk=$(newest)
weft task retry --json "$talk"
like "a turn of a conversation goes on there" "\"sessionId\":\"$session\"" "$out"
weft task retry task-9999
exits "no such task" 5
person "" env NO_COLOR=1 "$program" task list -n 2
like "how many there are" "2 of 8; -n N shows more" "$out"

# ---- looking for one ----

weft task submit --wait 'echo Needle in a haystack'
weft task list --search needle
exits "search" 0
like "finds it, whatever the case" "Needle in a haystack" "$out"
is "and nothing else" 2 "$(wc -l <<<"$out")"
weft task list --search needle --state failed
is "with a state" "" "$out"
weft task list --search needle --json
is "for programs" 1 "$(grep -o '"id":' <<<"$out" | wc -l)"
person "" env NO_COLOR=1 "$program" task list --search nowhere
like "none is said" "no task has this text" "$out"

# ---- why one waits ----

weft config set tasks.max_running 1
weft reload
weft task submit 'slow 60s'
slow=$out
weft task submit 'echo behind it'
behind=$out
until_true state "$slow" running
weft task list
like "what it waits for is in the list" "queued, 1 runs already (tasks.max_running)" "$out"
weft config set tasks.paused true
weft reload
weft task list
like "also when all wait" "queued, tasks are paused (tasks.paused)" "$out"
weft task cancel "$behind"
weft task cancel "$slow"
weft config unset tasks.paused
weft reload
weft session new
session=$out
weft session prompt "$session" slow 60s
slow=$out
weft session prompt "$session" echo next
until_true state "$slow" running
weft task list
like "or the one before it in its conversation" "queued, its session is busy" "$out"
weft task cancel "$slow"
close
