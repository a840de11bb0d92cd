#!/bin/bash
# A clone with everything in it: a journal with a queued task, an agent of its own, links, pipes, somebody else's files. Nothing
# of it runs, opens or changes anything before "weft trust".
. "$(dirname "$0")/hub.bash"

umask 022
mine=$XDG_STATE_HOME          # the record of the user who clones
theirs=$there/.their-record   # and of whoever made the project

# What is in a folder: names, modes, contents and times.
picture() { # FOLDER
    (cd "$1" && find . -name .git -prune -o -printf '%p %m %s %T@ %l\n' | sort && cksum .weft/*)
}

# ---- a project that brings it all ----
mkdir theirs
cd theirs || exit 1
export XDG_STATE_HOME=$theirs
cat >bad.sh <<'END'
#!/bin/sh
echo "$1" >>"$PWNED"
END
chmod +x bad.sh
mkdir -p .weft
cat >.weft/config.json <<END
{ "agents": { "bad": { "driver": "cli", "command": ["./bad.sh", "{prompt}"] } }, "default_agent": "bad", "tasks": { "paused": true } }
END
trust
hub theirs
weft task submit "their first"
weft task submit "their second"
exits "their own hub queues" 0
weft stop
cat >.weft/config.json <<END
{ "agents": { "bad": { "driver": "cli", "command": ["./bad.sh", "{prompt}"] } }, "default_agent": "bad",
  "listen": ["tcp://127.0.0.1:0"], "auth": "none",
  "mcp": { "servers": { "worse": { "command": "./bad.sh", "args": ["served"], "env": { "SECRET": "not shown" } } } },
  "automation": { "rules": [ { "id": "spread", "trigger": { "type": "file.*" }, "action": { "type": "agent", "prompt": "ruled" } } ] } }
END
chmod 600 .weft/config.json .weft/weft.db .weft/token
rm -f .weft/.gitignore
git init -q . && git add -Af . && git -c user.name=x -c user.email=x@example.org commit -qm all
mkdir ../unpacked
tar -cp --exclude .git . | tar -C ../unpacked -xp
export XDG_STATE_HOME=$mine
cd "$there" || exit 1

# ---- nothing of it counts ----
export PWNED=$there/pwned
refused() { # NAME COMMAND...
    local name=$1
    shift
    run timeout 120 "$@" </dev/null
    exits "$name: is refused" 4
    like "$name: what to do" "weft trust" "$err"
}
visit() { # NAME: all that people do first, in this folder
    picture . >"$there/.before"
    refused "$1: start" "$program" start
    like "$1: its tasks are told" "2 tasks that would run" "$err"
    like "$1: its MCP servers are told" "MCP server worse: ./bad.sh served, sets SECRET" "$err"
    unlike "$1: but not their secrets" "not shown" "$err"
    like "$1: with their prompts" '"their second"' "$err"
    like "$1: its programs are told" "agent bad: ./bad.sh {prompt}" "$err"
    like "$1: its doors are told" 'listen: ["tcp://127.0.0.1:0"]' "$err"
    like "$1: its rules are told" "rule spread: on file.*" "$err"
    refused "$1: serve" "$program" serve
    refused "$1: restart" "$program" restart
    refused "$1: trust without anybody there" "$program" trust
    run timeout 120 "$program" trust --json </dev/null
    exits "$1: trust for programs" 4
    is "$1: trust for programs: its tasks" 2 "$(field "$out" .journal.tasks)"
    is "$1: trust for programs: its state" "not trusted" "$(field "$out" .state)"
    for verb in "status" "task list" "agents" "config show" "config check" "doctor" "logs" "stop" "automation" "events"; do
        run timeout 120 "$program" $verb </dev/null
        [ "$rc" -ne 124 ] && [ "$rc" -lt 128 ] && pass || fail "$1: $verb" "status $rc" "$err"
    done
    run timeout 120 "$program" agents
    unlike "$1: its agent is none of ours" "bad " "$out"
    run timeout 120 "$program" serve --listen "unix:$there/x.sock" </dev/null
    exits "$1: nor beside it" 4
    WEFT_STORE_KIND=memory run timeout 120 "$program" serve --listen "unix:$there/x.sock" </dev/null
    exits "$1: nor without a journal" 4
    picture . >"$there/.after"
    is "$1: it is as it came" "" "$(diff "$there/.before" "$there/.after")"
    [ ! -e "$PWNED" ] && pass || fail "$1: nothing ran" "$(cat "$PWNED")"
}
(umask 077 && git clone -q theirs private) && git clone -q theirs cloned
for way in unpacked cloned private; do
    cd "$there/$way" || exit 1
    visit "$way"
done
is "a clone under umask 077 is private" 600 "$(stat -c %a "$there/private/.weft/config.json")"

# ---- until it is trusted ----
cd "$there/cloned" || exit 1
person "Trust it?=>n\n" "$program" start
exits "a person who says no" 4
[ ! -e "$PWNED" ] && pass || fail "a person who says no: nothing ran"
person "Trust it?=>y\n" "$program" trust
exits "a person who says yes" 0
run timeout 120 "$program" trust
exits "it is on record" 0
weft start
exits "then it starts" 0
ran() { [ "$(grep -c their "$PWNED")" = 2 ]; }
until_true ran && pass
weft stop
rm -f "$PWNED"
cd "$there/private" || exit 1
person "Trust it?=>y\n" "$program" start
exits "start asks too" 0
until_true ran && pass
weft stop
rm -f "$PWNED"

# ---- what comes later: a pull, a copy, a move ----
mkdir "$there/own" && cd "$there/own" || exit 1
weft start
exits "an own one starts" 0
weft task submit --wait "echo mine"
weft stop
weft start
exits "and again" 0
kill -9 "$(cat .weft/daemon.pid)"
weft start
exits "and after it was killed" 0
weft stop
come() { # NAME FILE: theirs takes the place of ours, as git does with files it is told to ignore
    cp -p ".weft/$2" "$there/kept" 2>/dev/null || rm -f "$there/kept"
    rm -f ".weft/$2"
    cp "$there/unpacked/.weft/$2" ".weft/$2"
    refused "$1" "$program" start
    rm -f ".weft/$2"
    [ ! -e "$there/kept" ] || { cp -p "$there/kept" ".weft/$2" && trust; }
}
come "another journal" weft.db
come "another token" token
come "another configuration" config.json
cp "$there/unpacked/.weft/weft.db" "$there/unpacked/.weft/weft.db-wal"
come "a log beside the journal" weft.db-wal
cp "$there/unpacked/.weft/weft.db" "$there/unpacked/.weft/weft.db-journal"
come "a journal of SQLite's own kind" weft.db-journal
rm "$there/unpacked/.weft/weft.db-wal" "$there/unpacked/.weft/weft.db-journal"
weft start
exits "ours is back" 0
weft stop
cat "$there/unpacked/.weft/weft.db" >.weft/weft.db
rm -f .weft/weft.db-mark
refused "another journal in the same file" "$program" start
like "another journal in the same file: says so" "another journal than before" "$err"
[ ! -e "$PWNED" ] && pass || fail "nothing of theirs ran" "$(cat "$PWNED")"
mv "$there/own" "$there/moved" && cd "$there/moved" || exit 1
refused "a project that was moved" "$program" start
like "a project that was moved: from where" "trusted in another place: $there/own" "$err"
cp -a "$there/moved" "$there/own" && cd "$there/own" || exit 1
refused "a copy in its old place" "$program" start
weft trust --list --json
is "a project on record" "$there/own" "$(grep -o "$there/own\"" <<<"$out" | head -1 | tr -d '"')"
weft trust --revoke "$there/own"
exits "which is taken off" 0
weft trust --revoke "$there/own"
exits "once" 5
weft trust --list
unlike "and is gone" "$there/own" "$out"
rm -rf "$there/own/.weft"
weft start
exits "a fresh folder needs no word" 0
weft stop

# ---- the journal of an AIWG daemon ----
mkdir -p "$there/aiwg/.aiwg" && cp -r "$there/unpacked/.weft" "$there/aiwg/.aiwg/daemon" && cd "$there/aiwg" || exit 1
rm .aiwg/daemon/config.json .aiwg/daemon/token
refused "an AIWG journal" "$program" start --aiwg
refused "an AIWG journal, in the foreground" "$program" serve --aiwg
rm .aiwg/daemon/weft.db*
weft start --aiwg
exits "an AIWG folder without one is consent enough" 0
weft stop

# ---- links, pipes, folders, hard links, another user's, in place of every file ----
victim=$there/foreign/precious
mkdir "$there/foreign"
names=".gitignore config.json daemon.lock daemon.log daemon.log.1 daemon.pid daemon.sock daemon.sock.lock endpoint.json token
    weft.db weft.db-journal weft.db-mark weft.db-shm weft.db-wal"
kinds="link dangling hard pipe folder"
[ "$(id -u)" -ne 0 ] || kinds="$kinds another"
plant() { # KIND PATH
    case $1 in
    link) ln -s "$victim" "$2" ;;
    dangling) ln -s "$there/foreign/made" "$2" ;;
    hard) ln "$victim" "$2" ;;
    pipe) mkfifo "$2" ;;
    folder) mkdir "$2" ;;
    another) echo '{}' >"$2" && chown 65534 "$2" && chmod 666 "$2" ;;
    esac
}
mkdir "$there/planted" && cd "$there/planted" || exit 1
weft start
weft stop
cp -a .weft "$there/clean"
for kind in $kinds; do
    for name in $names; do
        rm -rf "$there/foreign"/* .weft/* .weft/.gitignore
        cp -a "$there/clean/." .weft/
        rm -f ".weft/$name"
        echo precious >"$victim" && chmod 644 "$victim" && touch -d 2001-02-03 "$victim"
        # The folder is ours and on record, so that it is the file alone that decides.
        trust
        plant "$kind" ".weft/$name"
        # A second name changes the file's times itself; what it holds and its mode do not change.
        before=$(stat -c '%a %s %Y %U' "$victim"; cat "$victim")
        for verb in "start" "status" "logs" "doctor" "agents" "config show" "task list" "stop"; do
            timeout 120 "$program" $verb >"$there/.said" 2>&1 </dev/null
            got=$?
            [ $got -ne 124 ] && [ $got -lt 128 ] || fail "$kind for $name: $verb" "status $got" "$(cat "$there/.said")"
        done
        is "$kind for $name: the foreign file is as it was" "$before" "$(stat -c '%a %s %Y %U' "$victim"; cat "$victim")"
        [ ! -e "$there/foreign/made" ] || fail "$kind for $name: nothing is made elsewhere"
    done
done
close
