#!/bin/bash
# weft agents: with and without a daemon, choosing the default.
. "$(dirname "$0")/hub.bash"

mkdir none
cd none || exit 1
weft agents
exits "without a daemon" 0
like "the demo is there, and the default" "*  demo " "$out"
like "what is missing, and how to get it" "Install" "$out"
weft agents --json
is "for programs" demo "$(field "$out" .default)"
weft agents use demo
exits "choosing without a daemon" 3
cd ..

hub some
weft agents
exits "with one" 0
like "with one: the demo" "*  demo " "$out"
weft agents list --json
is "with one, for programs" true "$(field "$out" .agents.0.found)"
weft agents use nobody
exits "nobody" 8
like "nobody: what next" "weft agents" "$err"
weft agents use kimi
exits "one that is not installed" 0
like "not installed: it says so, and what to do" "It is not installed yet. Install" "$err"
weft doctor
exits "not installed: the doctor says so" 1
like "not installed: the doctor means the chosen one" "kimi, which is the default agent, is not installed" "$out"
weft task submit --wait hello
exits "not installed: a task fails" 1
like "not installed: and says why" "is not installed. Install" "$err"
weft task list
like "a task shows who has it" " kimi " "$out"
weft agents use claude
exits "another" 0
like "another: says so" "claude is the default" "$err"
weft agents
like "another: it is marked" "*  claude " "$out"
weft restart
weft agents --json
is "also after a restart" claude "$(field "$out" .default)"
weft agents use --reset
exits "back" 0
weft agents --json
is "as configured" demo "$(field "$out" .default)"

# ---- what is said at the start is true of the default agent ----
like "the demo asks first" "it asks first" "$(cat start.out)"

# ---- one of our own ----
cat >agent.sh <<'END'
#!/bin/sh
echo "you said: $1"
END
chmod +x agent.sh
cat >.weft/config.json <<END
{
  // a program that is given the prompt as an argument
  "agents": { "mine": { "driver": "cli", "command": ["$PWD/agent.sh", "{prompt}"] } }
}
END
trust
weft restart
weft agents
like "a configured one" "mine " "$out"
weft task submit --wait --agent mine hello
exits "does what it is told" 0
is "and says so" "you said: hello" "$out"
weft agents use mine
weft stop
weft agents
like "a configured one without a daemon" "mine " "$out"
weft start
unlike "a program asks nobody: nothing is promised" "asks before" "$err"
like "a program asks nobody: what it does" "runs mine with it" "$err"
weft agents use kimi
weft restart
unlike "of another agent nobody knows whether it asks" "asks before" "$err"
like "of another agent: it answers" "kimi answers" "$err"
weft stop
start "$program" serve
unlike "in the foreground, too" "asks before" "$(cat "$talk")"
like "in the foreground, too: who" "The agent is \"kimi\"" "$(cat "$talk")"
kill "$pid"
ended "$pid"
close
