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
if [ -d "$BUILD/completion" ]; then
    for file in bash-completion/completions/weft zsh/site-functions/_weft fish/vendor_completions.d/weft.fish; do
        check "the completion $file" test -s "$prefix/share/$file"
    done
    check "the unit names the program" grep -qx 'ExecStart=/opt/weft/bin/weft serve' "$prefix/lib/systemd/user/weft@.service"
    check "the unit is about a folder" grep -qx 'WorkingDirectory=%f' "$prefix/lib/systemd/user/weft@.service"
    if command -v systemd-analyze >/dev/null && command -v systemd-escape >/dev/null; then
        mkdir -p "$there/unit" && sed "s|/opt/weft/bin/weft|$prefix/bin/weft|" "$prefix/lib/systemd/user/weft@.service" >"$there/unit/weft@tmp.service"
        check "the unit is one" env XDG_RUNTIME_DIR="$there/unit" systemd-analyze --user verify "$there/unit/weft@tmp.service"
    fi
fi
if [ -d "$BUILD/man" ]; then
    check "the manual" test -s "$prefix/share/man/man1/weft-task.1" -a -s "$prefix/share/man/man7/weft-methods.7"
fi

cat >"$there/use.c" <<'EOT'
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

int main(void) {
    printf("%s\n", weft_version());
    return strcmp(weft_version(), WEFT_VERSION) != 0;
}
EOT
cat >"$there/use.cc" <<'EOT'
// A method, a call to it and back, with values built in place: what a C++ program needs of the headers.
#include <cstdio>
#include <cstring>
#include <weft/weft.h>

static int greet(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, WEFT_OBJ({"to", weft_str(weft_get_str(params, "name", "?"))},
                                    {"list", WEFT_ARR(weft_int(1), weft_null(), WEFT_OBJ({"deep", weft_bool(true)}))}));
}

int main() {
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"greet\",\"params\":{\"name\":\"Ann\"}}\n";
    static const char wanted[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"to\":\"Ann\",\"list\":[1,null,{\"deep\":true}]}}\n";
    weft_method methods[2] = {};
    methods[0].name = "greet";
    methods[0].handler = greet;
    weft_service_opts opts = {};
    opts.methods = methods;
    weft_service *service = NULL;
    WEFT_AUTO(weft_peer) peer = NULL;
    if (weft_service_new(&opts, &service) < 0 || weft_peer_new(service, NULL, &peer) < 0)
        return 1;
    weft_service_unref(service);
    if (weft_peer_feed(peer, request, sizeof request - 1, 0) < 0)
        return 1;
    weft_bytes out = weft_peer_output(peer);
    std::printf("%.*s", (int) out.len, out.data);
    return out.len != sizeof wanted - 1 || std::memcmp(out.data, wanted, out.len) != 0;
}
EOT

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
    check "compile as C++17" with_pkg_config "$there/cxx17" c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "$there/use.cc"
    check "run the C++17 program" "$there/cxx17"
fi
if command -v clang++ >/dev/null; then
    check "compile as C++ with clang" with_pkg_config "$there/clangxx" clang++ -std=c++17 -Wall -Wextra -Werror \
        "$there/use.cc"
    check "run clang's C++ program" "$there/clangxx"
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

# ---- and gone again ----
check "install once more" env DESTDIR="$there/again" cmake --install "$BUILD" --prefix /opt/weft
touch "$there/again/opt/weft/bin/somebody-elses" "$there/again/opt/weft/include/weft/theirs.h"
check "uninstall" "$SOURCE/tools/uninstall.sh" "$BUILD" "$there/again"
is_gone() {
    [ "$(cd "$there/again" && find . ! -type d | sort | tr '\n' ' ')" = "./opt/weft/bin/somebody-elses ./opt/weft/include/weft/theirs.h " ] &&
        [ -z "$(find "$there/again/opt/weft/share" "$there/again/opt/weft/lib" -name weft)" ]
}
check "it removes what is Weft's, and nothing else" is_gone
refuses() {
    ! "$SOURCE/tools/uninstall.sh" "$BUILD" "$there/again"
}
check "a second time there is no list" refuses
close
