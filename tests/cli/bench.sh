#!/bin/bash
# weft bench: what it counts and what it says.
. "$(dirname "$0")/kit.bash"

start "$weft" serve --auth none --no-rate --listen "unix:$there/b.sock" --listen tcp://127.0.0.1:0 --listen ws://127.0.0.1:0/ws \
    --listen http://127.0.0.1:0/rpc
server=$pid
all=("${urls[@]}")
for url in "${all[@]}"; do
    name=${url%%:*}
    run "$weft" bench -c 3 -w 5 -n 1000 -s 100 --json "$url"
    exits "$name" 0
    like "$name: every request is counted" '"requests":1000,"errors":0' "$out"
    like "$name: as it was told" '"method":"echo","connections":3,"window":5,"size":100' "$out"
    for field in requestsPerSecond p50Ms p99Ms p999Ms maxMs seconds; do
        like "$name: $field" "\"$field\":" "$out"
    done
    is "$name: one line" 1 "$(wc -l <<<"$out")"
done
run "$weft" bench -n 100 "${all[0]}"
like "for people" "100 requests in" "$out"
like "the percentiles" "p99.9" "$out"
like "a histogram" "|#" "$out"
run "$weft" bench -n 3 -c 5 -w 2 --json "${all[0]}"
like "fewer requests than connections" '"requests":3,' "$out"
run "$weft" bench -d 50ms --json "${all[0]}"
exits "a time" 0
run "$weft" bench -n 10 -m nothing "${all[0]}"
exits "a method that is not there" 8
like "a method that is not there: said once" "Method not found" "$err"
is "a method that is not there: and only once" 1 "$(grep -c 'Method not found' <<<"$err")"
run "$weft" bench -n 50 -m nothing --json "${all[0]}"
like "a method that is not there: counted" '"requests":0,"errors":50' "$out"
run "$weft" bench -n 10 -s 2M -c 1 -w 1 --json "${all[0]}"
like "large messages" '"requests":10,"errors":0' "$out"
run "$weft" bench -n 10 "unix:$there/nowhere.sock"
exits "nobody there" 3
run "$weft" bench -c 100000 "${all[0]}"
exits "too many connections" 2
run "$weft" bench -n 10 --timeout 100ms "exec:sleep 30"
exits "nobody answers" 7

# The server goes away in the middle.
"$weft" bench -d 60s "${all[0]}" >/dev/null 2>talk.bench &
bench=$!
started+=("$bench")
for _ in $(seq 1 1000); do
    run "$weft" call "${all[0]}" ping
    [ "$(ls "/proc/$bench/fd" 2>/dev/null | wc -l)" -gt 8 ] && break
done
kill -KILL "$server"
ended "$bench"
exits "the server goes away" 3
close
