#!/bin/bash
# What somebody else put there: a project that was cloned with a .weft folder of its own, secrets in URLs, keys with passwords.
. "$(dirname "$0")/kit.bash"

# ---- a folder that came with the project ----
serve_in() { # FOLDER: serve there; it is expected not to
    cd "$there/$1" || exit 1
    run timeout 120 "$weft" serve
    cd "$there" || exit 1
}
mkdir -p target linked
chmod 755 target
ln -s ../target linked/.weft
serve_in linked
exits "a folder that is a link" 1
like "a folder that is a link: what it is" ".weft" "$err"
is "a folder that is a link: its target is left alone" "755 " "$(stat -c %a target) $(ls -A target)"

mkdir -p planted/.weft
echo known-to-others >planted/.weft/token
serve_in planted
exits "a token that came with the project" 4
like "a token that came with the project: what to do" "weft trust" "$err"
unlike "a token that came with the project: is not shown" "known-to-others" "$err"
chmod 644 planted/.weft/token
(cd planted && trust)
serve_in planted
exits "a token that others can read" 1
like "a token that others can read: what to do" "chmod 600" "$err"
unlike "a token that others can read: is not shown" "known-to-others" "$err"
chmod 600 planted/.weft/token
mv planted/.weft/token planted/.weft/elsewhere
ln -s elsewhere planted/.weft/token
serve_in planted
exits "a token that is a link" 4
rm planted/.weft/token
ln -s nowhere planted/.weft/token
serve_in planted
exits "a token that is a link to nothing" 4
[ ! -e planted/.weft/nowhere ] && pass || fail "a token that is a link to nothing: nothing is made there"
rm planted/.weft/token
mkfifo -m 600 planted/.weft/token
serve_in planted
exits "a token that is a pipe" 4
rm planted/.weft/token
mkdir planted/.weft/daemon.sock
serve_in planted
[ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] && pass || fail "a folder where the socket should be" "status $rc"
rmdir planted/.weft/daemon.sock
ln -sf /dev/null planted/.weft/daemon.sock.lock
serve_in planted
[ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] && pass || fail "a lock that is a link" "status $rc"

# A socket of another program, under our name.
start "$weft" serve --listen "unix:$there/other.sock"
mkdir -p borrowed/.weft
ln -s "$there/other.sock" borrowed/.weft/daemon.sock
cd borrowed || exit 1
run "$weft" call ping
exits "a socket that is a link is nobody" 3
cd "$there" || exit 1
mkdir -p real via
cd real || exit 1
start "$weft" serve
run "$weft" call ping
exits "a socket of our own is somebody" 0
cd ../via || exit 1
ln -s ../real/.weft .weft
run "$weft" call ping
exits "a folder that is a link is nobody's" 3
cd "$there" || exit 1

# A socket whose file is ours, and whose listener is not.
if [ "$(id -u)" -eq 0 ]; then
    mkdir -p lent/.weft && chmod 755 "$there" && mkdir -m 777 open && cd lent || exit 1
    mkfifo "$there/.lent"
    /usr/bin/python3 - "$there/open/sock" >"$there/.lent" <<'PY' &
import os, socket, sys
os.setgid(65534)
os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("ready", flush=True)
while True:
    c, _ = s.accept()
    try:
        c.sendall(b'{"jsonrpc":"2.0","id":1,"result":"theirs"}\n')
    except OSError:
        pass  # it has left without listening, as it should
PY
    started+=("$!")
    read -r -t 120 _ <"$there/.lent"
    mv "$there/open/sock" .weft/daemon.sock && chown 0 .weft/daemon.sock
    WEFT_TOKEN=s3cret run timeout 120 "$weft" call ping
    exits "another user's process behind our socket" 3
    like "another user's process behind our socket: says so" "another user's process listens there" "$err"
    run timeout 120 "$weft" call "unix:$PWD/.weft/daemon.sock" ping
    like "whoever names it may talk to it" theirs "$out"
    cd "$there" || exit 1
else
    skip "another user's process behind our socket" "only root can be two users"
fi

# ---- secrets in URLs ----
take_closed_port
for url in "http://127.0.0.1:$closed_port/rpc?token=s3cret" "ws://127.0.0.1:$closed_port/ws?token=s3cret"; do
    for verb in "call $url ping" "ping $url" "listen $url" "bench -n 1 $url" "methods $url" "bridge stdio: $url" "notify $url x"; do
        run timeout 120 "$weft" $verb -v </dev/null
        [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] && pass || fail "$verb fails" "status $rc"
        unlike "$verb keeps the secret" "s3cret" "$out$err"
        like "$verb says where" "127.0.0.1:$closed_port" "$out$err"
    done
done
start "$weft" serve --auth none --listen http://127.0.0.1:0/rpc
WEFT_DEBUG=1 run "$weft" call -v "${urls[0]}?token=s3cret" echo note=hello
exits "a URL with a secret works" 0
like "and is logged" '"note":"hello"' "$err"
unlike "without it" "s3cret" "$err"

# ---- odd arguments ----
run "$weft" call tcp://host:99999 x
exits "a port that is none" 2
unlike "a port that is none: no nonsense is proposed" "tcp://tcp" "$err"
run "$weft" call localhost:4000 x
like "a host and port: what was meant" "tcp://localhost:4000" "$err"
run timeout 120 "$weft" serve --listen stdio: --listen stdio: </dev/null
exits "standard input twice" 6
run timeout 120 "$weft" serve --rate 0 --listen "unix:$there/rate.sock" </dev/null
exits "a rate of nothing" 2
like "a rate of nothing: what it wants" "--rate wants a number from 1 up" "$err"
run timeout 120 "$weft" bench -c 0 "unix:$there/other.sock"
exits "no connections at all" 2

# ---- a key with a password: nobody is asked, least of all on a terminal that belongs to somebody else ----
if command -v openssl >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
    openssl req -x509 -newkey rsa:2048 -passout pass:x -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost 2>/dev/null
    run timeout 120 script -qec "$(printf '%q ' "$weft" serve --auth none --listen tls://127.0.0.1:0 --tls-cert cert.pem \
        --tls-key key.pem)" /dev/null
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] && pass || fail "a key with a password is refused" "status $rc" "$out"
    unlike "and nobody is asked for it" "pass phrase" "$out"
    like "and the file is named" "key.pem" "$out"
else
    skip "a key with a password" "openssl or script(1) is not installed"
fi
close
