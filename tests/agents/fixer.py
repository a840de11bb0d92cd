#!/usr/bin/python3
"""An agent of the cli driver that knows nothing but what it is told: it works in the C project of tests/interop/wiggum.mjs and
tests/faults/gated.py, and each of its steps needs a finding of the gate in the prompt.

    nothing                                   it looks and changes nothing
    undefined reference to `product'          it writes the function, wrongly
    product(3, 4) is 0, want 12               it writes it as it must be
    wait                                      first word: it sleeps until it is ended
"""
import os
import re
import sys
import time

prompt = sys.argv[1]
if prompt.startswith("wait"):
    time.sleep(3600)
if os.environ.get("NOTES"):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write("turn\n")
time.sleep(float(os.environ.get("FIXER_SECONDS", "0")))
missing = re.search(r"undefined reference to `(\w+)'", prompt)
wrong = re.search(r"(\w+)\(3, 4\) is \d+, want (\d+)", prompt)
if wrong:
    operator = {12: "*", 7: "+"}[int(wrong.group(2))]
    with open("work.c", "w") as file:
        file.write(f"int {wrong.group(1)}(int a, int b) {{\n    return a {operator} b;\n}}\n")
    print("made it right:", operator)
elif missing:
    with open("work.c", "w") as file:
        file.write(f"int {missing.group(1)}(int a, int b) {{\n    (void) a, (void) b;\n    return 0;\n}}\n")
    print("wrote it")
else:
    print("looked")
