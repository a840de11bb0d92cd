#!/usr/bin/python3
"""A hub is told to stop, in every phase of its life and in every way: it ends with status 0, leaves nothing running, and
starts again with every task in a state that is true."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, WEFT, Gone, Hub, main, processes_with, wait_until

AGENT = """
import sys, time
for i in range(200):
    print("x" * 1000, flush=True)
print("ready", flush=True)
time.sleep(600)
"""


def hub_with(marker, **config):
    return Hub({"agents": {"slow": {"driver": "cli", "command": [sys.executable, "-c", AGENT, "{prompt}"],
                                    "env": {"WEFT_MARK": marker}},
                           "echo": {"driver": "cli", "command": ["/bin/echo", "{prompt}"]}},
                "default_agent": "slow", **config})


def ended_well(hub, marker):
    status = hub.process.wait(PATIENCE)
    hub.process = None
    said = hub.said()
    assert status == 0, (status, said)
    assert "Sanitizer" not in said and "Assertion" not in said, said
    wait_until("nothing of its agents is left", lambda: not processes_with(marker), 10)


def is_true(connection, task):
    """It runs and has a living process, or it does not say that it runs."""
    found = connection.call("task.get", taskId=task)
    return found["state"] != "running" or (found["pid"] and os.path.exists(f"/proc/{found['pid']}"))


def states_are_true(hub):
    connection = hub.start().connect()
    for task in connection.call("task.list", limit=100):
        wait_until("what runs, runs", lambda: is_true(connection, task["id"]))
    connection.close()


def while_it_starts():
    marker = f"stops-{os.getpid()}-start"
    with hub_with(marker) as hub:
        connection = hub.start().connect()
        for i in range(30):
            connection.call("task.submit", prompt=str(i), agent="echo")
        hub.stop()
        for i in range(25):
            with open(hub.talk, "a") as talk:
                hub.process = subprocess.Popen([WEFT, "serve"], cwd=hub.folder, env=hub.env, stdin=subprocess.DEVNULL,
                                               stdout=talk, stderr=talk, start_new_session=True)
            time.sleep(i * 0.002)  # any moment: before it listens to signals, too
            hub.process.send_signal(signal.SIGTERM)
            status = hub.process.wait(PATIENCE)
            hub.process = None
            assert status in (0, -signal.SIGTERM, 128 + signal.SIGTERM), (i, status, hub.said())
        said = hub.said()
        assert "Sanitizer" not in said and "Assertion" not in said, said
        states_are_true(hub)


def while_a_task_starts():
    marker = f"stops-{os.getpid()}-task"
    with hub_with(marker) as hub:
        for i in range(6):
            connection = hub.start().connect()
            for n in range(6):
                connection.send({"jsonrpc": "2.0", "id": n, "method": "task.submit", "params": {"prompt": "x"}})
            time.sleep(i * 0.01)
            hub.process.send_signal(signal.SIGTERM)
            hub.process.send_signal(signal.SIGTERM)
            connection.close()
            ended_well(hub, marker)
        states_are_true(hub)


def second_signal(first, second):
    def test():
        marker = f"stops-{os.getpid()}-second"
        with hub_with(marker) as hub:
            connection = hub.start().connect()
            connection.call("task.submit", prompt="x")
            wait_until("it runs", lambda: processes_with(marker))
            hub.process.send_signal(first)
            wait_until("it is stopping", lambda: not os.path.exists(os.path.join(hub.home, "daemon.pid")))
            since = time.monotonic()
            hub.process.send_signal(second)
            ended_well(hub, marker)
            assert time.monotonic() - since < 8, "the second signal means now"
            states_are_true(hub)

    test.__name__ = f"{first.name} and then {second.name}"
    return test


def by_force_with_slow_subscribers():
    marker = f"stops-{os.getpid()}-force"
    with hub_with(marker) as hub:
        connection = hub.start().connect()
        connection.call("task.submit", prompt="x")
        connection.call("task.submit", prompt="y")
        wait_until("there is much to replay",
                   lambda: connection.call("task.get", taskId="task-0001").get("state") == "running")
        guests = [hub.connect() for _ in range(5)]
        for guest in guests:  # they ask for everything, and read nothing
            guest.send({"jsonrpc": "2.0", "id": 1, "method": "event.subscribe", "params": {"after": 0}})
        try:
            connection.call("daemon.stop", force=True)
        except Gone:
            pass
        ended_well(hub, marker)
        states_are_true(hub)


def guard_is_killed():
    marker = f"stops-{os.getpid()}-guard"
    with hub_with(marker) as hub:
        connection = hub.start().connect()
        task = connection.call("task.submit", prompt="x")["taskId"]
        wait_until("it runs", lambda: processes_with(marker))
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/stat") as file:
                    if name.isdigit() and file.read().rsplit(")", 1)[1].split()[1] == str(hub.process.pid):
                        os.kill(int(name), signal.SIGKILL)
            except OSError:
                continue
        wait_until("the task has ended", lambda: connection.call("task.get", taskId=task)["state"] == "failed")
        hub.process.send_signal(signal.SIGTERM)
        ended_well(hub, marker)


main([while_it_starts, while_a_task_starts, second_signal(signal.SIGTERM, signal.SIGTERM),
      second_signal(signal.SIGINT, signal.SIGINT), by_force_with_slow_subscribers, guard_is_killed])
