#!/usr/bin/python3
"""F11 and F17 for terminals that agents ask the hub for: whoever is killed or cancelled, nothing that was started in a terminal is
left, also not what left its session, was orphaned on purpose, and is deaf to signals."""
import contextlib
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import Hub, main, processes_with, wait_until

# An ACP agent that opens a terminal with its prompt as the command, and waits for its end.
AGENT = r"""
import json, sys

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

prompt = None
for line in sys.stdin:
    one = json.loads(line)
    method, params = one.get("method"), one.get("params", {})
    if method == "initialize":
        assert params["clientCapabilities"]["terminal"] is True
        send({"id": one["id"], "result": {"protocolVersion": 1}})
    elif method == "session/new":
        send({"id": one["id"], "result": {"sessionId": "s"}})
    elif method == "session/prompt":
        prompt = one["id"]
        send({"id": 1, "method": "terminal/create", "params": {"sessionId": "s", "command": "/bin/sh",
            "args": ["-c", params["prompt"][0]["text"]], "env": [{"name": "IN_TERMINAL", "value": MARK}]}})
    elif one.get("id") == 1:
        about = {"sessionId": "s", "terminalId": one["result"]["terminalId"]}
        send({"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "tool_call",
            "toolCallId": "c", "title": "t", "content": [{"type": "terminal", "terminalId": about["terminalId"]}]}}})
        send({"id": 2, "method": "terminal/wait_for_exit", "params": about})
    elif one.get("id") == 2:
        send({"id": prompt, "result": {"stopReason": "end_turn"}})
"""

# The shell, a child, one in another session, and one that was orphaned in a third; all print, all are deaf.
STUBBORN = """trap '' HUP INT TERM
deaf() { trap '' HUP INT TERM; while :; do echo still here; sleep 1; done; }
(deaf) & (setsid sh -c "trap '' HUP INT TERM; (setsid sleep 1000 &); while :; do sleep 1000; done" &)
deaf"""


def hub_with(marker, **config):
    agent = AGENT.replace("MARK", repr(marker + "-inside"))
    return Hub({"agents": {"it": {"driver": "acp", "command": [sys.executable, "-c", agent], "env": {"WEFT_MARK": marker}}},
                "default_agent": "it", **config})


def start_one(hub, marker):
    connection = hub.start().connect()
    task = connection.call("task.submit", prompt=STUBBORN)["taskId"]
    wait_until("all are there", lambda: len(processes_with(marker + "-inside")) >= 5)
    wait_until("it is shown", lambda: any(e["data"]["update"]["sessionUpdate"] == "tool_call"
                                          for e in hub.events(types=["session.update"])))
    return connection, task


def check_gone(marker, within=5):
    wait_until(f"everything is gone within {within} s", lambda: not processes_with(marker), within)


def shown(hub):
    """What the tool call says at the end."""
    content = hub.events(types=["session.update"])[-1]["data"]["update"]["content"]
    return [one["content"]["text"] for one in content if one["type"] == "content"]


def killed_daemon_leaves_nothing():
    marker = f"terminals-{os.getpid()}-a"
    with hub_with(marker) as hub:
        start_one(hub, marker)
        hub.kill()
        check_gone(marker)


def stopped_daemon_leaves_nothing():
    marker = f"terminals-{os.getpid()}-b"
    with hub_with(marker, tasks={"grace_ms": 300}, limits={"grace_ms": 1500}) as hub:
        start_one(hub, marker)
        assert hub.stop() == 0
        assert not processes_with(marker)
        hub.start()
        assert "still here" in shown(hub)[0], shown(hub)


def cancelled_task_leaves_nothing():
    marker = f"terminals-{os.getpid()}-c"
    with hub_with(marker) as hub:
        connection, task = start_one(hub, marker)
        assert connection.call("task.cancel", taskId=task) == {"cancelled": True}
        check_gone(marker)
        assert connection.call("task.get", taskId=task)["state"] == "cancelled"
        assert shown(hub)[0].endswith("ended by SIGKILL"), shown(hub)


def killed_agent_leaves_nothing():
    marker = f"terminals-{os.getpid()}-d"
    with hub_with(marker) as hub:
        connection, task = start_one(hub, marker)
        inside = set(processes_with(marker + "-inside"))
        os.kill(connection.call("task.get", taskId=task)["pid"], signal.SIGKILL)
        check_gone(marker)
        wait_until("the task has failed", lambda: connection.call("task.get", taskId=task)["state"] == "failed")
        assert inside, "there was something"
        assert "still here" in shown(hub)[0], shown(hub)


def killed_guards_leave_nothing():
    """The terminal's own guard, and whoever else watches over it, but not the daemon."""
    marker = f"terminals-{os.getpid()}-e"
    with hub_with(marker) as hub:
        connection, task = start_one(hub, marker)
        guards = guards_above(processes_with(marker + "-inside"))
        assert len(guards) == 2, guards
        for pid in guards:
            with contextlib.suppress(ProcessLookupError):  # a keeper may be gone as soon as its guard is
                os.kill(pid, signal.SIGKILL)
        check_gone(marker + "-inside")
        wait_until("the turn goes on", lambda: connection.call("task.get", taskId=task)["state"] == "completed")


def guards_above(pids):
    found = set()
    for pid in pids:
        while pid > 1:
            try:
                with open(f"/proc/{pid}/stat") as file:
                    name, rest = file.read().rsplit(")", 1)
            except OSError:
                break
            if name.endswith("(weft-guard"):
                found.add(pid)
            pid = int(rest.split()[1])
    return found


main([killed_daemon_leaves_nothing, stopped_daemon_leaves_nothing, cancelled_task_leaves_nothing, killed_agent_leaves_nothing,
      killed_guards_leave_nothing])
