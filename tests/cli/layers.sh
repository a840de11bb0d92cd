#!/bin/sh
# A layer may include what lies below it and nothing above: for every pair of layers, compile an include of a header of one
# with the very flags the build gives the other. The store and the network lie side by side: neither knows the other.
set -u

layers="base json schema frame rpc peer store net engine/files engine/agents engine/checkers engine/git engine/terminals engine/changes engine/core engine/automation engine/plans engine/harness engine/mcp dialect"
passed=0
failed=0
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT

# The include paths and definitions with which the build compiles this layer.
flags_of() { # LAYER
    grep '"command"' "$BUILD/compile_commands.json" | grep -F "/src/$1/" | head -n 1 | tr ' ' '\n' |
        awk '/^-[ID]/ { print; next } /^-isystem$/ { getline path; print "-isystem" path }'
}

# Whether the include is found, in that very file: a system header of the same name (<link.h>) is not what was meant.
sees() { # LAYER HEADER
    echo "#include \"$(basename "$2")\"" >"$there/probe.c"
    # shellcheck disable=SC2046
    cc $(flags_of "$1") -M "$there/probe.c" 2>"$there/errors" | grep -qF "/$2"
}

check() { # LAYER HEADER allowed|refused
    if sees "$1" "$2"; then is=allowed; else is=refused; fi
    if [ $is = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1 including $2 is $is"
        sed 's/^/  /' "$there/errors"
    fi
}

for layer in $layers; do
    [ -n "$(flags_of "$layer")" ] || continue
    verdict=allowed
    for other in $layers; do
        header=$(find "src/$other" -name '*.h' 2>/dev/null | sort | head -n 1)
        case $layer/$other in
        net/store | store/net) here=refused ;;
        *) here=$verdict ;;
        esac
        [ -z "$header" ] || check "$layer" "$header" $here
        [ "$other" != "$layer" ] || verdict=refused
    done
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
