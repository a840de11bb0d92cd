#!/bin/bash
# The lines of docs/deployment.md, as they stand there: behind nginx, backed up and put back, upgraded. Ports and names are the only
# things that are changed in them.
. "$(dirname "$0")/hub.bash"

page=$SOURCE/docs/deployment.md
free_port() {
    /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
section() { # TITLE: its lines that are to be pasted
    sed -n "/^## $1/,/^## [^$1]/p" "$page" | sed -n 's/^    //p'
}
paste() { # LINE: as in the page, here
    PATH="$there/bin:$PATH" run timeout 60 bash -c "$1"
    exits "$1" 0
}
mkdir "$there/bin" && ln -s "$program" "$there/bin/weft"

# ---- behind nginx ----
behind_nginx() {
    local port=$1 front=$2 home=$there/nginx
    mkdir -p "$home"
    timeout 60 openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout "$home/key.pem" -out "$home/cert.pem" 2>/dev/null || fail "a certificate is made"
    {
        echo "daemon off; pid $home/pid; error_log stderr; events { worker_connections 64; }"
        echo "http { access_log off; client_body_temp_path $home/1; proxy_temp_path $home/2; fastcgi_temp_path $home/3;"
        echo "uwsgi_temp_path $home/4; scgi_temp_path $home/5;"
        sed -n '/^    server {/,/^    map /p' "$page" | sed -e "s/listen 443/listen 127.0.0.1:$front/" -e 's/desk\.example;/localhost;/' \
            -e "s#/etc/ssl/private/desk.example.key#$home/key.pem#" -e "s#/etc/ssl/desk.example.pem#$home/cert.pem#" \
            -e "s/127.0.0.1:16180/127.0.0.1:$port/"
        echo "}"
    } >"$home/nginx.conf"
    /usr/sbin/nginx -p "$home" -c "$home/nginx.conf" >"$home/said" 2>&1 &
    nginx=$!
    until_true curl -s --cacert "$home/cert.pem" "https://localhost:$front/health" || fail "nginx listens" "$(cat "$home/said")"
}

if ! [ -x /usr/sbin/nginx ]; then
    skip "behind nginx" "nginx is not installed"
elif ! command -v curl >/dev/null; then
    skip "behind nginx" "curl is not installed"
else
    hub proxy
    port=$(free_port) front=$(free_port)
    section "Reachable" | sed -n '/listen.*16180/,/^weft restart/p' | sed -e "s/16180/$port/g" -e "s#https://desk.example#https://localhost:$front#" \
        -e 's/desk\.example/localhost/' >lines
    is "the page has the settings" 4 "$(wc -l <lines)"
    while read -r line; do
        paste "$line" </dev/null
    done <lines
    weft token add laptop --scope read,work --expires 90d
    exits "a token for the laptop" 0
    echo "$out" >"$there/laptop.token"
    nginx=
    behind_nginx "$port" "$front"
    weft call --cacert "$there/nginx/cert.pem" --token-file "$there/laptop.token" "wss://localhost:$front/ws" task.stats
    exits "a WebSocket through the proxy" 0
    like "it is answered" '"total":' "$out"
    weft task submit --wait 'echo through the proxy' --url "wss://localhost:$front/ws" --cacert "$there/nginx/cert.pem" \
        --token-file "$there/laptop.token"
    exits "a task through the proxy" 0
    like "what it says" "through the proxy" "$out"
    post() { # TOKEN
        run timeout 60 curl -s --cacert "$there/nginx/cert.pem" -H "Authorization: Bearer $1" -H 'Content-Type: application/json' \
            -d '{"jsonrpc":"2.0","id":1,"method":"task.stats"}' "https://localhost:$front/rpc"
    }
    post "$(cat "$there/laptop.token")"
    like "HTTP through the proxy" '"total":' "$out"
    post nonsense
    unlike "with a token that is none" '"total":' "$out"
    # Events come while they happen: the first is read before the connection has ended.
    run timeout 60 bash -c "curl -sN --cacert '$there/nginx/cert.pem' -H 'Authorization: Bearer $(cat "$there/laptop.token")' \
        -H 'Accept: text/event-stream' -H 'Last-Event-ID: 0' 'https://localhost:$front/events' | grep -m 1 ^data:"
    like "server-sent events through the proxy" 'data: {' "$out"
    # nginx is another user, so a link does not log in through it; a token does.
    run timeout 60 curl -s -D - --cacert "$there/nginx/cert.pem" -H "Origin: https://localhost:$front" -d "token=$(cat "$there/laptop.token")" \
        "https://localhost:$front/login"
    like "the dashboard lets one in through the proxy" "et-Cookie: " "$out"
    kill "$nginx"
    wait "$nginx" 2>/dev/null
fi

# ---- a backup, and back ----
if ! command -v sqlite3 >/dev/null; then
    skip "backup" "sqlite3 is not installed"
else
    hub backup
    weft task submit --wait 'echo before the backup'
    section "Backup" | sed "s#/backup/#$there/#g" >lines
    is "the page has the lines" 5 "$(wc -l <lines)"
    paste "$(sed -n 1p lines)"
    weft task submit --wait 'echo after it'
    for at in 2 3 4 5; do
        paste "$(sed -n ${at}p lines)"
    done
    weft task list
    like "what was before is there" "echo before the backup" "$out"
    unlike "what came after is not" "echo after it" "$out"
    weft doctor
    like "the journal is right" "the hub has it, and checked it" "$out"
fi

# ---- after an upgrade ----
hub upgrade
before=$(cat .weft/daemon.pid)
weft task submit --wait 'echo an older one'
paste "$(section "Upgrade" | sed -n 's/ *#.*//; /^weft restart/p')"
[ "$(cat .weft/daemon.pid)" != "$before" ] && pass || fail "another process runs"
weft task list
like "it reads the journal" "an older one" "$out"

# ---- the units ----
if ! command -v systemd-analyze >/dev/null; then
    skip "units" "systemd-analyze is not installed (systemd)"
else
    sed "s#@WEFT_PROGRAM@#$program#" "$SOURCE/packaging/weft@.service.in" >weft@.service
    sed "s#^ExecStart=[^ ]*#ExecStart=$program#" "$SOURCE/packaging/weft-runner.service" >weft-runner.service
    for unit in weft@.service weft-runner.service; do
        run timeout 60 systemd-analyze verify "./$unit"
        exits "$unit is right" 0
        is "$unit: nothing is said against it" "" "$(grep "$unit" <<<"$out$err")"
    done
fi
close
