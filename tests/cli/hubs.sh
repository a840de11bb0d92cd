#!/bin/bash
# Several hubs by name: what waits in all of them in one list, and a name in place of a URL. Then a runner, as a new user tries it.
. "$(dirname "$0")/hub.bash"

url() { # SCHEME
    tr ',' '\n' <.weft/endpoint.json | grep -o "$1://[^\"]*" | head -n 1
}
file=$XDG_STATE_HOME/weft/hubs.json

# ---- names ----
weft hubs
exits "none yet" 0
like "and it says what to do" "weft hubs add" "$err"
hub one
one=$(url ws)
cp .weft/token "$there/one.token"
hub two
cd "$there" || exit 1
weft hubs add one "$one" --token-file one.token
exits "over the network" 0
weft hubs add two "unix:$there/two/.weft/daemon.sock"
exits "on this machine" 0
weft hubs add one "$one"
exits "a name is taken" 6
take_closed_port
weft hubs add gone "tcp://127.0.0.1:$closed_port"
for wrong in "a b" "a/b" "" "unix:x" "$(printf 'x%.0s' {1..65})"; do
    weft hubs add "$wrong" "$one"
    exits "\"$wrong\" is no name" 2
done
weft hubs add three nothing
exits "no URL" 2
weft hubs add three "$one" --token-file none
exits "no token there" 2
is "private" 600 "$(stat -c %a "$file")"
unlike "the token is not in it" "$(cat one.token)" "$(cat "$file")"

# ---- one list ----
weft hubs
exits "all of them" 0
like "one" "one " "$out"
like "two" "two " "$out"
like "one that does not answer is in it" "nobody is listening" "$out"
weft task submit --url one ask
exits "a name instead of a URL" 0
weft task submit --url two ask
both_ask() {
    weft hubs inbox
    case $out in *"one "*"two "*) ;; *) return 1 ;; esac
}
until_true both_ask
weft hubs inbox
like "the question of one" "question-0000" "$out"
weft answer --url two question-0000 allow
exits "answered there" 0
weft hubs inbox
like "one still waits" "one " "$out"
unlike "two does not" "two " "$out"
weft hubs --json
is "as JSON, a line each" 3 "$(printf '%s\n' "$out" | wc -l)"
weft task list --url nobody
exits "a name that is none" 2
like "in words" "weft hubs" "$err"

# ---- remove ----
weft hubs remove gone
exits "remove" 0
weft hubs remove gone
exits "again" 5
printf '{"version":1,"hubs":[{"name":"a/b"}]}' >"$file"
weft hubs
exits "what Weft did not write is not used" 1
rm "$file"

# ---- a runner: two folders as two machines ----
cd "$there/one" || exit 1
weft token add box --scope runner
printf '%s\n' "$out" >"$there/box.token"
mkdir "$there/box"
(cd "$there/box" && exec "$program" runner "$one" --token-file ../box.token --label gpu 2>run.err) &
started+=($!)
box_is_there() {
    weft runner
    case $out in *"box "*connected*gpu*) ;; *) return 1 ;; esac
}
until_true box_is_there
weft task submit --runner box --wait "say hello"
exits "a task there" 0
like "in its folder" "$there/box" "$out"
weft task submit --label gpu ask
asks_here() {
    weft answer
    case $out in *task-0002*) ;; *) return 1 ;; esac
}
until_true asks_here
weft answer question-0001 allow
exits "it asks here, and is answered here" 0
is_over() {
    weft task get task-0002
    case $out in *completed*) ;; *) return 1 ;; esac
}
until_true is_over
weft task diff --stat task-0002
exits "what it changed is asked there" 0
weft runner --json
like "it has no task now" '"running":0' "$out"
weft task submit --runner nobody x
exits "no such machine" 8
like "in words" "weft runner list" "$err"
weft task submit --runner box --worktree x
exits "no worktrees there" 8
(cd "$there/box" && timeout 60 "$program" runner "$one" --token-file ../one.token >again.out 2>&1)
is "one hub or runner in a folder" 6 $?
(mkdir "$there/wrong" && cd "$there/wrong" && "$program" token list >/dev/null 2>&1; cd "$there/wrong" && timeout 60 "$program" runner nonsense >no.out 2>&1)
is "no URL" 2 $?

close
