#!/bin/bash
# Every public header alone, and all of them with what their macros make, in every C from C99 to C23 and every C++ from C++11 to
# C++20, with gcc and clang and more warnings than most programs ask for. A field of another type than its row says does not
# compile.
set -u

passed=0
failed=0
skipped=0
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
flags=(-I include -fsyntax-only -Wall -Wextra -pedantic -Wconversion -Werror)

cat >"$there/use.h" <<'END'
#include <weft/weft.h>
struct order {
    const char *name, *speed;
    int64_t count;
    double share;
    bool soon;
    weft_json rest, tags, address;
};
static const char *const speeds[] = {"slow", "fast", NULL};
static const weft_param order_params[] = {
    WEFT_MUST(struct order, name, str, "a"),         WEFT_ALSO(struct order, name, str, "title"),
    WEFT_MAY(struct order, soon, bool, "b"),         WEFT_MAY(struct order, rest, any, "c"),
    WEFT_MAY(struct order, tags, arr, "d"),          WEFT_MAY(struct order, address, obj, "e"),
    WEFT_MUST_BE(struct order, speed, speeds, "f"),  WEFT_MAY_BE(struct order, speed, speeds, "g"),
    WEFT_MUST_IN(struct order, count, int, 1, 9, "h"), WEFT_MAY_IN(struct order, share, num, 0, 1, "i"),
    WEFT_END(struct order),
};
static inline int notify_all(weft_peer *peer) {
    return weft_notify(peer, order_params[0].name,
                       WEFT_OBJ({"a", weft_int(1)}, {"b", WEFT_ARR(weft_bool(true), weft_str("x"))}));
}
END
printf '#include "use.h"\nint use(weft_peer *peer);\nint use(weft_peer *peer) {\n    return notify_all(peer);\n}\n' >"$there/use.c"
cp "$there/use.c" "$there/use.cc"
for header in include/weft/*.h; do
    echo "#include <weft/$(basename "$header")>"
    echo "extern int $(basename "$header" .h)_there;"
done | awk 'NR % 2 { line = $0; next } { file = "'"$there"'/only_" ++n; print line "\n" $0 > (file ".c"); print line "\n" $0 > (file ".cc") }'

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$there/errors" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        head -n 8 "$there/errors" | sed 's/^/  /'
    fi
}

refused() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$there/errors" 2>&1; then
        failed=$((failed + 1))
        echo "FAIL $what compiles"
    else
        passed=$((passed + 1))
    fi
}

# A field of another type, in the words of each macro.
bad_rows=(
    'int32_t WEFT_MUST(struct bad,field,int,"x")' 'int WEFT_MAY(struct bad,field,int,"x")' 'int64_t WEFT_MUST(struct bad,field,num,"x")'
    'float WEFT_MAY(struct bad,field,num,"x")' 'int WEFT_MAY(struct bad,field,bool,"x")' 'weft_bytes WEFT_MUST(struct bad,field,str,"x")'
    'weft_val WEFT_MAY(struct bad,field,any,"x")' 'double WEFT_MAY_IN(struct bad,field,int,0,1,"x")' 'int64_t WEFT_MUST_BE(struct bad,field,words,"x")'
)

for compiler in gcc clang; do
    command -v $compiler >/dev/null || { skipped=$((skipped + 1)); continue; }
    for std in c99 c11 c17 c2x gnu11; do
        check "$compiler -std=$std" $compiler -std=$std "${flags[@]}" -I "$there" "$there/use.c"
        for file in "$there"/only_*.c; do
            check "$compiler -std=$std $(head -n 1 "$file")" $compiler -std=$std "${flags[@]}" "$file"
        done
    done
    cxx=${compiler/gcc/g}
    cxx=${cxx%++}++
    for std in c++11 c++14 c++17 c++20; do
        check "$cxx -std=$std" "$cxx" -std=$std "${flags[@]}" -I "$there" "$there/use.cc"
        for file in "$there"/only_*.cc; do
            check "$cxx -std=$std $(head -n 1 "$file")" "$cxx" -std=$std "${flags[@]}" "$file"
        done
    done
    for row in "${bad_rows[@]}"; do
        type=${row%% *}
        printf '#include <weft/weft.h>\nstruct bad { %s field; };\nextern const char *const words[];\nextern const weft_param table[];\nconst weft_param table[] = {%s, WEFT_END(struct bad)};\n' \
            "$type" "${row#* }" >"$there/bad.c"
        cp "$there/bad.c" "$there/bad.cc"
        for std in c99 c2x; do
            refused "$compiler -std=$std: $row" $compiler -std=$std -I include -fsyntax-only "$there/bad.c"
        done
        refused "$cxx: $row" "$cxx" -std=c++11 -I include -fsyntax-only "$there/bad.cc"
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
