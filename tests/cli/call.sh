#!/bin/bash
# The verbs that ask: call, notify, methods, describe, ping, listen. Params in every form, results, and every exit status.
. "$(dirname "$0")/kit.bash"

expect_urls=4 start "$EXAMPLES/spec-server" "unix:$there/spec.sock" tcp://127.0.0.1:0 ws://127.0.0.1:0/ws http://127.0.0.1:0/rpc
spec=${urls[0]}
is "the server listens on all of them" 4 "${#urls[@]}"

# ---- the same on every transport ----
for url in "${urls[@]}" "$there/spec.sock" "exec:$EXAMPLES/spec-server stdio:"; do
    name=${url%%:*}
    run "$weft" call "$url" subtract '[42,23]'
    is "$name: positional params" 19 "$out"
    run "$weft" call "$url" subtract minuend=42 subtrahend=23
    is "$name: named params" 19 "$out"
    run "$weft" call "$url" get_data
    is "$name: no params" '["hello",5]' "$out"
    run "$weft" call "$url" no_such_method
    exits "$name: an unknown method" 8
    run "$weft" notify "$url" update '[1,2]'
    exits "$name: a notification" 0
    is "$name: a notification says nothing" "" "$out$(grep -v '^listening on' <<<"$err")"
    run "$weft" ping "$url"
    exits "$name: ping" 0
    run "$weft" methods "$url"
    like "$name: methods" "subtract" "$out"
done
run "$weft" call --content-length "$spec" add a=1 b=2
is "Content-Length" 3 "$out"

# ---- a standard stream that is closed ----
"$weft" call "$spec" add a=1 b=2 >&- 2>closed.err
is "no standard output is a failure" 1 "$?"
like "which is said" "cannot write to standard output" "$(cat closed.err)"
is "without standard input" 3 "$("$weft" call "$spec" add a=1 b=2 <&-)"
is "without standard error" 3 "$("$weft" call "$spec" add a=1 b=2 2>&-)"
is "without both" 3 "$("$weft" call "$spec" add a=1 b=2 <&- 2>&-)"
run "$weft" call --content-length "exec:$EXAMPLES/spec-server stdio:" add a=1 b=2
is "Content-Length to a child" 3 "$out"

# ---- params: what is typed and what arrives ----
arrives() { # NAME WANTED ARGUMENT...
    local name=$1 wanted=$2
    shift 2
    run "$weft" call "$serve" echo "$@"
    is "params: $name" "$wanted" "$out"
}
mkdir daemon
cd daemon || exit 1
start "$weft" serve --listen "unix:$there/serve.sock"
serve=${urls[0]}
arrives "text" '{"a":"hi there"}' "a=hi there"
arrives "integer" '{"a":5}' a=5
arrives "number" '{"a":-1.50e3}' a=-1.50e3
arrives "true, false, null" '{"a":true,"b":false,"c":null}' a=true b=false c=null
arrives "object and array" '{"a":{"x":1},"b":[1,2]}' 'a={"x":1}' 'b=[1,2]'
arrives "not quite JSON" '{"a":"[1,","b":"01","c":"tru","d":"1 2"}' 'a=[1,' b=01 c=tru 'd=1 2'
arrives "empty" '{"a":""}' a=
arrives "a value with an equals sign" '{"a":"b=c"}' a=b=c
arrives "forced text" '{"a":"5","b":"true","c":""}' a==5 b==true c==
arrives "forced JSON" '{"a":5,"b":"text"}' a:=5 'b:="text"'
arrives "quotes stay" '{"a":"\"x\""}' 'a="x"'
arrives "what needs escaping" '{"a":"tab\tquote\"\\ü€😀"}' $'a=tab\tquote"\\ü€😀'
arrives "a name that needs escaping" '{"a\"b":1}' 'a"b=1'
arrives "a text" '{"a":1}' '{"a": 1}'
arrives "an array" '[1,{"b":2}]' '[1,{"b":2}]'
arrives "a dash after --" '{"-a":1}' -- -a=1
echo '{ "from": ["a", "file"] }' >params.json
arrives "a file" '{"from":["a","file"]}' @params.json
run "$weft" call "$serve" echo - <params.json
is "params: standard input" '{"from":["a","file"]}' "$out"
run "$weft" call "$serve" echo - <<<'not json'
exits "params: standard input that is not JSON" 2
run "$weft" call "$serve" echo a=1 --timeout=5s
is "options behind the params" '{"a":1}' "$out"

# ---- data and talk ----
run "$weft" call --json "$serve" echo '[ 1, 2 ]'
is "--json: the result, in one line" "[1,2]" "$out"
run "$weft" call "$serve" echo a=1
unlike "no colours where there is no terminal" $'\x1b' "$out"
run "$weft" call "$serve" ehco
exits "an error of theirs" 8
is "errors are not data" "" "$out"
like "what: the method, the message, the code" "ehco: Method not found (-32601)" "$err"
like "and what was meant" "Did you mean echo?" "$err"
run "$weft" call --json "$serve" ehco
like "--json: the error as data" '{"error":{"code":-32601,"message":"Method not found","data":{"reason":"methodNotFound"},"exit":8}}' "$out"
run "$weft" call -v "$serve" ping
like "-v says more" "connected to $serve" "$err"
like "-v says how long" "answered in" "$err"
run "$weft" notify --json "$serve" anything
is "notify --json" '{"sent":true}' "$out"
run "$weft" call "$spec" subtract minuend=1
exits "a missing param" 8
like "a missing param is named" '/subtrahend' "$err"
WEFT_DEBUG=1 run "$weft" call "$serve" echo a=1 token=s3cret 'deep={"list":[{"Auth":"s3cret"}]}'
like "WEFT_DEBUG logs what goes out" '"way":"out"' "$err"
like "WEFT_DEBUG logs what comes in" '"way":"in"' "$err"
unlike "but no secrets" "s3cret" "$err"
like "only that there are some" '"token":"***"' "$err"
like "and data is still data" "s3cret" "$out"
AIWG_IPC_DEBUG=1 run "$weft" call "$serve" ping
like "AIWG_IPC_DEBUG does the same" '"way":"out"' "$err"

# ---- methods, describe, ping ----
run "$weft" methods "$serve"
like "methods: name and help" "echo answer the params as they came" "$(echo "$out" | tr -s ' ')"
run "$weft" methods --json "$serve"
like "methods --json" '{"title":"weft","version":"0.' "$out"
like "methods --json: each" '{"name":"echo","summary":"answer the params as they came"}' "$out"
run "$weft" describe "$spec" subtract
like "describe: help" "subtract: the difference of two numbers" "$out"
like "describe: params" "minuend  number, required: from this" "$out"
run "$weft" describe "$serve" ping
like "describe: result" '"timestamp"' "$out"
run "$weft" describe "$serve" execute_task
like "describe: the schema of the params" 'params must fit: {' "$out"
like "describe: what is in it" '"timeout_ms": {' "$out"
like "describe: the code of a rate" "-32002  Too many requests  rateLimited" "$out"
run "$weft" describe --json "$spec" subtract
like "describe --json" '{"name":"subtract","summary":' "$out"
run "$weft" describe "$spec" subtrcat
exits "describe: not there" 5
like "describe: what was meant" "Did you mean subtract?" "$err"
run "$weft" ping "$serve"
like "ping" "answer from $serve in " "$out"
run "$weft" ping -c 3 "$serve"
like "ping -c: the sum" "3 answers, least" "$out"
is "ping -c: a line each, and one" 4 "$(wc -l <<<"$out")"
run "$weft" ping -c2 --json "$serve"
is "ping --json: a line each" 2 "$(wc -l <<<"$out")"
like "ping --json" '"number":2,"ms":' "$out"
run "$weft" ping "$spec"
like "ping of a server without the method" "it has no method ping" "$out"

# ---- exit statuses ----
# A server of one answer: what is asked for is in its file, with the caller's id.
cat >one-answer <<'END'
#!/bin/bash
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%,*}
    answer=$(cat "$1")
    echo "${answer//ID/${id%\}}}"
done
END
chmod +x one-answer
answers() { # NAME STATUS ANSWER
    echo "$3" >answer
    run "$weft" call --timeout 20s "exec:./one-answer answer" m
    exits "$1" "$2"
}
error() { # CODE [REASON]
    echo '{"jsonrpc":"2.0","id":ID,"error":{"code":'"$1"',"message":"No"'"${2:+,\"data\":{\"reason\":\"$2\"\}}"'}}'
}
answers "0: a result" 0 '{"jsonrpc":"2.0","id":ID,"result":{"fine":true}}'
is "a child's answer" '{"fine":true}' "$out"
answers "8: any error" 8 "$(error -32000)"
answers "8: no such method" 8 "$(error -32601 methodNotFound)"
answers "4: 401" 4 "$(error 401)"
answers "4: 403" 4 "$(error 403)"
answers "5: 404" 5 "$(error 404)"
answers "5: a reason that says so" 5 "$(error -32000 taskNotFound)"
answers "6: 429" 6 "$(error 429)"
answers "6: 503" 6 "$(error 503)"
answers "6: a full queue" 6 "$(error -32002 queueFull)"
run "$weft" ping "unix:$there/nowhere.sock"
exits "3: no socket" 3
take_closed_port
run "$weft" ping "tcp://127.0.0.1:$closed_port"
exits "3: nobody listens" 3
like "3: why" "nobody is listening there" "$err"
like "3: what to do" "Is it running" "$err"
run "$weft" ping exec:no-such-program-anywhere
exits "3: no such program" 3
run "$weft" ping "exec:false"
exits "3: a program that leaves" 3
like "3: how it left" "false exited with status 1" "$err"
run "$weft" ping --json "unix:$there/nowhere.sock"
like "--json: our failure as data" '{"error":{"exit":3,"message":' "$out"
run "$weft" call --timeout 50ms "exec:sleep 30" m
exits "7: no answer" 7
like "7: what to do" "--timeout" "$err"
cd "$there" || exit 1
mkdir -p empty/folder
cd empty/folder || exit 1
run "$weft" ping
exits "3: no daemon in this folder" 3
like "3: how to get one" "weft start" "$err"
run "$weft" call ping
exits "3: call without a URL and without a daemon" 3

# ---- what others send does not steer a terminal, nor break a line ----
printf '{"jsonrpc":"2.0","id":ID,"result":{\n  "a" : [ ] ,\n "b":"\\u001b[31m"\n}}' | tr -d '\n' >answer
run "$weft" call "exec:$there/daemon/one-answer answer" m
is "results are printed in one line" '{"a":[],"b":"\u001b[31m"}' "$out"

# ---- listen ----
cd "$there" || exit 1
expect_urls=2 start "$EXAMPLES/ws-broadcast" "unix:$there/cast.sock" ws://127.0.0.1:0/
cast=${urls[0]}
server=$pid
for url in "${urls[@]}"; do
    start "$weft" listen -v -n 2 "$url" >heard
    listener=$pid
    run "$weft" call "$cast" publish a=1
    is "listen ${url%%:*}: somebody hears" '{"told":2}' "$out"
    run "$weft" call "$cast" publish '[2]'
    ended "$listener"
    exits "listen -n ends by itself" 0
    is "listen: one object per line" '{"method":"message","params":{"a":1}}
{"method":"message","params":[2]}' "$(cat heard)"
done
start "$weft" listen -v "$cast" >heard
kill -INT "$pid"
ended "$pid"
exits "listen ends well with Ctrl-C" 0
run "$weft" listen "unix:$there/nowhere.sock"
exits "listen where nobody is" 3

# A connection that is lost is made again.
start "$weft" listen -v -n 1 "$cast" >heard
listener=$pid
listener_talk=$talk
kill "$server"
wait "$server" 2>/dev/null
expect_urls=1 start "$EXAMPLES/ws-broadcast" "$cast"
for _ in $(seq 1 600); do
    grep -q 'trying again' "$listener_talk" && [ "$(grep -c '^connected' "$listener_talk")" = 2 ] && break
    run "$weft" ping "$cast" # takes a moment
done
run "$weft" call "$cast" publish again=1
is "listen connects again" '{"told":2}' "$out"
ended "$listener"
is "and hears" '{"method":"message","params":{"again":1}}' "$(cat heard)"
close
