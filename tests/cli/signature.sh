#!/bin/bash
# Signed requests to a real daemon: keys from files, requests made with openssl, replays, a restart, allow-lists and rates.
. "$(dirname "$0")/hub.bash"

umask 077
export XDG_CONFIG_HOME=$there/config
mkdir -p "$XDG_CONFIG_HOME/weft"
printf '0123456789abcdef0123456789abcdef\n' >"$there/ci.key"
printf 'another secret, just as long as it has to be\n' >"$there/other.key"
configure() { # JSON
    printf '%s\n' "$1" >"$XDG_CONFIG_HOME/weft/config.json"
}
configure '{"keys": {"ci": {"file": "'"$there"'/ci.key", "scopes": "read work", "unnamed": true}},
    "gates": [{"methods": ["echo"], "require": "signature"},
              {"methods": ["task.stats", "context.get"], "rate_per_minute": 2},
              {"methods": ["session.list"], "max_message": 100},
              {"token": "ci", "allow": ["echo", "task.*", "daemon.stop"]},
              {"token": "nobody", "allow": ["taks.*"]},
              {"token": "phone", "allow": ["ping"]}]}'

# ---- mistakes in files are explained ----
mkdir "$there/none"
cd "$there/none" || exit 1
chmod 640 "$there/ci.key"
weft serve --listen unix:x.sock
exits "a key that others can read" 2
like "is named" "ci.key can be read by others" "$err"
chmod 600 "$there/ci.key"
mv "$there/ci.key" "$there/ci.kept"
weft serve --listen unix:x.sock
exits "a key that is not there" 2
like "in words" "No such file" "$err"
mv "$there/ci.kept" "$there/ci.key"
cp "$XDG_CONFIG_HOME/weft/config.json" kept.json
configure '{"gates": [{"require": "signature"}]}'
weft serve --listen unix:x.sock
exits "signatures without a key" 2
like "is said" "there is no key that could make one" "$err"
configure '{"gates": [{"methods": ["a"]}], "keys": {"a b": {"file": "x"}, "c": {"file": "x", "scopes": "all"}}}'
weft config check
exits "config check" 1
like "a gate that asks for nothing" "has no effect" "$err"
like "a name that cannot be" "is not a valid name for a key" "$err"
like "scopes" "scopes must be some of read, work" "$err"
configure '{"keys": {"a": {"file": "'"$there"'/ci.key"}, "b": {"file": "'"$there"'/ci.key"}}}'
weft serve --listen unix:x.sock
exits "one secret under two names" 2
like "and why that is wrong" "each key needs a secret of its own" "$err"
configure '{"gates": [{"dialect": "cedev", "allow": ["a"]}, {"scopes": "read,wrok", "allow": ["a"]}, {"scopes": "read,work", "allow": ["a"]}]}'
weft config check
exits "gates that hold for nobody" 1
like "no such dialect" "gates[0].dialect: there is no such dialect" "$err"
like "no such scopes" "gates[1].scopes must be some of read, work" "$err"
unlike "commas are fine" "gates[2]" "$err"
cp kept.json "$XDG_CONFIG_HOME/weft/config.json"
weft call unix:none.sock ping --key-id ci
exits "a name without a key" 2
weft bridge unix:a.sock unix:b.sock --key-file "$there/ci.key"
exits "a bridge does not sign" 2
like "and says so" "as they are" "$err"

# ---- signing ----
hub one
like "a misspelt method is named" 'gates[4].allow: there is no method like' "$(cat .weft/daemon.log)"
unlike "and no other" 'gates[3]' "$(cat .weft/daemon.log)"
weft call echo '["x"]'
exits "not signed" 4
like "and what to do" "--key-file FILE" "$err"
like "which is said" "must be called with a signature" "$err"
weft call echo '["x"]' --key-file "$there/ci.key" --key-id ci
exits "signed" 0
is "answered" '["x"]' "$(printf %s "$out" | tr -d ' \n')"
weft call echo '["x"]' --key-file "$there/ci.key"
exits "signed without a name" 0
weft call echo '["x"]' --key-file "$there/other.key" --key-id ci
exits "signed with another key" 4
like "which is wrong" "does not fit the message" "$err"
weft call echo '["x"]' --key-file "$there/other.key" --key-id nobody
like "a key that nobody knows" "no key with this key_id" "$err"
weft call --content-length echo '["x"]' --key-file "$there/ci.key" --key-id ci
exits "with Content-Length" 0
host=$(tr ',' '\n' <.weft/endpoint.json | grep -o 'http://[^"]*' | head -n 1)
weft call "$host" echo '["x"]' --key-file "$there/ci.key" --key-id ci --token-file .weft/token
exits "over HTTP, with a token" 0
weft call "${host/http/ws}" echo '["x"]' --key-file "$there/ci.key" --key-id ci
exits "a signature does not stand for a token" 4
weft token add phone
printf '%s\n' "$out" >phone.token
weft call "$host" echo '["x"]' --key-file "$there/ci.key" --key-id ci --token-file phone.token
exits "a signature does not lead around what is asked of the token" 4
like "which is named" "gates[5] allows others" "$err"
weft call token.list --key-file "$there/ci.key" --key-id ci
exits "what the key does not allow" 4
like "is refused by its list" "ci may not call token.list: gates[3]" "$err"
unlike "for which another token would not help" "Show a token" "$err"

# ---- made with another program ----
sign() { # STAMP NONCE METHOD ID PARAMS
    printf '%s\n%s\n%s\n%s\n%s' "$@" | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef -binary | base64
}
say() { # LINE
    run timeout 120 /usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(".weft/daemon.sock")
s.sendall(sys.argv[1].encode() + b"\n")
print(s.makefile().readline(), end="")' "$1"
}
stamp=$(date +%s)
params='{ "t" : "日本" }'
line='{"jsonrpc":"2.0","id":"a","method":"echo","params":'$params',"auth":{"timestamp":'$stamp',"nonce":"n1","key_id":"ci","signature":"'$(sign "$stamp" n1 echo '"a"' "$params")'"}}'
say "$line"
is "openssl's signature" '{"jsonrpc":"2.0","id":"a","result":{ "t" : "日本" }}' "$out"
say "$line"
is "counts once" signatureReplayed "$(field "$out" .error.data.reason)"
is "with its code" -32003 "$(field "$out" .error.code)"
say "${line/日本/日木}"
is "changed" signatureWrong "$(field "$out" .error.data.reason)"
old=$((stamp - 31))
say '{"jsonrpc":"2.0","id":1,"method":"echo","auth":{"timestamp":'$old',"signature":"'"$(sign "$old" "" echo 1 "")"'"}}'
is "too old" signatureExpired "$(field "$out" .error.data.reason)"
say '{"jsonrpc":"2.0","id":1,"method":"echo","auth":{"timestamp":'"$stamp"',"signature":"'"$(sign "$stamp" "" echo 1 "")"'"}}'
is "without nonce, name and params" null "$(field "$out" .error)"
weft restart
exits "restart" 0
say "$line"
is "after a restart" signatureTooOld "$(field "$out" .error.data.reason)"
weft call echo '["x"]' --key-file "$there/ci.key" --key-id ci
exits "the command line waits for the next second" 0

# ---- rates ----
weft call task.stats
exits "one" 0
weft call task.stats
exits "two" 0
weft call task.stats --json
exits "three in a minute" 6
like "is told how long" retryAfterMs "$out$err"
say '{"jsonrpc":"2.0","id":1,"method":"context.get"}'
is "a method of the planner's has the planner's code" -32002 "$(field "$out" .error.code)"
like "and is told how long" '"reason":"rateLimited","retryAfterMs":' "$out"

# ---- what was refused is counted ----
counted() { # NAME LABEL
    weft call metrics.get "prefix=$1" --json
    printf %s "$out" | grep -o "\"$2\"},\"value\":[0-9]*" | grep -o '[0-9]*$'
}
say '{"jsonrpc":"2.0","id":1,"method":"session.list","params":{"limit":1},"_meta":{"long":"0123456789012345678901234567890123456789"}}'
is "too large for its method" tooLarge "$(field "$out" .error.data.reason)"
is "rates" 2 "$(counted weft_gate_refusals_total rate)"
is "sizes" 1 "$(counted weft_gate_refusals_total size)"
is "methods that a list does not have" 0 "$(counted weft_gate_refusals_total method)"
refused=$(counted weft_gate_refusals_total signature) accepted=$(counted weft_signatures_total accepted)
say "$line"
say "${line/日本/日木}"
is "two signatures" $((refused + 2)) "$(counted weft_gate_refusals_total signature)"
is "which are counted among those as well" $((refused + 2)) "$(counted weft_signatures_total refused)"
weft call echo '["x"]' --key-file "$there/ci.key" --key-id ci
is "and a good one" $((accepted + 1)) "$(counted weft_signatures_total accepted)"

# ---- what is logged ----
run timeout 120 env WEFT_DEBUG=1 "$program" call echo '["x"]' --key-file "$there/ci.key" --key-id ci
exits "with a log of messages" 0
like "the auth member is there" '"auth":"***"' "$err"
unlike "its signature is not" '"signature"' "$err"

close
