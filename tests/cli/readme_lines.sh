#!/bin/bash
# The lines of the README work when they are pasted, in the order in which they stand there. Those that need a person's screen, another
# program or the network are named below, with what is tried instead.
. "$(dirname "$0")/hub.bash"

mkdir -p bin project && ln -s "$program" bin/weft
export PATH=$PWD/bin:$PATH HOME=$PWD XDG_CONFIG_HOME=$PWD/.config EDITOR=true
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.org
cd project || exit 1
git init -q .
printf 'test lint:\n\t@true\n' >Makefile
git add Makefile && git commit -q -m begin

# Whatever agents ask is allowed, as somebody at the dashboard would.
answering() {
    while :; do
        for id in $(timeout 20 weft answer --json 2>/dev/null | grep -o '"id":"question-[0-9]*"[^}]*' | grep -o 'question-[0-9]*' | sort -u); do
            timeout 20 weft answer "$id" allow >/dev/null 2>&1
        done
        read -r -t 0.3 <> <(:)
    done
}

nothing_runs() {
    [ "$(field "$(timeout 20 weft task stats --json)" .running)" = 0 ]
}

section=none ran=0
answering &
started+=("$!")
while IFS= read -r line; do
    case $line in '## '*) section=${line#\#\# } ;; esac
    case $line in '    '*) line=${line#    } ;; *) continue ;; esac
    case $line in 'weft '*) ;; *) continue ;; esac
    line=$(sed 's/  *# .*$//' <<<"$line")
    case $line in
    'weft open' | 'weft pair'*) continue ;;                     # a browser, a phone: open.sh, pair.sh
    'weft agents install'* | 'weft agents use claude') continue ;; # the network, an account: agents.sh, tutorial.mjs
    'weft chat' | 'weft events -f') continue ;;                  # a person: chat.sh, events.sh
    'weft bench') continue ;;                                    # five seconds of load: bench.sh
    *clangd* | *ws://* | *tcp://* | *stdio:* | *unix:/run* | *16180*) continue ;; # other programs: call.sh, bridge.sh, listen.sh
    esac
    case $line in 'weft task review'* | 'weft task merge'*) until_true nothing_runs ;; esac # a reader takes longer than the agent
    run timeout 60 bash -c "$line" </dev/null
    ran=$((ran + 1))
    case $line in
    'weft task review'*) [ "$rc" -le 1 ] && pass || fail "$section: $line" "status $rc" "$err" ;; # nothing was written in the editor
    *) [ "$rc" -eq 0 ] && pass || fail "$section: $line" "status $rc" "$out" "$err" ;;
    esac
done <"$SOURCE/README.md"
[ "$ran" -ge 20 ] && pass || fail "there are lines to run" "$ran"
wide=$(awk '/^    weft / && length($0) > 124' "$SOURCE/README.md")
is "no line is too wide to be read" "" "$wide"
timeout 60 weft stop --force >/dev/null 2>&1
close
