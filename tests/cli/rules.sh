#!/bin/bash
# "weft config check" and "weft doctor" find rules that can never fire, with their place in the file.
. "$(dirname "$0")/kit.bash"

export XDG_CONFIG_HOME=$there/xdg
mkdir -m 700 -p p/.weft
cd p || exit 1
umask 077
action='"action": {"type": "notify", "message": "x"}'

# An @ stands before what is wrong, and is taken out: $place is its line and column.
rule() { # JSON-OF-THE-RULE [MORE-OF-AUTOMATION]
    printf '{ "automation": { "rules": [\n%s\n]%s } }\n' "$1" "${2-}" >.marked
    place=$(awk 'index($0, "@") { print NR ":" index($0, "@"); exit }' .marked)
    sed 's/@//' .marked >.weft/config.json
    trust
}

finds() { # NAME WORDS RULE [MORE]
    rule "$3" "${4-}"
    run timeout 120 "$weft" config check
    exits "$1: check" 1
    like "$1: where" "config.json:$place:" "$err"
    like "$1: why" "$2" "$err"
    run timeout 120 "$weft" config check --json
    exits "$1: check as JSON" 1
    like "$1: as JSON" '"severity":"error"' "$out"
    run timeout 120 "$weft" doctor
    exits "$1: doctor" 1
    like "$1: doctor says it" "$2" "$out"
}

is_well() { # NAME RULE [MORE]
    rule "$2" "${3-}"
    run timeout 120 "$weft" config check
    exits "$1: check" 0
    is "$1: nothing is said" "" "$out$err"
    run timeout 120 "$weft" doctor
    exits "$1: doctor" 0
    unlike "$1: doctor says nothing" "automation.rules" "$out"
}

# ---- what it waits for ----
finds "an unknown type" 'no events of type "file.changed"' '{ "id": "a", "trigger": {"type": @"file.changed"}, '"$action }"
finds "a type of another source" "comes from the source queue" \
    '{ "id": "a", "trigger": {"type": "file.modify", "source": @"queue"}, '"$action }"
finds "a trigger without anything" "names neither" '{ "id": "a", "trigger": @{}, '"$action }"
finds "a day that never comes" "no such day" '{ "id": "a", "trigger": {"schedule": @"0 0 30 2 *"}, '"$action }"
finds "a minute that never comes" "the minute must be" '{ "id": "a", "trigger": {"schedule": @"61 * * * *"}, '"$action }"
finds "a schedule for files" "a schedule is for cron.fired" \
    '{ "id": "a", "trigger": {"type": "file.modify", "schedule": @"0 0 * * *"}, '"$action }"
finds "a pattern that does not fit the job" "does not fit the rule's own job" \
    '{ "id": "a", "trigger": {"schedule": "0 0 * * *", "pattern": @"*.c"}, '"$action }"
finds "no job" "there is none: it needs a schedule" '{ "id": "a", "trigger": @{"type": "cron.fired"}, '"$action }"
finds "no job of this name" "no job in automation.jobs has such a name" \
    '{ "id": "a", "trigger": {"type": "cron.fired", "pattern": @"nightly"}, '"$action }" \
    ', "jobs": [{"id": "weekly", "schedule": "0 0 * * 0"}]'
finds "a path that is not within the project" "for paths within the project" '{ "id": "a", "trigger": {"pattern": @"/src/*.c"}, '"$action }"
finds "a folder that is not watched" "not watched" '{ "id": "a", "trigger": {"pattern": @".git/**"}, '"$action }"
finds "no file is watched" "automation.watch is false" '{ "id": "a", "trigger": @{"pattern": "src/*.c"}, '"$action }" ', "watch": false'
finds "the second of one name" "another rule of this name" \
    '{ "id": "a", "trigger": {"type": "file.*"}, '"$action"' },
{ "id": @"a", "trigger": {"type": "file.*"}, '"$action }"

# ---- conditions ----
condition() { # CONDITION...
    local IFS=,
    printf '{ "id": "a", "trigger": {"type": "file.modify"},\n"conditions": [%s],\n%s }' "$*" "$action"
}
size() { # OPERATOR VALUE
    echo "{\"field\": \"payload.size\", \"operator\": \"$1\", \"value\": $2}"
}
finds "a field that no event has" 'has the field "pth"' "$(condition '@{"field": "payload.pth", "operator": "eq", "value": "x"}')"
finds "a field of another source" 'has the field "prompt"' "$(condition '@{"field": "prompt", "operator": "exists"}')"
finds "another type" 'on "type" does not hold' "$(condition '@{"field": "type", "operator": "eq", "value": "file.delete"}')"
finds "another kind of change" 'on "event_type" does not hold' "$(condition '@{"field": "event_type", "operator": "matches", "value": "^(create|delete)$"}')"
finds "two values" "conditions 1 and 2" "$(condition "$(size eq 5)" "@$(size eq 6)")"
finds "a value that is excluded" "cannot both hold" "$(condition "$(size eq 5)" "@$(size neq 5)")"
finds "a value out of range" "cannot both hold" "$(condition "$(size gt 5)" "@$(size eq 4)")"
finds "an empty range" "cannot both hold" "$(condition "$(size gt 5)" "@$(size lte 5)")"
finds "a range of nothing" "cannot both hold" "$(condition "$(size lt 3)" "@$(size gte 9)")"
finds "a number and a text" "cannot both hold" "$(condition "$(size gt 5)" "@$(size lt '"9"')")"
finds "there and not there" "cannot both hold" \
    "$(condition '{"field": "payload.size", "operator": "exists"}' '@{"field": "size", "operator": "not_exists"}')"
finds "an expression that is none" "expression" "$(condition '@{"field": "path", "operator": "matches", "value": "("}')"
finds "no type is left" "no type of event for which all conditions can hold" \
    '{ "id": "a", "trigger": {"type": "*"},
"conditions": @[{"field": "prompt", "operator": "exists"}, {"field": "path", "operator": "exists"}],
'"$action }"

# ---- what it does ----
finds "no such agent" 'there is no agent "cluade"; did you mean "claude"?' \
    '{ "id": "a", "trigger": {"type": "file.modify"},
"action": {"type": "agent", "agent": @"cluade", "prompt": "x"} }'
finds "a URL that is none" "http:// or https://" \
    '{ "id": "a", "trigger": {"type": "file.modify"},
"action": {"type": "webhook", "url": @"ws://example.org"} }'

# ---- jobs ----
finds "a job that never comes" "automation.jobs[0] (a) never runs: there is no such day" "" \
    ', "jobs": [{"id": "a", "schedule": @"0 0 31 4 *"}]'
finds "a second job" "another job of this name" "" ', "jobs": [{"id": "a", "schedule": "0 0 * * *"}, {"id": @"a", "schedule": "0 0 * * *"}]'

# ---- what is well ----
is_well "no rules" ""
is_well "any file" '{ "id": "a", "trigger": {"pattern": "src/**/*.{c,h}"}, '"$action }"
is_well "a schedule" '{ "id": "a", "trigger": {"schedule": "0 0 29 2 *"}, '"$action }"
is_well "a job by its pattern" '{ "id": "a", "trigger": {"type": "cron.fired", "pattern": "week*"}, '"$action }" \
    ', "jobs": [{"id": "weekly", "schedule": "0 0 * * 0"}]'
is_well "the job of another rule" '{ "id": "a", "trigger": {"type": "cron.*"}, '"$action"' },
{ "id": "b", "trigger": {"schedule": "0 0 * * *"}, '"$action }"
is_well "a preset" '{ "id": "a", "trigger": {"type": "task.failed"}, "action": {"type": "agent", "agent": "claude", "prompt": "x"} }'
is_well "a configured agent" '{ "id": "a", "trigger": {"type": "task.failed"}, "action": {"type": "agent", "agent": "mine", "prompt": "x"} }' \
    '}, "agents": {"mine": {"driver": "cli", "command": ["true"]}'
is_well "a range" "$(condition "$(size gt 5)" "$(size lt 6)" "$(size gte 5)" "$(size neq 5)")"
is_well "the depth of the event and of the payload" \
    "$(condition '{"field": "depth", "operator": "eq", "value": 0}' '{"field": "payload.depth", "operator": "neq", "value": 0}')"
is_well "one number" "$(condition "$(size gte 5)" "$(size lte 5)" "$(size eq 5)")"
is_well "below what is known" '{ "id": "a", "trigger": {"type": "task.*"}, "conditions":
 [{"field": "payload.metadata.source", "operator": "neq", "value": "automation"}, {"field": "type", "operator": "matches", "value": "failed$"},
  {"field": "no.such.thing", "operator": "not_exists"}], '"$action }"

# ---- what is only said ----
rule '{ "id": "a", "enabled": @false, "trigger": {"type": "file.modify"}, '"$action }"
run timeout 120 "$weft" config check
exits "a rule that is switched off" 0
like "a rule that is switched off: is told" "config.json:$place: warning: automation.rules[0] (a) is switched off" "$err"
run timeout 120 "$weft" doctor
exits "a rule that is switched off: doctor" 0
like "a rule that is switched off: doctor tells" "(a) is switched off" "$out"
rule '{ "id": "a", "trigger": {"type": "file.modify"}, '"$action }" ', "enabled": false'
run timeout 120 "$weft" config check
exits "all are switched off" 0
like "all are switched off: is told" "no rule fires" "$err"
run env WEFT_AUTOMATION_RULES='[{"id": "a", "trigger": {"type": "nothing"}, "action": {"type": "notify", "message": "x"}}]' "$weft" config check
exits "a rule of the environment" 1
like "a rule of the environment: why" 'no events of type "nothing"' "$err"

# A file somewhere.
rule '{ "id": "a", "trigger": {"schedule": @"0 0 30 2 *"}, '"$action }"
mv .weft/config.json ../elsewhere.json
run timeout 120 "$weft" config check ../elsewhere.json
exits "a file somewhere" 1
like "a file somewhere: where" "../elsewhere.json:$place:" "$err"
close
