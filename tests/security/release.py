#!/usr/bin/python3
"""How the program is built, read from what was built; and that it starts no shell."""
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import SOURCE, WEFT, Skipped, main

BUILD = os.environ.get("BUILD", os.path.dirname(WEFT))


def built():
    """The program, the libraries and the examples, as they would be installed."""
    with open(os.path.join(BUILD, "CMakeCache.txt")) as file:
        cache = file.read()
    if re.search(r"^WEFT_SANITIZE:\w+=.+$", cache, re.M):
        raise Skipped("sanitizers replace the hardening")
    guard = os.path.join(BUILD, "guard", "weft-guard")
    found = [WEFT] + ([guard] if os.path.exists(guard) else [])
    found += [os.path.join(BUILD, name) for name in os.listdir(BUILD) if name.startswith("libweft.so") and not os.path.islink(os.path.join(BUILD, name))]
    return found


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout


def addresses_are_random():
    """-fPIE -pie."""
    for path in built():
        assert re.search(r"Type:\s+DYN", readelf(path, "-h")), path


def relocations_are_read_only():
    """-z relro -z now."""
    for path in built():
        assert "GNU_RELRO" in readelf(path, "-l"), path
        assert re.search(r"BIND_NOW|FLAGS_1.*NOW", readelf(path, "-d")), path


def nothing_is_writable_and_executable():
    for path in built():
        segments = readelf(path, "-l")
        assert re.search(r"GNU_STACK.*RW ", segments) and not re.search(r"RWE", segments), segments
        assert "TEXTREL" not in readelf(path, "-d"), path


def called(path):
    """What it calls by name. A static program has no such names any more; the objects that it was made of do."""
    if "NEEDED" in readelf(path, "-d"):
        return readelf(path, "--dyn-syms")
    made_of = glob.glob(os.path.join(BUILD, "CMakeFiles", os.path.basename(path).replace("-", "_") + ".dir", "**", "*.o"), recursive=True)
    assert made_of, path
    return "".join(readelf(each, "--syms") for each in made_of)


def the_stack_is_protected():
    """-fstack-protector-strong."""
    for path in built():
        assert "__stack_chk_fail" in called(path), path


def the_library_calls_are_checked():
    """-D_FORTIFY_SOURCE=3."""
    for path in built():
        assert re.search(r"__\w+_chk\b", called(path).replace("__stack_chk_fail", "")), path


def jumps_have_targets():
    """-fcf-protection. Debian's crt1.o does not have the note of it, so the linker leaves it out: the instruction counts."""
    for path in built():
        if "X86-64" in readelf(path, "-h"):
            with open(path, "rb") as file:
                assert file.read().count(b"\xf3\x0f\x1e\xfa") > 5, f"{path}: endbr64 is hardly there"


def no_folder_is_searched_for_libraries():
    """A library from the folder where it is started, or from a path that others may write to, would be a program."""
    for path in built():
        for entry in re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", readelf(path, "-d")):
            for folder in entry.split(":"):
                assert folder.startswith(("/", "$ORIGIN")), f"{path}: {entry}"


def no_shell_is_linked():
    for path in built():
        symbols = readelf(path, "--dyn-syms")
        for name in ("system", "popen", "execlp", "execvp", "execvpe", "execl", "posix_spawnp", "wordexp", "gets", "mktemp", "tmpnam"):
            assert not re.search(rf"UND {name}(@|\s|$)", symbols, re.M), f"{path} calls {name}"


def no_shell_is_in_the_source():
    """Nor a program by its name alone, which the folder could hold. tool_call.c compares what agents want to run with names of shells."""
    bad = re.compile(r'\b(system|popen|wordexp|execlp|execvpe?|posix_spawnp)\s*\(|"sh"|"[^"]*/bin/(ba|da)?sh\\b')
    for top in ("src", "include", "examples"):
        for folder, _, names in os.walk(os.path.join(SOURCE, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    with open(os.path.join(folder, name)) as file:
                        for number, line in enumerate(file, 1):
                            allowed = name in ("check_rows.c", "tool_call.c") and not bad.search(line.replace('"sh"', ""))
                            assert allowed or not bad.search(line), f"{folder}/{name}:{number}: {line}"


def shells_only_read_what_they_check():
    """The rows of the checkers name two shells, because people have scripts checked: with -n and the file, and nothing else."""
    with open(os.path.join(SOURCE, "src/engine/checkers/check_rows.c")) as file:
        text = " ".join(file.read().split())
    names = re.findall(r'\.name = "((?:ba|da|z|k)?sh)"', text)
    rows = re.findall(r'\.name = "((?:ba|da|z|k)?sh)", \.file = "[^"]*", \.args = ARGS\("-n", CHECK_FILE\), \.parse', text)
    assert names and names == rows, (names, rows)
    assert not re.search(r'\.program = "[a-z]*sh"', text), "a shell under another name"


main([addresses_are_random, relocations_are_read_only, nothing_is_writable_and_executable, the_stack_is_protected, the_library_calls_are_checked,
      jumps_have_targets, no_folder_is_searched_for_libraries, no_shell_is_linked, no_shell_is_in_the_source,
      shells_only_read_what_they_check])
