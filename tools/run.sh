#!/bin/sh
# Start the server that "make run" built and say what to open and type. ARGS are handed to weft serve.
set -eu
cd "$(dirname "$0")/.."

if [ ! -x build/weft ]; then
    echo "run: build/weft is not there; this tree has no program in src/app" >&2
    exit 1
fi
cat >&2 <<'EOT'

Weft starts below; Ctrl-C stops it. In a second terminal, in this folder:

    build/weft ping unix:.weft/daemon.sock
    build/weft methods unix:.weft/daemon.sock
    build/weft call unix:.weft/daemon.sock echo '{"text":"hi"}'

In a browser: http://127.0.0.1:16180/health

EOT
exec build/weft serve "$@"
