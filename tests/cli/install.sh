#!/bin/sh
# Install into a temporary folder and use the installation as a stranger would: with pkg-config, with CMake, from C++.
set -u

passed=0
failed=0
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT

check() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >"$there/output" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name"
        sed 's/^/  /' "$there/output"
    fi
}

close() {
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ]
    exit
}

# The prefix is put below DESTDIR and the folder then moved, as a packager does: nothing in it may remember where it was built.
check "install below DESTDIR" env DESTDIR="$there/stage" cmake --install "$BUILD" --prefix /opt/weft
mv "$there/stage/opt/weft" "$there/prefix" || close
prefix=$there/prefix
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
export LD_LIBRARY_PATH="$prefix/lib"
knows_build() {
    ! grep -rlF -e "$BUILD" -e "$SOURCE/src" -e "$SOURCE/include" "$prefix/lib/cmake" "$prefix/lib/pkgconfig"
}
check "no path of the build remains" knows_build

cat >"$there/use.c" <<'EOT'
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

int main(void) {
    printf("%s\n", weft_version());
    return strcmp(weft_version(), WEFT_VERSION) != 0;
}
EOT
cp "$there/use.c" "$there/use.cc"

with_pkg_config() { # OUTPUT COMPILER-ARGUMENT...
    output=$1
    shift
    # Flags are split into words on purpose.
    # shellcheck disable=SC2046
    "$@" $(pkg-config --cflags weft) -o "$output" $(pkg-config --libs weft)
}
check "compile against the shared library" with_pkg_config "$there/shared" cc -Wall -Wextra -Werror "$there/use.c"
check "run with the shared library" "$there/shared"
check "pkg-config names the version" test "$(pkg-config --modversion weft)" = "$("$there/shared")"

statically() { # OUTPUT SOURCE
    # shellcheck disable=SC2046
    cc -Wall -Wextra -Werror "$2" $(pkg-config --cflags weft) -o "$1" \
        "$prefix/lib/libweft.a" $(pkg-config --static --libs weft | sed 's/-lweft\>//')
}
check "compile against the static library" statically "$there/static" "$there/use.c"
check "run with the static library" env -u LD_LIBRARY_PATH "$there/static"

if command -v c++ >/dev/null; then
    check "compile as C++" with_pkg_config "$there/cxx" c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror "$there/use.cc"
    check "run the C++ program" "$there/cxx"
fi

# Every example links with the shared library: what the headers declare is exported.
for example in examples/*.c; do
    [ ! -f "$example" ] ||
        check "$example with the shared library" with_pkg_config "$there/example" cc -Wall -Werror "$example"
done
exports_others() {
    ! nm -D --defined-only "$prefix/lib/libweft.so" | awk '{ print $3 }' | grep -v '^weft_[a-z0-9]'
}
check "the shared library exports nothing else" exports_others

mkdir "$there/project"
cat >"$there/project/CMakeLists.txt" <<'EOT'
cmake_minimum_required(VERSION 3.16)
project(use C)
find_package(weft 0.1 REQUIRED)
add_executable(use_shared ../use.c)
target_link_libraries(use_shared weft::weft)
add_executable(use_static ../use.c)
target_link_libraries(use_static weft::static)
EOT
check "find_package() finds it" cmake -S "$there/project" -B "$there/project/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
check "a CMake project builds" cmake --build "$there/project/build"
check "its shared program runs" "$there/project/build/use_shared"
check "its static program runs" env -u LD_LIBRARY_PATH "$there/project/build/use_static"
close
