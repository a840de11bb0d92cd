#!/usr/bin/python3
"""What the pages say is there, and what is there is in the pages: links and anchors, the protocol reference and the rows that it is
made from, settings, methods, events, notifications and errors."""
import glob
import json
import os
import re
import subprocess

WEFT = os.environ["WEFT"]
os.chdir(os.environ["SOURCE"])
passed = failed = 0


def check(name, good, *why):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print("FAIL " + name)
        for line in why:
            print("  " + str(line))


def same(name, wanted, got):
    check(name, wanted == got, "missing: " + ", ".join(sorted(wanted - got)), "too many: " + ", ".join(sorted(got - wanted)))


def weft(*args):
    return subprocess.run([WEFT, *args], stdout=subprocess.PIPE, timeout=60, check=True).stdout.decode()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


pages = ["README.md", "CONTRIBUTING.md", "CHANGES.md"] + sorted(glob.glob("docs/*.md") + glob.glob("docs/decisions/*.md"))
texts = {page: read(page) for page in pages}
source = {path: read(path) for path in glob.glob("src/**/*.[ch]", recursive=True)}


# ---- links ----

def without_code(text):
    return re.sub(r"^(```.*?^```|    .*?)$", "", text, flags=re.S | re.M)


def anchors(text):
    seen, found = {}, set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        found.add(name if name not in seen else f"{name}-{seen[name]}")
        seen[name] = seen.get(name, 0) + 1
    return found


for page, text in texts.items():
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if re.match(r"https?:|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        check(f"{page} links to {target}", os.path.exists(path), "there is no " + path)
        if anchor and path.endswith(".md") and os.path.exists(path):
            check(f"{page} links to {target}", anchor in anchors(texts.get(path) or read(path)), "there is no such heading")

listed = set(re.findall(r"\]\(([a-z0-9-]+\.md)\)", texts["docs/README.md"])) if "docs/README.md" in texts else set()
same("docs/README.md lists every page", {os.path.basename(page) for page in glob.glob("docs/*.md")} - {"README.md"}, listed)

# ---- the reference is what the program prints ----

marker = '<!-- From here on this page is the output of "weft man --protocol". -->\n'
written, _, generated = texts["docs/protocol.md"].partition(marker)
check("docs/protocol.md is up to date", generated == weft("man", "--protocol"), "run tools/protocol.sh")
for example in re.findall(r"^```json\n(.*?)^```$", generated, re.S | re.M):
    for line in example.splitlines():
        try:
            json.loads(line)
        except ValueError as error:
            check("an example is JSON", False, line, error)
        else:
            passed += 1

# ---- rows and source ----

TYPE = r'"((?:session|task|worktree|question|approval|agent|automation|rule|doc|context|request|hub|file|cron|plan|gated|build' \
    r'|preview|mcp)\.[a-zA-Z]+|runner\.(?:joined|left|late|kept)|notice)"'
rows = set(re.findall(r'\.type = "([^"]+)"', source["src/engine/core/event_rows.c"]))
engine = "".join(text for path, text in source.items() if path.startswith("src/engine/") and not path.endswith("event_rows.c"))
used = {name for name in re.findall(TYPE, re.sub(r'#include ".*"', "", engine)) if not name.endswith(".h")}
elsewhere = engine + "".join(text for path, text in source.items() if path.startswith("src/dialect/"))
used |= {name for name in rows if f'"{name}"' in elsewhere}  # what clients say is an event, too
methods_named = set(re.findall(r"^### (\S+)$", generated, re.M))
same("event_rows.c has the types of events in the source", used - (methods_named - rows), rows)
told = set(re.findall(r'\.name = "([^"]+)"', source["src/dialect/hub/told_rows.c"]))
dialect = "".join(text for path, text in source.items() if path.startswith("src/dialect/") and not path.endswith("told_rows.c"))
sent = set(re.findall(r'(?:notify|weft__render_notify|weft__render_call|weft_shared_new|weft_call_start)\([^;]*?"([a-z_A-Z/.]+)"',
                      re.sub(r"weft_str\([^)]*\)", "", dialect)))
for name in sorted(told):
    check(f"{name} is sent somewhere", f'"{name}"' in dialect)
for name in sorted(name for name in sent if re.search(r"[a-z]", name) and len(name) > 3 and name != "session_id"):
    check(f"{name}, which is sent, is in told_rows.c", name in told or name in methods_named)
reasons = set()
for path, text in source.items():
    if path.startswith("src/app/daemon/machines/uplink"):  # what a runner answers its hub
        continue
    if path.startswith(("src/peer/", "src/dialect/", "src/net/", "src/app/daemon/", "src/app/web/")):
        reasons |= set(re.findall(r'weft__reply_error\([^;"]*"([a-z][a-zA-Z]+)"', text))
        reasons |= set(re.findall(r'weft_refuse\([^;]*"([a-z][a-zA-Z]+)"\)', text))
        reasons |= set(re.findall(r'REFUSE\([^;"]*"([a-z][a-zA-Z]+)"', text))
for reason in sorted(reasons):
    check(f"docs/protocol.md has the reason {reason}", f"`{reason}`" in texts["docs/protocol.md"] or
          re.search(rf"`-?\d+ {reason}`", generated))

# ---- what the pages name ----

keys = set(re.findall(r"^\| `([^`]+)` \|", weft("config", "keys"), re.M))
rows_there = set(re.findall(r"^\| `([^`]+)` \|", texts["docs/config.md"], re.M)) & {key for key in keys} | {
    key for key in re.findall(r"^\| `([a-z_]+(?:\.[a-z_.*]+)+)` \|", texts["docs/config.md"], re.M) if key.split(".")[0] in
    {name.split(".")[0] for name in keys}}
same("the table of docs/config.md is weft config keys", keys, rows_there)
same_keys = {key for key in keys if not re.search(rf"`{re.escape(key)}`", texts["docs/config.md"])}
check("docs/config.md has every setting", not same_keys, sorted(same_keys))
groups = {key.split(".")[0] for key in keys}
changes = set(re.findall(r'\.name = "([^"]+)"', source["src/dialect/tinyvex/tinyvex_rows.c"]))
known = keys | methods_named | rows | told | changes
prefixes = {name.split(".")[0] for name in methods_named | rows if "." in name}
FILES = r"\.(md|json|js|mjs|c|h|py|sh|ts|db|sock|log|pid|key|pem|crt|toml|yml|yaml|service|conf|lock|html|css|xml|db-wal|db-mark|d)$"
# Names of others: AIWG's settings, objects of JavaScript.
OTHERS = {"docs/aiwg.md": r"daemon\.|schedule\.|tasks\.json", "docs/weft-js.md": r"context\."}
for page, text in texts.items():
    if page == "CHANGES.md" or page.startswith("docs/decisions/") or page == "docs/architecture.md":
        continue
    for name in set(re.findall(r"`([a-z]+\.[a-zA-Z_.]+)`", text)):
        first = name.split(".")[0]
        if re.search(FILES, name) or first not in groups | prefixes or re.match(OTHERS.get(page, "$"), name):
            continue
        within = any(key.startswith(name + ".") or name.startswith(key + ".") for key in keys | methods_named)
        check(f"{page} names {name}", name in known or within, "no setting, method, event or notification")
# ---- what the pages tell people to type ----

verbs = {verb["name"]: verb["subcommands"] for verb in json.loads(weft("help", "--json"))["verbs"]}
help_of = {name: weft(name, "-h") + weft("help", "connection") for name in verbs}
for page, text in texts.items():
    if page == "CHANGES.md" or page.startswith("docs/decisions/") or page == "docs/architecture.md":
        continue
    for line in re.findall(r"^    (weft .*)$", text, re.M):
        check(f"{page}: what explains a line is a comment", not re.search(r"\S   +[^# ]", re.sub(r" # .*", "", line)), line)
    for line in re.findall(r"^    (weft .*)$|`(weft [^`]*)`", text, re.M):
        words = re.split(r" # | -- |[|>;)]", line[0] or line[1])[0].split()
        if len(words) < 2 or not re.fullmatch("[a-z]+", words[1]):
            continue
        check(f"{page} names a verb", words[1] in verbs, line)
        for word in words[2:] if words[1] in verbs else []:
            option = re.match("--[a-z][a-z-]*", word)
            check(f"{page} names an option", not option or option[0] in help_of[words[1]], word, line)
print(f"{passed} passed, {failed} failed, 0 skipped")
raise SystemExit(failed > 0)
