#!/bin/bash
# weft man: every page, without a complaint of the formatter.
. "$(dirname "$0")/kit.bash"

if ! command -v groff >/dev/null || ! echo | groff -man -Tutf8 >/dev/null 2>&1; then
    groff=
    skip "the formatter's opinion" "groff with the macros for manual pages is not installed (groff-base)"
else
    groff=yes
fi

page() { # NAME ARGUMENT...
    local name=$1
    shift
    run "$weft" man "$@"
    exits "$name" 0
    like "$name has a title" ".TH " "$out"
    [ -n "$groff" ] || return
    run groff -man -Tutf8 -ww -z "$kit_said/out"
    is "$name: no warnings" "" "$out$err"
}

# The library's, one for each public header.
for header in "$SOURCE"/include/weft/*.h; do
    name=weft_$(basename "$header" .h)
    [ "$name" != weft_weft ] && [ -d "$BUILD/man" ] || continue
    like "$name(3) has a title" ".TH $(echo "$name" | tr a-z A-Z) 3" "$(cat "$BUILD/man/man3/$name.3" 2>&1)"
    [ -n "$groff" ] || continue
    run groff -man -Tutf8 -ww -z "$BUILD/man/man3/$name.3"
    is "$name(3): no warnings" "" "$out$err"
done

run "$weft" man --list
pages=$out
like "a list of pages" "weft-task.1" "$pages"
like "with the methods" "weft-methods.7" "$pages"
page "weft(1)"
run "$weft" man
whole=$out
for verb in $("$weft" help --json | tr '{' '\n' | sed -n 's/^"name":"\([^"]*\)".*/\1/p'); do
    like "weft(1) names $verb" "weft\\-$verb (1)" "$whole"
    page "weft-$verb(1)" "$verb"
    like "weft-$verb(1) is in the list" "weft-$verb.1" "$pages"
done
run "$weft" man task
like "examples" "weft task submit" "$out"
like "options" '\fB\-\-priority\fR' "$out"
like "statuses" "EXIT STATUS" "$out"
page "weft-methods(7)" --methods
run "$weft" man --methods
for method in task.submit question.answer event.subscribe agent.use; do
    like "methods: $method" ".SS $method" "$out"
done
like "methods: params" "what the agent should do" "$out"
like "methods: errors" "queueFull" "$out"
like "methods: what is inside of params" '"timeout_ms": {' "$out"
# The same script that a build for installing runs; a build with a sanitizer does not run it by itself.
run cmake "-DWEFT=$weft" "-DTO=$there/man" -P "$SOURCE/cmake/man.cmake"
exits "all pages are written" 0
for name in $pages; do
    [ -s "$there/man/man${name##*.}/$name" ] && pass || fail "the script wrote $name"
    [ ! -d "$BUILD/man" ] || [ -s "$BUILD/man/man${name##*.}/$name" ] && pass || fail "the build wrote $name"
done
close
