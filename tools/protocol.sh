#!/bin/sh
# tools/protocol.sh [WEFT]: write the part of docs/protocol.md that is made from the program's rows anew.
set -eu
cd "$(dirname "$0")/.."
weft=${1:-build/weft}
page=docs/protocol.md
new=$(mktemp)
trap 'rm -f "$new"' EXIT
sed '/^<!-- From here on/q' "$page" >"$new"
"$weft" man --protocol >>"$new"
cat "$new" >"$page"
