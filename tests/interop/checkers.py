#!/usr/bin/python3
"""validate_code with the real compilers and linters of its table, each with code that is fine, code that is not, and a rule. What
is not installed is skipped and named."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "faults"))
from hub import Hub, Skipped, main

TOOLS = os.path.join(os.environ["SOURCE"], "build", "tools")
# Of npm: not where a project has it, but linked into a folder of PATH, as "npm install --global" does.
OF_NPM = {"eslint": os.path.join(TOOLS, "eslint/node_modules/eslint/bin/eslint.js"),
          "tsc": os.path.join(TOOLS, "node_modules/typescript/bin/tsc")}
GOOD, BAD = True, False

# language, program, code, rules, what becomes of it: valid, and (rule, line) of each issue; None: a rule of the program's own
ROWS = [
    ("c", "gcc", "int main(void) { return 0; }\n", None, GOOD, []),
    ("c", "gcc", "int main(void) {\n    return x;\n}\n", None, BAD, [("syntax", 2)]),
    ("c++", "g++", "int main() {\n    return x;\n}\n", None, BAD, [("syntax", 2)]),
    ("c", "gcc", '#line 5 "parser.y"\nint f(void) { return x; }\n', None, BAD, [("syntax", 0)]),
    ("c", "gcc", '#line 5 "parser.y"\nint f(void) { int x; return 0; }\n', ["unused-variable"], BAD, [("unused-variable", 0)]),
    ("c", "gcc", '#include <stdio.h>\nint main(void) {\n    printf("%d\\n", "x");\n}\n', ["format"], BAD, [("format", 3)]),
    ("c++", "g++", "#include <vector>\nstd::vector<int &> v;\n", None, BAD, [("syntax", 2)]),
    ("c++", "g++", "#include <memory>\nstruct A { A(int); };\nauto p = std::make_unique<A>();\n", None, BAD, [("syntax", 3)]),
    ("python", "python3", "def f(:\n    pass\n", None, BAD, [("SyntaxError", 1)]),
    ("python", "pyflakes3", "x = 1\n", None, GOOD, []),
    ("python", "pyflakes3", "import os\nx = 1\n", None, GOOD, [(None, 1)]),
    ("javascript", "node", "let x = ;\n", None, BAD, [("syntax", 1)]),
    ("javascript", "eslint", "console.log(1);\n", None, GOOD, []),
    ("javascript", "eslint", "var unused = 1;\n", None, GOOD, [("no-unused-vars", 1)]),
    ("javascript", "eslint", "let a = 1;\nconsole.log(a);\n", ["no-console"], BAD, [("no-console", 2)]),
    ("javascript", "eslint", "import a from 'b';\nlet q = a;\n", None, GOOD, [("no-unused-vars", 2)]),
    ("javascript", "eslint", "/* eslint no-console: 0 */\nconsole.log(1);\n", ["no-console"], BAD, [("no-console", 2)]),
    ("typescript", "tsc", "export const x: number = 1;\n", None, GOOD, []),
    ("typescript", "tsc", "export const y = 1;\nexport const x: number = 'a';\n", None, BAD, [("TS2322", 2)]),
    ("sh", "sh", "if true\n", None, BAD, [("syntax", None)]),
    ("bash", "shellcheck", "x='a b'\necho $x\n", None, GOOD, [("SC2086", 2)]),
    ("json", "weft", '{"a": [1,]}', None, BAD, [("syntax", 1)]),
    ("yaml", "yamllint", "---\na: 1\n", None, GOOD, []),
    ("yaml", "yamllint", "a: 1", None, GOOD, []),
    ("yaml", "yamllint", "a: 1 \r\n", None, GOOD, [("new-lines", 1)]),
    ("yaml", "yamllint", "---\na: 1\na: 2\n", None, BAD, [("key-duplicates", 3)]),
    ("yaml", "yamllint", "---\na: [1\n", None, BAD, [("syntax", None)]),
]


def is_new(program):
    """Of eslint: the one that Debian 12 installs with npm knows none of our options, and is passed over."""
    version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    return int(version.strip().lstrip("v").split(".")[0] or 0) >= 9


def is_there(program, folder):
    found = program == "weft" or shutil.which(program, path="/usr/local/bin:/usr/bin:/bin:" + folder)
    return bool(found) and (program != "eslint" or is_new(found))


def check_row(caller, row):
    language, program, code, rules, valid, issues = row
    answer = caller.call("validate_code", language=language, code=code, **({"rules": rules} if rules else {}))
    assert program in answer["checkers"], (row, answer)
    assert answer["valid"] == valid and not answer["unsupported_rules"], (row, answer)
    found = [(issue["rule"], issue["line"]) for issue in answer["issues"]]
    assert len(found) >= len(issues) and bool(found) == bool(issues), (row, answer)
    for (rule, line), (is_rule, is_line) in zip(issues, found):
        assert rule in (None, is_rule) and line in (None, is_line), (row, answer)


def the_real_programs():
    with Hub() as hub:
        tools = os.path.join(os.path.dirname(hub.folder), os.path.basename(hub.folder) + "-bin")
        os.mkdir(tools)
        try:
            for name, program in OF_NPM.items():
                if os.path.exists(program):
                    os.chmod(program, 0o755)
                    os.symlink(program, os.path.join(tools, name))
            hub.env["PATH"] = tools + ":" + os.environ["PATH"]
            caller = hub.start().connect()
            missing = set()
            for row in ROWS:
                if is_there(row[1], tools):
                    check_row(caller, row)
                else:
                    missing.add(row[1])
            for program in sorted(missing):
                print(f"skip the_real_programs: {program} is not installed")
        finally:
            shutil.rmtree(tools)


def an_eslint_that_is_too_old():
    """The real one where Debian's is installed, else what that one says."""
    with Hub() as hub:
        tools = os.path.join(os.path.dirname(hub.folder), os.path.basename(hub.folder) + "-bin")
        os.mkdir(tools)
        try:
            old = os.path.join(tools, "eslint")
            with open(old, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho \"Invalid option '--config-lookup' - perhaps you meant '--config'?\" >&2\nexit 2\n")
            os.chmod(old, 0o755)
            first = shutil.which("eslint", path="/usr/local/bin:/usr/bin:/bin:" + tools)
            if first != old and is_new(first):
                raise Skipped("a newer eslint is installed")
            hub.env["PATH"] = tools + ":" + os.environ["PATH"]
            caller = hub.start().connect()
            for code, valid in (("let x = 1;\n", GOOD), ("let x = ;\n", BAD)):
                answer = caller.call("validate_code", language="javascript", code=code)
                assert answer["valid"] == valid and answer["checkers"] == ["node"], answer
        finally:
            shutil.rmtree(tools)


main([the_real_programs, an_eslint_that_is_too_old])
