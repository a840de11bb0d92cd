#!/bin/bash
# weft automation: the rules of a configuration, switched on and off, and what they did.
. "$(dirname "$0")/hub.bash"

weft automation
exits "without a daemon" 3

mkdir -p rules/.weft
chmod 700 rules/.weft
cat >rules/.weft/config.json <<'END'
{
  "automation": {
    "rules": [
      { "id": "after", "trigger": { "type": "task.completed" }, "action": { "type": "notify", "message": "one is done" } },
      { "id": "off", "enabled": false, "trigger": { "type": "task.failed" }, "action": { "type": "agent", "prompt": "echo again" } },
      { "id": "wrong", "trigger": { "schedule": "61 * * * *" }, "action": { "type": "notify", "message": "never" } }
    ]
  }
}
END
(cd rules && trust)
hub rules
weft automation
exits "status" 0
like "it is on" "automation is on, 3 rules" "$out"
like "a rule" "after " "$out"
like "what it does" "notify: one is done" "$out"
like "a rule that is wrong" invalid "$out"
like "a schedule is shown" "at 61 * * * *" "$out"
like "and why" 'wrong is not valid: the schedule "61 * * * *" is not valid: the minute must be' "$out"
weft automation enable wrong
exits "a rule that is wrong cannot be switched on" 8
weft automation status --json
is "for programs" 3 "$(field "$out" .ruleCount)"
weft automation disable after
exits "one rule off" 0
like "one rule off: says so" "after is off" "$err"
enabled() { # RULE
    timeout 120 "$program" automation --json | /usr/bin/python3 -c '
import json, sys
print([rule["enabled"] for rule in json.load(sys.stdin)["rules"] if rule["id"] == sys.argv[1]][0])' "$1"
}
is "one rule off: it is" False "$(enabled after)"
weft automation enable after
is "and on again" True "$(enabled after)"
weft automation disable
exits "all off" 0
weft automation
like "all off: it is" "automation is off" "$out"
weft restart
weft automation
like "also after a restart" "automation is off" "$out"
weft automation enable --json
is "on again, for programs" true "$(field "$out" .enabled)"
weft automation enable nonsense
exits "no such rule" 5
like "no such rule: says so" "there is no rule nonsense" "$err"
weft task submit --wait echo hello
fired() { timeout 120 "$program" automation | grep -q "task.completed"; }
until_true fired && pass
close
