#!/bin/sh
# Start the server that "make run" built; it says itself what to open and type. ARGS are handed to weft serve.
set -eu
cd "$(dirname "$0")/.."

if [ ! -x build/weft ]; then
    echo "run: build/weft is not there; this tree has no program in src/app" >&2
    exit 1
fi
exec build/weft serve "$@"
