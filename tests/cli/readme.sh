#!/bin/sh
# What the README shows is what is there: its links lead somewhere, and a block of code under <!-- FILE --> is that file, which
# the build compiles.
set -u

passed=0
failed=0
skipped=0
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT

pass() {
    passed=$((passed + 1))
}

fail() { # WHAT
    failed=$((failed + 1))
    echo "FAIL $1"
}

block_under() { # FILE: the code between the fences that follow its marker
    awk -v marker="<!-- $1 -->" '
        $0 == marker { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside' README.md
}

check_block() { # FILE
    if [ ! -f "$1" ]; then
        skipped=$((skipped + 1))
        echo "skip README.md: $1 is not there"
        return
    fi
    block_under "$1" >"$there/block"
    if diff -u "$1" "$there/block" >"$there/diff"; then
        pass
    else
        fail "README.md differs from $1"
        sed 's/^/  /' "$there/diff"
    fi
}

for page in README.md CONTRIBUTING.md docs/architecture.md docs/decisions/README.md; do
    for target in $(grep -o '](\([^)#]*\))' "$page" | tr -d ']()' | grep -v '^https\?:'); do
        if [ -e "$(dirname "$page")/$target" ]; then pass; else fail "$page links to $target"; fi
    done
done
for file in $(sed -n 's/^<!-- \(.*\) -->$/\1/p' README.md); do
    check_block "$file"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
