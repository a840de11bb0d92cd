#!/bin/bash
# weft pair: the code, the waiting, and the end of both.
. "$(dirname "$0")/hub.bash"

show() { # LINK [NAME]: what a device does that scanned the link; the status
    curl -sk -o "$there/answer" -w '%{http_code}' -H 'Content-Type: application/json' \
        -d "{\"code\":\"$(echo "$1" | sed 's/.*code=\([0-9a-f]*\).*/\1/')\",\"name\":\"${2:-phone}\"}" "${1%%pair\?*}pair"
}
pairing() { # MEMBER
    "$program" call pair.status | python3 -c "import json, sys; print(json.load(sys.stdin).get('$1', ''))"
}
says_link() {
    grep -q code= "$there/$1"
}

mkdir "$there/none"
cd "$there/none" || exit 1
weft pair
exits "without a hub" 3

hub one
weft pair --expires soon
exits "a time that is none" 2
weft pair --address 203.0.113.9 --no-wait
exits "an address that is not ours" 8
like "in words" "not an address of this machine" "$err"
weft pair --address localhost --no-wait
exits "an address that is none" 8
weft pair --address 127.0.0.1 --name "a b" --no-wait
exits "a name that is none" 8
weft pair --off
exits "off when nothing is open" 0

# ---- no waiting ----
weft pair --address 127.0.0.1 --no-wait
exits "no waiting" 0
is "nothing but the link on standard output" 1 "$(echo "$out" | wc -l)"
like "with a code" "/pair?code=" "$out"
like "and a fingerprint" "#sha256=" "$out"
like "the same for people" ":" "$err"
like "what it may do" "read work" "$err"
unlike "no drawing where there is no terminal" "▀" "$err"
is "a device comes in" 200 "$(show "$out" tablet)"
weft token list
like "its token is listed" tablet "$out"
weft pair --address 127.0.0.1 --json --name kiosk --scope read --expires 1d
exits "json" 0
like "one object" "/pair?code=" "$(field "$out" .url)"
is "scopes" read "$(field "$out" .scopes)"
is "another device" 200 "$(show "$(field "$out" .url)")"
like "has the name it was given" '"name":"kiosk"' "$(cat "$there/answer")"

# ---- waiting ----
"$program" pair --address 127.0.0.1 >"$there/link" 2>"$there/talk" &
waiter=$!
until_true says_link link
is "it comes while somebody waits" 200 "$(show "$(cat "$there/link")" watch)"
wait $waiter
is "the waiting ends well" 0 $?
like "who it was" "Paired: watch, at 127.0.0.1" "$(cat "$there/talk")"
unlike "the code is said on standard output alone" "code=" "$(cat "$there/talk")"

# ---- Ctrl-C ----
"$program" pair --address 127.0.0.1 >"$there/link2" 2>"$there/talk2" &
waiter=$!
until_true says_link link2
unlike "the code is no argument" "$(sed 's/.*code=\([0-9a-f]*\).*/\1/' "$there/link2")" "$(tr '\0' ' ' <"/proc/$waiter/cmdline")"
kill -INT $waiter
wait $waiter
is "interrupted" 130 $?
like "and said" "no longer valid" "$(cat "$there/talk2")"
is "the code is withdrawn" 410 "$(show "$(cat "$there/link2")")"
is "devices can still come in" True "$(pairing open)"

# ---- at a terminal ----
person "" "$program" pair --address 127.0.0.1 --no-wait
exits "at a terminal" 0
like "the code is drawn" "▀" "$out"
like "and the link is there" "/pair?code=" "$out"
unlike "a height that is not known is no matter" "make it" "$out"
person "" sh -c "stty rows 24 cols 80; exec '$program' pair --address 127.0.0.1 --no-wait"
like "a code that does not fit" "This terminal has 24 rows, and the code needs" "$out"
person "" sh -c "stty rows 50 cols 80; exec '$program' pair --address 127.0.0.1 --no-wait"
unlike "one that fits" "make it" "$out"

weft pair --off
exits "off" 0
is "closed" False "$(pairing open)"
is "nobody answers" 000 "$(show "$(cat "$there/link")")"
unlike "no code is in the log" "code=" "$(cat .weft/daemon.log)"

# ---- where there are no tokens ----
hub two --auth none
weft pair --address 127.0.0.1
exits "without tokens" 8
like "in words" "devices need tokens" "$err"

close
