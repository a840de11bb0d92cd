#!/usr/bin/python3
"""Hostile ACP agents by the hundred on the real hub: each sends what a generator makes up, in any order and at any length. The hub
lives, every task ends exactly once and in words, no question stays open, and the next proper agent works."""
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SOAK, Hub, main, wait_until

AGENTS = 100 * SOAK

# argv[1] seeds everything. It hears the hub, so that it can answer the right ids, and may say anything instead.
AGENT = r"""
import json, os, random, select, sys
r = random.Random(int(sys.argv[1]))
out = sys.stdout.buffer
def put(data):
    try:
        out.write(data); out.flush()
    except OSError:
        os._exit(0)
def send(m, **how): put(json.dumps(m, **how).encode("utf8", "surrogatepass").replace(b"\xed", b"\xff") + b"\n")
TEXTS = ["", "x", "\u0000", "ls\u0000rm", "a\nb\r\t", "\u202e\u2066", "\u200b" * 50, "\x1b[2J", "y" * 5000, "z" * 20000, "\\u000a", "\ud800", None, 7, [], {}]
KINDS = ["allow_once", "allow_always", "reject_once", "reject_always", "", "maybe", "ALLOW", None, 3, "allow_once\n"]
def text(): return r.choice(TEXTS)
def option(): return r.choice([{"optionId": r.choice(["a", "b", "allow", "deny", text()]), "name": text(), "kind": r.choice(KINDS)}, text()])
def ask(): return {"jsonrpc": "2.0", "id": r.choice([0, 1, 2, 3, "x", 1.5, None, r.randrange(10**6)]), "method": "session/request_permission",
    "params": {"sessionId": r.choice(["s", "t", text()]), "toolCall": r.choice([{"toolCallId": "t", "title": text(), "rawInput": text(),
    "content": [{"type": "diff", "path": text(), "oldText": text(), "newText": text()}]}, text()]), "options": [option() for _ in range(r.choice([0, 1, 2, 4, 40]))]}}
def update(): return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate":
    r.choice(["agent_message_chunk", "tool_call", "tool_call_update", "plan", "agent_thought_chunk", text()]), "title": text(), "status": text(),
    "content": r.choice([{"type": "text", "text": text()}, text()]), "entries": r.choice([[{"content": text(), "status": text()}], text()])}}}
def stop(): return r.choice(["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", text(), "q" * 9000])
last = 1
def answer(): return {"jsonrpc": "2.0", "id": r.choice([last, last, last, 99, None, str(last)]), r.choice(["result", "result", "error"]):
    r.choice([{"protocolVersion": 1, "sessionId": "s", "stopReason": stop()}, {"code": r.choice([-32000, -32603, 1, text()]), "message": text(), "data": text()}, text()])}
def strange():
    kind = r.randrange(9)
    if kind == 0: put(bytes(r.randrange(256) for _ in range(r.randrange(200))) + b"\n")
    elif kind == 1: send([answer(), ask()][:r.randrange(3)])
    elif kind == 2: send(r.choice([None, 1, [], {}, "x"]))
    elif kind == 3: put(b"{" * r.randrange(3000) + b"\n")
    elif kind == 4: m = ask(); m.pop("id"); send(m)
    elif kind == 5: send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": r.choice([0, 1, "x", None])}})
    elif kind == 6: send({"jsonrpc": "2.0", "id": 5, "method": r.choice(["fs/read_text_file", "terminal/create", "initialize", ""]), "params": text()})
    elif kind == 7: sys.stderr.write(r.choice(["noise\n", "no end", "\x1b[31m\n"])); sys.stderr.flush()
    else: put(b"Content-Length: 5\r\n\r\nhello\n")
proper = r.random() < 0.8  # most get as far as their turn
while True:
    if select.select([sys.stdin], [], [], 0.02 * r.random())[0]:
        line = sys.stdin.readline()
        if not line: os._exit(r.choice([0, 0, 1]))
        m = json.loads(line)
        if "method" in m and "id" in m:
            last = m["id"]
            if proper and m["method"] != "session/prompt": send({"jsonrpc": "2.0", "id": last, "result": {"protocolVersion": 1, "sessionId": "s"}})
        continue
    pick = r.random()
    if pick < 0.35: send(ask())
    elif pick < 0.65: send(update())
    elif pick < 0.75: send(answer())
    elif pick < 0.98: strange()
    elif pick < 0.985: os.kill(os.getpid(), 9)
    elif pick < 0.99: out.close()
    else: os._exit(r.choice([0, 3]))
"""

PROPER = r"""
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m: print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": 1, "sessionId": "s", "stopReason": "end_turn"}}), flush=True)
"""


def answer_all(connection, dice):
    """People press buttons meanwhile."""
    for question in connection.call("question.list")["questions"]:
        assert "\n" not in question["title"] and "\0" not in question["title"] and len(question["title"]) < 5000, question["title"]
        ids = [option["id"] for option in question["options"]]
        assert ids and len(ids) == len(set(ids)) and all(ids), ids
        try:
            connection.call("question.answer", questionId=question["id"], option=dice.choice(["allow", "deny", *ids]))
        except Exception as error:  # somebody was first, it is over, or it can only be allowed permanently
            assert getattr(error, "code", None) in (-32602, 404, 409), error


def hundreds_of_them():
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    dice = random.Random(seed)
    with Hub() as hub:
        for name, text in (("hostile.py", AGENT), ("proper.py", PROPER)):
            with open(os.path.join(hub.folder, name), "w") as file:
                file.write(text)
        agents = {f"h{i}": {"driver": "acp", "command": ["/usr/bin/python3", f"{hub.folder}/hostile.py", str(seed + i)],
                            "permission": ["ask", "ask", "allow", "deny"][i % 4]} for i in range(AGENTS)}
        agents["proper"] = {"driver": "acp", "command": ["/usr/bin/python3", f"{hub.folder}/proper.py"]}
        hub.configure({"agents": agents, "tasks": {"max_queue": 100000, "timeout_ms": 8000, "grace_ms": 300, "max_running": 8}})
        connection = hub.start().connect()
        tasks = [connection.call("task.submit", prompt="go", agent=f"h{i}")["taskId"] for i in range(AGENTS)]

        def over():
            answer_all(connection, dice)
            return connection.call("task.stats")["running"] + connection.call("task.stats")["queued"] == 0
        try:
            wait_until("all of them end", over, 30 + AGENTS * 3)
            for task in tasks:
                end = connection.call("task.get", taskId=task)
                assert end["state"] in ("completed", "failed"), end
                assert end["state"] == "completed" or end["error"].strip(), end
                assert len(end.get("stopReason", "")) <= 64, end
            assert connection.call("question.list")["questions"] == []
            proper = connection.call("task.submit", prompt="go", agent="proper")["taskId"]
            wait_until("a proper one works", lambda: connection.call("task.get", taskId=proper)["state"] == "completed")
        except BaseException:
            print(f"SEED={seed}")
            raise


main([hundreds_of_them])
