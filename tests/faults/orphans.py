#!/usr/bin/python3
"""F11 on the real program: killed with agents and their descendants running, nothing of them is left within 5 s, although nobody
restarts the daemon; and after a restart no task lies about its state."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import Hub, main, processes_with, wait_until

# A child, a grandchild that left the session, one that was orphaned on purpose, and all of them deaf to SIGTERM.
AGENT = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
    while True: time.sleep(1)
if os.fork() == 0:
    while True: time.sleep(1)
print("ready", flush=True)
while True: time.sleep(1)
"""


def hub_with(marker, **config):
    return Hub({"agents": {"stubborn": {"driver": "cli", "command": [sys.executable, "-c", AGENT, "{prompt}"],
                                        "env": {"WEFT_MARK": marker}}},
                "default_agent": "stubborn", **config})


def start_some(hub, marker, count):
    connection = hub.start().connect()
    tasks = [connection.call("task.submit", prompt=f"work {i}")["taskId"] for i in range(count)]
    wait_until("all are there", lambda: len(processes_with(marker)) >= 4 * count)
    return connection, tasks


def check_gone(marker):
    since = time.monotonic()
    wait_until("every descendant is gone within 5 s", lambda: not processes_with(marker), 5)
    return time.monotonic() - since


def killed_daemon_leaves_nothing():
    marker = f"orphans-{os.getpid()}-a"
    with hub_with(marker) as hub:
        _, tasks = start_some(hub, marker, 3)
        hub.kill()
        check_gone(marker)
        connection = hub.start().connect()
        for task in tasks:
            found = connection.call("task.get", taskId=task)
            assert found["state"] == "failed" and found["pid"] is None and found["completedAt"], found
        failed = [e for e in hub.events(types=["task.failed"])]
        assert [e["data"]["reason"] for e in failed] == ["daemonRestarted"] * len(tasks), failed


def killed_daemon_queues_again_when_told_to():
    marker = f"orphans-{os.getpid()}-b"
    with hub_with(marker, tasks={"on_restart": "requeue"}) as hub:
        _, tasks = start_some(hub, marker, 2)
        hub.kill()
        check_gone(marker)
        connection = hub.start().connect()
        wait_until("they run again", lambda: len(processes_with(marker)) >= 8)
        for task in tasks:
            assert connection.call("task.get", taskId=task)["state"] == "running"


def cancelled_task_leaves_nothing():
    marker = f"orphans-{os.getpid()}-c"
    with hub_with(marker, tasks={"grace_ms": 300}) as hub:
        connection, tasks = start_some(hub, marker, 1)
        assert connection.call("task.cancel", taskId=tasks[0]) == {"cancelled": True}
        assert not processes_with(marker), "it says cancelled, but something still runs"
        assert connection.call("task.get", taskId=tasks[0])["state"] == "cancelled"


def stopped_daemon_leaves_nothing():
    marker = f"orphans-{os.getpid()}-d"
    with hub_with(marker, tasks={"grace_ms": 300}, limits={"grace_ms": 1500}) as hub:
        _, tasks = start_some(hub, marker, 2)
        assert hub.stop() == 0
        assert not processes_with(marker)
        connection = hub.start().connect()
        for task in tasks:
            assert connection.call("task.get", taskId=task)["state"] == "failed"


main([killed_daemon_leaves_nothing, killed_daemon_queues_again_when_told_to, cancelled_task_leaves_nothing,
      stopped_daemon_leaves_nothing])
