#!/usr/bin/python3
"""Every verb and every word of a verb: -h fits 80 columns and ends with 0, an unknown option with 2, without a hub with 3, and with --json
everything on standard output is JSON."""
import json
import os
import subprocess
import tempfile

WEFT = os.environ["WEFT"]
passed = failed = 0


def check(name, good, *why):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print("FAIL " + name)
        for line in why:
            print("  " + str(line)[:600])


def weft(*args, folder=None, timeout=60):
    done = subprocess.run([WEFT, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                          timeout=timeout)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def is_json(text):
    """One value, or one on each line."""
    try:
        for part in [text] if text.count("\n") <= 1 or text.startswith(("{\n", "[\n")) else text.splitlines():
            json.loads(part)
        return True
    except ValueError:
        return False


# What a word needs so that it gets as far as the hub.
ARGS = {"task submit": ["hello"], "task get": ["task-0000"], "task cancel": ["task-0000"], "task retry": ["task-0000"],
        "task discard": ["task-0000"], "session show": ["session-0000"], "session prompt": ["session-0000", "hi"],
        "session open": ["session-0000"], "session set": ["session-0000", "mode", "ask"], "session close": ["session-0000"],
        "session resume": ["session-0000"], "session delete": ["session-0000"], "approvals revoke": ["approval-0000"],
        "plan show": ["plan-0000"], "plan run": ["plan-0000"], "plan cancel": ["plan-0000"], "plan": ["a request"],
        "call": ["task.stats"], "notify": ["x"], "describe": ["task.get"], "sub": ["tasks"], "chat": ["hello"],
        "mcp tools": ["a"], "mcp call": ["a", "b"], "mcp resources": ["a"], "mcp read": ["a", "b"], "mcp prompts": ["a"],
        "mcp prompt": ["a", "b"], "agents use": ["demo"]}
# Without a hub these are answered from what is here, or start one, or are not about one.
LOCAL = {"serve", "start", "restart", "completion", "man", "version", "help", "config", "trust", "doctor", "agents", "agents list",
         "agents install", "agents logout", "bridge", "bench", "logs", "stop", "status", "token", "token list", "token add",
         "token revoke", "acp", "pair", "open", "chat", "task open", "task watch", "config show", "reload"}
# These go on until somebody ends them, or ask the network; --timeout is what is tested.
verbs = json.loads(weft("help", "--json")[1])["verbs"]
with tempfile.TemporaryDirectory() as folder:
    os.environ["XDG_STATE_HOME"] = folder + "/state"
    rows = []
    for verb in verbs:
        name = verb["name"]
        rows.append([name])
        rows += [[name, word] for word in verb.get("words", [])]
    for row in rows:
        text = " ".join(row)
        if len(row) == 1:
            rc, out, err = weft(*row, "-h", folder=folder)
            check(f"{text} -h ends with 0", rc == 0 and not err, rc, err)
            wide = [line for line in out.splitlines() if len(line) > 80 and not (line.startswith("    ") and line[4:5] != " ")]
            check(f"{text} -h fits 80 columns", not wide, *wide)
            rc, out, err = weft(*row, "--no-such-option", folder=folder)
            check(f"{text} with an unknown option ends with 2", rc == 2 and not out, rc, out, err)
            rc, out, err = weft(*row, "--json", "--no-such-option", folder=folder)
            check(f"{text}: a mistake is JSON, too", rc == 2 and is_json(out) and '"error"' in out, rc, out, err)
        if text in LOCAL or row[0] in ("config", "trust", "completion", "token", "help", "man", "hubs", "store"):
            continue
        rc, out, err = weft(*row, *ARGS.get(text, []), folder=folder)
        check(f"{text} without a hub ends with 3", rc == 3, rc, out, err)
        rc, out, err = weft(*row, "--json", *ARGS.get(text, []), folder=folder)
        check(f"{text} --json without a hub", rc == 3 and is_json(out) and json.loads(out)["error"]["exit"] == 3, rc, out, err)
    # ---- with a hub ----
    rc, out, err = weft("start", "--json", folder=folder)
    check("start --json", rc == 0 and is_json(out) and out, rc, out, err)
    try:
        weft("task", "submit", "--wait", "echo hi", folder=folder)
        for words in (["status"], ["doctor"], ["logs"], ["top", "--once"], ["config", "show"], ["config", "check"],
                      ["config", "get", "tasks.max_running"], ["config", "keys"], ["config", "schema"], ["trust", "--list"], ["token", "list"],
                      ["token", "add", "phone"], ["token", "revoke", "phone"], ["open", "--print"], ["reload"],
                      ["task", "list"], ["task", "get", "task-0000"], ["task", "stats"], ["task", "watch", "task-0000"],
                      ["task", "diff", "task-0000"], ["task", "submit", "hello"], ["task", "submit", "--wait", "echo hi"],
                      ["task", "retry", "task-0000"], ["task", "undo", "task-0000"], ["task", "cancel", "task-9999"],
                      ["chat", "echo hi"], ["plan", "list"], ["answer"], ["worktree"], ["worktree", "prune"], ["approvals"], ["session"],
                      ["session", "list"], ["session", "new"], ["session", "show", "session-0000"], ["agents"], ["mcp"], ["cost"],
                      ["automation"], ["automation", "disable"], ["events"], ["call", "task.stats"], ["call", "nonsense"],
                      ["notify", "nonsense"], ["methods"], ["describe", "task.get"], ["ping", "-c", "1"], ["version"], ["help"],
                      ["help", "call"], ["completion", "bash"], ["man", "--list"], ["man", "task"], ["help", "connection"],
                      ["build"], ["sub", "tasks", "--timeout", "2s"], ["listen", "--timeout", "1s"], ["bench", "--count", "100"],
                      ["restart"], ["stop"]):
            rc, out, err = weft(*words, "--json", folder=folder)
            check(" ".join(words) + " --json is JSON", is_json(out) if out else ( words[0] in ("listen", "notify") or words in (["config", "check"], ["token", "list"])), rc, out, err)
    finally:
        weft("stop", "--force", folder=folder)
print(f"{passed} passed, {failed} failed, 0 skipped")
raise SystemExit(failed > 0)
