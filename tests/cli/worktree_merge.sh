#!/bin/bash
# What becomes of the work in worktrees, with a real daemon and real repositories: two tasks side by side, both reviewed, one
# merged, one discarded, one undone after the merge; conflicts, strategies, cleaning up, set-up commands.
. "$(dirname "$0")/hub.bash"

export GIT_CONFIG_GLOBAL=$there/gitconfig GIT_CONFIG_NOSYSTEM=1
export WEFT_AGENTS='{"sh":{"driver":"cli","command":["/bin/sh","-c","{prompt}"]},"apart":{"driver":"cli","command":["/bin/sh","-c","{prompt}"],"isolation":"worktree"}}'
export WEFT_DEFAULT_AGENT=sh
git config --file "$GIT_CONFIG_GLOBAL" user.name "A Person"
git config --file "$GIT_CONFIG_GLOBAL" user.email person@example.org

commit() { # FOLDER MESSAGE
    git -C "$1" add -A
    git -C "$1" commit -qm "$2"
}
repository() { # NAME
    mkdir -p "$there/$1"
    cd "$there/$1" || exit 1
    git init -q -b main .
    printf '1\n2\n3\n4\n5\n6\n7\n8\n9\n' >a
    printf 'b\n' >b
    printf '/start.out\n/ignored\n' >.gitignore
    commit . first
}
tree() { git --no-optional-locks -C "${1:-.}" status --porcelain; }

# ---- two tasks side by side, both reviewed, one merged, one discarded, one undone after the merge ----
repository flow
for hook in pre-commit commit-msg post-commit post-merge pre-merge-commit post-checkout reference-transaction post-index-change; do
    printf '#!/bin/sh\necho %s >>"%s"\n' "$hook" "$there/ran" >".git/hooks/$hook"
    chmod +x ".git/hooks/$hook"
done
rm -f "$there/ran"
hub flow
weft task submit --worktree 'sed -i s/^1/one/ a; echo new >n; mkfifo go; cat go; rm go'
one=$out
weft task submit --worktree 'sed -i s/^9/nine/ a; mkfifo go; cat go; rm go'
two=$out
is "tasks in worktrees are not in each other's way" "" "$err"
until_true test -p ".weft/worktrees/$one/go"
until_true test -p ".weft/worktrees/$two/go"
weft task merge "$one"
exits "not while it runs" 8
like "and that is said" "has something to do" "$err"
echo >".weft/worktrees/$one/go"
echo >".weft/worktrees/$two/go"
weft task watch "$one"
weft task watch "$two"
weft task diff "$one" --stat
is "the first is reviewed" $'M a  +1 -1\nA n  +1 -0\n2 files, +2 -1' "$out"
weft task diff "$two" --stat
is "so is the second" $'M a  +1 -1\n1 file, +1 -1' "$out"
weft worktree list --json
is "both hold work" $'work\nwork' "$(field "$out" .worktrees.0.state; field "$out" .worktrees.1.state)"
weft worktree prune
is "so neither is removed" "" "$out"
like "which is said" "holds work that is nowhere else" "$err"
cd "$(weft task open "$one"; echo "$out")" || exit 1
is "open says where" "$there/flow/.weft/worktrees/$one" "$PWD"
cd "$there/flow" || exit 1
echo mine >>b
echo mine >untracked
weft task merge "$one"
exits "merge" 0
like "merge says what it did" "$one is merged into main" "$err"
is "the project has it" $'one\n2' "$(head -n 2 a)"
is "all of it" new "$(cat n)"
is "what the person has changed is still there, and nothing else" $' M b\n?? untracked' "$(tree)"
is "the commit is the person's" "A Person <person@example.org>" "$(git log -1 --format='%an <%ae>')"
like "its message is the prompt's" "sed -i s/^1/one/ a; echo new" "$(git log -1 --format=%s)"
is "the worktree is clean" "" "$(tree ".weft/worktrees/$one")"
[ ! -e "$there/ran" ] && pass || fail "no hook has run" "$(sort "$there/ran" | uniq -c)"
weft task merge "$one"
exits "a second time there is nothing to merge" 8
like "and that is said" "already" "$err"
weft task get "$one"
like "get knows" "(merged)" "$out"
weft task discard "$two"
exits "discard" 0
like "discard says how to get it back" "git branch NAME" "$err"
[ ! -e ".weft/worktrees/$two" ] && pass || fail "the worktree is gone"
is "its branch too" "weft/$one" "$(git branch --list 'weft/*' --format='%(refname:short)')"
is "and git knows nothing of it" 2 "$(git worktree list | wc -l)"
weft task diff "$two" --stat
like "what it changed is still known" "1 file, +1 -1" "$out"
echo 'by the person' >>n
weft task undo "$one"
exits "undo after the merge: what the person wrote is not thrown away" 8
like "which is said" "somebody has changed it since" "$err"
echo new >n
weft task undo "$one"
exits "undo after the merge" 0
like "it says where" "in the project's folder" "$err"
is "it is undone in the project" $' M a\n M b\n D n\n?? untracked' "$(tree)"
is "a is as it was" 1 "$(head -n 1 a)"
is "the worktree is not touched" one "$(head -n 1 ".weft/worktrees/$one/a")"
weft task undo --redo "$one"
exits "redo" 0
is "and there again" $' M b\n?? untracked' "$(tree)"
weft worktree list --json
is "what is merged is free" free "$(field "$out" .worktrees.0.state)"
weft worktree prune --dry-run
like "a dry run says so" "$one would be removed" "$out"
[ -d ".weft/worktrees/$one" ] && pass || fail "and removes nothing"
weft worktree prune
like "prune" "$one is removed" "$out"
[ ! -e ".weft/worktrees/$one" ] && pass || fail "it is not there any more"
until_true test ! -e ".weft/worktrees/$one.state"
is "no branch is left" "" "$(git branch --list 'weft/*')"
is "nor a ref, but the one of the project's own snapshots" 1 "$(git for-each-ref refs/weft | wc -l)"
weft task submit --session "${one/task/session}" --wait 'head -n 1 a'
is "its session goes on in a new worktree, with what was merged" one "$out"

# ---- after a restart ----
weft stop # fsck wants nobody to write meanwhile
git fsck --strict >"$there/fsck" 2>&1 && pass || fail "the repository is sound" "$(cat "$there/fsck")"
hub flow
weft task undo "$one"
exits "undo after a restart" 0
is "in the project" $' M a\n M b\n D n\n?? untracked' "$(tree)"
weft task undo --redo "$one"

# ---- in the way ----
repository way
hub way
weft task submit --worktree --wait 'echo theirs >b; echo x >new; rm a; echo y >ignored2'
id=task-0000
echo mine >b
echo mine >new
weft task merge $id
exits "the person's work is in the way" 8
like "which file" "b: you have changed it here" "$err"
like "and which other" "new: it is here already" "$err"
is "nothing was done" $' M b\n?? new' "$(tree)"
is "not even a commit" first "$(git log -1 --format=%s)"
git checkout -q b
rm new
echo mine >>a
git add a
git checkout -q HEAD -- b
git show HEAD:a >a
weft task merge $id
like "what is staged is in the way too" "a: you have staged" "$err"
git reset -q
touch .git/index.lock
weft task merge $id
like "another git is at work" "another git is at work" "$err"
rm .git/index.lock
echo mine >ignored
weft task merge $id
exits "then it goes" 0
is "the tree is clean" "" "$(tree)"
[ ! -e a ] && pass || fail "a is deleted"
git checkout -q --detach
weft task submit --session session-0000 --wait 'echo more >more'
weft task merge $id
like "no branch" "no branch is checked out" "$err"
git checkout -q main

# ---- squash and rebase, more than once ----
repository squash
hub squash
weft task submit --worktree --wait 'echo 1 >n; git add n; git commit -qm by-agent; echo 2 >>n'
echo other >o
commit . other
weft task merge task-0000 --strategy squash -m 'as one'
exits "squash" 0
is "one commit on top" $'as one\nother\nfirst' "$(git log --format=%s)"
is "with all of it" $'1\n2' "$(cat n)"
weft worktree list --json
is "what was squashed is elsewhere" free "$(field "$out" .worktrees.0.state)"
weft task submit --session session-0000 --wait 'sed -i s/2/two/ n'
weft worktree list --json
is "what came then is not" work "$(field "$out" .worktrees.0.state)"
weft task merge task-0001 --strategy squash
exits "squash again, though both sides have the lines" 0
is "it has the rest" $'1\ntwo' "$(cat n)"
weft task submit --session session-0000 --wait 'echo 3 >>n; git commit -qam third; echo 4 >>n; git commit -qam fourth'
echo more >>o
commit . more
weft task merge task-0002 --strategy rebase
exits "rebase" 0
is "commit by commit" $'fourth\nthird\nmore' "$(git log -3 --format=%s)"
is "clean" "" "$(tree)"
is "no merge" 0 "$(git log --merges --oneline | wc -l)"
git reset -q --hard HEAD~1
weft worktree list --json
is "what was thrown out of the branch is nowhere else" work "$(field "$out" .worktrees.0.state)"

# ---- conflicts are left in the worktree ----
repository conflicts
hub conflicts
weft task submit --worktree --wait 'sed -i s/^5/agent/ a; echo agent >b; echo more >c'
sed -i s/^5/person/ a
echo person >d
commit . person
head=$(git rev-parse HEAD)
weft task merge
exits "conflicts" 8
like "are listed" "a: both sides have changed it" "$err"
like "and it says how to go on" "weft task open task-0000" "$err"
is "the project is as it was" "$head" "$(git rev-parse HEAD)"
is "also its files" "" "$(tree)"
is "in the worktree it is a merge" $'UU a\nA  d' "$(tree .weft/worktrees/task-0000)"
grep -q '^<<<<<<< worktree' .weft/worktrees/task-0000/a && pass || fail "with marks"
is "git knows of it" "$head" "$(git -C .weft/worktrees/task-0000 rev-parse MERGE_HEAD)"
weft worktree list --json
is "the list knows" conflicts "$(field "$out" .worktrees.0.state)"
weft worktree prune
like "it is not removed" "a merge is to be finished" "$err"
weft task merge
exits "not yet" 8
like "marks are found" "a: it still has conflict marks" "$err"
weft task submit --session session-0000 --wait 'grep -v "^[<=>|]" a >a2; mv a2 a'
weft task merge task-0000
exits "another prompt has finished it" 0
is "the project has both" $'agent\nperson' "$(grep -E 'agent|person' a)"
is "and is clean" "" "$(tree)"
is "as a merge" 2 "$(git log -1 --format=%P | wc -w)"

# ---- who works where ----
repository beside
hub beside
weft task submit 'mkfifo go; cat go; rm go'
is "the first is alone" "" "$err"
until_true test -p go
weft task submit 'sleep 0'
like "two in one folder are told" "task-0000 works in the same files now" "$err"
weft task submit --wait 'true'
like "also to who waits" "note: task-0000" "$err"
weft task submit --agent apart --wait 'pwd'
like "an agent may have worktrees as its rule" "/.weft/worktrees/task-0003" "$out"
weft call task.submit prompt=pwd agent=apart isolation=none
exits "and a task is the exception" 0
echo >go
weft task watch task-0000
weft task merge task-0000
like "a task without a worktree" "did not work in a worktree" "$err"
weft task merge task-0999
exits "no such task" 5
weft task open task-0000
exits "nor can it be opened" 8

# ---- deleting a session does not lose what is in its worktree ----
repository kept
hub kept
weft task submit --worktree --wait 'echo x >precious'
weft session delete session-0000
exits "a session is deleted" 0
is "the worktree stays" x "$(cat .weft/worktrees/task-0000/precious)"
weft worktree list
like "and is listed" "deleted" "$out"
weft worktree prune
[ -e .weft/worktrees/task-0000/precious ] && pass || fail "and is not removed"
git -C .weft/worktrees/task-0000 add -A
git -C .weft/worktrees/task-0000 commit -qm kept
weft worktree prune
[ -e .weft/worktrees/task-0000/precious ] && pass || fail "nor if only its branch has it"
git merge -q weft/task-0000
weft worktree prune
[ ! -e .weft/worktrees/task-0000 ] && pass || fail "but when it is merged"

# ---- two that have the same commits hold them for each other ----
repository both
hub both
weft task submit --worktree --wait 'echo x >x; git add x; git commit -qm x'
weft task submit --worktree --wait 'git merge -q weft/task-0000; cat x'
is "one has merged the other" x "$out"
weft worktree prune --dry-run
is "neither would go" "" "$out"
weft worktree prune
is "and neither goes" "" "$out"
is "the commit is there" x "$(git show weft/task-0000:x)"
weft task merge task-0001
weft worktree prune
like "merged, they go" "task-0000 is removed" "$out"
like "both" "task-0001 is removed" "$out"
is "and the commit stays" x "$(cat x)"

# ---- what somebody has locked stays ----
weft task submit --worktree --wait true
git worktree lock .weft/worktrees/task-0002
weft worktree list --json
is "the list knows" locked "$(field "$out" .worktrees.0.state)"
weft worktree prune
like "prune says why" "task-0002 stays: somebody has locked it" "$err"
git worktree unlock .weft/worktrees/task-0002
weft worktree prune
like "unlocked, it goes" "task-0002 is removed" "$out"

# ---- set-up commands ----
repository setup
printf '#!/bin/sh\necho theirs >"%s"\n' "$there/theirs" >own.sh
chmod +x own.sh
commit . own
setup() { # JSON
    weft stop 2>/dev/null
    printf '{"worktrees":{"setup":%s}}' "$1" >.weft/config.json
    weft trust --yes >/dev/null 2>&1
    hub setup
}
mkdir -p .weft
setup '[{"command":["sh","-c","pwd >set-up"]},{"command":["sh","-c","cat set-up >>set-up2"]}]'
weft task submit --worktree --wait 'cat set-up2'
is "they run in the worktree, before the turn" "$there/setup/.weft/worktrees/task-0000" "$out"
weft task diff task-0000 --stat
is "what they made is not the task's" "0 files, +0 -0" "$out"
weft task submit --session session-0000 --wait 'rm set-up; ls set-up* | wc -l'
is "only once" 1 "$out"
setup '[{"command":["sh","-c","echo out; echo broken >&2; exit 3"]}]'
weft task submit --worktree --wait 'echo x >here'
exits "one that fails fails the task" 1
like "and says why" "The set-up command sh of the worktree ended with status 3: " "$err"
weft task get task-0002
like "with what it said" "broken" "$out"
like "the reason has a name" "worktreeSetupFailed" "$out"
setup '[{"command":["sleep","60"],"timeout_ms":100}]'
weft task submit --worktree --wait true
like "one that takes too long" "took too long" "$err"
setup '[{"command":["./own.sh"]}]'
weft task submit --worktree --wait true
like "never one of the project's" "is a program of the project" "$err"
[ ! -e "$there/theirs" ] && pass || fail "it did not run"
setup '[{"command":["no-such-program-here"]}]'
weft task submit --worktree --wait true
like "one that is not there" "is not there" "$err"

# ---- a clone cannot bring them ----
repository clone
mkdir .weft
printf '{"worktrees":{"setup":[{"command":["touch","%s"]}]}}' "$there/brought" >.weft/config.json
weft start
exits "they count only when they are on record" 4
like "which is said" "worktrees.setup" "$err"
[ ! -e "$there/brought" ] && pass || fail "and did not run"

# ---- who the user is ----
repository nobody
rm "$GIT_CONFIG_GLOBAL"
EMAIL='' hub nobody
git config user.useConfigOnly true
weft task submit --worktree --wait 'echo x >x'
weft task merge
like "git must know who you are" "git does not know who you are" "$err"

close
