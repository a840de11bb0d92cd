#!/bin/bash
# weft plan: planning with the demo agent, running, and what people and scripts see of it.
. "$(dirname "$0")/hub.bash"

# ---- nobody there ----
for words in "plan" "plan something" "plan show plan_00000001" "plan run plan_00000001" "plan cancel plan_00000001"; do
    weft $words
    exits "$words without a daemon" 3
    is "$words: no data" "" "$out"
done

hub one

# ---- words ----
weft plan list
exits "an empty list" 0
is "an empty list is empty" "" "$out"
weft plan lsit
exits "a mistyped word" 2
like "a mistyped word: what was meant" 'did you mean "list"' "$err"
weft plan show
exits "show without an id" 2
weft plan show plan_000000ff
exits "no such plan" 5
like "no such plan: what to do" "weft plan list" "$err"
weft plan ""
exits "an empty request" 2

# ---- a plan, and no terminal ----
weft plan add a README
exits "a plan" 0
like "the plan names its request" "plan_00000001  add a README" "$out"
like "what needs what" "task_004  analysis       task_002, task_003  Sum up what was done" "$out"
like "how many tasks" "4 tasks, about 3 s" "$out"
like "nothing runs unless it was said" "weft plan run plan_00000001" "$err"
weft plan list
like "the list has it" "plan_00000001  created  0 of 4" "$out"
weft plan show plan_00000001 --json
is "show --json" created "$(field "$out" .state)"
is "show --json has the tasks" task_002 "$(field "$out" .tasks.1.id)"
weft plan 'run the tests'
like "a request may begin with a word of ours" "plan_00000002  run the tests" "$out"
weft plan run the tests --json
is "also without quotes" "run the tests" "$(field "$out" .request)"

# ---- running ----
weft plan run plan_00000001
exits "a plan that ran" 0
like "every task is told" "  task_004 completed in " "$err"
like "with what it was" "): Sum up what was done" "$err"
like "the end is told" "plan_00000001 completed: 4 of 4 tasks completed" "$err"
weft plan show plan_00000001
like "what became of each" "task_001  completed" "$out"
weft plan run plan_00000001
exits "a plan runs once" 8
weft plan cancel plan_00000001
exits "a plan that has ended is not cancelled" 8
weft plan 'add a README' --run --json
exits "planned and run, for programs" 0
is "it completed" completed "$(field "$out" .state)"
is "all of its tasks have" 4 "$(field "$out" .counts.completed)"
is "one object and nothing else" 1 "$(printf '%s\n' "$out" | wc -l)"
task=$(field "$out" .tasks.3.taskId)
weft task get "$task"
like "the last task was told what the others answered" "### task_002" "$out"

# ---- limits ----
weft plan big --max-tasks 3
exits "more tasks than allowed" 8
like "more tasks than allowed: why" "it has 4 tasks, and max_tasks is 3" "$err"

# ---- what fails ----
weft call run_plan '{"plan":{"tasks":[{"id":"a","type":"testing","description":"refuse"},{"id":"b","type":"testing","description":"echo b","dependencies":["a"]},{"id":"c","type":"testing","description":"echo c"}]}}'
is "a part of it succeeded" partial "$(field "$out" .status)"
is "the one that failed" failure "$(field "$out" .results.0.status)"
is "the one that needs it" skipped "$(field "$out" .results.1.status)"
is "and the other one" c "$(field "$out" .results.2.output.code)"
weft call run_plan '{"plan":{"tasks":[{"id":"a","type":"testing","description":"x","dependencies":["b"]},{"id":"b","type":"testing","description":"x","dependencies":["a"]}]}}'
like "a circle" "in a circle: a -> b -> a" "$err"

# ---- a time limit ----
weft call run_plan '{"plan":{"tasks":[{"id":"a","type":"testing","description":"slow 1h echo x"},{"id":"b","type":"testing","description":"echo b","dependencies":["a"]}]},"options":{"wait":false,"time_limit_seconds":1}}'
late=$(field "$out" .plan_id)
plan_state() { [ "$(field "$("$program" plan show "$1" --json)" .state)" = "$2" ]; }
until_true plan_state "$late" failed
weft plan show "$late"
like "what was not done in time" "b     skipped" "$out"
like "and why" "The plan reached its time limit" "$out"

# ---- at a terminal ----
person '[y/N]=>y\n' "$program" plan add a README
exits "yes" 0
like "a plan that was wanted runs" "completed: 4 of 4 tasks completed" "$out"
person '[y/N]=>\n' "$program" plan add a README
exits "the default is no" 0
like "it is left alone" "It does not run" "$out"
person '[y/N]=>\x03' "$program" plan add a README
exits "Ctrl-C instead of an answer" 130
like "what becomes of the plan, in a line of its own" $'\nIt does not run. To run it: weft plan run plan_' "${out//$'\r'/}"
weft call run_plan '{"plan":{"tasks":[{"id":"a","type":"testing","description":"ask"}]},"options":{"wait":false}}'
weft plan list
like "an agent's question does not end a plan" "running" "$out"
weft plan cancel "$(printf '%s\n' "$out" | awk '/running/ { print $1 }')"
exits "cancel" 0
like "cancel says what became of it" "is cancelled" "$err"

close
