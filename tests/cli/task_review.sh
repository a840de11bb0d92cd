#!/bin/bash
# weft task review: comments written in an editor become the next prompt, with a real daemon and editors that are scripts.
. "$(dirname "$0")/hub.bash"

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
# The agent does what the first line says that begins with "do: ", and otherwise says what it was told.
cat >"$there/agent" <<'AGENT'
#!/bin/sh
case $1 in
"do: "*) eval "${1#do: }" ;;
*) printf '%s\n' "$1" ;;
esac
AGENT
chmod +x "$there/agent"
export WEFT_AGENTS="{\"sh\":{\"driver\":\"cli\",\"command\":[\"$there/agent\",\"{prompt}\"]}}" WEFT_DEFAULT_AGENT=sh
export TMPDIR=$there/tmp
mkdir -p "$TMPDIR" "$there/one"
unset VISUAL
cd "$there/one" || exit 1
git init -q .
printf '1\n2\n3\n' >a
printf 'x\n' >b
printf '/start.out\n' >.gitignore
git add .
git -c user.name=a -c user.email=a@example.org commit -qm first
hub one

editor() { # SCRIPT: what the editor does, as awk, with the file
    printf '#!/bin/sh\ncp "$1" "%s/before"\nawk %s "$1" >"$1.new" && cat "$1.new" >"$1" && rm "$1.new"\n' "$there" "'$1'" >"$there/editor"
    chmod +x "$there/editor"
    export EDITOR=$there/editor
}

files() {
    find "$TMPDIR" -name 'weft-review-*' | wc -l
}

weft task submit --wait "do: echo 4 >>a; sed -i 1d a; printf 'evil \\033[31m\\tred\\n' >c; rm b"
is "the first task" 0 "$rc"

# ---- nothing is written ----
export EDITOR=true
weft task review
exits "an editor that changes nothing" 0
like "an editor that changes nothing: says so" "nothing was written about task-0000: nothing is sent" "$err"
is "and leaves no file" 0 "$(files)"
weft task list --json
is "and no task" 1 "$(field "$out" .tasks | /usr/bin/python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')"

# ---- comments ----
editor '{ print } /^\+4/ { print "> why four?"; print ">"; print "> say so" } /^-1/ { print "> keep it" } /^diff --git a\/c/ { print ">about c" } /^# What/ { print "> all in all" }'
weft task review task-0000
exits "review" 0
is "review prints the new task" task-0001 "$out"
like "what will be sent is shown" $'3 comments on what task-0000 changed:\n    all in all\n  a:1 (as it was before)\n    keep it\n  a:3\n    why four?\n    \n    say so\n  c\n    about c' "$err"
is "the file is gone" 0 "$(files)"
like "the file says how" "begin with" "$(cat "$there/before")"
like "escape sequences are shown as text" 'evil \u001b[31m' "$(cat "$there/before")"
unlike "and not written" $'\e' "$(cat "$there/before")"
until_true state task-0001 completed
weft task get task-0001 --output
like "the prompt names the task" "A person has reviewed what task-0000 changed in the project's files and has 3 comments on it." "$out"
like "the prompt says what it is about, to an agent that does not remember" "What was to be done there:" "$out"
like "the prompt has what is said of all" $'\nall in all\n' "$out"
like "the prompt has the line that was removed" $'1. a, line 1 of the file as it was before:\n\n    > -1\n       2\n       3\n      +4\n\nkeep it' "$out"
like "the prompt has the line that was added" $'2. a, line 3:\n\n      -1\n       2\n       3\n    > +4\n\nwhy four?\n\nsay so' "$out"
like "the prompt has the file" $'3. c:\n\nabout c' "$out"
weft task get task-0001 --json
is "the task knows its review" task-0000 "$(field "$out" .metadata.review.taskId)"
is "with its comments" 3 "$(field "$out" .metadata.review.comments.1.line)"

# ---- waiting ----
editor '{ print } /^-x/ { print "> do not delete this" }'
weft task review task-0000 --wait
exits "review --wait" 0
like "review --wait shows what the agent says" "do not delete this" "$out"
weft task review task-0000 a
like "of one file there is nothing else" "nothing is sent" "$err"
editor '/^diff --git a\/a / { skip = 1 } /^diff --git a\/b / { skip = 0 } !skip { print } /^-x/ { print "> this" }'
weft task review task-0000 --json
like "files may be taken out" $'\n  b:1 (as it was before)\n    this' "$err"
is "review --json" session-0003 "$(field "$out" .sessionId)"

# ---- mistakes ----
editor '/^\+4/ { print "+5"; next } { print }'
weft task review task-0000
exits "a line of the diff was changed" 1
like "a changed line is named" "this is not the next line of the diff" "$err"
like "the file is kept" "It is kept. To send it: weft task review task-0000 --file $TMPDIR/weft-review-" "$err"
is "it is there" 1 "$(files)"
kept=$(find "$TMPDIR" -name 'weft-review-*')
is "nobody else can read it" 600 "$(stat -c %a "$kept")"
awk '/^\+5/ { print "+4"; print "> mended"; next } { print }' "$kept" >"$there/mended"
weft task review task-0000 --file "$there/mended"
exits "what is mended is sent" 0
like "what is mended is shown" "mended" "$err"
weft task review task-0000 --file "$there/nothing"
exits "a file that is not there" 2
rm -f "$kept"
printf '#!/bin/sh\necho "> lost?" >>"$2"\nexit "$1"\n' >"$there/an editor"
chmod +x "$there/an editor"
export EDITOR="'$there/an editor' 3"
weft task review task-0000
exits "an editor that fails" 1
like "an editor that fails: nothing is sent" "ended with status 3: nothing was sent" "$err"
is "what was written stays" 1 "$(files)"
rm -f "$TMPDIR"/weft-review-*
EDITOR='vi; id' weft task review task-0000
exits "an editor that only a shell would understand" 1
like "it says so" "a program with arguments" "$err"
EDITOR=/nothing/at/all weft task review task-0000
exits "no such editor" 1
is "no such editor: no file" 0 "$(files)"
VISUAL=true weft task review task-0000
like "VISUAL comes before EDITOR" "nothing is sent" "$err"
weft task review nobody
exits "no such task" 5

# ---- the hub is gone meanwhile ----
printf '#!/bin/sh\nprintf "> still there\\n" >>"$1"\n"%s" stop >/dev/null 2>&1\n' "$program" >"$there/editor"
EDITOR=$there/editor weft task review task-0000
exits "the daemon was stopped meanwhile" 3
like "what was written stays" "It is kept." "$err"
is "it does" 1 "$(files)"
close
