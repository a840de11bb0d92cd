#!/bin/bash
# A daemon's life in the background: start, stop, restart, status, logs; one per folder, whatever happens.
. "$(dirname "$0")/kit.bash"

# Nothing here takes long, and nothing may take for ever.
daemon() {
    run timeout 120 "$weft" "$@"
}

end_daemons() {
    for home in "$there"/*/.weft; do
        [ -d "$home" ] && (cd "${home%/.weft}" && timeout 120 "$weft" stop --force --timeout 1s >/dev/null 2>&1)
    done
}
trap 'end_daemons; finish_all; rm -rf "$there" "$kit_said"' EXIT

# Go to a new folder.
project() { # NAME
    mkdir -p "$there/$1"
    cd "$there/$1" || exit 1
}

field() { # JSON PATH, for example .status.pid
    /usr/bin/python3 -c '
import functools, json, sys
value = functools.reduce(lambda v, k: v.get(k) if isinstance(v, dict) else None, sys.argv[2].split(".")[1:], json.loads(sys.argv[1]))
print(value if isinstance(value, str) else json.dumps(value))' "$1" "$2" 2>&1
}

pid_of() { # what start said
    sed -n 's/^\(started\|already running\) in .*, pid \([0-9]*\)$/\2/p' <<<"$1"
}

# A process that nobody has waited for yet is gone too.
is_alive() { # PID
    local state
    state=$(awk '/^State/ { print $2 }' "/proc/$1/status" 2>/dev/null)
    [ -n "$state" ] && [ "$state" != Z ] && [ "$state" != X ]
}

gone() { # NAME PID
    if is_alive "$2"; then fail "$1" "process $2 is there"; else pass; fi
}

alive() { # NAME PID
    if is_alive "$2"; then pass; else fail "$1" "process $2 is not there"; fi
}

kill_now() { # PID: and wait until it has ended, though it is not our child
    /usr/bin/python3 - "$1" <<'PY'
import os, select, signal, sys
process = os.pidfd_open(int(sys.argv[1]))
signal.pidfd_send_signal(process, signal.SIGKILL)
select.select([process], [], [], 30)
PY
}

absent() { # NAME FILE...
    local name=$1
    shift
    for file; do
        if [ -e "$file" ]; then fail "$name" "$file is there"; else pass; fi
    done
}

# ---- nobody there ----
project one
daemon status
exits "status: nobody" 3
is "status: nobody, in a word" "not running" "$out"
like "status: what to do" "weft start" "$err"
daemon status --json
exits "status --json: nobody" 3
is "status --json: nobody, for programs" "not running" "$(field "$out" .state)"
daemon stop
exits "stop: nobody is as good" 0
like "stop: says so" "no hub is running here" "$err"
daemon stop --json
is "stop --json: nobody" '{"state":"not running"}' "$out"
daemon logs
exits "logs: nothing there" 5
absent "asking leaves nothing behind" .weft

# ---- start ----
daemon start
exits "start" 0
is "start: no data" "" "$out"
like "start: says where it listens" "listening on unix:.weft/daemon.sock" "$err"
like "start: says what to try" "weft stop" "$err"
pid=$(pid_of "$err")
is "the pid file" "$pid" "$(cat .weft/daemon.pid)"
is "the pid file is private" 600 "$(stat -c %a .weft/daemon.pid)"
is "the log is private" 600 "$(stat -c %a .weft/daemon.log)"
is "the lock is private" 600 "$(stat -c %a .weft/daemon.lock)"
is "the endpoints know it" "$pid" "$(field "$(cat .weft/endpoint.json)" .pid)"
daemon call echo a=1
is "it answers at once" '{"a":1}' "$out"
is "a session of its own" "$pid" "$(ps -o sid= -p "$pid" | tr -d ' ')"
is "in the project's folder" "$there/one" "$(readlink "/proc/$pid/cwd")"
is "standard input" /dev/null "$(readlink "/proc/$pid/fd/0")"
is "standard output" /dev/null "$(readlink "/proc/$pid/fd/1")"
is "standard error is the log" "$there/one/.weft/daemon.log" "$(readlink "/proc/$pid/fd/2")"
is "its umask" 0077 "$(awk '/^Umask/ { print $2 }' "/proc/$pid/status")"

daemon start
exits "start again" 0
like "start again: says so" "already running in $there/one, pid $pid" "$err"
daemon start --json
is "start --json: it runs" running "$(field "$out" .state)"
is "start --json: the same" "$pid" "$(field "$out" .pid)"
like "start --json: where" '"unix":"unix:.weft/daemon.sock"' "$out"
daemon serve
exits "serve beside it" 6
like "serve beside it: says why" "already running in this folder (pid $pid)" "$err"
mkdir -p deep/down
cd deep/down || exit 1
daemon start
like "start from below means the same" ", pid $pid" "$err"
daemon status
exits "status from below" 0
absent "nothing is made below" .weft
cd ../..

# ---- status ----
daemon status
exits "status" 0
like "status: its process" "pid $pid, for " "$out"
like "status: its folder" "$there/one" "$out"
like "status: its endpoints" "endpoint  http://127.0.0.1:" "$out"
like "status: its clients" "clients   1, " "$out"
like "status: its memory" " MiB" "$out"
daemon status --json
exits "status --json" 0
is "status --json: state" running "$(field "$out" .state)"
is "status --json: pid" "$pid" "$(field "$out" .status.pid)"
is "status --json: health" healthy "$(field "$out" .status.health)"
is "status --json: clients" 1 "$(field "$out" .status.subsystems.ipc.clients)"
is "status --json: version" "$("$weft" version --json | sed 's/.*"weft":"\([^"]*\)".*/\1/')" "$(field "$out" .status.weft.version)"
case $(field "$out" .status.started_at) in
20??-??-??T??:??:??.???Z) pass ;;
*) fail "status --json: started_at" "$out" ;;
esac
before=$(field "$out" .status.weft.requests)
daemon call echo b=2
daemon call nonsense
daemon status --json
is "status --json: requests are counted" "$((before + 4))" "$(field "$out" .status.weft.requests)"
daemon describe daemon.status
exits "daemon.status is described" 0

# ---- logs ----
daemon logs
exits "logs" 0
like "logs: what it said" " INFO listening on unix:.weft/daemon.sock" "$out"
daemon logs --json -n 1
is "logs -n 1 is one line" 1 "$(wc -l <<<"$out")"
is "logs --json: level" INFO "$(field "$out" .level)"
like "logs --json: message" "listening on ws://" "$(field "$out" .message)"
daemon logs -n 0
is "logs -n 0 is none" "" "$out"
daemon logs --since 1h
is "logs --since a while ago" "$(wc -l <.weft/daemon.log)" "$(wc -l <<<"$out")"
daemon logs --since 2100-01-01
is "logs --since a time to come" "" "$out"
for since in 11:61 soon 5 0123456789abcdef0123456789abcdef:5; do
    daemon logs --since "$since"
    exits "logs --since $since is a mistake" 2
    like "logs --since $since: says so" "--since does not understand \"$since\"" "$err"
done
mkdir -p dated/.weft && cp -a .weft/token dated/.weft/ && cd dated || exit 1
chmod 700 .weft
for day in 1 2 3 4; do
    file=.weft/daemon.log
    [ $day -gt 2 ] || file=.weft/daemon.log.1
    echo "{\"timestamp\":\"2026-01-0${day}T12:00:00.000Z\",\"level\":\"INFO\",\"message\":\"day $day\"}" >>$file
    echo "what a crash left on day $day" >>$file
done
daemon logs --since 2026-01-02T11:00Z
is "logs --since: from the log that was put away on" "day 2 crash 2 day 3 crash 3 day 4 crash 4" \
    "$(sed 's/.*INFO //; s/what a crash left on day/crash/' <<<"$out" | paste -sd' ')"
daemon logs --since 2026-01-02T13:00+01:00 -n 2
is "logs --since with -n: of the last lines" "day 4 crash 4" "$(sed 's/.*INFO //; s/what a crash left on day/crash/' <<<"$out" | paste -sd' ')"
cd ..
rm -rf dated
all=$(wc -l <.weft/daemon.log)
daemon logs -n all
is "logs -n all" "$all" "$(wc -l <<<"$out")"
daemon logs -n 1000
is "logs -n 1000 of fewer" "$all" "$(wc -l <<<"$out")"

# ---- stop ----
daemon stop
exits "stop" 0
is "stop: says so" "stopped, pid $pid" "$err"
gone "it has ended when stop is back" "$pid"
is "nor its number" "" "$(cat .weft/daemon.lock)"
absent "nothing of it is left" .weft/daemon.pid .weft/daemon.sock .weft/endpoint.json
daemon status
exits "status after it" 3
daemon logs -n 1
like "its last word" "INFO stopped" "$out"
daemon start --json
is "start --json: started" started "$(field "$out" .state)"
pid=$(field "$out" .pid)
daemon stop --json
is "stop --json" "{\"state\":\"stopped\",\"pid\":$pid}" "$out"
out=$(timeout 120 "$weft" start 2>&1) # the daemon must not keep the pipe
like "start in a command substitution comes back" "started in" "$out"

# ---- restart ----
daemon restart
exits "restart" 0
new=$(pid_of "$err")
[ "$new" != "$(pid_of "$out")" ] && alive "restart: a new one" "$new"
daemon stop
daemon restart
exits "restart: of none" 0
daemon restart --rate 77 --listen tcp://127.0.0.1:0 --auth none
like "restart: with options" "listening on tcp://127.0.0.1:" "$err"
like "restart: the socket stays" "listening on unix:.weft/daemon.sock" "$err"
like "the warning came through" "--auth none" "$err"
like "and is in the log" '"level":"WARN","message":"weft serve: --auth none' "$(cat .weft/daemon.log)"
cd deep || exit 1
daemon restart
like "restart: with the options it had" "listening on tcp://127.0.0.1:" "$err"
daemon restart
like "restart: and once more" "listening on tcp://127.0.0.1:" "$err"
like "all of them" "--rate 77" "$(tr '\0' ' ' <"/proc/$(pid_of "$err")/cmdline")"
cd ..
daemon stop

# ---- a foreground daemon is one too ----
project foreground
start "$weft" serve
is "serve has a pid file" "$pid" "$(cat .weft/daemon.pid)"
daemon start
is "start beside serve: the same" "$pid" "$(pid_of "$err")"
daemon status
exits "status of serve" 0
absent "serve does not log to a file" .weft/daemon.log
daemon stop
exits "stop of serve" 0
ended "$pid"
exits "serve ends well" 0

# ---- after a crash ----
project crash
daemon start
first=$(pid_of "$err")
kill_now "$first"
daemon status
exits "killed: it does not run" 3
[ -S .weft/daemon.sock ] && [ -f .weft/daemon.pid ] && pass || fail "killed: its files are left"
daemon stop
like "killed: nothing to stop" "no hub is running here" "$err"
daemon start
exits "killed: start again" 0
like "killed: started" "started in" "$err"
daemon call ping
exits "killed: the socket is new" 0
daemon stop

# A number that belongs to another program now.
timeout 120 tail -f /dev/null &
other=$!
started+=("$other")
echo "$other" >.weft/daemon.pid
daemon status
exits "a recycled number: status" 3
daemon stop
like "a recycled number: stop" "no hub is running here" "$err"
alive "a recycled number: left alone" "$other"
daemon start
like "a recycled number: start" "started in" "$err"
pid=$(pid_of "$err")
is "a recycled number: replaced" "$pid" "$(cat .weft/daemon.pid)"
echo "$other" >.weft/daemon.pid
daemon stop --force
gone "a pid file that lies: the right one is stopped" "$pid"
alive "a pid file that lies: the other is not" "$other"
kill "$other"

# ---- one that does not end ----
project stuck
daemon start
pid=$(pid_of "$err")
kill -STOP "$pid"
daemon stop --timeout 100ms
exits "stuck: stop gives up" 7
like "stuck: what to do" "--force" "$err"
daemon status --json
exits "stuck: status gives up" 7
is "stuck: status gives up, for programs" 7 "$(field "$out" .error.exit)"
daemon stop --force --timeout 100ms --json
exits "stuck: --force" 0
is "stuck: killed" "{\"state\":\"killed\",\"pid\":$pid}" "$out"
gone "stuck: gone" "$pid"
daemon start
exits "stuck: start again" 0
daemon stop

# ---- what fails, fails in its own words ----
project wrong
daemon start --listen ws://0.0.0.0:0/
exits "its usage" 2
like "its usage: in its words" "not encrypted" "$err"
daemon start --json --listen ws://0.0.0.0:0/
is "its usage, for programs" 2 "$(field "$out" .error.exit)"
daemon start --token-file missing
exits "a token that is missing" 2
daemon start --listen "unix:$there/no/such/folder.sock"
exits "a folder that is missing" 1
like "and logged" '"level":"ERROR"' "$(tail -n 1 .weft/daemon.log)"
/usr/bin/python3 - "$weft" <<'PY' >.port 2>&1
import socket, subprocess, sys
busy = socket.create_server(("127.0.0.1", 0))
url = "tcp://127.0.0.1:%d" % busy.getsockname()[1]
done = subprocess.run([sys.argv[1], "start", "--auth", "none", "--listen", url], capture_output=True, text=True, timeout=60)
print(done.returncode, done.stderr)
PY
like "a busy port" "6 " "$(cat .port)"
like "a busy port: which" "tcp://127.0.0.1:" "$(cat .port)"
daemon status
exits "nobody is left of all these" 3
absent "and no file" .weft/daemon.pid .weft/daemon.sock .weft/endpoint.json
project file-in-the-way
echo data >.weft
daemon start
exits "a file in the way" 1
like "a file in the way: says so" ".weft: " "$err"
is "a file in the way: left alone" data "$(cat .weft)"
project unwritable
chmod 755 "$there" .
as_nobody=
if [ "$(id -u)" -eq 0 ]; then
    as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
else
    chmod 555 .
fi
if $as_nobody test -x "$weft" 2>/dev/null; then
    export XDG_CONFIG_HOME=$there/none # one that nobody can look for a configuration in
    if [ -n "$as_nobody" ]; then
        record=$XDG_STATE_HOME
        run timeout 120 $as_nobody "$weft" start
        exits "a record that cannot be written to" 1
        like "a record that cannot be written to: says so" "where it is recorded what you trust: not permitted" "$err"
        like "a record that cannot be written to: what to do" "Set XDG_STATE_HOME" "$err"
        run timeout 120 $as_nobody env -u XDG_STATE_HOME -u HOME "$weft" start
        exits "no home at all" 1
        like "no home at all: says so" "where it is recorded what you trust" "$err"
        mkdir "$there/nobody" && chown 65534 "$there/nobody"
        export XDG_STATE_HOME=$there/nobody
    fi
    run timeout 120 $as_nobody "$weft" start
    exits "a folder that cannot be written to" 1
    like "a folder that cannot be written to: says so" ".weft: not permitted" "$err"
    run timeout 120 $as_nobody "$weft" start --json
    is "a folder that cannot be written to, for programs" 1 "$(field "$out" .error.exit)"
    like "a folder that cannot be written to: what to do" "go to a folder" "$(timeout 120 $as_nobody "$weft" start 2>&1)"
    if [ -n "$as_nobody" ]; then
        mkdir -m 700 .weft
        run timeout 120 $as_nobody "$weft" start
        exits "another user's folder" 1
        like "another user's folder: says so" "the .weft in this folder belongs to root" "$err"
        run timeout 120 $as_nobody "$weft" task list
        exits "another user's folder: nobody to ask" 3
        like "another user's folder: says so there too" "the .weft in this folder belongs to root" "$err"
        run timeout 120 $as_nobody "$weft" doctor
        like "another user's folder: the doctor too" "the .weft here belongs to another user" "$out"
        rmdir .weft
    fi
else
    skip "a folder that cannot be written to" "root may write anywhere, and others cannot run the program"
fi
[ -z "${record:-}" ] || export XDG_STATE_HOME=$record
chmod 755 .

# ---- one that is not ready yet ----
# A process that holds the lock as a daemon does, and goes away without ever being ready.
project slow
mkdir -m 700 .weft
mkfifo go
cat >holder.py <<'PY'
import fcntl, os, struct, sys
lock = os.open(".weft/daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhxxxxqqixxxx", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
os.pwrite(lock, b"%-20d\n" % (os.getpid() if len(sys.argv) == 1 else int(sys.argv[1])), 0)
print("locked", flush=True)
sys.stdin.readline()
PY
hold() { # [PID]: until somebody writes to $go
    exec {locked}< <(timeout 120 /usr/bin/python3 holder.py "$@" <go)
    read -r -t 120 -u "$locked" _
}
release() { # and wait for its end
    echo >&"$go"
    read -r -t 120 -u "$locked" _
    exec {locked}<&-
}
exec {go}<>go
hold
daemon status
exits "starting: not reachable yet" 3
is "starting: in a word" starting "$out"
daemon status --json
is "starting: for programs" starting "$(field "$out" .state)"
daemon serve
exits "starting: serve does not wait" 6
echo '{}' >.weft/endpoint.json
daemon status
exits "stopping: not reachable any more" 3
is "stopping: in a word" stopping "$out"
timeout 120 "$weft" start 2>waited &
waiter=$!
echo >&"$go" # it ends
ended "$waiter"
exits "start waits for it, then it is its turn" 0
like "and starts" "started in" "$(cat waited)"
daemon stop
hold $$
daemon start
exits "whose process cannot be seen: start" 0
like "whose process cannot be seen: start says so" "already running in $there/slow, where it cannot be seen" "$err"
daemon stop
exits "whose process cannot be seen: stop" 1
like "whose process cannot be seen: what to do" "container" "$err"
release
exec {go}>&-

# ---- a hundred at once ----
hundred() { # NAME: everybody is back with status 0 and names the same process; one was started
    local name=$1 pids i
    for i in $(seq 100); do
        (
            timeout 120 "$weft" start --json >"out.$i" 2>"err.$i"
            echo $? >"rc.$i"
        ) &
        racers+=($!)
    done
    wait "${racers[@]}"
    is "$name: everybody is content" "100 0" "$(cat rc.* | sort | uniq -c | awk '{ print $1, $2 }')"
    pids=$(grep -ho '^{"state":"[a-z]*","pid":[0-9]*' out.* | grep -o '[0-9]*$' | sort -u)
    is "$name: one process" "$(cat .weft/daemon.pid)" "$pids"
    is "$name: started once" 1 "$(cat out.* | grep -c '"state":"started"')"
    is "$name: one of them listened" 1 "$(grep -c 'listening on unix:' .weft/daemon.log)"
    daemon call ping
    exits "$name: it answers" 0
    rm -f out.* err.* rc.*
}
project hundred
racers=()
hundred "a hundred in a new folder"
kill_now "$(cat .weft/daemon.pid)"
rm .weft/daemon.log
racers=()
hundred "a hundred after a crash"
daemon stop
exits "a hundred: stop" 0

# ---- following the log ----
project follow
daemon start
mkfifo lines
timeout 120 "$weft" logs -f -n all >lines &
follower=$!
started+=("$follower")
exec {lines}<lines
next() { # PART: read until a line has it
    local line
    while read -r -t 120 -u "$lines" line; do
        case $line in *"$1"*) got=$line && return 0 ;; esac
    done
    got=
    return 1
}
follows() { # NAME PART
    if next "$2"; then pass; else fail "$1" "there was no line with $2"; fi
}
entry() { # MESSAGE, which is JSON inside
    printf '{"timestamp":"2026-01-01T00:00:00.000Z","level":"INFO","message":"%s"}\n' "$1"
}
follows "follow: what is there" "listening on ws://"
entry appended >>.weft/daemon.log
follows "follow: what comes" "INFO appended"
printf '{"timestamp":"2026-01-01T00:00:00.000Z",' >>.weft/daemon.log
printf '"level":"INFO","message":"in two pieces"}\n' >>.weft/daemon.log
follows "follow: a line in two pieces" "$(date -d 2026-01-01T00:00:00Z '+%F %T').000 INFO in two pieces"
: >.weft/daemon.log
entry "cut" >>.weft/daemon.log
follows "follow: cut off" "INFO cut"
mv .weft/daemon.log .weft/daemon.log.1
entry "the last in the old one" >>.weft/daemon.log.1
entry "the first in the new one" >>.weft/daemon.log
follows "follow: moved away" "the first in the new one"
entry '\u001b[31mred\nX \u202e' >>.weft/daemon.log
follows "follow: escaped" 'INFO \u001b[31mred\u000aX \u202e'
printf 'no \033[31mJSON at all\n' >>.weft/daemon.log
follows "follow: what is no JSON" 'no \u001b[31mJSON at all'
daemon stop
daemon start
follows "follow: the next daemon" "listening on ws://"
kill -INT "$follower"
ended "$follower"
exits "follow: Ctrl-C ends it well" 0
exec {lines}<&-
daemon logs --json -n all
is "logs --json: every line is JSON" "" "$(/usr/bin/python3 -c 'import json, sys
for line in sys.stdin: json.loads(line)' <<<"$out" 2>&1)"
daemon stop

# ---- rotation ----
project large
daemon start
yes "$(entry "$(printf '%01000d' 0)")" | head -c $((10 * 1024 * 1024 - 100)) >>.weft/daemon.log
echo >>.weft/daemon.log
timeout 120 "$weft" logs -f -n 1 >followed &
follower=$!
started+=("$follower")
daemon stop
[ -s .weft/daemon.log.1 ] && pass || fail "a large log is put away"
like "a new one has begun" '"message":"stopped"' "$(cat .weft/daemon.log)"
[ "$(stat -c %s .weft/daemon.log)" -lt 1000 ] && pass || fail "which is small"
is "and private" 600 "$(stat -c %a .weft/daemon.log)"
daemon start
is "and not put away again" 1 "$(find .weft -name 'daemon.log.*' | wc -l)"
WEFT_DEBUG=1 daemon restart
daemon call echo note=logged token=s3cret
daemon stop
like "WEFT_DEBUG logs messages there" '"note":"logged"' "$(cat .weft/daemon.log)"
unlike "without secrets" s3cret "$(cat .weft/daemon.log)"
kill "$follower"
ended "$follower"

# ---- systemd ----
project notify
/usr/bin/python3 - "$weft" >.told 2>&1 <<'PY'
import os, signal, socket, subprocess, sys
def told(name, address, shown):
    there = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    there.bind(address)
    there.settimeout(30)
    daemon = subprocess.Popen([sys.argv[1], "serve"], stderr=subprocess.PIPE, env=dict(os.environ, NOTIFY_SOCKET=shown))
    try:
        ready = there.recv(4096).decode()
        answers = subprocess.run([sys.argv[1], "call", "ping"], capture_output=True, timeout=30).returncode
        daemon.send_signal(signal.SIGTERM)
        stopping = there.recv(4096).decode()
        print(name, ready, answers, stopping, daemon.wait(30))
    finally:
        daemon.kill()
        daemon.wait()
told("path", os.getcwd() + "/notify.sock", os.getcwd() + "/notify.sock")
abstract = "weft-test-%d" % os.getpid()
told("abstract", "\0" + abstract, "@" + abstract)
PY
is "systemd is told" "path READY=1 0 STOPPING=1 0
abstract READY=1 0 STOPPING=1 0" "$(cat .told)"
NOTIFY_SOCKET=/no/such/socket daemon start
exits "a service manager that is not there" 0
daemon stop
close
