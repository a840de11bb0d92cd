#!/bin/bash
# A resolver that does not answer: nobody waits for it longer than they said, and a daemon that asked it ends when it is told
# to, as it should.
. "$(dirname "$0")/hub.bash"

cc=$(command -v cc || command -v gcc || command -v clang)
[ -n "$cc" ] || { skip "a slow resolver" "needs a C compiler"; close; }
if nm -D "$weft" 2>/dev/null | grep -q '__[at]san_init'; then
    skip "a slow resolver" "with a sanitizer the program ends by exit(), which waits for the thread that resolves"
    close
fi

cat >slow.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret) {
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!host || strcmp(host, "slow.example") != 0 || (hints && hints->ai_flags & AI_NUMERICHOST))
        return next(host, port, hints, ret);
    sleep(300);
    return EAI_AGAIN;
}
END
"$cc" -shared -fPIC -o slow.so slow.c || fail "the other resolver compiles"
slow=$PWD/slow.so

LD_PRELOAD=$slow run timeout 120 "$weft" call --timeout 1s tcp://slow.example:9 x
exits "a call gives up in time" 7
like "and says why" "timed out" "$err"

mkdir -p hooked/.weft
chmod 700 hooked/.weft
cat >hooked/.weft/config.json <<'END'
{ "automation": { "rules": [ { "id": "hook", "trigger": { "type": "task.completed" },
                               "action": { "type": "webhook", "url": "http://slow.example/" } } ] } }
END
cd hooked
trust
LD_PRELOAD=$slow timeout 200 "$program" serve >serve.out 2>&1 &
daemon=$!
until_true "$program" status
weft task submit --wait hello
exits "a task ends, and its webhook is on its way" 0
weft stop --timeout 20s
exits "the daemon stops" 0
wait $daemon
is "and had no trouble" 0 $?
unlike "of any kind" "Assertion" "$(cat serve.out)"

close
