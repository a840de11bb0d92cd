"""Prints a C program that prints the size of every public struct and enum of libweft, and where each member is.

    python3 tests/abi/layout.py include/weft/*.h > layout.c
"""
import re
import sys

KEPT_OUT = {"next_", "waiting_", "doc_", "result_", "error_", "ours_", "room_"}


def members_of(body):
    """The names that a struct's body declares."""
    flat = re.sub(r"union\s*\{[^}]*\}", "union_", body)
    for declaration in flat.split(";"):
        declaration = declaration.strip()
        pointer = re.search(r"\(\*(\w+)\)\(", declaration)
        if pointer:
            yield pointer.group(1)
        elif declaration and not declaration.startswith("WEFT_ROOM"):
            for part in re.sub(r"\[[^]]*\]", "", declaration).split(","):
                yield re.findall(r"\w+", part)[-1]


def main(paths):
    print("#include <stdio.h>\n#include <weft/weft.h>\nint main(void) {")
    for path in sorted(paths):
        text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
        for kind, name, body in re.findall(r"(?:typedef )?(struct|enum) (weft_\w+) \{(.*?)\n\}", text, flags=re.S):
            print(f'    printf("{name} %zu\\n", sizeof({kind} {name}));')
            if kind == "enum":
                for value in re.findall(r"^\s*(WEFT_\w+)", body, flags=re.M):
                    print(f'    printf("    {value} %d\\n", (int) {value});')
                continue
            for member in members_of(body):
                if member not in KEPT_OUT:
                    print(f'    printf("    {member} %zu\\n", offsetof({kind} {name}, {member}));')
    print("    return 0;\n}")


main(sys.argv[1:])
