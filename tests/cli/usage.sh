#!/bin/bash
# Help, mistakes and completions: what the tables of the verbs are turned into.
. "$(dirname "$0")/kit.bash"

verbs="serve start stop restart reload status logs top trust store token open pair task worktree runner promote hubs build mcp sub chat plan answer approvals session agents cost automation events acp doctor call notify listen methods describe ping bridge bench config completion man version help"

run "$weft"
exits "no arguments is the first page" 0
like "it says how to begin" "    weft start " "$out"
like "and where the rest is" "    weft help " "$out"
[ "$(wc -l <<<"$out")" -le 23 ] && pass || fail "it fits a terminal of 24 lines" "$out"
is "and of 80 columns" "" "$(awk 'length($0) > 80' <<<"$out")"
run "$weft" -h
exits "-h is short help" 0
for verb in $verbs; do
    like "the short help lists $verb" "    $verb " "$out"
done
is "help goes to standard output" "" "$err"
is "help fits" "" "$(awk 'length($0) > 80' <<<"$out")"
short=$out
run "$weft" --help
is "--help is the same" "$short" "$out"
run "$weft" help
is "help is the same" "$short" "$out"

for verb in $verbs; do
    run "$weft" "$verb" -h
    exits "$verb -h" 0
    like "$verb -h begins with what it is" "weft $verb: " "${out%%$'\n'*}"
    like "$verb -h has examples" "    " "$(sed -n 3p <<<"$out")"
    like "$verb -h has the usage" "usage: weft $verb [options]" "$out"
    like "$verb -h has --json" "--json" "$out"
    is "$verb -h fits" "" "$(LC_ALL=C.UTF-8 awk 'length($0) > 80 || / $/' <<<"$out")"
    is "examples come before options" "examples first" \
        "$(awk '/^usage:/ { exit } /^    (weft|source)/ { print "examples first"; exit }' <<<"$out")"
    whole=$out
    run "$weft" help "$verb"
    is "help $verb is the same" "$whole" "$out"
    run "$weft" "$verb" --nonsense-option
    exits "$verb refuses an unknown option" 2
    like "$verb names it" "there is no option --nonsense-option" "$err"
done

# ---- each subcommand alone ----
subcommands=$("$weft" help --json | /usr/bin/python3 -c '
import json, sys
for verb in json.load(sys.stdin)["verbs"]:
    for name in verb["subcommands"]:
        print(verb["name"], name)')
[ "$(wc -l <<<"$subcommands")" -ge 50 ] && pass || fail "verbs have subcommands" "$subcommands"
while read -r verb word; do
    run "$weft" "$verb" "$word" -h
    exits "$verb $word -h" 0
    like "$verb $word -h begins with what it is" "weft $verb $word: " "${out%%$'\n'*}"
    like "$verb $word -h has an example of it" "weft $verb" "$(sed -n 3p <<<"$out")"
    like "$verb $word -h has its usage" "usage: weft $verb $word [options]" "$out"
    is "$verb $word -h fits" "" "$(LC_ALL=C.UTF-8 awk 'length($0) > 80 && !/^    [^ ]/' <<<"$out")"
    whole=$out
    run "$weft" help "$verb" "$word"
    is "help $verb $word is the same" "$whole" "$out"
    run "$weft" "$verb" -h
    like "$verb -h lists $word" "
    $word " "$out "
done <<<"$subcommands"
run "$weft" task submit -h
like "submit has its options" "--worktree" "$out"
unlike "and no others" "--strategy" "$out"
unlike "for which it needs not be named" "submit: " "$(sed -n '/^options:/,$p' <<<"$out")"
run "$weft" task merge -h
like "merge has its own" "--strategy" "$out"
unlike "and not those of submit" "--worktree" "$out"
run "$weft" plan write a page -h
exits "a request is no subcommand" 0
like "help for a request is that of the verb" "usage: weft plan [options] REQUEST" "$out"
run "$weft" help nonsense
exits "help for no verb" 2

run "$weft" call -h
like "what params are stays in columns" "
    name=value   JSON" "$out"
run "$weft" serve -h
like "choices are a sentence" "must show: token or none" "$(tr -s ' \n' ' ' <<<"$out")"

mistake() { # NAME PART-OF-MESSAGE ARGUMENT...
    local name=$1 part=$2
    shift 2
    run "$weft" "$@"
    exits "$name" 2
    like "$name: says so" "$part" "$err"
    is "$name: nothing on standard output" "" "$out"
}
mistake "a wrong verb" 'did you mean "call"?' clal ping
mistake "a wrong subcommand where there is one" 'the subcommand is copy' store xyzzy
mistake "a wrong subcommand for -h" 'did you mean "submit"?' task sumbit -h
mistake "a wrong subcommand for help" 'did you mean "submit"?' help task sumbit
mistake "a subcommand of a verb without" '"ping" has no subcommands' help ping twice
mistake "too much for help" 'unexpected argument' help task submit now
mistake "a mistake in a subcommand shows its usage" 'usage: weft task submit [options] PROMPT...' task submit
mistake "a wrong verb like no other" 'there is no verb "xyzzy"' xyzzy
mistake "a wrong verb for help" 'did you mean "listen"?' help lisen
mistake "an option before the verb" 'before the verb' --json call
mistake "a wrong option" 'did you mean --timeout?' call --tiemout 5s x
mistake "a wrong letter" 'there is no option -Z' call -Z x
mistake "an option without its value" '--timeout needs its TIME' call x --timeout
mistake "a flag with a value" '--json takes no value' call --json=1 x
mistake "a time that is none" 'a time such as' call --timeout soon x
mistake "a negative time" 'a time such as' call --timeout -5s x
mistake "no time at all" 'a time such as' call --timeout 0 x
mistake "a number that is none" 'wants a number' ping -c many
mistake "a number with a unit that is none" 'wants a number' ping -c 5G
mistake "a choice that is none" 'one of: token none' serve --auth maybe
mistake "call without a method" 'a method is missing' call
mistake "call with a URL only" 'which method?' call unix:/nowhere
mistake "describe without a method" 'which method?' describe unix:/nowhere
mistake "describe with two" 'one method at a time' describe unix:/nowhere a b
mistake "a bridge with one end" 'two endpoints are needed' bridge stdio:
mistake "a URL that is none" 'needs a port' call tcp://localhost m
mistake "a scheme that is none" 'a URL begins with' call ftp://localhost/ m
mistake "a host and port" 'did you mean tcp://localhost:4000?' ping localhost:4000
mistake "a host and port before a method" 'did you mean tcp://localhost:4000?' call localhost:4000 ping
mistake "ping of a word" '"word" is not a URL' ping word
for verb in ping top listen bench methods; do
    mistake "$verb of two URLs" 'unexpected argument "unix:b"; one URL is enough' $verb unix:a unix:b
done
mistake "serve with an argument" '--listen URL' serve unix:/tmp/x
mistake "start with an argument" '--listen URL' start unix:/tmp/x
mistake "start on stdio" 'stdio: cannot' start --listen stdio:
mistake "stop with an argument" 'unexpected argument' stop now
mistake "status with an argument" 'unexpected argument' status now
mistake "logs of so many lines" 'a number or "all"' logs -n many
mistake "task of no kind" 'did you mean "submit"?' task sumbit x
mistake "task without a prompt" 'the prompt is missing' task submit
mistake "task with an empty prompt" 'is empty' task submit ''
mistake "task with a prompt file that is not there" 'No such file' task submit @missing.md
mistake "task without an id" 'which task?' task get
mistake "task with two ids" 'unexpected argument' task cancel task-0000 task-0001
mistake "an option of another word" '--wait belongs to "submit", not to "list"' task list --wait
mistake "a priority that is none" 'a whole number' task submit --priority high x
mistake "a state that is none" 'one of: queued running' task list --state done
mistake "another hub that is not a URL" 'is neither a URL nor a hub' task list --url nowhere
mistake "answer with three words" 'a reason is --text' answer question-0000 deny because
mistake "a reason without an answer" 'goes with an answer' answer --text because
mistake "agents use of nobody" 'which agent, or --reset?' agents use
mistake "agents use of somebody and nobody" 'not both' agents use demo --reset
mistake "automation of no kind" 'did you mean "enable"?' automation enabel
mistake "events from nowhere" '--since does not understand' events --since nowhere
mistake "events of something" 'did you mean --type or --task?' events task-0000
mistake "doctor for somebody" 'unexpected argument' doctor me
mistake "man of no verb" 'did you mean "call"?' man clal
mistake "a shell that is none" 'unknown shell "tcsh"' completion tcsh
mistake "no shell" 'which shell' completion
mistake "params that are no pair" 'is not name=value' call unix:/nowhere m word
mistake "params that are not JSON" 'this is not JSON' call unix:/nowhere m '{"a":}'
mistake "params behind all of the params" 'cannot be added' call unix:/nowhere m '{"a":1}' b=2
mistake "a pair that must be JSON" 'is not JSON' call unix:/nowhere m a:=hello
mistake "a pair without a name" 'is not name=value' call unix:/nowhere m =5
mistake "a params file that is not there" 'No such file' call unix:/nowhere m @missing.json
mistake "a token file that is not there" 'No such file' call --token-file missing unix:/nowhere m
mistake "an empty token file" 'not a token' call --token-file /dev/null unix:/nowhere m
echo '5' >scalar.json
mistake "params that are a number" 'an object or an array' call unix:/nowhere m @scalar.json

run "$weft" version
exits "version" 0
like "version says so" "weft 0." "$out"
run "$weft" --version
like "--version says so" "weft 0." "$out"
run "$weft" version --json
like "version --json" '{"weft":"0.' "$out"
run "$weft" help --json
like "help --json" '"name":"call"' "$out"
run "$weft" call --json clal --timeout never
like "a mistake with --json is JSON too" '{"error":{"exit":2,' "$out"

run "$weft" call clal --nonsense --json
like "also where --json stands behind the mistake" '{"error":{"exit":2,' "$out"

# ---- completions ----
for shell in bash zsh fish; do
    run "$weft" completion $shell
    exits "completion $shell" 0
    echo "$out" >"completion.$shell"
    if command -v $shell >/dev/null; then
        run $shell -n "completion.$shell"
        exits "$shell reads its completion" 0
    else
        skip "completion $shell" "$shell is not installed"
    fi
    for verb in $verbs; do
        like "completion $shell knows $verb" "$verb" "$(cat "completion.$shell")"
    done
done

# ---- 80 columns; what is longer is a command to be pasted ----
for verb in "" connection $("$weft" help --json | grep -o '"name":"[a-z]*"' | sed 's/.*:"//;s/"//'); do
    run "$weft" help $verb
    is "help $verb fits" "" "$(LC_ALL=C.UTF-8 awk 'length($0) > 80 && !/^    [^ ]/' <<<"$out")"
done
run "$weft" help call
unlike "connections are explained elsewhere" "the token to show" "$out"
run "$weft" help connection
like "there" "the token to show" "$out"
close
