# What the tests of the hub share, on top of kit.bash: real daemons with the demo agent, and a person at a terminal.
#
#   hub NAME [OPTION...]      a new folder with a daemon in it, and go there
#   weft ARGUMENT...          run it, for a while at most; then $out, $err and $rc
#   person STEPS COMMAND...   the same at a terminal, where STEPS is "text=>answer;;text=>answer"
#   until_true COMMAND...     wait until it succeeds, a while at most
#   for_long_enough WORDS ARGUMENT...   weft with a --timeout in which the hub can be reached
#   field JSON PATH           a value of it: .a.b.0
. "$(dirname "$0")/kit.bash"

program=$weft
unset WEFT_STORE_KIND # what happened is kept, as it is for people

end_hubs() {
    for home in "$there"/*/.weft; do
        [ -d "$home" ] && (cd "${home%/.weft}" && timeout 20 "$program" stop --force --timeout 1s >/dev/null 2>&1)
    done
}
trap 'is_the_script && { end_hubs; finish_all; rm -rf "$there"; }' EXIT

hub() { # NAME [OPTION...]
    mkdir -p "$there/$1"
    cd "$there/$1" || exit 1
    shift
    timeout 60 "$program" start "$@" >start.out 2>&1 || fail "the daemon starts" "$(cat start.out)"
}

weft() {
    run timeout 60 "$program" "$@"
}

person() { # STEPS COMMAND...
    run timeout 60 env TERM=xterm /usr/bin/python3 "$SOURCE/tests/cli/person.py" "$@"
}

# With more and more time, until the hub was reached before the time was over: its error has these words, or there is none.
for_long_enough() { # WORDS ARGUMENT...
    local words=$1 limit
    shift
    for limit in 300ms 3s 30s; do
        weft "$@" --timeout "$limit"
        case $err in
        "") [ -n "$words" ] || return 0 ;;
        *"$words"*) [ -z "$words" ] || return 0 ;;
        esac
    done
}

until_true() {
    local end=$((SECONDS + 120))
    while [ $SECONDS -lt $end ]; do
        "$@" >/dev/null 2>&1 && return 0
        read -r -t 0.05 <> <(:)
    done
    fail "this never came true: $*"
    return 1
}

# A process that nobody has waited for yet is gone too.
is_gone() { # PID
    ! grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null
}

field() { # JSON PATH
    /usr/bin/python3 -c '
import json, sys
value = json.loads(sys.argv[1])
for key in sys.argv[2].split(".")[1:]:
    value = value[int(key)] if isinstance(value, list) else value.get(key) if isinstance(value, dict) else None
print(value if isinstance(value, str) else json.dumps(value))' "$1" "$2" 2>&1
}

# The state of a task, and whether it is this one.
state() { # TASK STATE
    [ "$(field "$(timeout 20 "$program" task get "$1" --json)" .state)" = "$2" ]
}

has_question() {
    timeout 20 "$program" answer --json | grep -q '"state":"open"'
}
