# What the scripts of this folder share. Source it: it makes the folder $there, works in it, and cleans up at the end.
#
#   run COMMAND...          runs it; then $out, $err and $rc say how it went
#   is NAME WANTED GOT      they are equal              exits NAME STATUS     the last run ended with it
#   like NAME PART TEXT     the text contains the part  unlike NAME PART TEXT
#   start COMMAND...        runs it in the background until it has said where it listens: urls[], $pid, its talk in $talk
#   take_closed_port        $closed_port is one that refuses to connect
#   ended PID               waits for it; its status in $rc
#   trust                   what the test has put into this folder's .weft is the user's own
set -u

passed=0
failed=0
skipped=0
there=$(mktemp -d)
kit_said=$(mktemp -d) # not in the project: a hub tells what changes there
started=()
urls=()
# A child of ours that a signal ends before it has become another program would run the trap too.
is_the_script() { [ "$BASHPID" = "$$" ]; }
trap 'is_the_script && { finish_all; rm -rf "$there" "$kit_said"; }' EXIT
cd "$there" || exit 1
unset WEFT_TOKEN WEFT_DEBUG AIWG_IPC_DEBUG NO_COLOR
weft=$WEFT

finish_all() {
    for p in "${started[@]}"; do
        kill "$p" 2>/dev/null
    done
    for p in "${started[@]}"; do
        wait "$p" 2>/dev/null
    done
}

pass() {
    passed=$((passed + 1))
}

fail() { # NAME [LINE...]
    failed=$((failed + 1))
    echo "FAIL $1"
    shift
    printf '  %s\n' "$@"
}

skip() { # NAME WHY
    skipped=$((skipped + 1))
    echo "skip $1: $2"
}

run() {
    "$@" >"$kit_said/out" 2>"$kit_said/err"
    rc=$?
    out=$(cat "$kit_said/out")
    err=$(cat "$kit_said/err")
}

is() {
    if [ "$2" = "$3" ]; then pass; else fail "$1" "wanted: $2" "got:    $3"; fi
}

like() {
    case $3 in
    *"$2"*) pass ;;
    *) fail "$1" "wanted: ...$2..." "got:    $3" ;;
    esac
}

unlike() {
    case $3 in
    *"$2"*) fail "$1" "not wanted: $2" "got:    $3" ;;
    *) pass ;;
    esac
}

exits() {
    if [ "$rc" = "$2" ]; then pass; else fail "$1" "wanted status $2, got $rc" "out: $out" "err: $err"; fi
}

# What it says goes through a pipe, so that nobody has to look again and again; a program that does not get that far is given
# up after half a minute.
start() {
    local fd line fifo=$there/.fifo.${#started[@]}
    talk=$kit_said/talk.${#started[@]}
    urls=()
    mkfifo "$fifo"
    "$@" 2>"$fifo" &
    pid=$!
    started+=("$pid")
    exec {fd}<"$fifo"
    while read -r -t 120 -u "$fd" line; do
        echo "$line" >>"$talk"
        case $line in
        "listening on "*) urls+=("${line#listening on }") ;;
        "connected to "*) break ;;
        "Ctrl-C stops it.") break ;;
        esac
        # The other programs say nothing after their URLs: as many as were asked for.
        [ "${#urls[@]}" -ge "${expect_urls:-99}" ] && break
    done
    # Nobody may wait for us to read the rest.
    cat <&"$fd" >>"$talk" &
    exec {fd}<&-
}

# In $closed_port a port of 127.0.0.1 that refuses: it is bound until the script ends, and nobody listens.
take_closed_port() {
    local fifo=$there/.closed_port
    mkfifo "$fifo"
    /usr/bin/python3 -c '
import signal, socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
signal.pause()' >"$fifo" &
    started+=("$!")
    read -r closed_port <"$fifo"
    rm "$fifo"
}

ended() {
    wait "$1"
    rc=$?
    out=
    err=
}

# What this test has put into this folder's .weft is the user's own.
trust() {
    timeout 120 "$WEFT" trust --yes "$@" >"$there/.trust" 2>&1 ||
        fail "what the test has put there is trusted" "$(cat "$there/.trust")"
}

close() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
    exit
}
