#!/usr/bin/python3
"""A hub that runs for long: after many tasks, clients and subscribers it has no more descriptors, processes and threads than
after few, and hardly more memory than what it remembers of them."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SANITIZED, SOAK, Hub, main, wait_until

TASKS = 400 * SOAK
WINDOW = 8
# Of each task its prompt, its end, its session and what it changed are remembered, some 5 KiB in use. They lie between buffers that come
# and go. The hub gives those holes back now and then: 5 to 8 KiB a task were measured in long runs, 13 in a short one, and 27 before it did.
PER_TASK = 20 * 1024
SLACK = (4 if not SANITIZED else 256) << 20


def resources(pid):
    with open(f"/proc/{pid}/status") as file:
        status = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
    children = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as file:
                if name.isdigit() and file.read().rsplit(")", 1)[1].split()[1] == str(pid):
                    children.append(name)
        except OSError:
            continue
    return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")), "children": len(children), "threads": int(status["Threads"]),
            "memory": int(status["RssAnon"].split()[0]) * 1024}


def run_tasks(hub, connection, count):
    """A few at a time; some are cancelled, and clients come, look and go."""
    ended = under_way = 0
    for i in range(count):
        task = connection.call("task.submit", prompt=f"work {i}")["taskId"]
        under_way += 1
        if i % 17 == 0:
            try:
                connection.call("task.cancel", taskId=task)
            except Exception:
                pass  # it has ended
        if i % 10 == 0:
            guest = hub.connect()
            guest.call("event.subscribe", after=0)
            if i % 20 == 0:
                guest.call("task.list")
            guest.close()
        while under_way - ended >= WINDOW:
            ended += is_end(connection)
    while ended < under_way:
        ended += is_end(connection)


def is_end(connection):
    event = connection.notification("event")
    return event["type"] in ("task.completed", "task.failed", "task.cancelled")


def nothing_grows():
    with Hub({"agents": {"echo": {"driver": "cli", "command": ["/bin/echo", "{prompt}"]}}, "default_agent": "echo"}) as hub:
        connection = hub.start().connect()
        connection.call("event.subscribe")
        pid = hub.process.pid
        run_tasks(hub, connection, TASKS // 4)
        wait_until("nothing runs", lambda: resources(pid)["children"] == 0)
        before = resources(pid)
        run_tasks(hub, connection, TASKS)
        wait_until("nothing runs", lambda: resources(pid)["children"] == 0)
        # Clients that have gone are noticed in a moment.
        wait_until("no descriptor is left behind", lambda: resources(pid)["descriptors"] <= before["descriptors"])
        after = resources(pid)
        assert after["threads"] <= before["threads"], (before, after)
        assert after["memory"] - before["memory"] <= TASKS * PER_TASK + SLACK, (before, after)
        print(f"{TASKS} tasks: {before} then {after}")
        connection.close()
        assert hub.stop() == 0, hub.said()


main([nothing_grows])
