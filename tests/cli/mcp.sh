#!/bin/bash
# weft mcp, with a server that is a few lines of Python.
. "$(dirname "$0")/hub.bash"

[ -x /usr/bin/python3 ] || { echo "skip mcp.sh: needs python3"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }

cat >server.py <<'END'
import json, sys
def say(value): print(json.dumps({"jsonrpc": "2.0", **value}), flush=True)
tools = [{"name": "shout", "description": "Say it louder\nand more", "inputSchema": {"type": "object"}}, {"name": "fail", "inputSchema": {"type": "object"}}]
def result(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {}, "prompts": {}}, "serverInfo": {"name": "py", "version": "1"}}
    if method == "tools/list":
        return {"tools": tools}
    if method == "tools/call":
        text = json.dumps(params["arguments"]).upper() if params["name"] == "shout" else "it went wrong \x1b[2J"
        return {"content": [{"type": "text", "text": text}, {"type": "image", "mimeType": "image/png", "data": "AAAA"}], "isError": params["name"] == "fail"}
    if method == "resources/list":
        return {"resources": [{"uri": "py://a", "name": "a"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "py://{x}", "name": "any"}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": "what it says"}]}
    if method == "prompts/list":
        return {"prompts": [{"name": "hello", "description": "A greeting"}]}
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello " + params.get("arguments", {}).get("name", "")}}]}
print("a line for the log", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    found = result(message["method"], message.get("params", {}))
    say({"id": message["id"], "result": found} if found else {"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
END
mkdir -p .weft
cat >.weft/config.json <<END
{ "mcp": { "servers": { "py": { "command": "/usr/bin/python3", "args": ["$PWD/server.py"] }, "none": { "command": "/nonexistent/x", "agents": [] } } } }
END
trust
hub here

weft mcp
exits "the servers" 0
like "one of them" "py idle stdio" "$(tr -s ' ' <<<"$out")"
weft mcp tools py
like "its tools" "py shout Say it louder" "$(tr -s ' ' <<<"$out")"
unlike "one line each" "and more" "$out"
weft mcp
like "it runs" "py ready stdio 2025-06-18 py" "$(tr -s ' ' <<<"$out")"
weft mcp call py shout word=hey number=3
exits "a call" 0
like "what came of it" '{"WORD": "HEY", "NUMBER": 3}' "$out"
like "what is no text" "[image image/png" "$out"
weft mcp call py shout '{"a":[1]}'
like "arguments as JSON" '{"A": [1]}' "$out"
weft mcp call py fail
exits "a tool that fails" 8
weft mcp call py
exits "a call of nothing" 2
weft mcp call nobody x
exits "a server that is none" 5
like "says which there are" "there are: py, none" "$err"
weft mcp resources py
like "its resources" "py://a" "$out"
like "its templates" "py://{x}" "$out"
weft mcp read py py://a
is "a resource" "what it says" "$out"
weft mcp prompts py
like "its prompts" "hello A greeting" "$(tr -s ' ' <<<"$out")"
weft mcp prompt py hello name=Ann
is "a prompt" "user: Hello Ann" "$out"
weft mcp tools
exits "of all, and one is missing" 1
like "the others are shown" "shout" "$out"
like "and the one that is missing" "none: none could not be started" "$err"
weft mcp list none
like "it failed" "none failed" "$(tr -s ' ' <<<"$out")"
weft mcp list py --log
like "its log" "a line for the log" "$out"
weft mcp --json
like "as JSON" '"name":"py","state":"ready"' "$out"
weft events --type mcp.called --json
like "calls are kept" '"name":"shout"' "$out"
unlike "what was said is not" "hey" "$out"
weft stop
exits "the hub ends" 0
close
