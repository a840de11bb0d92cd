#!/bin/bash
# Mutations and actions against a real daemon: once for each requestId, over restarts and kills; and git, which writes only
# where the user allows it.
. "$(dirname "$0")/hub.bash"
command -v git >/dev/null || { skip changes "git is not installed"; close; exit; }

export GIT_CONFIG_NOSYSTEM=1 HOME=$there/home
mkdir -p "$HOME" "$there/some"
git config --global user.name Ann
git config --global user.email ann@example.org
git config --global init.defaultBranch main

mutation() { # REQUEST NAME ARGS
    weft call tinyvex/mutation requestId="$1" name="$2" args:="$3"
}
action() { # REQUEST NAME ARGS
    weft call tinyvex/action requestId="$1" name="$2" args:="$3"
}
commits() {
    git rev-list --count HEAD 2>/dev/null || echo 0
}

cd "$there/some" && git init -q . && echo one >a && echo .weft >.gitignore && mkdir .git/hooks 2>/dev/null
hub some
kill_hub() {
    local killed
    killed=$(cat .weft/daemon.pid)
    kill -9 "$killed"
    until_true is_gone "$killed"
}

# ---- values ----

mutation r1 doc.put '{"collection":"notes","key":"a","value":{"x":[1,2.50]}}'
exits "a value is put" 0
first=$out
like "and has a version" '"version":1' "$(tr -d ' \n' <<<"$out")"
mutation r2 doc.put '{"collection":"notes","key":"b","value":"b"}'
kill_hub
weft start
mutation r1 doc.put '{"collection":"notes","key":"a","value":{"x":[1,2.50]}}'
is "after a kill a repeat has the same answer" "$first" "$out"
mutation r1 doc.put '{"collection":"notes","key":"a","value":3}'
exits "another body under the same id" 8
like "is refused in words" "This requestId was used for something else" "$err"
mutation r3 doc.put '{"collection":"notes","key":"a","value":3,"expectedVersion":1}'
like "the version goes on" '"version":3' "$(tr -d ' \n' <<<"$out")"

# ---- git, not allowed ----

weft call git.stage paths:='["a"]'
like "git does not write unless it is allowed" "git.write" "$err"
unlike "and no token would change that" "Show a token" "$err"
is "nothing is staged" "" "$(git diff --cached --name-only 2>/dev/null)"
action g0 git.commit '{"message":"x","all":true}'
like "nor by an action" "git.write" "$err"

# ---- git, allowed ----

echo '{"git":{"write":true}}' >.weft/config.json
trust
weft restart
exits "restarts with git.write" 0
weft call git.stage paths:='["a"]'
exits "stage" 0
is "it is staged" a "$(git diff --cached --name-only)"
weft call git.unstage all:=true
exits "unstage, before the first commit" 0
is "nothing is staged any more" "" "$(git ls-files)"
weft call git.stage
exits "neither paths nor all" 8
weft call git.stage paths:='["../outside"]'
exits "a path that leads out" 8
weft call git.stage paths:='[":(glob)*", "--all"]'
unlike "what looks like a pattern or an option is a path" '"ok"' "$out"
is "and stages nothing" "" "$(git ls-files)"
printf '%s\n' '#!/bin/sh' 'echo ran >>../hook.log' >"$there/hook" && chmod +x "$there/hook"
mkdir -p .git/hooks && cp "$there/hook" .git/hooks/pre-commit

action c1 git.commit '{"message":"first","all":true}'
exits "commit" 0
hash=$(git rev-parse HEAD)
like "its answer is the commit" "$hash" "$out"
is "the user is its author" "Ann <ann@example.org>" "$(git log -1 --format='%an <%ae>')"
is "its hook has run" ran "$(cat ../hook.log)"
action c1 git.commit '{"message":"first","all":true}'
like "a repeat has the same answer" "$hash" "$out"
is "and commits nothing" 1 "$(commits)"
action c2 git.commit '{"message":"second"}'
like "there is nothing to commit" "nothing to commit" "$err"
echo two >>a
action c2 git.commit '{"message":"second"}'
like "that stays the answer of its id" "nothing to commit" "$err"
weft call git.commit message="--amend"
like "the hub's own method says so too" "nothing to commit" "$err"
weft call git.stage all:=true
weft call git.commit message="--amend"
exits "a message is not an option" 0
is "another commit" 2 "$(commits)"
echo three >>a && echo new >new
weft call git.discard paths:='["a"]'
exits "discard" 0
is "it is as it was committed" "$(printf 'one\ntwo')" "$(cat a)"
weft call git.discard paths:='["new"]' untracked:=true
exits "discard what git does not know" 0
is "it is gone" no "$([ -e new ] && echo yes || echo no)"

# ---- killed between the beginning and the end ----

printf '%s\n' '#!/bin/sh' 'echo x >>../in-hook' 'read -r line <../go' 'exit 1' >.git/hooks/pre-commit
mkfifo ../go
echo four >>a
(timeout 120 "$program" call tinyvex/action requestId=c3 name=git.commit args:='{"message":"third","all":true}' \
    >"$kit_said/c3" 2>&1) &
until_true test -s ../in-hook
kill_hub
wait $!
before=$(commits)
rm -f .git/hooks/pre-commit .git/index.lock
timeout 5 bash -c 'echo >../go' 2>/dev/null
weft start
action c3 git.commit '{"message":"third","all":true}'
like "whether it was done is not known" "not known whether this was done" "$err"
action c3 git.commit '{"message":"third","all":true}'
like "and that stays so" "not known whether this was done" "$err"
is "it is not done again" "$before" "$(commits)"
action c4 git.commit '{"message":"third","all":true}'
exits "under another id it is" 0

# ---- threads ----

mutation t1 thread.create '{"title":"Plans"}'
exits "a thread" 0
id=$(field "$out" .value.threadId)
mutation t2 message.post "{\"threadId\":\"$id\",\"text\":\"hello\"}"
exits "a message" 0
task=$(field "$out" .value.taskId)
until_true state "$task" completed
weft restart
mutation t2 message.post "{\"threadId\":\"$id\",\"text\":\"hello\"}"
is "a repeat after a restart is the same message" "$task" "$(field "$out" .value.taskId)"

close
