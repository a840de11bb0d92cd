#!/bin/bash
# The examples of docs/library.md do what the page says; and under memcheck they do it without a wrong access or a leak.
set -u

passed=0
failed=0
skipped=0
there=$(mktemp -d)
server=
trap 'stop; rm -rf "$there"' EXIT
memcheck=()

stop() {
    status=0
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null
        wait "$server"
        status=$?
    fi
    server=
}

# Start a server; it listens when it says so, or when its socket is there.
start() { # SOCKET-OR-"" COMMAND...
    local socket=$1 tries=0
    shift
    : >"$there/log"
    "${memcheck[@]}" "$@" 2>"$there/log" &
    server=$!
    until { [ -n "$socket" ] && [ -S "$socket" ]; } || grep -q '^listening on' "$there/log" || [ $tries -ge 2400 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    url=$(sed -n 's/^listening on //p' "$there/log" | head -n 1)
}

check() { # WHAT IS WANT
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s%s\n  is   %s\n  want %s\n' "$1" "${memcheck:+ (memcheck)}" "$2" "$3"
        grep '^==' "$there/log" | head -n 20
    fi
}

call() {
    "$WEFT" call "$@" 2>&1
}

certificates() {
    (
        cd "$there" || exit
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=Test CA" -keyout ca.key -out ca.pem
        for name in server ann; do
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" -keyout $name.key -out $name.csr
            echo "subjectAltName=IP:127.0.0.1,DNS:localhost" >ext
            openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out $name.pem
        done
    ) >/dev/null 2>&1
}

# The tasks of a real hub, followed until the signal; the position is in the file then.
follow() {
    local hub tries=0
    mkdir -p "$there/project"
    (cd "$there/project" && exec "$WEFT" serve --listen "unix:$there/hub.sock") >/dev/null 2>&1 &
    hub=$!
    until [ -S "$there/hub.sock" ] || [ $tries -ge 600 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    : >"$there/followed"
    "${memcheck[@]}" "$EXAMPLES/subscribe" "unix:$there/hub.sock" "$there/position" >"$there/followed" 2>"$there/log" &
    server=$!
    wait_for "$there/followed" ': 0 tasks'
    call "unix:$there/hub.sock" task.submit prompt=hello >/dev/null
    wait_for "$there/followed" ': 1 tasks'
    stop
    check "subscribe follows" "$(grep -c ': [01] tasks' "$there/followed" | sed 's/^[2-9].*/some/')" some
    check "subscribe ends cleanly" "$status $(cat "$there/log")" "0 "
    check "subscribe keeps its position" "$(grep -c '"name":"tasks"' "$there/position")" 1
    rm -f "$there/position"
    kill $hub
    wait $hub
}

# Ask three times, end that half, and count what is answered.
ask_and_end() { # SOCKET
    python3 - "$1" <<'END'
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.settimeout(60)
for i in range(3):
    client.sendall(b'{"jsonrpc":"2.0","id":%d,"method":"echo","params":["%s"]}\n' % (i, b"x" * 100000))
client.shutdown(socket.SHUT_WR)
answers = client.makefile("rb")
lines = 0
while lines < 3 and answers.readline():
    lines += 1
print(lines)
END
}

wait_for() { # FILE PATTERN
    local tries=0
    until grep -q "$2" "$1" || [ $tries -ge 600 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
}

run_all() {
    check pour "$("${memcheck[@]}" "$EXAMPLES/pour" 2>"$there/log")" "took 100000 parts, then: cancelled"
    check virtual_time "$("${memcheck[@]}" "$EXAMPLES/virtual_time" 2>"$there/log")" "after 3601 virtual seconds: timed out"
    check inside_poll "$(printf 'one\ntwo\n' | "${memcheck[@]}" "$EXAMPLES/inside_poll" 2>"$there/log")" "ONE
TWO"
    check streaming "$("${memcheck[@]}" "$EXAMPLES/streaming" 2>"$there/log" | tail -n 1)" "counted 3"
    check own_loop "$(echo '{"jsonrpc":"2.0","method":"echo","params":["x"],"id":1}' | "${memcheck[@]}" "$EXAMPLES/own_loop" 2>"$there/log")" \
        '{"jsonrpc":"2.0","id":1,"result":["x"]}'

    check schema "$("${memcheck[@]}" "$EXAMPLES/schema" 2>"$there/log" | wc -l)" "$("$EXAMPLES/schema" | wc -l)"
    start "$there/spec.sock" "$EXAMPLES/spec-server" "unix:$there/spec.sock"
    check batch "$("${memcheck[@]}" "$EXAMPLES/batch" "unix:$there/spec.sock" 2>"$there/log.call" | head -n 1)" "42 - 23 = 19"
    check "batch is clean" "$(grep -c '^==' "$there/log.call")" 0
    stop
    check "spec-server ends cleanly" $status 0
    start "$there/all.sock" "$EXAMPLES/ws-broadcast" "unix:$there/all.sock"
    check ws-broadcast "$(call "unix:$there/all.sock" publish text=hi)" '{"told":1}'
    stop
    check "ws-broadcast ends cleanly" $status 0
    start "" "$EXAMPLES/ws-echo" ws://127.0.0.1:0/
    stop
    check "ws-echo ends cleanly" $status 0
    follow

    start "$there/echo.sock" "$EXAMPLES/echo" "unix:$there/echo.sock"
    check call "$("${memcheck[@]}" "$EXAMPLES/call" "unix:$there/echo.sock" 2>"$there/log.call")" "hi"
    # A proxy in front of it, on another transport.
    local echo=$server
    start "" "$EXAMPLES/proxy" ws://127.0.0.1:0/ "unix:$there/echo.sock"
    check "proxy passes a call" "$(call "$url" echo text=hi)" '{"text":"hi"}'
    check "proxy passes an error" "$(call "$url" nothing | grep -c 'Method not found')" 1
    local long
    long=$(head -c 100000 /dev/zero | tr '\0' x)
    check "proxy passes much" "$(call "$url" echo "text=$long" | wc -c)" "$((100000 + 12))"
    stop
    check "proxy ends cleanly" $status 0
    start "" "$EXAMPLES/proxy" "unix:$there/near.sock" "unix:$there/echo.sock"
    check "proxy answers who has ended its half" "$(ask_and_end "$there/near.sock")" 3
    stop
    check "that proxy ends cleanly" $status 0
    start "" "$EXAMPLES/proxy" ws://127.0.0.1:0/ "unix:$there/nobody.sock"
    check "proxy to nobody" "$(call "$url" echo text=hi >/dev/null; grep -c 'nobody.sock' "$there/log")" 1
    stop
    server=$echo
    stop
    check "echo ends cleanly" $status 0

    start "$there/later.sock" "$EXAMPLES/later" "unix:$there/later.sock"
    check "later answers later" "$(call "unix:$there/later.sock" countdown seconds=2 step=fast)" '{"done":true}'
    check "later refuses a number" "$(call "unix:$there/later.sock" countdown seconds=61 | grep -c 'seconds must be 1 to 60')" 1
    check "later refuses a word" "$(call "unix:$there/later.sock" countdown seconds=1 step=warp | grep -c 'step must be one of "slow", "fast"')" 1
    check "later builds a list" "$(call "unix:$there/later.sock" squares to=4)" '[1,4,9,16]'
    # A request is open when the signal comes: it is answered before the server ends.
    call "unix:$there/later.sock" countdown seconds=10 step=fast >"$there/answer" &
    local caller=$!
    sleep 0.5
    stop
    wait $caller
    check "later finishes what is open" "$(cat "$there/answer") $status" '{"done":true} 0'

    start "$there/workers.sock" "$EXAMPLES/workers" "unix:$there/workers.sock"
    check "workers find primes" "$(call "unix:$there/workers.sock" primes below=10000)" 1229
    local calls=()
    for i in 1 2 3 4 5 6 7 8; do
        call "unix:$there/workers.sock" primes below=$((i * 1000)) >"$there/primes$i" &
        calls+=($!)
    done
    wait "${calls[@]}"
    check "workers answer all" "$(cat "$there"/primes? | tr '\n' ' ')" "168 303 430 550 669 783 900 1007 "
    stop
    check "workers end cleanly" $status 0

    if certificates && [ -s "$there/ann.pem" ]; then
        start "" "$EXAMPLES/tls_server" tls://127.0.0.1:0 "$there/server.pem" "$there/server.key" "$there/ca.pem"
        check "tls_server knows a certificate" \
            "$(call --cacert "$there/ca.pem" --cert "$there/ann.pem" --key "$there/ann.key" "$url" whoami | grep -c 'ann.*tls')" 1
        check "tls_server wants one" "$(call --cacert "$there/ca.pem" "$url" whoami >/dev/null 2>&1; echo $?)" 1
        stop
        check "tls_server ends cleanly" $status 0
    else
        skipped=$((skipped + 3))
    fi
}

run_all
if command -v valgrind >/dev/null && [ -e "$BUILD/libweft.so" ]; then
    memcheck=(valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite)
    run_all
else
    skipped=$((skipped + 1))
fi

# Every piece of code in the page is in the example that it names.
said=$(python3 - <<'END'
import re, sys
wrong = 0
text = open("docs/library.md").read()
pieces = re.findall(r"<!-- (examples/\S+) -->\n\n?```c\n(.*?)```", text, flags=re.S)
for path, code in pieces:
    if code.strip("\n") not in open(path).read():
        wrong += 1
        print(f"{path} has no such code: {code.splitlines()[0]}")
loose = len(re.findall(r"^```c$", text, flags=re.M)) - len(pieces)
print("right" if pieces and not wrong and not loose else f"{loose} pieces without an example")
END
)
check "docs/library.md" "$said" right
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
