#!/bin/bash
# What programs that were built with an earlier libweft rely on: the names in the shared library, the sizes of public structs and the places
# of their members. The lists are in tests/abi. A name that is new is added there; one that is gone, or a member that has moved, breaks
# programs: then the library needs a new SOVERSION.
#
#     tests/cli/abi.sh --write     puts what is there now into the lists
set -u

passed=0
failed=0
skipped=0
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
library=${BUILD:-build}/libweft.so

compare() { # WHAT FILE
    if [ "${write:-}" ]; then
        cp "$there/$2" "tests/abi/$2"
    fi
    if diff -u "tests/abi/$2" "$there/$2" >"$there/differences"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1 (- as it was, + as it is)"
        grep '^[-+] *[a-zA-Z]' "$there/differences" | head -n 20 | sed 's/^/  /'
    fi
}

[ "${1:-}" != --write ] || write=1
if [ -e "$library" ]; then
    nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | LC_ALL=C sort >"$there/symbols.txt"
    compare "the names in the library" symbols.txt
    if grep -qv '^weft_[a-z]' "$there/symbols.txt" || grep -q '^weft__' "$there/symbols.txt"; then
        failed=$((failed + 1))
        echo "FAIL a name that is not public is in the library"
    else
        passed=$((passed + 1))
    fi
    # What the headers promise is there, and nothing else is.
    cat include/weft/*.h | tr '\n' ' ' | grep -o 'WEFT_API [^;]*;' | sed 's/ __attribute.*//; s/(.*//; s/;$//' | grep -o 'weft_[a-z0-9_]*$' |
        LC_ALL=C sort -u >"$there/promised.txt"
    cp "$there/symbols.txt" "$there/there.txt"
    if diff "$there/promised.txt" "$there/there.txt" >"$there/differences"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL the headers (<) and the library (>) differ"
        sed -n 's/^[<>]/  &/p' "$there/differences"
    fi
else
    skipped=$((skipped + 3)) # built with a sanitizer
fi

# Who has no room for later members must be on this list: passed by value or fixed for ever; then lent one by one by the library.
python3 - include/weft/*.h >"$there/rigid" <<'END'
import re, sys
fixed = "bytes alloc json val member iter header trace trouble histogram"
lent = "gate_request gate_outcome method_stats measures stats error sub_news sub_value"
for path in sys.argv[1:]:
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    for name, body in re.findall(r"struct weft_(\w+) \{(.*?)\n\}", text, flags=re.S):
        if "WEFT_ROOM" not in body and name not in (fixed + " " + lent).split():
            print("weft_" + name)
END
if [ -s "$there/rigid" ]; then
    failed=$((failed + 1))
    echo "FAIL structs without room for later members:" $(cat "$there/rigid")
else
    passed=$((passed + 1))
fi

python3 tests/abi/layout.py include/weft/*.h >"$there/layout.c"
if [ "$(uname -m)" != x86_64 ]; then
    skipped=$((skipped + 1))
elif cc -I include -o "$there/layout" "$there/layout.c"; then
    "$there/layout" >"$there/structs.txt"
    compare "the structs" structs.txt
else
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
