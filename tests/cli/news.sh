#!/bin/bash
# The hub says when tasks start, end, fail and ask: in the foreground on standard error, in the background in its log.
. "$(dirname "$0")/hub.bash"

mkdir front && cd front || exit 1
"$program" serve 2>hub.err &
started+=("$!")
until_true test -S .weft/daemon.sock
until_true timeout 20 "$program" task stats
timeout 60 "$program" task submit --wait "echo hi" >/dev/null 2>&1
timeout 60 "$program" task submit --wait fail >/dev/null 2>&1
timeout 60 "$program" task submit --wait --on-question deny "edit it" >/dev/null 2>&1
timeout 60 "$program" task submit $'echo two\nlines' >/dev/null 2>&1
told() {
    grep -q "$1" hub.err
}
until_true told '^[0-9:]\{8\} task-0000 started with demo: echo hi$'
until_true told '^[0-9:]\{8\} task-0000 completed after '
until_true told '^[0-9:]\{8\} task-0001 failed: '
until_true told '^[0-9:]\{8\} task-0002 asks: Edit weft-demo.txt (weft answer question-0000)$'
until_true told 'task-0003 started with demo: echo two…$'
is "the time is local" "$(date +%H)" "$(grep -m1 'task-0003 started' hub.err | cut -c1-2)"
timeout 60 "$program" stop >/dev/null 2>&1

hub back
timeout 60 "$program" task submit --wait fail >/dev/null 2>&1
logged() {
    grep -q "$1" .weft/daemon.log
}
until_true logged '"message":"task-0000 started with demo"'
until_true logged '"level":"WARN","message":"task-0000 failed: [a-zA-Z]*"'
[ "$failed" -eq 0 ] && pass || fail "everything was told" "$(cat ../front/hub.err)"
close
