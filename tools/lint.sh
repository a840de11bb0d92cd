#!/bin/sh
# What a reader would remark on: the format, includes that climb folders, calls that have no place here, and whatever cppcheck
# finds. Then the ten longest functions and files, which are for looking at and fail nothing.
set -eu
cd "$(dirname "$0")/.."

status=0
sources=$(git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cc')
# shellcheck disable=SC2086
set -- $sources

check() { # WHAT COMMAND...: the command must find nothing
    what=$1
    shift
    echo "== $what"
    if "$@"; then
        status=1
    fi
}

# shellcheck disable=SC2317
badly_formatted() {
    clang-format --dry-run --ferror-limit=1 "$@" 2>&1 | grep 'warning:'
}

# shellcheck disable=SC2317
twice() {
    find src -name '*.h' | sed 's#.*/##' | sort | uniq -d | grep .
}

# In tests a text is put together in an array of a known size and a sanitizer watches, and openssl is run by a shell.
# shellcheck disable=SC2317
banned() {
    git ls-files --cached --others --exclude-standard 'src/*.[ch]' 'include/*.h' 'examples/*.[ch]' 'bench/*.[ch]' |
        xargs grep -nE "$banned"
}

# As the build has it: without our own headers cppcheck takes our macros for broken code.
include_path() {
    find src -mindepth 1 -type d -printf '-I%p '
}

banned='(^|[^a-z_])(strcpy|strcat|sprintf|vsprintf|gets|system|popen|alloca) *\('
check "format (make format mends it)" badly_formatted "$@"
check "includes that climb folders" grep -nE '#include "\.\./' "$@"
check "headers of one name, which the include path cannot tell apart" twice
check "banned calls" banned

if command -v cppcheck >/dev/null; then
    echo "== cppcheck"
    # It cannot expand the schemas of those two tables, where a macro stands in its own argument.
    # shellcheck disable=SC2046
    cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability --inline-suppr \
        --suppress=missingIncludeSystem --suppress=unknownMacro:src/dialect/hub/hub_methods.c \
        --suppress=unknownMacro:src/dialect/aiwg/aiwg.c --error-exitcode=1 -D__GNUC__ -D_GNU_SOURCE -I include $(include_path) src include || status=1
fi

# A function begins at a line that ends in "{" in the first column's scope and ends at the next "}" in the first column; the
# format above makes that reliable.
echo "== the ten longest functions"
awk '
    FNR == 1 { name = "" }
    /^[A-Za-z_].*\) \{$/ && !/^(struct|union|enum|typedef)/ { name = $0; start = FNR; next }
    /^[A-Za-z_].*\($|^[A-Za-z_].*,$/ { head = $0; head_at = FNR }
    /^ .*\) \{$/ && head != "" && FNR - head_at <= 3 && name == "" { name = head; start = head_at; head = ""; next }
    /^}/ && name != "" {
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        printf "%5d  %s:%d %s\n", FNR - start + 1, FILENAME, start, name
        name = ""; head = ""
    }' "$@" | sort -rn | head -n 10
echo "== the ten longest files"
wc -l "$@" | sort -rn | awk '$2 != "total"' | head -n 10
exit $status
