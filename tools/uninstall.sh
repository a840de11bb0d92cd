#!/bin/sh
# tools/uninstall.sh BUILD [DESTDIR]: remove the files that the last "make install" put in place, and the folders of Weft's own that are
# empty then. Nothing else is touched.
set -eu

list=$1/install_manifest.txt
below=${2-}
if [ ! -f "$list" ]; then
    echo "uninstall: there is no $list, which says what was installed; \"make install\" with the same PREFIX writes it" >&2
    exit 1
fi
while IFS= read -r file || [ -n "$file" ]; do
    rm -f "$below$file"
    case $(dirname "$file") in
    */weft) rmdir "$below$(dirname "$file")" 2>/dev/null || true ;;
    esac
done <"$list"
rm -f "$list"
echo "removed; your projects keep their .weft folders, and you keep weft in ~/.config, ~/.local/state and ~/.local/share"
