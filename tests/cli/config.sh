#!/bin/bash
# weft config, and what weft serve makes of a configuration: at the start and on SIGHUP.
. "$(dirname "$0")/kit.bash"

export XDG_CONFIG_HOME=$there/xdg
umask 077 # what decides who has access must be for our eyes only
user=$XDG_CONFIG_HOME/weft/config.json
mkdir -p "$there/xdg/weft" project/.weft project/deep/down plain
cd project || exit 1

# ---- nothing is set ----
run "$weft" config
exits "no configuration is one" 0
like "it shows defaults" "rate_per_minute                  6000" "$out"
unlike "without their origin" "6000  default" "$out"
run "$weft" config show --origin
like "--origin says so" "rate_per_minute                  6000  default" "$out"
run "$weft" config check
exits "nothing is no mistake" 0
run "$weft" config path
is "where they would be" "project  .weft/config.json (not there)
user     $user (not there)" "$out"

# ---- where values come from ----
cat >"$user" <<'END'
{"rate_per_minute": 1, "auth": "none"}
END
cat >.weft/config.json <<'END'
// of this project
{
    "rate_per_minute": 2, /* not many */
    "tls": {"cert": "c.pem"},
}
END
trust
origin() { # KEY [ARGUMENT...]: its line
    local key=$1
    shift
    run "$weft" config show --origin "$@"
    grep "^$key " <<<"$out" | sed 's/  */ /g'
}
is "from the user" "auth \"none\" user $user:1:32" "$(origin auth)"
is "the project before the user" "rate_per_minute 2 project .weft/config.json:3:24" "$(origin rate_per_minute)"
is "in an object" 'tls.cert "c.pem" project .weft/config.json:4:21' "$(origin tls.cert)"
is "the environment before the project" "rate_per_minute 3 environment" "$(WEFT_RATE_PER_MINUTE=3 origin rate_per_minute)"
is "an option before the environment" "rate_per_minute 4 flag" "$(WEFT_RATE_PER_MINUTE=3 origin rate_per_minute -- --rate 4)"
is "--no-rate is 0" "rate_per_minute 0 flag" "$(origin rate_per_minute -- --no-rate)"
is "no value" "tls.key - default" "$(origin tls.key)"
run "$weft" config --origin --json
like "--json has them" '"auth":{"value":"none","origin":"user","file":"'"$user"'","line":1,"column":32}' "$out"
like "--json of a default" '"tls.key":{"value":null,"origin":"default"}' "$out"
run "$weft" config --json
like "--json without origin" '"rate_per_minute":2,' "$out"
run "$weft" config path project
is "one path" ".weft/config.json" "$out"
run "$weft" config path user
is "the other" "$user" "$out"
cd deep/down || exit 1
run "$weft" config path project
is "found from below" "$there/project/.weft/config.json" "$out"
is "read from below" "rate_per_minute 2 project $there/project/.weft/config.json:3:24" "$(origin rate_per_minute)"
cd ../.. || exit 1
is "XDG_CONFIG_HOME that is relative is none" "$there/home/.config/weft/config.json" \
    "$(HOME=$there/home XDG_CONFIG_HOME=xdg "$weft" config path user)"
is "without it" "$there/home/.config/weft/config.json" "$(HOME=$there/home XDG_CONFIG_HOME= "$weft" config path user)"

# ---- mistakes ----
run "$weft" config check
exits "no mistakes" 0
is "nothing to say" "" "$out$err"
printf '{\n  "lsten": [],\n  "auth": 5\n}\n' >bad.json
run "$weft" config check bad.json
exits "a mistake" 1
like "its place" 'bad.json:3:11: auth must be "token" or "none"' "$err"
like "a warning beside it" 'bad.json:2:3: warning: unknown key "lsten"; did you mean "listen"?' "$err"
run "$weft" config check --json bad.json
exits "a mistake as JSON" 1
like "its place as JSON" '{"where":"bad.json","line":3,"column":11,"severity":"error","message":"auth must be' "$out"
printf '{"lsten": []}' >odd.json
run "$weft" config check odd.json
exits "a warning is no mistake" 0
like "but is said" "odd.json:1:2: warning:" "$err"
printf '{"auth": "none",,}' >bad.json
run "$weft" config check bad.json
exits "not JSON" 1
like "not JSON: where" "bad.json:1:17: expected a name in double quotes" "$err"
run "$weft" config check missing.json
exits "a file that is not there" 5
run "$weft" config check bad.json odd.json
exits "two files" 2
run "$weft" config chekc
exits "a job that is none" 2
like "what was meant" 'did you mean "check"?' "$err"
run "$weft" config show -- --nonsense
exits "an option that is none" 2
run "$weft" config show nonsense
exits "a word that is none" 2
run "$weft" config path nonsense
exits "a file that is none" 2
WEFT_AUTH=perhaps run "$weft" config check
exits "a mistake in the environment" 1
like "names the variable" "WEFT_AUTH: auth must be" "$err"
cp bad.json .weft/config.json
run "$weft" serve --listen "unix:$there/x.sock"
exits "serve does not start with a mistake" 1
like "and names it" ".weft/config.json:1:17: expected a name" "$err"
like "and says what to do" "weft config check" "$err"

# ---- what came with a clone ----
echo '{"auth": "none", "rate_per_minute": 7}' >.weft/config.json
run "$weft" config check
exits "a door in a file that is not on record" 4
like "says so" ".weft/config.json:1:2: auth decides who has access" "$err"
like "and what to do" "weft trust" "$err"
chmod 644 .weft/config.json
run "$weft" config check
exits "whatever its mode" 4
run "$weft" config check --json
exits "for programs" 4
like "for programs: where" '"line":1,"column":2,"severity":"error","message":"auth decides who has access' "$out"
is "the door stays as the user has it" "auth \"none\" user $user:1:32" "$(origin auth)"
is "what opens none counts" 'rate_per_minute 7 project .weft/config.json:1:37' "$(origin rate_per_minute)"
run timeout 120 "$weft" serve --listen "unix:$there/x.sock" </dev/null
exits "serve does not start with it" 4
run timeout 120 "$weft" start </dev/null
exits "nor does start" 4
like "and shows what it would allow" 'auth: "none"' "$err"
trust
is "it is opened by trusting" 'auth "none" project .weft/config.json:1:10' "$(origin auth)"
echo '{"rate_per_minute": 7}' >.weft/config.json
run "$weft" config check
exits "what opens no door need not be on record" 0
echo '{"agents": {"claude": {"permission": "allow"}}}' >.weft/config.json
run "$weft" config check
exits "what runs in a file that is not on record" 4
like "says so too" ".weft/config.json:1:2: agents decides what runs" "$err"
rm .weft/config.json

# ---- what is shipped ----
run "$weft" config schema
is "the shipped schema is this program's" "$(cat "$SOURCE/packaging/config.schema.json")" "$out"
run "$weft" config keys
is "the documentation has every key as it is" "$out" "$(grep '^|' "$SOURCE/docs/config.md")"
run "$weft" config keys --json
like "as JSON" '{"key":"tls.cert","wants":"a string","default":null,' "$out"

# ---- no secrets ----
mkdir -p "$there/secret/.weft"
cd "$there/secret" || exit 1
echo 5ecret-t0ken >.weft/token
echo '{"token_file": ".weft/token", "token": "5ecret-t0ken", "agents": {"claude": {"env": {"KEY": "5ecret-t0ken", "B": ""}}}}' \
    >.weft/config.json
run "$weft" trust --yes
unlike "trust does not tell the token" 5ecret-t0ken "$out$err"
for job in show "show --origin" "show --json" check path keys schema; do
    WEFT_TOKEN=5ecret-t0ken run "$weft" config $job
    unlike "config $job does not tell the token" 5ecret-t0ken "$out$err"
done
run "$weft" config show
like "variables of an agent are named only" '{"claude":{"env":{"KEY":"***","B":"***"}}}' "$out"

# ---- serve uses it ----
rm "$user"
cd "$there/plain" || exit 1
mkdir -p .weft
echo right-token >token.txt
cat >.weft/config.json <<END
{
    "listen": ["unix:$there/s.sock", "http://127.0.0.1:0/rpc"], // not the usual places
    "token_file": "token.txt",
    "rate_per_minute": 60,
    "limits": {"max_batch": 2},
}
END
# Like start, but what it says later can be waited for.
serve() {
    local line
    urls=()
    mkfifo "$there/fifo.${#started[@]}"
    "$weft" serve "$@" 2>"$there/fifo.${#started[@]}" &
    pid=$!
    exec {talk}<"$there/fifo.${#started[@]}"
    started+=("$pid")
    while read -r -t 120 -u "$talk" line; do
        case $line in
        "listening on "*) urls+=("${line#listening on }") ;;
        "Ctrl-C stops it.") return ;;
        esac
    done
    fail "serve $*" "it did not start"
    close
}

# SIGHUP; what it says about that goes to $said.
hangup() {
    local line
    said=
    kill -HUP "$pid"
    while read -r -t 120 -u "$talk" line; do
        said+=$line$'\n'
        case $line in
        "weft serve: configuration reloaded" | *"stays in use") return ;;
        esac
    done
    fail "SIGHUP" "it did not say how that went"
    close
}

trust
serve
is "it listens at home and where the file says" 3 "${#urls[@]}"
is "on this socket" "unix:$there/s.sock" "${urls[1]}"
http=${urls[2]}
run "$weft" ping
exits "it is the daemon of the folder" 0
run "$weft" call --token-file token.txt "$http" ping
exits "with the token of the file" 0
run "$weft" bench --token-file token.txt -c 1 -w 1 -n 500 "$http"
exits "with the rate of the file" 6
one='{"jsonrpc":"2.0","id":1,"method":"ping"}'
batch() {
    curl -sS -H 'Content-Type: application/json' -H 'Authorization: Bearer right-token' -d "[$one,$one,$one]" "$http"
}

cat >.weft/config.json <<END
{
    "listen": ["unix:$there/s.sock", "http://127.0.0.1:0/rpc", "unix:$there/more.sock"],
    "token_file": "token.txt",
    "rate_per_minute": 0,
    "allowed_hosts": ["weft.example"],
    "limits": {"max_batch": 3},
}
END
hangup
like "what is not on record does not count" "the old one stays in use" "$said"
like "says so" "listen decides who has access" "$said"
run "$weft" bench --token-file token.txt -c 1 -w 1 -n 500 "$http"
exits "it does not" 6
trust
hangup
like "reloaded" "configuration reloaded" "$said"
like "what changed" "rate_per_minute is 0 now" "$said"
like "what else" 'allowed_hosts is ["weft.example"] now' "$said"
like "what cannot" "listen has changed; that needs a restart" "$said"
unlike "what did not change is not named" "token_file" "$said"
run "$weft" bench --token-file token.txt -c 1 -w 1 -n 500 "$http"
exits "the rate has changed" 0

printf '{\n "rate_per_minute": "many"\n}' >.weft/config.json
hangup
like "a mistake on SIGHUP is said with its place" ".weft/config.json:2:21: rate_per_minute must be a whole number" "$said"
like "and the old settings stay" "the old one stays in use" "$said"
run "$weft" bench --token-file token.txt -c 1 -w 1 -n 500 "$http"
exits "they do" 0
printf '{ "rate_per_minute": 5' >.weft/config.json
hangup
like "half a file on SIGHUP" ".weft/config.json:1:23: expected a ',' or a '}'" "$said"
run "$weft" call --token-file token.txt "$http" ping
exits "it is still there" 0
if command -v curl >/dev/null; then
    health=${http%/rpc}/health
    is "the Host that was allowed is" 200 "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Host: weft.example' "$health")"
    like "three are a batch now" '"pong"' "$(batch)"
fi
cat >.weft/config.json <<END
{
    "listen": ["unix:$there/s.sock", "http://127.0.0.1:0/rpc"],
    "token_file": "token.txt",
    "rate_per_minute": 60,
}
END
trust
hangup
like "and back" "rate_per_minute is 60 now" "$said"
like "hosts too" "allowed_hosts is [] now" "$said"
unlike "what is as it was at the start is not named" "listen" "$said"
if command -v curl >/dev/null; then
    [ "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Host: weft.example' "$health")" != 200 ] && pass ||
        fail "the Host is not allowed any more"
else
    skip "the Host header" "curl is not installed"
fi
run "$weft" bench --token-file token.txt -c 1 -w 1 -n 500 "$http"
exits "the rate is back" 6
hangup
is "nothing changed" "weft serve: configuration reloaded"$'\n' "$said"
rm .weft/config.json
hangup
like "a file that is gone is as good as an empty one" "listen has changed; that needs a restart" "$said"
like "with the defaults" "rate_per_minute is 6000 now" "$said"
kill "$pid"
ended "$pid"
exits "SIGTERM ends it" 0

# ---- an option stays the strongest ----
echo '{"rate_per_minute": 60, "auth": "none"}' >.weft/config.json
trust
serve --no-rate --listen tcp://127.0.0.1:0
run "$weft" bench -c 1 -w 1 -n 500 "${urls[0]}"
exits "an option before the file" 0
echo '{"rate_per_minute": 61, "auth": "none"}' >.weft/config.json
trust
hangup
is "and after SIGHUP" "weft serve: configuration reloaded"$'\n' "$said"
kill "$pid"
ended "$pid"

# ---- what the hub uses ----
cat >.weft/config.json <<'END'
{"agents": {"mine": {"driver": "cli", "command": ["echo", "one"]}}, "default_agent": "mine", "tasks": {"max_running": 3}}
END
trust
serve
says() { # what a task's agent said to "hi"
    timeout 120 "$weft" task submit --wait hi 2>/dev/null
}
is "the agent of the file" "one hi" "$(says)"
run "$weft" call daemon.status
like "its limits" '"maxConcurrency":3' "$out"
cat >.weft/config.json <<'END'
{"agents": {"mine": {"driver": "cli", "command": ["echo", "two"]}}, "default_agent": "mine", "tasks": {"max_running": 5}}
END
trust
hangup
like "agents have changed" "weft serve: agents has changed" "$said"
unlike "without what they are" "two" "$said"
is "and so has what runs" "two hi" "$(says)"
run "$weft" call daemon.status
like "and the limits" '"maxConcurrency":5' "$out"
echo '{"tasks": {"paused": true}, "agents": {"mine": {"driver": "cli", "command": ["echo", "two"]}}, "default_agent": "mine"}' \
    >.weft/config.json
trust
hangup
run "$weft" call task.submit prompt=wait
like "tasks wait while they are paused" '"state":"queued"' "$out"
kill "$pid"
ended "$pid"

# ---- a terminal that goes away ends it ----
if [ -x /usr/bin/python3 ]; then
    run timeout 120 /usr/bin/python3 - "$weft" <<'END'
import os, pty, signal, subprocess, sys
def serve(nohup):
    pid, fd = pty.fork()
    if pid == 0:
        if nohup:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.execv(sys.argv[1], [sys.argv[1], "serve", "--listen", "unix:tty.sock"])
    said = b""
    while b"Ctrl-C stops it" not in said:
        said += os.read(fd, 4096)
    return pid, fd
pid, fd = serve(False)
os.kill(pid, signal.SIGHUP)
said = b""
while b"configuration reloaded" not in said:
    said += os.read(fd, 4096)
os.close(fd)
print("ended", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
pid, fd = serve(True)
os.close(fd)
print("ping", subprocess.run([sys.argv[1], "call", "unix:tty.sock", "ping"], stdout=subprocess.DEVNULL).returncode)
os.kill(pid, signal.SIGTERM)
print("ended", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
    is "with a terminal SIGHUP reloads, without it ends; not with nohup" "ended 0 ping 0 ended 0" "$(echo $out)"
else
    skip "a terminal that goes away" "python3 is not installed"
fi
close
