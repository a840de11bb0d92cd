#!/bin/bash
# Completion in real shells: verbs, words, options and their values, files, and what only the hub knows: ids, methods, agents.
. "$(dirname "$0")/hub.bash"

hub complete
mkdir bin && ln -s "$program" bin/weft
export PATH=$PWD/bin:$PATH HOME=$PWD
timeout 60 "$program" task submit --wait "echo hi" >/dev/null 2>&1
timeout 60 "$program" token add phone >/dev/null 2>&1
touch one.pem

offers() { # SHELL LINE WORD...: among what is offered
    local shell=$1 line=$2 offered word
    shift 2
    offered=$(timeout 60 /usr/bin/python3 "$SOURCE/tests/cli/completion.py" "$shell" "$PWD/completion.$shell" "$line" 2>&1)
    for word in "$@"; do
        if grep -qxF -- "$word" <<<"$offered"; then pass; else fail "$shell: $line" "wanted: $word" "got: ${offered:0:600}"; fi
    done
}
offers_only() { # SHELL LINE WORDS: exactly these
    local got
    got=$(timeout 60 /usr/bin/python3 "$SOURCE/tests/cli/completion.py" "$1" "$PWD/completion.$1" "$2" 2>&1 | tr '\n' ' ')
    is "$1: $2" "$3 " "$got"
}

for shell in bash zsh fish; do
    if ! command -v $shell >/dev/null; then
        skip "completion in $shell" "$shell is not installed"
        continue
    fi
    timeout 20 "$program" completion $shell >completion.$shell
    offers $shell "weft c" config chat cost call completion
    offers $shell "weft task s" submit stats
    offers $shell "weft task get task-" task-0000
    offers $shell "weft task diff " task-0000
    offers $shell "weft session show session-" session-0000
    offers $shell "weft agents use de" demo
    offers $shell "weft task submit --agent de" demo
    offers $shell "weft token revoke " phone
    offers $shell "weft call task.s" task.submit task.stats
    offers $shell "weft describe question." question.list question.answer
    offers $shell "weft config get tasks.max_" tasks.max_running tasks.max_queue
    offers $shell "weft completion " bash zsh fish
    offers $shell "weft task list --state " queued running completed failed cancelled
    offers $shell "weft call --tim" --timeout
    offers $shell "weft call --cacert one" one.pem
    offers $shell "weft man desc" describe
    offers_only $shell "weft task list --se" "--search"
    offers_only $shell "weft task submit --se" "--session"
    offers $shell "weft task list --jso" --json
done
offers_only bash "weft task st" "stats"
offers_only bash "weft serve --auth " "none token"
timeout 60 "$program" stop >/dev/null 2>&1
run "$program" completion names tasks
exits "without a hub there are no names" 0
is "and nothing is said" "" "$out$err"
close
