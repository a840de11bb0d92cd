#!/bin/bash
# The events of a real hub have the members that docs/protocol.md names, and no others.
. "$(dirname "$0")/hub.bash"

hub events
git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m begin
for prompt in "hello" "fail" "edit it"; do
    timeout 60 "$program" task submit --wait --on-question allow "$prompt" >/dev/null 2>&1
done
timeout 60 "$program" task submit --wait --on-question deny "edit it" >/dev/null 2>&1
timeout 60 "$program" task undo task-0002 >/dev/null 2>&1
timeout 60 "$program" task submit --worktree --wait --on-question allow "edit it" >/dev/null 2>&1
timeout 60 "$program" task merge >/dev/null 2>&1
timeout 60 "$program" task submit "slow 60s" >/dev/null 2>&1
timeout 60 "$program" task cancel task-0005 >/dev/null 2>&1
timeout 60 "$program" session new --title t >/dev/null 2>&1
timeout 60 "$program" session close session-0000 >/dev/null 2>&1
timeout 60 "$program" session resume session-0000 >/dev/null 2>&1
timeout 60 "$program" session delete session-0001 >/dev/null 2>&1
timeout 60 "$program" agents use demo >/dev/null 2>&1
timeout 60 "$program" automation disable >/dev/null 2>&1
timeout 60 "$program" plan --run "three things" >/dev/null 2>&1
timeout 60 "$program" restart >/dev/null 2>&1
weft events --json
exits "the journal" 0
/usr/bin/python3 - "$SOURCE/docs/protocol.md" "$kit_said/out" <<'PY' >rows.out
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
rows = {}
for part in re.split(r"^### Event ", page, flags=re.M)[1:]:
    part = part.split("\n## ")[0].split("\n**Stream")[0]
    example = json.loads(re.search(r"```json\n(.*?)\n```", part, re.S).group(1))
    may = re.search(r"^May be absent: (.*)\.$", part, re.M)
    rows[part.split("\n")[0]] = (set(example), set(re.findall(r"`([^`]+)`", may.group(1))) if may else set())
seen = set()
for line in open(sys.argv[2], encoding="utf-8"):
    event = json.loads(line)
    kind, data = event["type"], event["data"]
    if kind == "removed":
        continue
    seen.add(kind)
    if kind not in rows:
        print(f"FAIL {kind} is not in the page")
        continue
    there, may = rows[kind]
    if set(data) - there - may:
        print(f"FAIL {kind} has members that the page does not have: {sorted(set(data) - there - may)}")
    if there - may - set(data):
        print(f"FAIL {kind} lacks {sorted(there - may - set(data))}: {line[:300]}")
print(len(seen), *sorted(seen))
PY
is "events and rows" "" "$(grep FAIL rows.out)"
[ "$(tail -1 rows.out | cut -d' ' -f1)" -ge 20 ] && pass || fail "too few types were seen" "$(cat rows.out)"
close
