#!/bin/sh
# Put the files that the README shows into it: the block of code under <!-- FILE --> becomes that file.
set -eu
cd "$(dirname "$0")/.."

new=$(mktemp)
awk '
    /^<!-- .* -->$/ { file = $2 }
    /^```/ && inside { inside = 0 }
    !inside
    /^```./ && file != "" {
        while ((getline line < file) > 0) { print line; inside = 1 }
        file = ""
    }' README.md >"$new"
cat "$new" >README.md
rm -f "$new"
