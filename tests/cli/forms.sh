#!/bin/bash
# Forms, pages and logging in, as people at a terminal meet them: agents that follow a script ask for them.
. "$(dirname "$0")/hub.bash"

script=$BUILD/tests/agent_acp_script
schema='{"type":"object","required":["name","env"],"properties":{"name":{"type":"string","title":"Its name","minLength":2},"port":{"type":"integer","minimum":1,"default":80},"fast":{"type":"boolean"},"env":{"type":"string","oneOf":[{"const":"dev","title":"Development"},{"const":"prod","title":"Production"}]},"tags":{"type":"array","items":{"type":"string","enum":["a","b","c"]}}}}'
form='{"jsonrpc":"2.0","id":70,"method":"elicitation/create","params":{"sessionId":"s1","mode":"form","message":"How shall I deploy?","requestedSchema":'$schema'}}'
page='{"jsonrpc":"2.0","id":71,"method":"elicitation/create","params":{"sessionId":"s1","mode":"url","message":"Consent","url":"https://example.org/?a=\u202eb","elicitationId":"e1"}}'
end='{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
again='{"jsonrpc":"2.0","id":5,"result":{"stopReason":"end_turn"}}'

# Each agent is a list of steps, see tests/agents/acp_script.c.
export XDG_CONFIG_HOME=$there/config
mkdir -p "$XDG_CONFIG_HOME/weft"
/usr/bin/python3 - "$script" "$form" "$page" "$end" "$again" >"$XDG_CONFIG_HOME/weft/config.json" <<'PYTHON'
import json, sys
script, form, page, end, again = sys.argv[1:]
opened = ["hear=initialize", 'reply={"protocolVersion":1}', "hear=session/new", 'reply={"sessionId":"s1"}', "hear=session/prompt"]
ways = 'reply={"protocolVersion":1,"authMethods":[{"id":"web","name":"Web","description":"in a browser"}]}'
no = 'error={"code":-32000,"message":"no key"}'
agents = {
    "form": opened + ["say=" + form, 'hear="content":{"name":"shop","port":8080,"fast":true,"env":"prod","tags":["a","c"]}', "chunk=thanks", "say=" + end, "eof"],
    "short": opened + ["say=" + form, 'hear="content":{"name":"shop","port":80,"env":"dev"}', "chunk=thanks", "say=" + end, "eof"],
    "no": opened + ["say=" + form, 'hear={"action":"decline"}', "chunk=well", "say=" + end, "eof"],
    "page": opened + ["say=" + page, 'hear={"action":"accept"}', "chunk=thanks", "say=" + end, "eof"],
    "login": ["hear=initialize", ways, "hear=session/new", no, 'hear={"methodId":"web"}', "reply={}", "hear=session/new",
              'reply={"sessionId":"s1"}', "hear=session/prompt", "chunk=hello", "say=" + again, "eof"],
}
agents["out"] = ["hear=initialize", 'reply={"protocolVersion":1,"agentCapabilities":{"auth":{"logout":{}}}}', 'hear="method":"logout"', "reply={}", "eof"]
agents["refuses"] = agents["out"][:3] + ['error={"code":-32603,"message":"not today"}', "eof"]
agents["cannot"] = ["hear=initialize", 'reply={"protocolVersion":1}', "eof"]
print(json.dumps({"agents": {name: {"driver": "acp", "command": [script] + steps} for name, steps in agents.items()}}))
PYTHON

hub forms

ask() { # AGENT
    id=$(timeout 120 "$program" task submit --agent "$1" go)
    until_true has_question
    question=$(field "$(timeout 120 "$program" answer --json)" .questions.0.id)
}

# ---- shown ----
ask form
weft answer
exits "it is shown" 0
like "what is asked" "How shall I deploy?" "$out"
like "a field" "name: Its name  (text, needed, characters at least 2)" "$out"
like "with its default" "port  (whole number, at least 1, else 80)" "$out"
like "its choices" "2) prod  Production" "$out"

# ---- by name ----
weft answer "$question" accept name=x env=prod
exits "a value that is not right" 2
like "says which" '"name=x": it must have at least 2 characters' "$err"
weft answer "$question" accept nome=shop
exits "a field that is none" 2
weft answer "$question" accept env=prod
exits "one is missing" 8
like "one is missing: says which" "name is missing" "$err"
weft answer "$question" accept name=shop port=8080 fast=yes env=2 tags=a,c
exits "all of it" 0
until_true state "$id" completed
weft task get "$id" --output
like "the agent got it" "thanks" "$out"

# ---- at a terminal ----
ask form
person "your answer=>1\n;;name: =>x\n;;must have at least 2=>shop\n;;port [80]: =>8080\n;;fast [leave out]: =>maybe\n;;must be yes or no=>y\n;;env: =>\n;;is needed=>Production\n;;tags [leave out]: =>1, c\n" "$weft" answer
exits "field by field" 0
like "sent" "answered with accept" "$out"
until_true state "$id" completed
ask short
person "your answer=>1\n;;name: =>shop\n;;port [80]: =>\n;;fast [leave out]: =>\n;;env: =>dev\n;;tags [leave out]: =>\n" "$weft" answer "$question"
exits "defaults" 0
until_true state "$id" completed
ask no
person "your answer=>2\n" "$weft" answer
exits "declined" 0
until_true state "$id" completed
person "your answer=>1\n;;name: =>shop\n;;port [80]: =>\n;;fast [leave out]: =>\n;;env: =>1\n;;tags [leave out]: =>\n;;thanks=>" "$weft" task submit --wait --agent short go
exits "while one waits for the task" 0
like "and it went on" "thanks" "$out"

# ---- a page ----
ask page
weft answer
like "the page is shown exactly" 'page: https://example.org/?a=\u202eb' "$out"
weft answer "$question" accept
exits "went there" 0
until_true state "$id" completed

# ---- logging in ----
ask login
weft answer
like "how to" "login is not logged in (no key)" "$out"
like "its ways" "1) Web: in a browser" "$out"
weft answer "$question" allow
exits "which of them" 8
weft answer "$question" 1
exits "this one" 0
until_true state "$id" completed
weft agents logout out
exits "logged out" 0
like "logged out: says so" "out is logged out" "$err"
weft agents logout refuses
exits "not logged out" 8
like "not logged out: its words" "not today" "$err"
weft agents logout cannot
exits "one that cannot" 8
weft agents logout demo
exits "the demo agent cannot" 8
weft agents logout nobody
exits "an agent that is none" 8
weft agents logout
exits "which one" 2
close
