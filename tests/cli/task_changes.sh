#!/bin/bash
# weft task diff and undo: what tasks changed, in a repository and without one, with a real daemon.
. "$(dirname "$0")/hub.bash"

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export WEFT_AGENTS='{"sh":{"driver":"cli","command":["/bin/sh","-c","{prompt}"]}}' WEFT_DEFAULT_AGENT=sh

mkdir -p "$there/one"
cd "$there/one" || exit 1
git init -q .
printf '1\n2\n3\n' >a
printf 'keep\n' >other
printf '/start.out\n' >.gitignore
git add .
git -c user.name=a -c user.email=a@example.org commit -qm first
hub one

for word in diff undo merge open review; do
    weft task $word
    exits "$word before there is a task" 5
    like "and what to do" "weft task submit" "$err"
done

# ---- what it changed ----
weft task submit --wait 'echo said; echo 4 >>a; mkdir d; echo new >d/n; chmod +x other'
is "what it said" said "$out"
like "the end says what it changed" "task-0000 changed 3 files, +2 -0: weft task diff task-0000" "$err"
weft task get task-0000
like "get says it too" "changed   3 files, +2 -0" "$out"
weft task diff task-0000
exits "diff" 0
like "diff shows lines" $'@@ -1,3 +1,4 @@\n 1\n 2\n 3\n+4' "$out"
unlike "diff has no colours here" $'\e' "$out"
weft task diff
like "diff of the newest" "+new" "$out"
weft task diff task-0000 d
unlike "diff of a folder" "+4" "$out"
weft task diff task-0000 --stat
is "diff --stat" $'M a  +1 -0\nA d/n  +1 -0\nM other  100644 -> 100755\n3 files, +2 -0' "$out"
weft task diff task-0000 --json
is "diff --json" 3 "$(field "$out" .total)"
weft task diff nobody
exits "no such task" 5
person "" "$program" task diff task-0000
like "at a terminal there are colours" $'\e[32m+4' "$out"

# ---- putting it back ----
echo mine >mine
weft task undo task-0000
exits "undo" 0
like "undo says what it did" "task-0000 is undone: 3 files" "$err"
is "the file is as before" $'1\n2\n3' "$(cat a)"
[ ! -e d ] && [ ! -x other ] && pass || fail "all of it is put back" "$(ls -l)"
is "what a person made stays" mine "$(cat mine)"
is "git's own index is untouched" "?? mine" "$(git status --porcelain)"
weft task undo task-0000
exits "undo twice" 8
weft task get task-0000
like "get says that it is undone" "(undone)" "$out"
weft task undo --redo task-0000
exits "redo" 0
is "it is there again" $'1\n2\n3\n4' "$(cat a)"
echo 'a person' >a
weft task undo --json task-0000
exits "a conflict" 8
is "a conflict for programs" changed "$(field "$out" .conflicts.0.reason)"
weft task undo task-0000
like "a conflict in words" "a: somebody has changed it since" "$err"
is "nothing was done" new "$(cat d/n)"
weft events --type task.undone --json
like "it is in the journal" '"undone":true' "$out"

# ---- a name stays on its line ----
weft task submit --wait "$(printf 'touch "odd\nM forged  +1 -0" \047q"\134\047')"
weft task diff --stat
is "a line end in a name is no line" '2 files, +0 -0' "$(tail -n 1 <<<"$out")"
is "it is written as git does" $'A "odd\\nM forged  +1 -0"\nA "q\\"\\\\"' "$(head -n 2 <<<"$out")"
rm -f odd* q*

# ---- nothing changed, nothing known ----
weft task submit --wait true
is "nothing changed: nothing is said" "" "$err"
weft task diff
exits "an empty diff" 0
is "an empty diff is empty" "" "$out"
"$program" stop >/dev/null 2>&1

# ---- without a repository ----
hub two
echo x >x
weft task submit --wait 'echo y >x'
weft task diff
like "without git's own repository" $'-x\n+y' "$out"
weft task undo
is "undo without a repository" x "$(cat x)"
[ ! -e .git ] && pass || fail "no repository is made" "$(ls -a)"
weft task submit 'touch begun; while :; do sleep 0.1; done'
slow=$out
until_true test -e begun
weft task undo "$slow"
exits "not while it runs" 8
like "and what to do" "weft task watch" "$err"
weft task cancel "$slow"
"$program" stop >/dev/null 2>&1

# ---- switched off ----
WEFT_CHANGES_ENABLED=false hub three
weft task submit --wait 'echo y >x'
weft task diff
exits "switched off" 8
like "switched off: says so" "changes.enabled" "$err"
close
