#!/bin/sh
# What the README and docs/schema.md show is what is there: their links lead somewhere, and a block of code under <!-- FILE --> is that file, which
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

block_under() { # PAGE FILE: the code between the fences that follow its marker
    awk -v marker="<!-- $2 -->" '
        $0 == marker { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside' "$1"
}

check_block() { # PAGE FILE
    if [ ! -f "$2" ]; then
        skipped=$((skipped + 1))
        echo "skip $1: $2 is not there"
        return
    fi
    block_under "$1" "$2" >"$there/block"
    if diff -u "$2" "$there/block" >"$there/diff"; then
        pass
    else
        fail "$1 differs from $2"
        sed 's/^/  /' "$there/diff"
    fi
}

for page in README.md CONTRIBUTING.md docs/architecture.md docs/schema.md docs/decisions/README.md; do
    for target in $(grep -o '](\([^)#]*\))' "$page" | tr -d ']()' | grep -v '^https\?:'); do
        if [ -e "$(dirname "$page")/$target" ]; then pass; else fail "$page links to $target"; fi
    done
done
for page in README.md docs/schema.md; do
    for file in $(sed -n 's/^<!-- \(.*\) -->$/\1/p' "$page"); do
        check_block "$page" "$file"
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
