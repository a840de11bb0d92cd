#!/usr/bin/python3
"""What agents, callers and repositories say does not steer a terminal, and a line of the log is one JSON object."""
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import PATIENCE, WEFT, Hub, main, wait_until

EVIL = "begin\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[8m\b\b\r\u009b31m\u202eback\u2066\x7f\x9d0;t\x9c\u200b\U000e0041end"
HARM = [b"\x1b]", b"\x1b[2J", b"\x1b[8m", b"\x07", b"\x08", b"\x7f", b"\xc2\x9b", b"\xc2\x9d", b"\xe2\x80\xae", b"\xe2\x81\xa6", b"\xf3\xa0"]

# An ACP agent that says it wherever a text can be.
AGENT = r"""
import json, sys
EVIL = json.loads(sys.argv[1])
last = 100
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(**what):
    send(method="session/update", params={"sessionId": EVIL, "update": what})
sys.stderr.write(EVIL + "\n")
for line in sys.stdin:
    message = json.loads(line)
    method, ident, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "initialize":
        send(id=ident, result={"protocolVersion": 1, "agentInfo": {"name": EVIL, "title": EVIL, "version": EVIL}, "agentCapabilities": {},
                               "authMethods": [{"id": EVIL, "name": EVIL, "description": EVIL}]})
    elif method == "session/new":
        send(id=ident, result={"sessionId": EVIL, "modes": {"currentModeId": EVIL, "availableModes": [{"id": EVIL, "name": EVIL, "description": EVIL}]}})
        update(sessionUpdate="available_commands_update", availableCommands=[{"name": EVIL, "description": EVIL}])
    elif method == "session/prompt":
        prompt = ident
        update(sessionUpdate="session_info_update", title=EVIL)
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": EVIL})
        update(sessionUpdate="agent_thought_chunk", content={"type": "text", "text": EVIL})
        update(sessionUpdate="plan", entries=[{"content": EVIL, "priority": "high", "status": "pending"}])
        update(sessionUpdate="tool_call", toolCallId=EVIL, title=EVIL, kind="edit", status="pending", locations=[{"path": "/" + EVIL}],
               content=[{"type": "diff", "path": "/" + EVIL, "oldText": EVIL, "newText": EVIL + "!"}])
        if "fail" in json.dumps(params["prompt"]):
            send(id=ident, error={"code": -32603, "message": EVIL, "data": {"x": EVIL}})
            continue
        last += 1
        send(id=last, method="session/request_permission", params={"sessionId": EVIL, "toolCall": {"toolCallId": EVIL, "title": EVIL, "kind": "edit",
             "rawInput": {"command": EVIL, EVIL: EVIL}}, "options": [{"optionId": EVIL, "name": EVIL, "kind": "allow_once"},
             {"optionId": "no", "name": EVIL, "kind": "reject_once"}]})
    elif method is None and ident == last:
        send(id=prompt, result={"stopReason": "end_turn"})
    elif ident is not None:
        send(id=ident, error={"code": -32601, "message": EVIL})
"""


def at_terminal(hub, *arguments, until=None):
    """What the program writes to a terminal until it ends, or until it has written this."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(hub.folder)
        os.execvpe(WEFT, [WEFT, *arguments], dict(hub.env, TERM="xterm"))
    seen, end, ended = b"", time.monotonic() + PATIENCE, False
    while not ended and time.monotonic() < end:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b""
        seen += data
        ended = not data or (until and until in seen)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(fd)
    assert ended, f"{arguments} goes on: {seen}"
    return seen


def harmless(what, seen, must_show=True):
    assert not must_show or b"begin" in seen, f"{what} does not show it, so nothing was proved: {seen}"
    for harm in HARM:
        assert harm not in seen, f"{what}: {harm} in {seen}"


def evil_hub():
    agent = {"driver": "acp", "command": [sys.executable, "-c", AGENT, json.dumps(EVIL)], "about": EVIL}
    rule = {"id": "rule", "description": EVIL, "trigger": {"type": "never"}, "action": {"type": "notify", "message": EVIL}}
    return Hub({"agents": {"evil": agent}, "default_agent": "evil", "automation": {"rules": [rule]}})


def what_agents_and_callers_say():
    with evil_hub() as hub:
        connection = hub.start().connect()
        session = connection.call("session.create", title=EVIL)["session"]["id"]
        task = connection.call("session.prompt", sessionId=session, prompt=EVIL)["taskId"]
        question = wait_until("it asks", lambda: connection.call("question.list")["questions"])[0]["id"]
        failed = connection.call("task.submit", prompt="fail " + EVIL)["taskId"]
        wait_until("it has failed", lambda: connection.call("task.get", taskId=failed)["state"] == "failed")
        shown = [("task", "list"), ("task", "get", task), ("task", "get", failed), ("task", "get", task, "--output"), ("session",),
                 ("session", "show", session), ("answer", "--all"), ("agents",), ("call", "task.get", f"taskId={task}"),
                 ("call", "session.get", f"sessionId={session}"), ("task", "watch", failed)]
        for arguments in shown:
            harmless(" ".join(arguments), at_terminal(hub, *arguments, until=b"your answer" if arguments[0] == "answer" else None))
        for arguments in ("events", "-v"), ("task", "watch", task), ("answer",):
            harmless(" ".join(arguments), at_terminal(hub, *arguments, until=b"your answer" if arguments[0] == "answer" else b"end"))
        for arguments in ("status",), ("automation",), ("doctor",), ("config", "show"), ("session", "show", EVIL.replace("\0", "")), ("task", "get", EVIL), \
                ("answer", EVIL), ("call", EVIL), (EVIL,), ("task", "submit", "--agent", EVIL, "x"), ("agents", "use", EVIL):
            harmless(" ".join(arguments), at_terminal(hub, *arguments), False)
        connection.call("question.answer", questionId=question, option="no")


def what_a_clone_brings():
    """"weft trust" shows it before anybody has said yes."""
    with Hub() as hub:
        with open(os.path.join(hub.home, "config.json"), "w") as file:
            json.dump({"agents": {"evil": {"driver": "cli", "command": [EVIL, EVIL]}}, "listen": ["tcp://127.0.0.1:0"],
                       "automation": {"rules": [{"id": EVIL, "trigger": {"type": "x"}, "action": {"type": "notify", "message": EVIL}}]}}, file)
        harmless("trust", at_terminal(hub, "trust", until=b"?"))
        for arguments in ("start",), ("config", "check"), ("config", "show"), ("doctor",):
            harmless(" ".join(arguments), at_terminal(hub, *arguments, until=b"?"), False)


def what_a_folder_is_called():
    """It is in what many verbs say."""
    with Hub() as outer:
        shutil.rmtree(outer.home)
        inner = types.SimpleNamespace(folder=os.path.join(outer.folder, EVIL.replace("/", " ")), env=outer.env)
        os.mkdir(inner.folder)
        try:
            for arguments in ("start",), ("status",), ("doctor",), ("trust", "--list"), ("call", "daemon.status"), ("restart",):
                harmless(" ".join(arguments), at_terminal(inner, *arguments))
            for arguments in ("config", "path"), ("config", "show"), ("logs",), ("token",):
                harmless(" ".join(arguments), at_terminal(inner, *arguments), False)
        finally:
            subprocess.run([WEFT, "stop", "--force"], cwd=inner.folder, env=inner.env, capture_output=True, timeout=PATIENCE)


def the_log_is_one_object_a_line():
    with evil_hub() as hub:
        env = dict(hub.env, WEFT_DEBUG="1")
        subprocess.run([WEFT, "start"], cwd=hub.folder, env=env, check=True, capture_output=True, timeout=PATIENCE)
        try:
            connection = hub.connect()
            connection.call("session.create", title=EVIL)
            for method in EVIL, "task.get":
                try:
                    connection.call(method, **{EVIL: EVIL})
                except Exception:
                    pass
            connection.socket.sendall(EVIL.encode() + b"\n")
            connection.call("task.submit", prompt="fail")
            wait_until("it has failed", lambda: connection.call("task.stats")["failed"])
        finally:
            subprocess.run([WEFT, "stop"], cwd=hub.folder, env=env, check=True, capture_output=True, timeout=PATIENCE)
        with open(os.path.join(hub.home, "daemon.log"), "rb") as file:
            lines = file.read().split(b"\n")
        assert lines.pop() == b"" and len(lines) > 10, lines
        for line in lines:
            assert isinstance(json.loads(line), dict), line
            harmless("the log", line, False)
            assert all(byte >= 32 for byte in line), line
        assert any(b"begin" in line for line in lines), "it is not in the log, so nothing was proved"
        harmless("logs", at_terminal(hub, "logs", "-n", "1000"))


main([what_agents_and_callers_say, what_a_clone_brings, what_a_folder_is_called, the_log_is_one_object_a_line])
