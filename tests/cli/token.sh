#!/bin/bash
# Tokens with a name: given out, limited, expired and taken back, with a daemon and without one.
. "$(dirname "$0")/hub.bash"

url() { # SCHEME
    tr ',' '\n' <.weft/endpoint.json | grep -o "$1://[^\"]*" | head -n 1
}

ask() { # TOKEN METHOD
    echo "$1" >token.txt
    weft call "$(url http)" "$2" --token-file token.txt --json
}

# ---- without a hub ----
mkdir "$there/none"
cd "$there/none" || exit 1
weft token add phone
exits "no hub, no tokens" 5
like "and it says what to do" "weft start" "$err"
is "nothing was made" "" "$(ls -A)"

# ---- without a daemon ----
hub one
weft stop
weft token
exits "none yet" 0
like "but for the first" ".weft/token" "$err"
weft token add phone --expires 30d
exits "add" 0
phone=$out
is "the secret alone is on standard output" 64 ${#phone}
like "what it is" "token phone: read work; expires 2" "$err"
utc=$(TZ=UTC "$weft" token list)
like "times are of here" ":" "$utc"
[ "$utc" != "$(TZ=Asia/Kathmandu "$weft" token list)" ] && pass || fail "elsewhere it is another time" "$utc"
like "and that it is shown once" "only time" "$err"
weft token add phone
exits "a name is taken" 8
like "in words" "there is a token phone already" "$err"
weft token list --json
is "listed" phone "$(field "$out" .name)"
is "with its scopes" "read work" "$(field "$out" .scopes)"
unlike "without its secret" "$phone" "$out"

# ---- where it is kept ----
file=$(ls "$XDG_STATE_HOME"/weft/tokens-*.json)
is "private" 600 "$(stat -c %a "$file")"
unlike "the secret is not kept" "$phone" "$(cat "$file")"
like "its digest is" "$(printf %s "$phone" | sha256sum | cut -d' ' -f1)" "$(cat "$file")"
unlike "nothing of it is in the project" "$(printf %s "$phone" | sha256sum | cut -d' ' -f1)" "$(cat .weft/* 2>/dev/null | tr -d '\0')"

# ---- with a daemon ----
weft start
exits "the daemon starts" 0
ask "$phone" echo
exits "a token that was made before counts" 0
weft token add admin --scope admin,read --json
exits "add while it runs" 0
admin=$(field "$out" .token)
is "scopes" "admin read" "$(field "$out" .scopes)"
ask "$admin" token.list
exits "counts at once" 0
ask "$phone" token.list
exits "one without the scope may not" 4
ask "${admin%?}x" echo
exits "a wrong one does not" 4
ask "$(cat .weft/token)" token.list
exits "the first one may everything" 0
weft token
like "a table for people" "NAME" "$out"
like "with both" "admin" "$out"

# ---- what is refused ----
weft token add 'a b'
exits "a bad name" 2
weft token add token
exits "the first one's name" 2
weft token add x --scope root
exits "no scope" 2
like "the scopes are listed" "read, work, admin, metrics, exec" "$err"
weft token add x --expires soon
exits "no time" 2
weft token add x --expires 0d
exits "nothing that has expired already" 2
weft token add admin
exits "a name is taken, says the daemon" 8
weft call token.add name=x scopes=root
exits "no scope, says the method" 8
like "and names the param" "/scopes" "$out$err"

# ---- taking back ----
echo "$phone" >token.txt
ws=$(url ws)
timeout 120 "$program" listen "$ws" --token-file token.txt >listened 2>&1 &
listener=$!
started+=($listener)
listens() { weft call daemon.status --json; [ "$(field "$out" .subsystems.ipc.clients)" = 2 ]; }
until_true listens
weft token revoke phone
exits "revoke" 0
like "and its connections" "closed" "$err"
ended $listener
is "who listened with it is refused when it comes back" 4 $rc
ask "$phone" echo
exits "does not count any more" 4
weft token revoke phone
exits "there is none now" 5
weft token revoke nobody
exits "nor was there" 5
weft stop
weft token revoke admin
exits "revoke without a daemon" 0
weft token revoke admin
exits "once" 5
weft start
ask "$admin" echo
exits "and the next daemon knows" 4

# ---- expiry ----
weft token add short --expires 1s --json
short=$(field "$out" .token)
refused() { ask "$short" echo; [ $rc = 4 ]; }
until_true refused
pass
weft token add short
exits "an expired name is free again" 0

# ---- a file that is not ours to judge is not used and not lost ----
weft stop
file=$(ls "$XDG_STATE_HOME"/weft/tokens-*.json)
echo '{"version":1,"tokens":[{"name":"x"}]}' >"$file"
weft token add y
exits "a damaged file" 1
like "is named" "$file" "$err"
weft start
exits "the daemon starts without it" 0
like "and says so" "tokens-" "$out$err$(cat .weft/daemon.log 2>/dev/null)"
weft stop

# ---- another .weft under the same name has no part of them ----
rm "$file"
weft token add mine
mine=$out
mv .weft .weft-old
weft start
exits "a new hub in the same place" 0
ask "$mine" echo
exits "does not know it" 4
weft token list
unlike "nor list it" mine "$out"

close
