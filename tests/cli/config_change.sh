#!/bin/bash
# weft config get, set, unset, edit and init: what they write, what they refuse, and whether it is trusted afterwards.
. "$(dirname "$0")/kit.bash"

export XDG_CONFIG_HOME=$there/xdg
user=$XDG_CONFIG_HOME/weft/config.json
umask 022
mkdir -p project/deep plain
cd project || exit 1

# ---- get ----
run "$weft" config get rate_per_minute
is "a default" 6000 "$out"
run "$weft" config get default_agent
is "a string is shown without quotes" demo "$out"
run "$weft" config get --json default_agent
is "and with them as JSON" '"demo"' "$out"
run "$weft" config get tls.cert
exits "what has no value" 5
run "$weft" config get rate_per_minut
exits "an unknown key" 2
like "the nearest is named" 'did you mean "rate_per_minute"?' "$err"

# ---- set ----
run "$weft" config set tasks.max_running many
run "$weft" config unset tasks.max_running
is "what cannot be done makes no folder" no "$([ -e .weft ] && echo yes || echo no)"
run "$weft" config set tasks.max_running 8
exits "a first value makes the file" 0
is "it is private" 600 "$(stat -c %a .weft/config.json)"
is "its folder too" 700 "$(stat -c %a .weft)"
run "$weft" config get tasks.max_running
is "it holds" 8 "$out"
run "$weft" config set default_agent claude
run "$weft" config set allowed_hosts example.org example.com
run "$weft" config get allowed_hosts
is "a list may be several arguments" '["example.org","example.com"]' "$out"
run "$weft" config set agents.mine '{"driver":"cli","command":["mine"]}'
exits "an agent by its name" 0
run "$weft" config get agents.mine.driver
is "and what is inside of it" cli "$out"
run "$weft" trust --json
exits "what was set this way is trusted" 0
cp .weft/config.json before.json
run "$weft" config set tasks.max_running many
exits "not a number" 2
like "what it must be" "tasks.max_running must be a whole number from 1 to 1000" "$err"
run "$weft" config set tasks.max_running 0
exits "a number that cannot be" 1
like "why" "tasks.max_running" "$err"
run "$weft" config set agents.mine '{"driver":"nobody"}'
exits "an agent that cannot be" 1
is "nothing has changed" "$(cat before.json)" "$(cat .weft/config.json)"
is "and nothing is left behind" "config.json" "$(cd .weft && echo config.json*)"
cd deep || exit 1
run "$weft" config set tasks.max_running 9
cd .. || exit 1
run "$weft" config get tasks.max_running
is "from below" 9 "$out"

# ---- what a person wrote stays ----
printf '// mine\n{\n  "rate_per_minute": 5, // not many\n}\n' >.weft/config.json
trust
run "$weft" config set rate_per_minute 6
is "comments stay" "// mine
{
  \"rate_per_minute\": 6, // not many
}" "$(cat .weft/config.json)"
run "$weft" config unset rate_per_minute
exits "it can be taken out" 0
run "$weft" config get rate_per_minute
is "and is the default again" 6000 "$out"
run "$weft" config unset rate_per_minute
exits "once" 5

# ---- whose file it is ----
printf '{"agents": {"evil": {"driver": "cli", "command": ["evil"]}}}\n' >.weft/config.json
run "$weft" config set rate_per_minute 6
exits "a file that is not on record can be changed" 0
like "and that is said" "not trusted" "$err"
run "$weft" trust --json
exits "but not trusted by that" 4
rm .weft/config.json

# ---- the user's own ----
run "$weft" config set --user auth none
is "it is private too" "600 700" "$(stat -c %a "$user") $(stat -c %a "$XDG_CONFIG_HOME/weft")"
run "$weft" config get auth
is "it counts everywhere" none "$out"
mv "$user" "$there/elsewhere.json"
ln -s "$there/elsewhere.json" "$user"
run "$weft" config set --user auth token
is "a link stays one" "$there/elsewhere.json" "$(readlink "$user")"
like "and what it leads to has changed" token "$(cat "$there/elsewhere.json")"
rm -r "$XDG_CONFIG_HOME"

# ---- init and edit ----
run "$weft" config init
exits "a file to begin with" 0
is "its name" .weft/config.json "$out"
run "$weft" config check
exits "it is right" 0
run "$weft" config init
exits "one is enough" 1
printf '#!/bin/sh\nprintf "{\\"rate_per_minute\\": 7}" >"$1"\n' >"$there/good"
printf '#!/bin/sh\nprintf "{\\"rate_per_minute\\": \\"x\\"}" >"$1"\n' >"$there/bad"
printf '#!/bin/sh\nexit 3\n' >"$there/gone"
chmod +x "$there/good" "$there/bad" "$there/gone"
VISUAL= EDITOR=$there/good run "$weft" config edit
exits "an editor" 0
run "$weft" config get rate_per_minute
is "what was written there" 7 "$out"
run "$weft" trust --json
exits "is trusted" 0
VISUAL= EDITOR=$there/bad run "$weft" config edit
exits "a mistake" 1
like "is kept apart" "what you wrote is in .weft/config.json.new" "$err"
run "$weft" config get rate_per_minute
is "and does not count" 7 "$out"
VISUAL= EDITOR=$there/gone run "$weft" config edit
exits "an editor that fails" 1
run "$weft" config nonsense
exits "an unknown subcommand" 2

# ---- a hub that runs ----
rm -rf .weft
"$weft" start >/dev/null 2>&1
run "$weft" reload
is "nothing is new" "nothing has changed" "$out"
run "$weft" status
unlike "status has nothing to say of it" "^config" "$out"
run "$weft" config set tasks.max_running 3
like "what to do is said" "weft reload" "$err"
run "$weft" status
like "status sees that the file is newer" ".weft/config.json has changed since the hub read it" "$out"
run "$weft" doctor
like "doctor does, too" ".weft/config.json has changed since it was read" "$out$err"
run "$weft" reload
is "what has changed" "tasks.max_running changed" "$out"
run "$weft" status
unlike "all is new" "has changed" "$out"
run "$weft" config set log.level debug
like "another key needs more" "weft restart" "$err"
run "$weft" reload --json
is "reload says so" '{"reloaded":true,"changed":[],"restart":["log.level"],"problems":[]}' "$out"
run "$weft" status
like "and status goes on to" "log.level has changed" "$out"
printf '{\n  "rate_per_minute": "x"\n}' >.weft/config.json
run "$weft" reload
exits "a mistake" 1
like "its place" ".weft/config.json:2:22: " "$err"
like "is said to change nothing" "the old one stays in use" "$err"
printf '{"default_agent": "claude"}' >.weft/config.json
run "$weft" reload
exits "what is not trusted changes nothing either" 4
run "$weft" stop
run "$weft" reload
exits "nobody is there" 3
close
