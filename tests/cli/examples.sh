#!/bin/sh
# Every example does what it says at its top.
set -u

passed=0
failed=0
skipped=0
there=$(mktemp -d)
server=
trap 'stop; rm -rf "$there"' EXIT

stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    [ -z "$server" ] || wait "$server" 2>/dev/null
    server=
}

# Start a server and wait for the last of its sockets: it appears under its name only when it listens.
start() { # SOCKET COMMAND...
    socket=$1
    shift
    "$@" 2>"$there/log" &
    server=$!
    tries=0
    until [ -S "$socket" ] || [ $tries -ge 2400 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
}

check() { # WHAT IS WANT
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s\n  is   %s\n  want %s\n' "$1" "$2" "$3"
    fi
}

start "$there/echo.sock" "$EXAMPLES/echo" "unix:$there/echo.sock"
check "call" "$("$EXAMPLES/call" "unix:$there/echo.sock")" "hi"
stop
check "echo leaves no socket behind" "$([ -e "$there/echo.sock" ] && echo there)" ""
check "call, nobody there" "$("$EXAMPLES/call" "unix:$there/echo.sock" 2>/dev/null || echo failed)" "failed"

batch="42 - 23 = 19
1 + 2 + 4 = 7
foobar was refused: Method not found (-32601)"
check "batch, of a child" "$("$EXAMPLES/batch" "exec:$EXAMPLES/spec-server stdio:" 2>/dev/null)" "$batch"

start "$there/spec.sock" "$EXAMPLES/spec-server" ws://127.0.0.1:0/ws http://127.0.0.1:0/rpc tcp://127.0.0.1:0 "unix:$there/spec.sock"
while [ "$(grep -c '^listening on' "$there/log")" -lt 4 ] && kill -0 "$server" 2>/dev/null; do sleep 0.05; done
for url in $(sed -n 's/^listening on //p' "$there/log"); do
    check "batch, $url" "$("$EXAMPLES/batch" "$url")" "$batch"
done
stop

check "streaming" "$("$EXAMPLES/streaming")" "part 1
part 2
part 3
counted 3"

request='{"jsonrpc":"2.0","method":"echo","params":["x"],"id":1.0}'
check "own_loop" "$(echo "$request" | "$EXAMPLES/own_loop")" '{"jsonrpc":"2.0","id":1.0,"result":["x"]}'
echo "$request" >"$there/in"
"$EXAMPLES/spec-server" stdio: <"$there/in" >"$there/out" 2>/dev/null
check "spec-server, from file to file" "$(cat "$there/out")" '{"jsonrpc":"2.0","id":1.0,"result":"x"}'
check "spec-server, from nothing" "$("$EXAMPLES/spec-server" stdio: </dev/null 2>/dev/null)" ""

# Two clients; what one of them publishes both hear.
if [ -x /usr/bin/python3 ]; then
    start "$there/all.sock" "$EXAMPLES/ws-broadcast" "unix:$there/all.sock"
    heard=$(/usr/bin/python3 - "$there/all.sock" <<'END'
import socket, sys
def client():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    return s.makefile("rw")
a, b = client(), client()
for s in (a, b):  # an answer says that it is there
    print('{"jsonrpc":"2.0","method":"none","id":0}', file=s, flush=True)
    s.readline()
print('{"jsonrpc":"2.0","method":"publish","params":{"text":"hi"}}', file=a, flush=True)
print(a.readline() + b.readline(), end="")
END
)
    said='{"jsonrpc":"2.0","method":"message","params":{"text":"hi"}}'
    check "ws-broadcast" "$heard" "$said
$said"
    stop
else
    skipped=$((skipped + 1))
    echo "skip ws-broadcast: needs python3"
fi

check "ws-echo, how to use it" "$("$EXAMPLES/ws-echo" 2>&1)" "usage: ws-echo [--client] URL"

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
