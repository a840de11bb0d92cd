#!/bin/bash
# weft task submit --worktree: agents that work in worktrees of their own, with a real daemon and real repositories.
. "$(dirname "$0")/hub.bash"

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export WEFT_AGENTS='{"sh":{"driver":"cli","command":["/bin/sh","-c","{prompt}"]}}' WEFT_DEFAULT_AGENT=sh

commit() { # FOLDER MESSAGE
    git -C "$1" add -A
    git -C "$1" -c user.name=a -c user.email=a@example.org commit -qm "$2"
}
repository() { # NAME
    mkdir -p "$there/$1"
    cd "$there/$1" || exit 1
    git init -q -b main .
    printf '1\n2\n3\n' >a
    printf '/start.out\n' >.gitignore
    printf 'run\n' >tool
    chmod +x tool
    ln -s a link
    mkdir -p 'a folder'
    printf 'x\r\n' >'a folder/crlf'
    commit . first
}

# ---- one task beside the project's files ----
repository one
base=$(git rev-parse HEAD)
cat >.git/hooks/post-checkout <<'H'
#!/bin/sh
echo ran >>"$WEFT_TEST_RAN"
H
chmod +x .git/hooks/post-checkout
cp .git/hooks/post-checkout .git/hooks/reference-transaction
export WEFT_TEST_RAN=$there/ran
hub one
echo mine >>a
weft task submit --worktree --wait 'pwd; cat a; echo 4 >>a; echo new >n'
exits "a task in a worktree" 0
is "it works there, on what was committed" "$there/one/.weft/worktrees/task-0000"$'\n1\n2\n3' "$out"
like "the end says what it changed" "task-0000 changed 2 files, +2 -0" "$err"
is "the project's files are as they were" " M a" "$(git status --porcelain)"
is "the branch is a new one, from HEAD" "$base" "$(git rev-parse weft/task-0000)"
is "and is checked out there" weft/task-0000 "$(git -C .weft/worktrees/task-0000 symbolic-ref --short HEAD)"
is "git sees what changed" $' M a\n?? n' "$(git -C .weft/worktrees/task-0000 status --porcelain)"
is "files are what they were" "$(git ls-files -s)" "$(git -C .weft/worktrees/task-0000 ls-files -s)"
is "also on the disk" $'x\r' "$(cat '.weft/worktrees/task-0000/a folder/crlf')"
[ -x .weft/worktrees/task-0000/tool ] && [ -L .weft/worktrees/task-0000/link ] && pass || fail "modes and links"
[ ! -e "$there/ran" ] && pass || fail "no hook has run" "$(cat "$there/ran")"
weft task get task-0000
like "get says where" "branch    weft/task-0000" "$out"
weft task diff task-0000 --stat
is "diff --stat" $'M a  +1 -0\nA n  +1 -0\n2 files, +2 -0' "$out"
weft task undo task-0000
exits "undo" 0
is "undo is in the worktree" "" "$(git -C .weft/worktrees/task-0000 status --porcelain)"
is "and not in the project" $'1\n2\n3\nmine' "$(cat a)"
weft task undo --redo task-0000
exits "redo" 0
is "redo is there too" $'1\n2\n3\n4' "$(cat .weft/worktrees/task-0000/a)"
weft call session.get sessionId=session-0000
is "the session says so" worktree "$(field "$out" .session.isolation)"
is "with its path" "$there/one/.weft/worktrees/task-0000" "$(field "$out" .session.worktree)"

# ---- the next turn of the session, and a restart ----
weft task submit --session session-0000 --wait 'cat a; echo 5 >>a'
is "the next turn goes on there" $'1\n2\n3\n4' "$out"
weft stop
hub one
weft task submit --session session-0000 --wait 'tail -n 2 a'
is "also after a restart" $'4\n5' "$out"
weft task diff task-0000 --stat
like "and the diff is still known" "2 files, +2 -0" "$out"

# ---- with changes ----
rm tool
echo fresh >'new one'
weft task submit --with-changes --wait 'cat a "new one"; ls tool; exit 0'
exits "with changes" 0
is "the changes are there" $'1\n2\n3\nmine\nfresh' "$out"
id=$(weft task list --limit 1 --json; field "$out" .tasks.0.id)
is "as changes that are not committed" $' M a\n D tool\n?? "new one"' "$(git -C ".weft/worktrees/$id" status --porcelain)"
is "the project's are as they were" $' M a\n D tool\n?? "new one"' "$(git status --porcelain)"

# ---- two at once ----
weft task submit --worktree 'echo one >both; mkfifo go; cat go; rm go'
one=$out
weft task submit --worktree 'echo two >both; mkfifo go; cat go; rm go'
two=$out
until_true test -p ".weft/worktrees/$one/go"
until_true test -p ".weft/worktrees/$two/go"
echo >".weft/worktrees/$one/go"
echo >".weft/worktrees/$two/go"
weft task watch "$one"
weft task watch "$two"
weft task diff "$one" --stat --json
is "neither sees the other" null "$(field "$out" .shared)"
weft task diff "$two" both
like "each has its own" "+two" "$out"

# ---- what is taken ----
git branch "weft/task-0099"
weft call session.create isolation=worktree folder=x
exits "not with a folder" 8
weft call task.submit prompt=x isolation=elsewhere
exits "no such isolation" 8
weft call task.submit prompt=x withChanges=true
exits "changes without a worktree" 8

# ---- a worktree that somebody removed ----
git worktree remove --force .weft/worktrees/task-0000
weft task submit --session session-0000 --wait 'echo x >here'
exits "one that is gone" 1
like "is said" "not there any more" "$err"
[ ! -e here ] && pass || fail "nothing runs in the project instead"
weft task diff task-0000 --stat
like "what it changed is still known" "2 files, +2 -0" "$out"

# ---- refused in words ----
refused() { # WHAT WORDS
    weft task submit --worktree --wait 'echo x >here'
    exits "$1" 1
    like "$1 is said" "$2" "$err"
    [ ! -e here ] && pass || fail "$1: nothing runs in the project instead"
    [ -z "$(git branch --list 'weft/*' 2>/dev/null)" ] && pass || fail "$1: no branch is left" "$(git branch)"
}
repository filters
echo '*.bin filter=lfs' >.gitattributes
echo x >b.bin
commit . lfs
hub filters
refused "a filter" "go through a filter (lfs: b.bin)"
repository sub
git -c protocol.file.allow=always submodule --quiet add "$there/one" inner >/dev/null 2>&1
commit . sub
hub sub
refused "a submodule" "has a submodule (inner)"
repository sparse
git sparse-checkout set 'a folder' >/dev/null 2>&1
hub sparse
refused "a sparse checkout" "sparse checkout"
mkdir -p "$there/empty"
git -C "$there/empty" init -q .
hub empty
refused "no commit" "has no commit yet"
hub plain
refused "no repository" "not in a git repository"
repository seen
mkdir -p .weft
printf '!worktrees\n' >.weft/.gitignore
hub seen
refused "git would see it" "git does not ignore"
repository named
git branch weft
hub named
weft task submit --worktree --wait 'echo x >here'
exits "a branch weft" 1
like "a branch weft is said" "has a branch weft" "$err"
repository pipes
rm -f .git/info/exclude
mkdir -p .git/info
mkfifo .git/info/exclude
hub pipes
weft task submit --worktree --wait 'echo x >here'
exits "a pipe in the repository" 1
like "a pipe in the repository is said" "info/exclude of the repository is not a file" "$err"
repository logs
mkdir -p .git/logs/refs/heads/weft
ln -s "$there/logged" .git/logs/refs/heads/weft/task-0000
: >"$there/logged"
hub logs
weft task submit --worktree --wait 'echo x >here'
exits "a log that leads elsewhere" 1
like "a log that leads elsewhere is said" "links to somewhere else" "$err"
[ ! -s "$there/logged" ] && pass || fail "nothing is written where a log leads" "$(cat "$there/logged")"

close
