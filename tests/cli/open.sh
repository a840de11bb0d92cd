#!/bin/bash
# weft open: a link that logs a browser in once, printed or handed to the program that opens links.
. "$(dirname "$0")/hub.bash"

unset DISPLAY WAYLAND_DISPLAY WSL_DISTRO_NAME
jar=$there/jar

get() { # URL: the status of GET, with the cookies of the jar
    curl -s -o "$there/body" -w '%{http_code}' -b "$jar" -c "$jar" "$1"
}

mkdir "$there/none"
cd "$there/none" || exit 1
weft open
exits "without a hub" 3

hub one
weft open --print
exits "print" 0
is "nothing but the link on standard output" 1 "$(echo "$out" | wc -l)"
link=$out
like "to the login" "/login?code=" "$link"
is "nothing is said" "" "$err"
base=${link%login*}
is "the page needs a login" 303 "$(get "$base")"
is "the link logs in" 200 "$(get "$link")"
like "with a cookie for this hub" "weft_session_" "$(cat "$jar")"
like "and leads on" 'url=/"' "$(cat "$there/body")"
is "then the page is there" 200 "$(get "$base")"
rm "$jar"
is "a second browser gets nowhere with it" 401 "$(get "$link")"
like "and is told what to do" "weft open" "$(cat "$there/body")"
unlike "the code is not in the log" "${link##*=}" "$(cat .weft/daemon.log)"

weft open --json
exits "json" 0
is "not opened" false "$(field "$out" .opened)"
like "with its end" T "$(field "$out" .expiresAt)"
like "and the link" "/login?code=" "$(field "$out" .url)"

# ---- without a screen ----
weft open
exits "no screen" 0
like "the link is printed" "/login?code=" "$out"
like "and why" "No browser" "$err"

# ---- with one ----
mkdir "$there/bin"
cat >"$there/bin/xdg-open" <<'END'
#!/bin/sh
echo "$#" "$@" >"$OPENED"
exit "${FAILS:-0}"
END
chmod +x "$there/bin/xdg-open"
export OPENED=$there/opened DISPLAY=:7
PATH=$there/bin:$PATH weft open
exits "opened" 0
is "the link is not printed" "" "$out"
like "who opens it" xdg-open "$err"
is "it got the link and nothing else" 1 "$(grep -c '^1 http://127.0.0.1:[0-9]*/login?code=[0-9a-f]*$' "$OPENED")"
FAILS=4 PATH=$there/bin:$PATH weft open
exits "it fails" 0
like "then the link is printed" "/login?code=" "$out"

# What lies in the project is not run.
rm "$OPENED"
mkdir bin
cp "$there/bin/xdg-open" bin/
run timeout 120 env PATH="$PWD/bin" "$program" open
exits "opened by nobody" 0
is "no program of the project opens it" no "$([ -e "$OPENED" ] && echo yes || echo no)"

# ---- sessions outlive the hub ----
# At a port of its own: others that are tried at the same time may take the usual one while it restarts.
free=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
port=$free/
hub kept --listen "ws://127.0.0.1:$free/ws"
weft open --print
is "log in" 200 "$(get "$out")"
weft restart
exits "restart" 0
is "still logged in" 200 "$(get "http://127.0.0.1:$port")"
is "what is kept is private" 600 "$(stat -c %a "$XDG_STATE_HOME"/weft/logins-*.txt | sort -u)"
unlike "and has no cookie in it" "$(tail -n 1 "$jar" | awk '{ print $NF }')" "$(cat "$XDG_STATE_HOME"/weft/logins-*.txt)"
is "log out" 303 "$(curl -s -o /dev/null -w '%{http_code}' -b "$jar" -c "$jar" -X POST -H "Origin: http://127.0.0.1:${port%/}" "http://127.0.0.1:${port}logout")"
is "then the page needs a login" 303 "$(get "http://127.0.0.1:$port")"

# ---- no token, no code ----
weft stop
mkdir "$there/open"
cd "$there/open" || exit 1
hub open --auth none
weft open --print
exits "without tokens" 0
is "the plain address" 1 "$(echo "$out" | grep -c '^http://127.0.0.1:[0-9]*/$')"
is "which is open" 200 "$(get "$out")"

close
