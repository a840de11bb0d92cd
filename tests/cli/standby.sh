#!/bin/bash
# A standby, as a new user tries it: two folders as two machines. What it says when it cannot begin, while it follows, and when it
# takes the hub's place.
. "$(dirname "$0")/hub.bash"

url() { # SCHEME
    tr ',' '\n' <.weft/endpoint.json | grep -o "$1://[^\"]*" | head -n 1
}

hub first
one=$(url ws)
weft token add box --scope standby
printf '%s\n' "$out" >"$there/standby.token"
weft task submit --wait "echo this is copied"

# ---- what does not work is said at once ----
mkdir "$there/second"
cd "$there/second" || exit 1
echo nonsense >"$there/wrong.token"
weft start --standby-of "$one" --standby-token "$there/wrong.token"
exits "a wrong token" 1
like "it says so" "refused the token" "$err"
weft start --standby-of nonsense
exits "no URL" 2
weft serve --discard
exits "--discard alone" 2
WEFT_STORE_KIND=memory weft serve --standby-of "$one"
exits "nothing to keep it in" 2
like "and why" "store.kind must be sqlite" "$err"
weft promote
exits "nobody to promote" 3

# ---- following ----
weft start --standby-of "$one" --standby-token "$there/standby.token"
exits "it starts" 0
weft status
like "whose it is" "standby   of $one, following" "$out"
like "how far it is" "0 behind" "$out"
weft status --json
is "for programs" following "$(field "$out" .status.weft.standby.state)"
weft doctor
like "doctor" "standby of $one: following, 0 events behind" "$out"
weft task submit x
exits "it does nothing else" 6
like "and says what it is" "This is a standby of" "$err"
weft start --standby-of "$one"
exits "one in a folder" 0
like "that runs already" "already running" "$err"
weft promote
exits "not while the hub answers" 8
like "and what to do" "Stop it where it runs" "$err"
weft restart
exits "it can be restarted" 0
weft status
like "and is a standby again" "following" "$out"

# ---- the hub is gone ----
kill -9 "$(cat "$there/first/.weft/daemon.pid")"
away() {
    weft status
    case $out in *", away"*) ;; *) return 1 ;; esac
}
until_true away
weft doctor
like "what doctor says to do" "weft promote" "$out"
weft promote
exits "promoted" 0
like "what it has" "It has the journal of $one up to event" "$err"
like "what may be missing" "may be missing" "$err"
weft task list
like "what was done there" "this is copied" "$out"
weft task submit --wait "echo and it goes on"
exits "it is a hub" 0
weft promote
exits "once" 8
weft restart
exits "with the same command line" 0
like "it stays a hub" "--standby-of is ignored" "$err"
weft task list
like "with everything" "and it goes on" "$out"

# ---- the old hub comes back ----
two="unix:$there/second/.weft/daemon.sock"
cd "$there/first" || exit 1
weft start --standby-of "$two"
exits "as a standby of the new one" 0
like "its journal was moved aside" "kept as *.damaged-1" "$err"
weft status
like "and it follows" "following" "$out"

cd "$there" || exit 1
close
