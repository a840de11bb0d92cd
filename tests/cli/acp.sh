#!/bin/bash
# weft acp: an ACP agent on standard input and output. What editors say to it is in tests/interop/acp_sdk.mjs; here is what the
# verb does around that: it starts the hub, or does not, and says so where nobody takes it for the protocol.
. "$(dirname "$0")/hub.bash"

hello='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
new() { # FOLDER
    echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\",\"params\":{\"cwd\":\"$1\",\"mcpServers\":[]}}"
}
acp() { # [OPTION...]; what is said is standard input
    run timeout 120 "$program" acp "$@"
}

# ---- a folder without a hub ----
mkdir -p project/deep
cd project || exit 1
acp --json <<<"$hello"
exits "the hub is started" 0
like "and answers" '"protocolVersion":1' "$out"
is "nothing else is on standard output" 1 "$(wc -l <<<"$out")"
like "where the hub is, is said aside" "started in $PWD" "$err"
acp <<<"$hello"$'\n'"$(new "$PWD")"
exits "one that runs is used" 0
is "without a word" "" "$err"
like "a session" '"sessionId":"session-0000"' "$out"
like "with the agent's modes" '"currentModeId":' "$out"

# ---- from below, and for another folder ----
(
    cd deep || exit 1
    acp <<<"$hello"$'\n'"$(new "$PWD")"
    like "the hub above is used, and works in the folder below" '"sessionId":"session-0001"' "$out"
    acp <<<"$hello"$'\n'"$(new "$there")"
    like "a folder outside is refused" "the folder must lie in ${PWD%/deep}" "$out"
    echo "$passed $failed" >"$there/.counts"
)
read -r passed failed <"$there/.counts"

# ---- an agent ----
acp --agent nobody <<<"$hello"
exits "an agent that there is not" 8
is "nothing was passed" "" "$out"
like "which ones there are" "there is demo" "$err"
unlike "no method is named that nobody typed" "_weft/" "$err"
unlike "nor another of JSON-RPC's words" "hello" "$err"
acp --agent demo <<<"$hello"
exits "one that there is" 0
acp now
exits "an argument has no place" 2

# ---- what goes through: lines only, and nothing of other dialects ----
mkfifo in
timeout 120 "$program" acp <in >out 2>/dev/null &
bridge=$!
exec 9>in
weft task submit --wait "echo somebody else's"
exits "a task of somebody else" 0
echo "$hello" >&9
until_true grep -q protocolVersion out
is "is not told to an editor" 1 "$(wc -l <out)"
exec 9>&-
wait "$bridge"
is "it ends with its input" 0 $?

# ---- the hub goes ----
exec 8<>in
timeout 120 "$program" acp <in >out 2>/dev/null &
bridge=$!
echo "$hello" >&8
until_true grep -q protocolVersion out
weft stop
exits "the hub stops, whoever is connected" 0
is "and is not started again for nobody" "" "$(ls .weft/daemon.sock 2>/dev/null)"
echo '{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}' >&8
until_true grep -q '"sessions":' out
hub=$("$program" status --json | sed 's/.*"pid":\([0-9]*\).*/\1/')
like "the hub that it started" "serve" "$(tr '\0' ' ' <"/proc/$hub/cmdline")"
unlike "is not its child: who ends it with all its children leaves the hub" "weft" \
    "$(cat "/proc/$(cut -d' ' -f4 "/proc/$hub/stat")/comm")"
is "but for the next request" "$PWD/.weft/daemon.sock" "$(ls "$PWD/.weft/daemon.sock" 2>/dev/null)"
kill "$bridge"
wait "$bridge"
exec 8>&-
weft stop
exits "the hub can be stopped" 0

# ---- somebody else's project ----
cd "$there" || exit 1
mkdir -p strange/.weft
cat >strange/.weft/config.json <<END
{ "agents": { "bad": { "driver": "cli", "command": ["sh", "-c", "touch $there/pwned"] } }, "default_agent": "bad" }
END
chmod 700 strange/.weft
chmod 600 strange/.weft/config.json
cd strange || exit 1
acp <<<"$hello"
exits "a project that is not on record is not started" 4
is "nothing is said to the editor" "" "$out"
like "what to do is" "weft trust" "$err"
is "nothing ran" "" "$(ls "$there/pwned" 2>/dev/null)"
is "no hub" "" "$(ls .weft/daemon.sock 2>/dev/null)"

close
