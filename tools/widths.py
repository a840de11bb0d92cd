#!/usr/bin/env python3
"""tools/widths.py: write src/app/terminal/text_width_table.h from the Unicode data of this Python.

Run it by hand when a newer Unicode matters; the result is committed, so that a build needs no Python."""

import unicodedata

NOT_ZERO = {0x00AD}  # the soft hyphen: terminals show it
LAST = 0x10FFFF


def is_zero(code):
    category = unicodedata.category(chr(code))
    joining_jamo = 0x1160 <= code <= 0x11FF  # vowels and finals are drawn into the syllable before them
    return (category in ("Mn", "Me", "Cf") or joining_jamo) and code not in NOT_ZERO


def is_wide(code):
    return unicodedata.east_asian_width(chr(code)) in "WF" and not is_zero(code)


def ranges(wanted):
    found, begin = [], None
    for code in range(0x80, LAST + 2):
        here = code <= LAST and not 0xD800 <= code <= 0xDFFF and wanted(code)
        if here and begin is None:
            begin = code
        elif not here and begin is not None:
            found.append((begin, code - 1))
            begin = None
    return found


def table(name, wanted):
    cells = [f"{{0x{first:x}, 0x{last:x}}}" for first, last in ranges(wanted)]
    print(f"static const weft_code_range {name}[] = {{")
    for i in range(0, len(cells), 6):
        print("    " + ", ".join(cells[i:i + 6]) + ",")
    print("};")


print(f"/* Which code points take no column, and which take two. Made by tools/widths.py from Unicode {unicodedata.unidata_version}. */")
print("/* clang-format off */")
table("zero_width", is_zero)
table("double_width", is_wide)
print("/* clang-format on */")
