#!/bin/bash
# What a person has chosen or switched counts more than the configuration: wherever it matters, what is in force is shown with
# where it comes from.
. "$(dirname "$0")/hub.bash"

mkdir -p one/.weft && cd one || exit 1
cat >.weft/config.json <<'END'
{ "agents": { "first": { "driver": "cli", "command": ["echo", "first"] }, "second": { "driver": "cli", "command": ["echo", "second"] } },
  "default_agent": "first",
  "automation": { "rules": [ { "id": "tell", "trigger": { "type": "task.failed" }, "action": { "type": "notify", "message": "no" } } ] } }
END
trust
hub one
says() { # what a task's agent said to "hi"
    timeout 120 "$program" task submit --wait hi 2>/dev/null
}

# ---- as configured ----
is "the configured agent is the default" "first hi" "$(says)"
weft status
like "status: the agent" "agent     first, as configured" "$out"
like "status: the rules" "rules     on, as configured" "$out"
weft agents
unlike "agents: nothing was chosen" "chosen with" "$err"
weft config show --origin
unlike "config: nothing is overruled" "in force" "$err"

# ---- overruled ----
weft agents use second
weft automation disable
weft automation disable tell
check_all() { # WHEN
    is "$1: the chosen agent" "second hi" "$(says)"
    weft status
    like "$1: status: the agent" 'second, chosen with "weft agents use"; the configuration says first' "$out"
    like "$1: status: the rules" "off, switched by hand; the configuration says on" "$out"
    weft agents
    like "$1: agents" 'second is the default agent, chosen with "weft agents use". The configuration says first' "$(tr '\n' ' ' <<<"$err")"
    weft agents --json
    is "$1: agents for programs" first "$(field "$out" .configured)"
    weft automation
    like "$1: automation" "switched by hand, also after a restart; the configuration says on" "$out"
    like "$1: a rule" "off, switched" "$out"
    weft config show --origin
    like "$1: config: what is set" '"first"  project .weft/config.json' "$out"
    like "$1: config: what is in force" 'default_agent: in force is "second", chosen with "weft agents use"' "$err"
    like "$1: config: rules" "automation.enabled: in force is false" "$err"
    weft doctor
    like "$1: doctor" 'the default is second, chosen with "weft agents use"' "$out"
}
check_all "now"
weft restart
check_all "after a restart"
weft agents use --reset
weft automation enable
weft status
like "back: the agent" "first, as configured" "$out"
like "back: the rules say who" "on, switched by hand; the configuration says on" "$out"
close
