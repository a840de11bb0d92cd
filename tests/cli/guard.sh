#!/bin/bash
# The programs inside the program: nobody is offered them, and started by hand they do no harm.
. "$(dirname "$0")/kit.bash"

for how in "" help "help --json" "completion bash" "completion zsh" "completion fish" "__guar" "help __guard" "__guard_"; do
    run "$weft" $how
    unlike "weft $how does not tell of a guard" "__guard " "$out$err "
    unlike "weft $how does not offer one" "did you mean" "$out$err"
done
run "$weft" help __guard
exits "there is no help for it" 2

# Without a daemon that gives an order there is nothing to do, whatever is on the descriptors.
run "$weft" __guard sleep 1000 3<&- 4<&-
exits "no order" 1
run "$weft" __guard sleep 1000 3</dev/null 4</dev/null
exits "an empty order" 1
head -c 100000 /dev/urandom >noise
run "$weft" __guard 4<noise
exits "an order that is noise" 1
is "it says nothing" "" "$out$err"

close
