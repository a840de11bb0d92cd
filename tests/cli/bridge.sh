#!/bin/bash
# weft bridge: every transport to every other, with the framings of each side, at the pace of the slower one.
. "$(dirname "$0")/kit.bash"

start "$weft" serve --auth none --no-rate --listen "unix:$there/b.sock" --listen tcp://127.0.0.1:0 --listen ws://127.0.0.1:0/ws \
    --listen http://127.0.0.1:0/rpc
upstream=("${urls[@]}")
unix=${urls[0]}
head -c 300000 /dev/zero | tr '\0' x >x
printf '{"text":"%s"}' "$(cat x)" >big.json

# ---- a listening side to each of the others ----
for to in "${upstream[@]}" "exec:$weft serve --listen stdio:" "exec:$weft bridge stdio: $unix"; do
    for from in "unix:$there/a.sock" tcp://127.0.0.1:0 ws://127.0.0.1:0/; do
        name="${from%%:*} to ${to%%:*}"
        expect_urls=1 start "$weft" bridge --auth none --listen "$from" "$to" 2>/dev/null
        bridge=$pid
        url=${urls[0]}
        run "$weft" call "$url" echo a=1
        is "$name: a call" '{"a":1}' "$out"
        run "$weft" call "$url" nothing
        exits "$name: an error" 8
        run "$weft" call "$url" echo @big.json
        is "$name: a large message" "$(cat big.json)" "$out"
        run "$weft" bench -c 3 -w 4 -n 200 "$url" --json
        exits "$name: several clients" 0
        like "$name: all of them answered" '"requests":200,"errors":0' "$out"
        kill -INT "$bridge"
        ended "$bridge"
        exits "$name: ends well" 0
    done
done

# ---- framings ----
expect_urls=1 start "$weft" bridge --listen "unix:$there/a.sock" "$unix" --content-length
run "$weft" call "unix:$there/a.sock" echo a=1
is "lines to Content-Length" '{"a":1}' "$out"
run "$weft" call --content-length "unix:$there/a.sock" echo a=1
is "Content-Length to Content-Length" '{"a":1}' "$out"
kill "$pid"
ended "$pid"
expect_urls=1 start "$weft" bridge --listen "unix:$there/a.sock" "$unix"
run "$weft" call --content-length "unix:$there/a.sock" echo a=1
is "Content-Length to lines" '{"a":1}' "$out"
kill "$pid"
ended "$pid"

# ---- stdio, as an editor does it: the answers come although the input has ended ----
request='{"jsonrpc":"2.0","id":"x","method":"echo","params":[1]}'
answer='{"jsonrpc":"2.0","id":"x","result":[1]}'
for to in "${upstream[@]}" "exec:$weft serve --listen stdio:"; do
    name="stdio to ${to%%:*}"
    run "$weft" bridge stdio: "$to" <<<"$request"
    exits "$name: ends well" 0
    is "$name: byte for byte" "$answer" "$out"
    run "$weft" bridge stdio: "$to" < <(printf '%s' "$request")
    is "$name: a last line without its end" "$answer" "$out"
    run "$weft" bridge stdio: "$to" < <(printf '%s\n[%s,%s]\n' "$request" "$request" "$request")
    is "$name: a batch" "$answer
[$answer,$answer]" "$out"
    run "$weft" bridge stdio: "$to" </dev/null
    exits "$name: nothing to say" 0
    is "$name: nothing said" "" "$out"
    pretty=$'{"jsonrpc":"2.0",\r\n "id":"x",\n "method":"echo", "params":[1]}'
    run "$weft" bridge stdio: "$to" < <(printf 'Content-Length: %d\r\n\r\n%s' "${#pretty}" "$pretty")
    is "$name: Content-Length is answered in kind, line ends and all" "Content-Length: ${#answer}"$'\r\n\r\n'"$answer" "$out"
done
run "$weft" bridge stdio: "$unix" <<<'this is not JSON'
like "what is not JSON is for the other side to refuse" '"code":-32700' "$out"
run "$weft" bridge -v stdio: "$unix" <<<"$request"
like "-v counts" "1 messages one way, 1 the other" "$err"
WEFT_DEBUG=1 run "$weft" bridge stdio: "$unix" <<<"$request"
is "WEFT_DEBUG logs both ways" 2 "$(grep -c '"way":"in"' <<<"$err")"
run "$weft" bridge "exec:echo $(printf '%q' "$request")" "$unix"
exits "a program that says one thing" 0

# ---- ends ----
run "$weft" bridge stdio: "unix:$there/nowhere.sock" <<<"$request"
exits "nobody at B" 3
is "nobody at B: nothing is said to A" "" "$out"
run "$weft" bridge "unix:$there/nowhere.sock" "$unix"
exits "nobody at A" 3
mkfifo in
"$weft" bridge stdio: "exec:false" <in >/dev/null 2>&1 &
started+=($!)
exec 8>in
ended $!
exec 8>&-
case $rc in 0 | 3) pass ;; *) fail "B leaves at once" "status $rc" ;; esac
"$weft" bridge stdio: "exec:head -n 1" <in >got 2>talk.head &
started+=($!)
exec 8>in
echo '{"jsonrpc":"2.0","method":"hello"}' >&8
ended $!
exits "B ends while A is open" 0
exec 8>&-
is "after B has said its last word" '{"jsonrpc":"2.0","method":"hello"}' "$(cat got)"
expect_urls=1 start "$weft" bridge --listen "unix:$there/a.sock" "unix:$there/nowhere.sock"
run "$weft" call "unix:$there/a.sock" ping
exits "a client of a bridge to nowhere" 3
run "$weft" call "unix:$there/a.sock" ping
exits "and the next one" 3
kill "$pid"
ended "$pid"
exits "the bridge itself lives until it is stopped" 0

# ---- who may use it ----
echo secret-of-the-bridge >right
echo something-else >wrong
for from in tcp://127.0.0.1:0 ws://127.0.0.1:0/; do
    name=${from%%:*}
    expect_urls=1 start "$weft" bridge --listen "$from" "$unix" --listen-token-file right
    run "$weft" call "${urls[0]}" ping
    exits "$name: no token" 4
    run "$weft" call --token-file wrong "${urls[0]}" ping
    exits "$name: a wrong token" 4
    run "$weft" call --token-file right "${urls[0]}" ping
    exits "$name: the right token" 0
    kill "$pid"
    ended "$pid"
done
# Without a file it is this folder's token, made if there is none: never nobody's.
mkdir -p fresh
cd fresh || exit 1
for from in tcp://127.0.0.1:0 ws://127.0.0.1:0/; do
    name="${from%%:*}, no token named"
    expect_urls=1 start "$weft" bridge --listen "$from" "$unix"
    run "$weft" call "${urls[0]}" ping
    exits "$name: none shown" 4
    is "$name: the token is private" "600" "$(stat -c %a .weft/token)"
    run "$weft" call --token-file .weft/token "${urls[0]}" ping
    exits "$name: shown" 0
    kill "$pid"
    ended "$pid"
done
rm -rf .weft
expect_urls=1 start "$weft" bridge --listen "unix:$there/a.sock" "$unix"
run "$weft" call "unix:$there/a.sock" ping
exits "a Unix socket needs no token" 0
is "and none is made for it" "" "$(ls -A)"
kill "$pid"
ended "$pid"
# --auth none is said in words, warned of, and keeps the checks of Host and Origin.
expect_urls=1 start "$weft" bridge --auth none --listen ws://127.0.0.1:0/ "$unix"
address=${urls[0]#ws://}
address=${address%/}
knock() { # HEADER...: the status of a handshake with these headers
    exec 7<>"/dev/tcp/${address%:*}/${address##*:}"
    printf '%s\r\n' "GET / HTTP/1.1" "Connection: Upgrade" "Upgrade: websocket" "Sec-WebSocket-Version: 13" \
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==" "$@" "" >&7
    read -r _ status _ <&7
    exec 7>&-
    echo "$status"
}
is "none: our host" 101 "$(knock "Host: localhost")"
is "none: another host" 421 "$(knock "Host: evil.example")"
is "none: another origin" 403 "$(knock "Host: localhost" "Origin: https://evil.example")"
run "$weft" bridge --auth none --listen "${urls[0]}" "$unix"
exits "none: the port is taken" 6
like "none: warned of" "every user and program of this machine" "$err"
kill "$pid"
ended "$pid"
run "$weft" bridge --auth none --listen ws://0.0.0.0:0/ "$unix"
exits "none: not beyond this machine" 2
run "$weft" bridge --auth nobody --listen ws://127.0.0.1:0/ "$unix"
exits "no other kind of proof" 2
run "$weft" bridge --auth none --listen-token-file ../right --listen ws://127.0.0.1:0/ "$unix"
exits "none, and a token" 2
run "$weft" bridge --listen ws://0.0.0.0:0/ "$unix"
exits "not for strangers" 2
cd .. || exit 1
run "$weft" bridge --listen ws://0.0.0.0:0/ "$unix" --listen-token-file right
exits "with a token, but not encrypted" 2
run "$weft" bridge --listen http://127.0.0.1:0/ "$unix"
exits "not by http" 2
like "not by http: what instead" "ws://" "$err"
# The token of B is shown by the bridge; its clients need not know it.
start "$weft" serve --listen tcp://127.0.0.1:0 --listen ws://127.0.0.1:0/ws --listen http://127.0.0.1:0/rpc --token-file right
for to in "${urls[@]}"; do
    run "$weft" bridge stdio: "$to" --token-file right <<<"$request"
    is "with a token to ${to%%:*}" "$answer" "$out"
    run "$weft" bridge stdio: "$to" --token-file wrong <<<"$request"
    exits "with a wrong token to ${to%%:*}" 4
done

# ---- the pace of the slower one: more than any queue holds goes through, and the bridge stays small ----
cat >flood <<'END'
#!/bin/bash
line='{"jsonrpc":"2.0","method":"n","params":["'$(head -c 60000 /dev/zero | tr '\0' y)'"]}'
for _ in $(seq 1 3000); do
    echo "$line"
done
END
chmod +x flood
peak() { # the largest size the process had, in kB
    sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"
}
mkfifo slow
"$weft" bridge stdio: "exec:./flood" <in >slow 2>/dev/null &
bridge=$!
started+=("$bridge")
exec 8>in
exec 9<slow
head -c 1000000 <&9 | wc -c >/dev/null
size=$(peak "$bridge")
rest=$(wc -c <&9)
ended "$bridge"
exec 8>&- 9<&-
exits "a flood" 0
is "a flood arrives whole" $((3000 * 60045)) $((1000000 + rest))
case $BUILD in
*asan* | *tsan*) skip "the size of a bridge" "most of a program's size is the sanitizer's own memory" ;;
*) [ "$size" -lt 30000 ] && pass || fail "a bridge holds back what is not read" "$size kB" ;;
esac
# The same towards a client that came to us and reads only when nothing goes any more.
stuck() { # PID: it has written much, and writes no more
    local was=-1 now=0
    for _ in $(seq 1 100); do
        now=$(sed -n 's/^wchar: //p' "/proc/$1/io")
        [ "$now" = "$was" ] && [ "$now" -gt 1000000 ] && return
        was=$now
        sleep 0.1
    done
}
expect_urls=1 start "$weft" bridge --auth none --listen tcp://127.0.0.1:0 "exec:./flood" 2>/dev/null
at=${urls[0]##*:}
exec 9<>"/dev/tcp/127.0.0.1/${at%/}"
for _ in $(seq 1 100); do
    read -r flood _ <"/proc/$pid/task/$pid/children"
    [ "$flood" ] && break
    sleep 0.1
done
stuck "$flood"
is "a flood arrives whole at a client" $((3000 * 60045)) "$(timeout 120 cat <&9 | wc -c)"
exec 9<&-
close
