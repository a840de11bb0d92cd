#!/bin/bash
# Every verb means the same hub, wherever it is typed: the nearest folder upward that has one, whether that one runs or not.
. "$(dirname "$0")/hub.bash"

# ---- the places ----
# outer and nested each have a hub with one task that bears its name. Those below are started first: "weft start" means the
# nearest folder that has a hub's folder.
end_nested() {
    for place in outer/nested stale theirs; do
        (cd "$there/$place" 2>/dev/null && timeout 120 "$program" stop --force --timeout 1s >/dev/null 2>&1)
    done
}
trap 'is_the_script && { end_nested; end_hubs; finish_all; rm -rf "$there" "$kit_said"; }' EXIT
hub outer/stopped
weft stop
for place in outer/nested outer; do
    hub $place
    weft task submit --wait "echo this is $place"
    exits "the hub of $place" 0
done
cd "$there" || exit 1
mkdir -p outer/sub/deep outer/stopped/deep outer/linked outer/nested/below outside empty
long=$there/outer/$(printf 'a-long-name-%.0s' $(seq 10))
mkdir -p "$long"
ln -s "$there/outer/sub" outside/link
ln -s "$there/outer/nested" outside/nested
ln -s ../nested/.weft outer/linked/.weft
outer=$(cat outer/.weft/daemon.pid)
nested=$(cat outer/nested/.weft/daemon.pid)

# ---- who answers ----
# PLACE HUB: every verb that is typed there, and the hub that must answer; "none" for no hub that runs.
all_find() { # PLACE HUB PID
    cd "$there/$1" || exit 1
    weft status --json
    is "status in $1" "$3" "$(field "$out" .pid)"
    weft call daemon.status --json
    is "call in $1" "$3" "$(field "$out" .pid)"
    weft doctor
    like "doctor in $1" "pid $3, healthy" "$out"
    weft task list
    like "task list in $1" "echo this is $2" "$out"
    weft task get task-0000 --json
    is "task get in $1" "echo this is $2" "$(field "$out" .prompt)"
    weft task watch task-0000
    is "task watch in $1" "this is $2" "$(tail -n 1 <<<"$out")"
    weft events --type task.queued --json
    is "events in $1" "echo this is $2" "$(field "$(head -n 1 <<<"$out")" .data.prompt)"
    weft chat session-is-not-asked-for
    exits "chat in $1" 0
    weft logs -n all
    is "logs in $1" "$(wc -l <"$there/$2/.weft/daemon.log")" "$(wc -l <<<"$out")"
    for verb in answer agents automation "task stats" methods "describe task.submit" "ping --count 1" "notify x"; do
        weft $verb
        exits "$verb in $1" 0
    done
    timeout 120 "$program" listen -v >/dev/null 2>"$there/heard" &
    listener=$!
    started+=("$listener")
    until_true grep -q "connected to unix:$there/$2/.weft/daemon.sock" "$there/heard" && pass
    kill "$listener"
    weft start
    like "start in $1" "pid $3" "$out$err"
}

none_finds() { # PLACE
    cd "$there/$1" || exit 1
    for verb in status "call daemon.status" "task list" "task stats" "task get task-0000" "task watch" "task submit x" "events" \
        "chat hello" answer automation methods "describe task.submit" "ping --count 1" "notify x" listen; do
        weft $verb
        exits "$verb in $1" 3
    done
    weft stop
    exits "stop in $1" 0
    like "stop in $1 ends nobody" "no hub is running here" "$err"
}

for place in outer outer/sub outer/sub/deep outside/link outer/linked "${long#"$there"/}"; do
    all_find "$place" outer "$outer"
done
for place in outer/nested outer/nested/below outside/nested; do
    all_find "$place" outer/nested "$nested"
done
for place in outer/stopped outer/stopped/deep outside empty; do
    none_finds "$place"
done
cd "$there/outer/stopped/deep" || exit 1
weft task list
like "whose hub does not run is said" "the hub of $there/outer/stopped does not run" "$err"
weft status
like "status says it too" "$there/outer/stopped" "$err"
cd "$there/outer" || exit 1
weft task list --url "unix:$there/outer/nested/.weft/daemon.sock"
like "a URL comes before all of it" "echo this is outer/nested" "$out"

# ---- what a hub left behind ----
# A socket that nobody listens at does not hide an AIWG daemon that runs in the same folder.
hub stale
pid=$(cat .weft/daemon.pid)
kill -KILL "$pid"
until_true is_gone "$pid"
weft status
exits "status of a hub that was killed" 3
weft task list
exits "task list of a hub that was killed" 3
timeout 120 "$program" start --aiwg >/dev/null 2>&1
for verb in status "task list" "call daemon.status" "ping --count 1"; do
    weft $verb
    exits "$verb beside a hub that was killed" 0
done
weft stop --aiwg

# ---- AIWG's own daemon, which knows nothing of our lock ----
mkdir -p "$there/theirs/.aiwg/daemon/" "$there/theirs/sub"
cd "$there/theirs" || exit 1
WEFT_STORE_KIND=memory expect_urls=1 start "$weft" serve --listen unix:.aiwg/daemon/daemon.sock
until_true test -S .aiwg/daemon/daemon.sock
cd sub || exit 1
for verb in status "call daemon.status" "task list"; do
    weft $verb
    exits "$verb with AIWG's own daemon" 0
done

weft stop
exits "stop with AIWG's own daemon" 1
like "stop with AIWG's own daemon: why" "a hub answers at .aiwg/daemon/daemon.sock" "$err"

# ---- a folder that is gone ----
mkdir "$there/gone"
cd "$there/gone" || exit 1
rmdir "$there/gone"
for verb in status "task list" logs; do
    weft $verb
    exits "$verb in a folder that is gone" 1
done
cd "$there" || exit 1
close
