#!/bin/sh
# tools/install.sh run|test|bench|lint: install what is missing for that purpose and nothing else. When nothing is missing it
# says nothing and does not touch the network. Debian 12 is what it knows; elsewhere it names what to install by hand.
set -eu
cd "$(dirname "$0")/.."

# One line per package: its name, and how to recognise it where it came another way: a command, pc:MODULE for pkg-config,
# or - where only dpkg knows.
run_packages='
    gcc                       cc
    libc6-dev                 -
    cmake                     cmake
    ninja-build               ninja
    pkg-config                pkg-config
    libuv1-dev                pc:libuv
    libssl-dev                pc:openssl
    zlib1g-dev                pc:zlib
    libsqlite3-dev            pc:sqlite3
    libpq-dev                 pc:libpq
    libpcre2-dev              pc:libpcre2-8
    libqrencode-dev           pc:libqrencode'
test_packages='
    g++                       c++
    clang                     clang
    libclang-rt-14-dev        -
    llvm                      llvm-symbolizer
    git                       git
    procps                    ps
    npm                       npm
    ca-certificates           -
    python3                   python3
    python3-websockets        -
    chromium                  chromium
    openssl                   openssl
    locales                   -
    curl                      curl
    valgrind                  valgrind
    prometheus                promtool
    postgresql                -
    nginx                     -
    sqlite3                   sqlite3
    systemd                   systemd-analyze
    groff-base                groff
    fish                      fish
    zsh                       zsh
    shellcheck                shellcheck
    pyflakes3                 pyflakes3
    yamllint                  yamllint'
bench_packages='
    python3                   python3
    g++                       c++
    npm                       npm
    ca-certificates           -
    libjsonrpc-glib-1.0-dev   pc:jsonrpc-glib-1.0
    libjsonrpccpp-dev         -
    rapidjson-dev             -
    libsimdjson-dev           -
    redis-server              redis-server'
lint_packages='
    clang-format              clang-format
    cppcheck                  cppcheck'

say() {
    echo "install: $*" >&2
}

fail() {
    say "$@"
    exit 1
}

installed() { # PACKAGE
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

recognised() { # HOW
    case $1 in
    -) ! command -v dpkg-query >/dev/null ;;
    pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

missing_of() { # LIST
    echo "$1" | while read -r package how; do
        [ -z "$package" ] || installed "$package" || recognised "$how" || printf ' %s' "$package"
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

install_packages() { # LIST
    missing=$(missing_of "$1")
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null ||
        fail "this is not Debian; please install what these Debian packages hold:$missing"
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
        fail "needs root or sudo. As root: apt-get install --no-install-recommends$missing"
    say "apt-get install$missing"
    log=$(mktemp)
    # The list is split into words on purpose.
    # shellcheck disable=SC2086
    if ! { apt update && apt install -y --no-install-recommends $missing; } >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        fail "apt-get failed; see above"
    fi
    rm -f "$log"
}

# The programs of other people that the tests talk to, and a Node newer than Debian's, in the versions of tests/npm. Without
# them the tests that need them are skipped, so a failure here is not the end.
get_npm() { # COMMAND FOLDER [OPTION...]
    command=$1 folder=$2
    shift 2
    npm "$command" --prefix "$folder" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retry-mintimeout=1000 \
        --fetch-retry-maxtimeout=5000 "$@"
}

# Newer versions of npm refuse a lock file that does not name the optional packages of other machines; "install" takes the versions
# of the same file.
install_npm() { # FOLDER [OPTION...]: from tests/npm/FOLDER into build/tools/FOLDER
    list=tests/npm/$1 tools=build/tools/$1
    shift
    cmp -s "$list/package-lock.json" "$tools/installed-lock.json" && return 0
    say "npm packages into $tools"
    mkdir -p "$tools"
    cp "$list/package.json" "$list/package-lock.json" "$list/.npmrc" "$tools/"
    if get_npm ci "$tools" "$@" >&2 2>/dev/null || get_npm install "$tools" "$@" >&2; then
        cp "$list/package-lock.json" "$tools/installed-lock.json"
    else
        say "npm failed; the tests that need its packages will be skipped"
    fi
}

# Whole programs, each in a folder of its own: they bring other versions of what the tests use themselves. Optional packages are
# programs for every other kind of machine; the one for this kind is named by those that need it. Together they take 1.4 GB.
install_programs() {
    for program in acpx openrpc gemini codex claude mcp runtimes eslint; do
        install_npm "$program" --omit=optional
    done
}

# A locale that writes a decimal comma, for the tests that it changes nothing; nothing on the system is touched.
install_locale() {
    folder=build/tools/locale
    [ ! -d $folder/de_DE.UTF-8 ] || return 0
    mkdir -p $folder
    localedef -i de_DE -f UTF-8 $folder/de_DE.UTF-8 || say "localedef failed; a test will be skipped"
}

case ${1-} in
run) install_packages "$run_packages" ;;
lint) install_packages "$lint_packages" ;;
test)
    install_packages "$run_packages$test_packages"
    install_locale
    install_npm .
    install_programs
    ;;
bench)
    install_packages "$run_packages$bench_packages"
    install_npm .
    ;;
*)
    echo "usage: tools/install.sh run|test|bench|lint" >&2
    exit 2
    ;;
esac
