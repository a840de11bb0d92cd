#!/bin/bash
# The files of a daemon: Weft's own layout, AIWG's, and finding one or the other.
. "$(dirname "$0")/kit.bash"

export XDG_CONFIG_HOME=$there/xdg
daemon() {
    run timeout 120 "$weft" "$@"
}
end_daemons() {
    for home in "$there"/*/.weft "$there"/*/.aiwg; do
        [ -d "$home" ] || continue
        (cd "${home%/.*}" && timeout 120 "$weft" stop --force --timeout 1s && timeout 120 "$weft" stop --aiwg --force --timeout 1s) \
            >/dev/null 2>&1
    done
}
trap 'end_daemons; finish_all; rm -rf "$there" "$kit_said"' EXIT
here() { # FILE...: those of them that are there, in this order; ls sorts by the locale
    local file
    for file; do
        if [ -e "$file" ] || [ -L "$file" ]; then printf '%s ' "$file"; fi
    done
}

# ---- an AIWG daemon ----
mkdir -p a/deep/down && cd a || exit 1
umask 022
daemon start --aiwg
exits "it starts" 0
like "on AIWG's socket" "listening on unix:.aiwg/daemon/daemon.sock" "$err"
is "its files" ".aiwg/daemon.json .aiwg/daemon.pid .aiwg/daemon/.lock .aiwg/daemon/daemon.log .aiwg/daemon/daemon.sock .aiwg/daemon/token " \
    "$(here .weft .aiwg/daemon.json .aiwg/daemon.pid .aiwg/daemon/.lock .aiwg/daemon/daemon.log .aiwg/daemon/daemon.sock .aiwg/daemon/token)"
is "the folder is private" 700 "$(stat -c %a .aiwg/daemon)"
like "the log says that it listens" "IPC server listening on .aiwg/daemon/daemon.sock" "$(cat .aiwg/daemon/daemon.log)"
like "and that it has started" "Daemon started successfully" "$(cat .aiwg/daemon/daemon.log)"
kill -0 "$(cat .aiwg/daemon.pid)"
is "the pid file has its process" 0 $?
first=$(cat .aiwg/daemon.pid)
cd deep/down || exit 1
daemon status --json
exits "status finds it from below" 0
like "and it is that one" "\"pid\":$first," "$out"
daemon call echo a=1
is "so does a call" '{"a":1}' "$out"
daemon logs -n 1
like "so do logs" "Daemon started successfully" "$out"
daemon status --aiwg
exits "--aiwg means it too" 0
daemon start
exits "start means Weft's own, here" 0
daemon status --json
like "which is nearer" '"unix:.weft/daemon.sock"' "$out"
daemon status --aiwg --json
like "--aiwg is the other" "\"pid\":$first," "$out"
daemon stop
exits "Weft's own ends" 0
rm -rf .weft
daemon restart
exits "restart finds it" 0
like "it is still AIWG's" "listening on unix:.aiwg/daemon/daemon.sock" "$err"
daemon stop
exits "stop finds it" 0
like "and says so" "stopped, pid" "$err"
cd ../.. || exit 1
is "what is left" ".aiwg/daemon/daemon.log .aiwg/daemon/token " \
    "$(here .weft .aiwg/daemon.pid .aiwg/daemon/daemon.log .aiwg/daemon/daemon.sock .aiwg/daemon/token)"
daemon status
exits "it does not run any more" 3
daemon stop --aiwg
exits "stopping none is fine" 0

# ---- both in one folder ----
daemon start --aiwg
daemon start
exits "both in one folder" 0
daemon status --json
like "Weft's own is meant" '"unix:.weft/daemon.sock"' "$out"
daemon stop
daemon status --json
like "and when it does not run, the other" '"unix:.aiwg/daemon/daemon.sock"' "$out"
daemon stop --aiwg
exits "that one ends too" 0

# ---- in the foreground ----
start "$weft" serve --aiwg
is "the socket" "unix:.aiwg/daemon/daemon.sock" "${urls[0]}"
like "AIWG's log is written there too" "IPC server listening" "$(tail -n 10 .aiwg/daemon/daemon.log)"
run timeout 120 "$weft" serve --aiwg
exits "a second one" 6
kill -TERM "$pid"
ended "$pid"
is "it ends as it should" 0 "$rc"
is "without its pid file" "" "$(here .aiwg/daemon.pid .aiwg/daemon/daemon.sock)"

# ---- AIWG's own daemon has the place ----
/usr/bin/python3 - <<'PY' &
import socket, time
s = socket.socket(socket.AF_UNIX)
s.bind('.aiwg/daemon/daemon.sock')
s.listen()
time.sleep(60)
PY
other=$!
started+=("$other")
echo $other >.aiwg/daemon.pid
echo '{"theirs":1}' >.aiwg/daemon/state.json
for _ in $(seq 1200); do
    [ -S .aiwg/daemon/daemon.sock ] && break
    sleep 0.1
done
run timeout 120 "$weft" serve --aiwg
exits "it is not pushed aside" 6
is "and keeps its pid file" "$other" "$(cat .aiwg/daemon.pid)"
is "and its state" '{"theirs":1}' "$(cat .aiwg/daemon/state.json)"
kill "$other"
wait "$other" 2>/dev/null
daemon start --aiwg
exits "what it left behind is in nobody's way" 0
unlike "the pid file is ours now" "$other" "$(cat .aiwg/daemon.pid)"
daemon stop

# ---- what came with a project ----
mkdir -p "$there/b/elsewhere" && cd "$there/b" || exit 1
ln -s elsewhere .aiwg
run timeout 120 "$weft" serve --aiwg
exits "a link is not followed" 1
is "and nothing is written" "" "$(ls elsewhere)"
rm .aiwg
mkdir .aiwg
ln -s ../elsewhere .aiwg/daemon
run timeout 120 "$weft" serve --aiwg
exits "nor is the next one" 1
is "and nothing is written there either" "" "$(ls elsewhere)"

# ---- its configuration ----
mkdir -p "$there/c/.aiwg" "$there/c/.weft" && cd "$there/c" || exit 1
echo '{"default_agent": "gemini"}' >.weft/config.json
cat >.aiwg/daemon.json <<'END'
{"daemon": {"max_parallel_actions": 2, "new_in_2031": true}, "rules": [{"id": "r", "trigger": {"type": "file.modify"},
 "action": {"type": "agent", "prompt": "look at {{payload.path}}"}}]}
END
show() { # KEY
    run "$weft" config show --origin -- --aiwg
    grep "^$1 " <<<"$out" | sed 's/  */ /g'
}
is "AIWG's file counts, not Weft's" 'default_agent "claude" project' "$(show default_agent)"
is "its numbers" "tasks.max_running 2 project" "$(show tasks.max_running)"
like "its rules" '"prompt":"look at {{payload.path}}"' "$(show automation.rules)"
run "$weft" config show -- --aiwg
is "--aiwg allows rules that start its agent; what is unknown is not told" "" "$err"
is "the environment before it" "tasks.max_running 9 environment" "$(WEFT_TASKS_MAX_RUNNING=9 show tasks.max_running)"
cat >.aiwg/daemon.json <<'END'
{"rules": [{"id": "call", "trigger": {"type": "file.modify"}, "action": {"type": "webhook", "url": "http://127.0.0.1:9/x"}}]}
END
run timeout 120 "$weft" start --aiwg </dev/null
exits "a rule that calls a URL waits" 4
like "it is shown" "calls http://127.0.0.1:9/x" "$err"
run timeout 120 "$weft" trust --aiwg </dev/null
exits "nobody is there to ask" 4
trust --aiwg
daemon start --aiwg
exits "until it is trusted" 0
daemon stop --aiwg
watch_paths() { # COUNT
    printf '{"watch": {"enabled": true, "paths": ["d0"%s]}}' "$(printf ', "d%s"' $(seq "$(($1 - 1))"))" >.aiwg/daemon.json
}
watch_paths 32
run "$weft" config show -- --aiwg
exits "as many paths as can be watched" 0
like "all of them" "\"d31\"" "$out"
watch_paths 33
run timeout 120 "$weft" start --aiwg </dev/null
exits "one more is refused" 1
like "in words" ".aiwg/daemon.json:1:38: watch.paths names 33 paths, and 32 can be watched" "$err"
echo '{"daemon": ' >.aiwg/daemon.json
daemon start --aiwg
exits "a file that is no JSON means the defaults" 0
like "its place" ".aiwg/daemon.json:2:1: expected a value" "$err"
like "and that is said" "AIWG's defaults are used instead" "$err"
daemon stop --aiwg

close
