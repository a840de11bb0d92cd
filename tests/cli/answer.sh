#!/bin/bash
# weft answer: questions of the demo agent, shown and answered from elsewhere.
. "$(dirname "$0")/hub.bash"

weft answer
exits "without a daemon" 3

hub ask
weft answer
exits "nothing is asked" 0
is "nothing is asked, no data" "" "$out"
like "nothing is asked, says so" "nothing waits" "$err"
weft answer --json
is "nothing is asked, for programs" "[]" "$(field "$out" .questions)"
weft answer question-0000 allow
exits "no such question" 5
like "no such question: what next" "weft answer" "$err"

# Ask something; $id is the task, $question the question.
ask() { # PROMPT...
    id=$(timeout 120 "$program" task submit "$@")
    until_true has_question
    question=$(field "$(timeout 120 "$program" answer --json)" .questions.0.id)
}

ask edit one
weft answer
exits "it is shown" 0
like "with its task" "$id" "$out"
like "with its state" "open" "$out"
like "with the change" "+ - edit one" "$out"
like "with its options" "1) Allow once  allow_once" "$out"
weft answer "$question"
like "alone" "$question: Edit " "$out"
weft answer "$question" --json
is "alone, for programs" open "$(field "$out" .state)"
weft answer "$question" perhaps
exits "an answer that is none" 8
weft answer "$question" 7
exits "a number that is none" 2
weft answer "$question" allow
exits "allowed" 0
is "allowed, no data" "" "$out"
until_true state "$id" completed
weft task get "$id" --output
like "it went on" "has one more line" "$out"
weft answer "$question" allow
exits "answered twice" 8
like "answered twice: says so" "Somebody else answered first" "$err"
weft answer
is "nothing is open any more" "" "$out"
weft answer --all
like "but remembered" "answered" "$out"

ask edit two
weft answer "$question" deny --text "not this file" --json
exits "denied, for programs" 0
is "denied, for programs: which" reject_once "$(field "$out" .option)"
until_true state "$id" completed
weft task get "$id" --output
like "it did not" "did not change anything" "$out"
weft answer --all --json
like "the reason is kept" "not this file" "$out"

ask edit three
weft answer "$question" 1
exits "by number" 0
until_true state "$id" completed

# ---- who waits is told how, or asked ----
timeout 120 "$weft" task submit --wait edit four >four.out 2>four.err &
waiter=$!
until_true grep -q "Answer from anywhere" four.err
like "without a terminal: what is asked" "Edit " "$(cat four.err)"
question=$(sed -n 's/.*weft answer \(question-[0-9]*\) .*/\1/p' four.err)
weft answer "$question" allow
ended "$waiter"
exits "answered from elsewhere" 0
like "and it went on" "has one more line" "$(cat four.out)"

# ---- a restart ----
ask edit five
kill -KILL "$(cat .weft/daemon.pid)"
until_true is_gone "$(cat .weft/daemon.pid)"
weft start
weft answer
is "its task has failed, so it is not open after a crash" "" "$out"
weft answer "$question" deny
exits "nor can it be answered" 8
weft stop
export WEFT_TASKS_ON_RESTART=requeue
weft start
ask edit five again
kill -KILL "$(cat .weft/daemon.pid)"
until_true is_gone "$(cat .weft/daemon.pid)"
weft start
weft answer
like "its task is queued again: still open after a crash" "$question" "$out"
weft restart
weft answer
like "and after a restart" "$question" "$out"
weft answer "$question" deny
exits "and it can be answered" 0
until_true state "$id" completed

# ---- a person ----
ask edit six
person "your answer=>what\n;;not one of the options=>1\n" "$weft" answer
exits "the only one can be answered at once" 0
like "says with what" "answered with allow_once" "$out"
until_true state "$id" completed
ask edit seven
person "your answer=>\n" "$weft" answer "$question"
exits "Enter leaves it open" 0
has_question && pass || fail "Enter leaves it open: it is"
second_question() {
    local list
    list=$(timeout 120 "$program" answer --json)
    grep -q '"id":.*"id":"question' <<<"$list" && second=$(field "$list" .questions.1.id)
}
id=$(timeout 120 "$program" task submit edit eight)
until_true second_question
person "your answer=>\n;;$second:=>;;your answer=>allow\n" "$weft" answer
exits "several are asked one after the other" 0
like "the second is answered" "answered with allow_once" "$out"
until_true state "$id" completed
has_question && pass || fail "the first is still open"
close
