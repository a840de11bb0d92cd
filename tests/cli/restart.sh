#!/bin/bash
# weft restart looks first: a hub that works is never stopped for one that cannot start.
. "$(dirname "$0")/hub.bash"

hub one
before=$(cat .weft/daemon.pid)
goes_on() { # NAME STATUS TEXT: the last restart failed with this, and the hub is the same
    exits "$1" "$2"
    like "$1: why" "$3" "$err"
    like "$1: says that nothing was stopped" "Nothing was stopped" "$err"
    is "$1: the same hub runs" "$before" "$(cat .weft/daemon.pid)"
    weft call ping
    exits "$1: and answers" 0
}
echo '{ "rate_per_minute": "many" }' >.weft/config.json
weft restart
goes_on "a mistake" 1 ".weft/config.json:1:22: rate_per_minute must be a whole number"
echo '{ "rate_per_minute": ' >.weft/config.json
weft restart
goes_on "half a file" 1 ".weft/config.json:2:1: expected a value"
echo '{ "agents": { "mine": { "driver": "cli", "command": ["echo"] } } }' >.weft/config.json
weft restart
goes_on "what is not on record" 4 "agent mine: echo"
weft restart --json
exits "for programs" 4
like "for programs: why" '"exit":4' "$out"
rm .weft/config.json
weft restart --listen tcp://0.0.0.0:0
goes_on "an endpoint that may not be" 2 "can be reached from elsewhere"
weft restart --token-file no-such-token
goes_on "a token file that is not there" 2 "no-such-token"
weft restart --listen tls://127.0.0.1:0 --tls-cert no-such.pem --tls-key no-such.pem
goes_on "a certificate that is not there" 1 "no-such.pem"
weft restart --no-such-option
exits "an option that does not exist" 2

# A port that somebody else has, and one that the hub itself has.
WEFT_STORE_KIND=memory start "$weft" serve --auth none --listen tcp://127.0.0.1:0
taken=${urls[0]##*:}
weft restart --listen "tcp://127.0.0.1:$taken"
goes_on "a port that is taken" 6 "$taken"
weft restart --listen tcp://127.0.0.1:0
exits "a free one" 0
own=$(sed -n 's/.*tcp:\/\/127.0.0.1:\([0-9]*\)".*/\1/p' .weft/endpoint.json)
weft restart --listen "tcp://127.0.0.1:$own"
exits "its own" 0
weft restart
exits "with the options it had" 0
like "with the options it had: the port" "listening on tcp://127.0.0.1:$own" "$err"

# ---- nothing was broken on the way ----
echo '{ "agents": { "mine": { "driver": "cli", "command": ["echo"] } } }' >.weft/config.json
trust
weft restart
exits "on record" 0
weft task submit --wait --agent mine hello
is "and it runs" "hello" "$out"
weft stop
echo '{ "auth": "none" }' >.weft/config.json
weft restart
exits "none runs, and none is started" 4
unlike "none runs: nothing is said of one" "Nothing was stopped" "$err"
close
