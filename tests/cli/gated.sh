#!/bin/bash
# weft task with gates, and weft build: a real failing test, real compilers, a person who interrupts.
. "$(dirname "$0")/hub.bash"

if ! command -v gcc >/dev/null || ! command -v make >/dev/null; then
    echo "skip gated.sh: needs gcc and make"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

export XDG_CONFIG_HOME=$there/config
mkdir -p "$XDG_CONFIG_HOME/weft"
cat >"$XDG_CONFIG_HOME/weft/config.json" <<END
{"agents": {"fixer": {"driver": "cli", "command": ["/usr/bin/python3", "$SOURCE/tests/agents/fixer.py", "{prompt}"]}},
 "default_agent": "fixer",
 "tasks": {"gates": {"test": ["make", "-s", "check"], "ok": ["true"], "no": ["false"],
   "gone": ["no-such-checker", "--all"], "lost": ["/nowhere/checker"], "plain": ["/etc/passwd"], "made": ["./check.sh"]}},
 "build": {"command": ["make", "-s", "app"]}}
END

hub project
printf 'check:\n\tgcc -o test test.c work.c && ./test\napp:\n\tgcc -Wall -c app.c -o /dev/null\n' >Makefile
printf '\n' >work.c
cat >test.c <<'END'
#include <stdio.h>
int product(int a, int b);
int main(void) {
    int is = product(3, 4);
    if (is != 12)
        printf("product(3, 4) is %d, want 12\n", is);
    return is != 12;
}
END

# ---- a task with gates ----

weft task submit --wait --gate ok --gate test --max-iterations 5 "make the test pass"
is "it passes" 0 "$rc"
like "what the agent said" "made it right" "$out"
like "iterations" "iteration 3 of 5" "$err"
like "a gate that did not pass" "iteration 1: test did not pass" "$err"
like "with its findings" "undefined reference" "$err"
like "and one that did" "iteration 3: test passed" "$err"
like "the end" "gated-0001 completed after 3 iterations" "$err"

weft task get gated-0001
is "it is shown" 0 "$rc"
like "its state" "completed" "$out"
like "its iterations" "ok passed" "$out"
like "and what did not pass in them" "test did not pass" "$out"
weft task get gated-0001 --json
is "as JSON" 3 "$(field "$out" .iteration)"
weft task diff gated-0001 --stat
like "what all iterations changed" "work.c" "$out"
weft task watch gated-0001
is "watching one that has ended" 0 "$rc"
like "says so" "completed" "$err"

weft task submit --gate no --max-iterations 1 "look"
is "without waiting" 0 "$rc"
is "its id is printed" "gated-0002" "$out"
weft task watch gated-0002
is "one that fails" 1 "$rc"
like "says why" "The gate no has not passed" "$err"

weft task submit --gate rm "look"
is "an unknown gate" 8 "$rc"
like "is explained" "there are test, ok, no" "$err"
weft task submit --gate ok --gate gone "look"
is "a gate whose program is not there" 8 "$rc"
like "is explained" 'The gate "gone" cannot run: there is no program "no-such-checker" in the PATH of the hub' "$err"
weft task submit --gate lost "look"
like "one that is named with its path" 'there is no program "/nowhere/checker"' "$err"
weft task submit --gate plain "look"
like "one that is no program" 'the program "/etc/passwd" may not be run' "$err"
weft task get gated-0003
is "none of these has become a task" 5 "$rc"
weft task submit --wait --gate made --max-iterations 1 "look"
like "what lies in the project may be made by the agent" "gated-0003 failed" "$err"
weft task submit --max-iterations 3 "look"
is "iterations without gates" 2 "$rc"
weft task submit --gate ok --session session-0000 "look"
is "gates in a session" 2 "$rc"
weft task get gated-0099
is "no such task" 5 "$rc"

weft task submit --gate ok "wait for ever"
id=$out
weft task cancel "$id"
is "cancelled" 0 "$rc"
like "is told" "$id is cancelled" "$err"

# ---- building ----

weft build --last
like "never built" "never built" "$err"
printf 'int main(void) {\n    int unused;\n    return nothing;\n}\n' >app.c
weft build
is "a build that fails" 1 "$rc"
like "has its error" "app.c:3:12: error: " "$out"
like "and its warning" "app.c:2:9: warning: unused variable" "$out"
like "with its name" "[unused-variable]" "$out"
like "and a sum" "the build failed in " "$err"
like "of all" "1 error, 1 warning" "$err"
weft build --last --json
is "the last one" failed "$(field "$out" .state)"
printf 'int main(void) {\n    return 0;\n}\n' >app.c
weft build
is "a build" 0 "$rc"
like "is told" "built in" "$err"
weft build --backend
is "none is configured" 5 "$rc"
like "and which key it is" "build.backend" "$err"
like "and what to type" "weft config set build.backend '[\"make\"]'" "$err"
weft build now
is "no arguments" 2 "$rc"

# ---- trust ----

# A project does not say what runs here: its own file counts only when it is on record.
mkdir -p "$there/stranger/.weft"
cd "$there/stranger" || exit 1
echo '{"tasks":{"gates":{"evil":["touch","evil"]}},"build":{"command":["touch","evil"]}}' >.weft/config.json
chmod 700 .weft
weft config check
like "gates and builds of a clone are not taken" "tasks.gates" "$out$err"
like "nor its build" "build.command" "$out$err"

close
