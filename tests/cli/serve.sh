#!/bin/bash
# weft serve: its folder, its token, its ports, its end.
. "$(dirname "$0")/kit.bash"

mode() {
    stat -c %a "$1"
}

mkdir -p project/deep/down
cd project || exit 1
start "$weft" serve
first=$pid
is "six endpoints" 6 "${#urls[@]}"
is "the Unix socket" "unix:.weft/daemon.sock" "${urls[0]}"
http=${urls[1]}
ws=${urls[2]}
like "http on loopback" "http://127.0.0.1:16" "$http"
is "ws beside it" "ws://${http#http://}" "${ws%/ws}/rpc"
is "and ACP" "${ws%/ws}/acp" "${urls[3]}"
is "and tinyvex" "${ws%/ws}/tinyvex" "${urls[4]}"
is "and wiggum" "${ws%/ws}/wiggum" "${urls[5]}"
like "it says what to try" "weft task submit --wait \"hello\"" "$(cat "$talk")"
is "the folder is private" 700 "$(mode .weft)"
is "the socket is private" 600 "$(mode .weft/daemon.sock)"
is "the token is private" 600 "$(mode .weft/token)"
is "the endpoints are private" 600 "$(mode .weft/endpoint.json)"
is "git ignores it" "*" "$(cat .weft/.gitignore)"
is "the token has 256 bits" 64 "$(tr -d '\n' <.weft/token | wc -c)"
like "the endpoints can be read by programs" "\"http\":\"$http\"" "$(cat .weft/endpoint.json)"
like "with the process" "\"pid\":$first" "$(cat .weft/endpoint.json)"
unlike "but not the token" "$(cat .weft/token)" "$(cat .weft/endpoint.json "$talk")"

run "$weft" ping
exits "found in its folder" 0
cd deep/down || exit 1
run "$weft" call echo here=true
is "found from below" '{"here":true}' "$out"
cd ../.. || exit 1
run "$weft" call ping
case $out in
'{"pong":true,"timestamp":"20'??-??-??T??:??:??.???'Z"}') pass ;;
*) fail "ping's answer" "$out" ;;
esac

# ---- the token ----
token=$(cat .weft/token)
echo "$token" >right
echo "0$token" >wrong
for url in "$http" "$ws"; do
    name=${url%%:*}
    run "$weft" call "$url" ping
    exits "$name: no token" 4
    like "$name: what to do about it" "--token-file" "$err"
    run "$weft" call --token-file wrong "$url" ping
    exits "$name: a wrong token" 4
    run "$weft" call --token-file right "$url" ping
    exits "$name: the right token" 0
    WEFT_TOKEN=$token run "$weft" call "$url" ping
    exits "$name: the token from the environment" 0
    run "$weft" bench --token-file wrong -c 1 -n 10 "$url"
    exits "$name: bench with a wrong token" 4
    run "$weft" listen --token-file wrong "$url"
    exits "$name: listen with a wrong token" 4
done
for url in "${ws%ws}nowhere" "${http%rpc}nowhere"; do
    run "$weft" call --token-file right "$url" ping
    exits "${url%%:*}: a path that is not there" 5
done
if command -v curl >/dev/null; then
    # The very line it told us to try.
    run bash -c "$(sed -n '/^ *curl /,/[^\\]$/p' "$talk") -sS"
    like "the curl line it says works" '"result":[]' "$out"
else
    skip "the curl line" "curl is not installed"
fi

# ---- what it says to try ----
# Three commands that need nothing but the program itself; the second waits until somebody answers.
answer() {
    for _ in {1..300}; do
        "$weft" answer question-0000 allow >/dev/null 2>&1 && return
        sleep 0.1
    done
}
mapfile -t try < <(grep 'weft task .*  # ' "$talk")
is "it says three commands to try" 3 "${#try[@]}"
run timeout 120 bash -c "${try[0]}"
exits "the first" 0
like "the first is answered" "demo agent" "$out"
answer &
run timeout 120 bash -c "${try[1]}" </dev/null
exits "the second, once it is allowed" 0
like "the second asks" "question-0000" "$err"
wait $!
run timeout 120 bash -c "${try[2]}"
exits "the third" 0
like "the third shows the others" "write a file" "$out"
like "it says which agent that was" 'The agent is "demo"' "$(cat "$talk")"

# ---- a second daemon ----
run "$weft" serve
exits "a second one in the same folder" 6
like "says what is the matter" "already running in this folder (pid $first)" "$err"
run "$weft" ping
exits "and leaves the first alone" 0
mkdir ../other
cd ../other || exit 1
start "$weft" serve
second=$pid
other=${urls[1]}
[ "$other" != "$http" ] && pass || fail "another folder gets another port" "$other"
like "which is in its file" "$other" "$(cat .weft/endpoint.json)"
run "$weft" call --token-file ../project/right "$other" ping
exits "and another token" 4
kill "$second"
ended "$second"
exits "SIGTERM ends well" 0
cd ../project || exit 1

# ---- the end ----
kill -INT "$first"
ended "$first"
exits "SIGINT ends well" 0
[ ! -e .weft/daemon.sock ] && pass || fail "the socket is gone"
[ ! -e .weft/endpoint.json ] && pass || fail "the endpoints are gone"
is "the token stays" "$token" "$(cat .weft/token)"
run "$weft" ping
exits "nobody is there" 3

# ---- again, after a crash ----
start "$weft" serve
kill -KILL "$pid"
wait "$pid" 2>/dev/null
[ -S .weft/daemon.sock ] && pass || fail "a crash leaves a socket"
run "$weft" ping
exits "a stale socket is nobody" 3
start "$weft" serve
run "$weft" call ping
exits "a stale socket is replaced" 0
is "with the same token" "$token" "$(cat .weft/token)"
kill "$pid"
ended "$pid"

# ---- other endpoints ----
cd "$there" || exit 1
mkdir elsewhere
cd elsewhere || exit 1
start "$weft" serve --json --listen "unix:$there/a.sock" --listen tcp://127.0.0.1:0 --token-file ../project/right >json
tcp=${urls[1]}
is "two endpoints" 2 "${#urls[@]}"
like "--json says where" "\"urls\":[\"unix:$there/a.sock\",\"$tcp\"]" "$(cat json)"
[ ! -e .weft ] && pass || fail "no folder is made when nothing belongs there"
run "$weft" call "unix:$there/a.sock" ping
exits "unix: no token needed" 0
run "$weft" call "$tcp" ping
exits "tcp: no token" 4
run "$weft" call --token-file ../project/wrong "$tcp" ping
exits "tcp: a wrong token" 4
run "$weft" call --token-file ../project/right "$tcp" ping
exits "tcp: the right token" 0
run "$weft" bench --token-file ../project/right -c 2 -n 20 "$tcp"
exits "tcp: bench with the token" 0
run "$weft" bench --token-file ../project/wrong -c 2 -n 20 "$tcp"
exits "tcp: bench with a wrong token" 4
kill "$pid"
ended "$pid"

start "$weft" serve --auth none --listen ws://127.0.0.1:0/
like "--auth none warns" "--auth none" "$(cat "$talk")"
run "$weft" call "${urls[0]}" ping
exits "--auth none: no token needed" 0
kill "$pid"
ended "$pid"

run "$weft" call "exec:$weft serve --listen stdio:" echo a=1
is "on stdio" '{"a":1}' "$out"
run timeout 120 "$weft" serve --listen stdio: <<<'{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}'
exits "on stdio: it ends with its input" 0
is "on stdio: what was asked is answered before" '{"jsonrpc":"2.0","id":1,"result":[1]}' "$out"
slow='{"jsonrpc":"2.0","id":1,"method":"execute_task","params":{"task_type":"testing","prompt":"slow 200s"}}'
timeout 60 "$weft" serve --listen stdio: <<<"$slow" 2>/dev/null | :
is "on stdio: it does not work on for a reader that has gone" 0 "${PIPESTATUS[0]}"

asks='{"jsonrpc":"2.0","id":1,"method":"execute_task","params":{"task_type":"testing","prompt":"write a file","options":{"timeout_ms":600000}}}'
run timeout 60 "$weft" serve --stdio <<<"$asks"
exits "on stdio: a question of the agent does not wait for who can say no more" 0
like "on stdio: the task goes on without what nobody allowed" '"status":"success"' "$out"
is "on stdio: nothing was written" "" "$(ls weft-demo.txt 2>/dev/null)"
answers() { # the question is answered, and the output of the hub ends with it
    printf '%s\n' "$asks"
    until grep -q "question-0000" "$there/asked"; do sleep 0.05; done
    printf '%s\n' '{"jsonrpc":"2.0","id":2,"method":"question.answer","params":{"questionId":"question-0000","option":"allow_once"}}'
}
: >"$there/asked"
answers | timeout 60 "$weft" serve --stdio >"$there/answered" 2>"$there/asked"
like "on stdio: who can still speak is waited for" '"status":"success"' "$(cat "$there/answered")"
is "on stdio: and was heard" "weft-demo.txt" "$(ls weft-demo.txt 2>/dev/null)"
rm -f weft-demo.txt

cd "$there/other" || exit 1
start "$weft" serve --listen unix:.weft/daemon.sock
is "its own socket may be named as well" "unix:.weft/daemon.sock" "${urls[*]}"
kill "$pid"
ended "$pid"
cd - >/dev/null || exit 1

refused() { # NAME STATUS PART ARGUMENT...
    local name=$1 status=$2 part=$3
    shift 3
    run "$weft" serve "$@"
    exits "$name" "$status"
    like "$name: says why" "$part" "$err"
}
refused "no encryption for others" 2 "not encrypted" --listen ws://0.0.0.0:0/
refused "no --auth none for others" 2 "--auth none is for" --auth none --insecure-listen --listen ws://0.0.0.0:0/
refused "no TLS without a certificate" 2 "--tls-cert" --listen wss://127.0.0.1:0/
refused "a program cannot be listened on" 2 "cannot be listened on" --listen exec:cat
refused "not a URL" 2 "did you mean tcp://localhost:1?" --listen localhost:1
refused "a folder that is not there" 1 "No such file" --listen "unix:$there/no/such/folder.sock"
echo data >file
refused "a file in the way" 2 "not a socket" --listen "unix:$there/elsewhere/file"
is "which is left alone" data "$(cat file)"

# ---- TLS ----
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -days 1 \
        -subj /CN=localhost -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' 2>/dev/null
    start "$weft" serve --listen wss://127.0.0.1:0/ws --listen https://127.0.0.1:0/rpc --listen tls://127.0.0.1:0 \
        --tls-cert cert.pem --tls-key key.pem --token-file ../project/right
    for url in "${urls[@]}"; do
        name=${url%%:*}
        run "$weft" call --token-file ../project/right --cacert cert.pem "$url" ping
        exits "$name: with its certificate" 0
        run "$weft" call --token-file ../project/right -k "$url" ping
        exits "$name: without a look at it" 0
        run "$weft" call --token-file ../project/right "$url" ping
        [ "$rc" -ne 0 ] && pass || fail "$name: an unknown certificate is refused"
        for verb in "call $url ping" "listen $url" "bench -n 1 $url" "bridge $url $url"; do
            run "$weft" $verb --cacert key.pem
            exits "$name: ${verb%% *} with a file that is no certificate" 2
            like "$name: ${verb%% *} names it" "key.pem" "$err"
        done
        run "$weft" call --cacert cert.pem "$url" ping
        exits "$name: no token" 4
    done
    kill "$pid"
    ended "$pid"
else
    skip "TLS" "openssl is not installed"
fi

# ---- the rate of network clients ----
start "$weft" serve --auth none --rate 60 --listen "unix:$there/rate.sock" --listen tcp://127.0.0.1:0
run "$weft" bench -c 1 -w 1 -n 500 "${urls[1]}"
exits "too many requests" 6
like "too many requests: what it is" "429" "$err"
run "$weft" bench -c 1 -w 1 -n 500 "${urls[0]}"
exits "no limit on the Unix socket" 0
kill "$pid"
ended "$pid"
WEFT_DEBUG=1 start "$weft" serve --listen "unix:$there/debug.sock"
run "$weft" call "${urls[0]}" echo token=s3cret note=hello
kill "$pid"
ended "$pid"
like "WEFT_DEBUG logs" '"note":"hello"' "$(cat "$talk")"
unlike "without secrets" "s3cret" "$(cat "$talk")"

# A child that speaks to its parent alone keeps nothing; a scheme is the same in capitals.
for url in stdio: STDIO:; do
    mkdir "$there/child" && cd "$there/child" || exit 1
    run timeout 120 "$weft" call "exec:$weft serve --listen $url" ping
    exits "$url is served" 0
    like "$url answers" '"pong":true' "$out"
    is "$url leaves nothing" "" "$(ls -A)"
    cd "$there" && rm -rf child
done
close
