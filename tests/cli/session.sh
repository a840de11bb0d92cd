#!/bin/bash
# weft session: conversations on their own, with the demo agent: its modes, its folder, its own copy.
. "$(dirname "$0")/hub.bash"

hub some
weft session
exits "none yet" 0
like "none yet: says so" "there are no sessions" "$err"
mkdir sub
ln -s /etc out
weft session new --title Docs --mode plan --folder sub
exits "new" 0
id=$out
weft session show "$id" --json
is "it works in its folder" sub "$(field "$out" .session.folder)"
is "its mode was chosen" plan "$(field "$out" .session.settings.mode)"
weft session new --folder out
exits "a folder that leads elsewhere" 8
like "elsewhere: says so" "folder must lie in the project's folder" "$err"
weft session new --resume demo-0123456789abcdef
exits "one that the agent does not know" 5
like "unknown: the agent's own words" "Session not found" "$err"

weft session open "$id"
exits "open" 0
like "open: the agent's modes are known" "availableModes" "$out"
weft session prompt "$id" edit this
exits "prompt" 0
first=$out
weft session prompt "$id" edit that
second=$out
until_true state "$second" completed
is "in the mode plan nothing is changed" "" "$(ls sub)"
weft task get "$first" --json
is "the first has ended before" completed "$(field "$out" .state)"

weft session set "$id" mode nonsense
exits "no such mode" 8
weft session set "$id" mode allow
exits "another mode" 0
weft session set "$id" title Other
weft session prompt "$id" edit this
task=$out
until_true state "$task" completed
is "in the mode allow it is, and nobody was asked" weft-demo.txt "$(ls sub)"
weft session list
like "listed" "$id" "$out"
like "listed with its title" Other "$out"
weft task submit --wait 'echo without a title'
weft session list
like "one without a title has its prompt" "echo without a title" "$out"
[ "$out" != "$(TZ=Asia/Kathmandu timeout 120 "$program" session list)" ] && pass || fail "times are of here" "$out"

weft restart
exits "restart" 0
weft session show "$id" --json
is "it is as it was" allow "$(field "$out" .session.mode)"
own=$(field "$out" .session.agentSessionId)
weft session close "$id"
exits "close" 0
weft session prompt "$id" hello
exits "closed: takes no prompt" 8
weft session resume "$id"
exits "resume" 0
weft session show "$id"
like "show begins with its id" "id  " "${out%%$'\n'*}"
weft call agent.sessions folder=sub
like "the agent has its copy" "$own" "$out"
weft session delete "$id"
exits "delete" 0
weft call agent.sessions folder=sub
unlike "so has the agent deleted it" "$own" "$out"
for verb in show delete close open "prompt hello"; do
    weft session ${verb%% *} "$id" ${verb#"${verb%% *}"}
    exits "$verb: it is gone" 5
    like "$verb: how to see which there are" '"weft session list" shows which there are' "$err"
    unlike "$verb: no method is named that nobody typed" "weft call" "$err"
done

# One that the agent has from elsewhere is gone on with, once.
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}' \
    '{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"'"$PWD"'","mcpServers":[]}}' |
    "$program" __demo >elsewhere
own=$(grep -o 'demo-[0-9a-f]*' elsewhere | head -n 1)
weft call agent.sessions
like "the agent knows of it" "$own" "$out"
weft session new --resume "$own"
exits "go on with it" 0
id=$out
weft session show "$id" --json
is "that is it" "$own" "$(field "$out" .session.agentSessionId)"
like "what it offers is known" availableModes "$out"
weft session new --resume "$own"
exits "once" 8
weft session prompt "$id" hello
task=$out
until_true state "$task" completed

# The agent of a session is not configured any more: it is said why it still has its copy.
weft config set agents.other '{"driver": "demo"}'
weft reload
weft session new --agent other
id=$out
weft session prompt "$id" hello
task=$out
until_true state "$task" completed
weft config unset agents.other
weft reload
weft session delete "$id"
exits "delete without its agent" 0
like "without its agent: says why" "its own copy: the agent is no longer configured" "$err"
close
