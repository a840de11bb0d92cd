#!/usr/bin/python3
"""Gated tasks on the real program: kill -9 in the middle of iterations and gates, again and again. The task goes on where it
was, every iteration is one task of the queue, and it ends once. Agents and gates are real programs."""
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SOAK, Hub, Refused, main, wait_until

KILLS = 10
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# It takes a while, notes that it began, and passes when the agent has worked often enough.
GATE = """
import os, sys, time
with open(os.environ["NOTES"], "a") as notes:
    notes.write("gate\\n")
time.sleep(0.05)
try:
    done = int(open("count").read())
except (OSError, ValueError):
    done = 0
if done < 4:
    print(f"count:1:1: error: is {done}, want 4")
    sys.exit(1)
"""
# It does one step more than the findings say.
AGENT = """
import os, re, sys, time
time.sleep(float(os.environ.get("TURN_SECONDS", "0.05")))
found = re.search(r"is (\\d+), want", sys.argv[1])
with open("count", "w") as file:
    file.write(str(int(found.group(1)) + 1 if found else 1))
"""


def config_with_gates(on_restart):
    return {"agents": {"counter": {"driver": "cli", "command": [sys.executable, "-c", AGENT, "{prompt}"]}},
            "default_agent": "counter",
            "tasks": {"on_restart": on_restart, "gates": {"count": [sys.executable, "-c", GATE]}}}


def hub_with_gates(on_restart):
    hub = Hub(config_with_gates(on_restart))
    hub.env["NOTES"] = os.path.join(hub.folder, "notes")
    return hub


def gated(hub, task):
    connection = hub.connect()
    try:
        return connection.call("gated.get", taskId=task)["task"]
    finally:
        connection.close()


def check_journal(hub, task):
    """Every iteration is one task, each is told what the gate found before it, and the end comes once."""
    keys, found, ends = {}, {}, 0
    for event in hub.events(types=["task.queued", "gated."]):
        data = event["data"]
        if event["type"] == "task.queued" and data["metadata"].get("gatedId") == task:
            iteration = data["metadata"]["iteration"]
            assert iteration not in keys, f"iteration {iteration} is there twice: {keys[iteration]} and {data['taskId']}"
            keys[iteration] = data["taskId"]
            if iteration > 1:
                assert found[iteration - 1] in data["prompt"], (found[iteration - 1], data["prompt"])
        elif data.get("gatedId") == task and event["type"] == "gated.gate":
            found[data["iteration"]] = "" if data["passed"] else data["diagnostics"][0]["message"]
        ends += event["type"] == "gated.finished" and data["gatedId"] == task
    assert ends == 1, ends
    return keys


def killed_in_the_middle():
    with hub_with_gates("requeue") as hub:
        connection = hub.start().connect()
        task = connection.call("sendTask", prompt="count up", gates=["count"], maxIterations=20)["taskId"]
        for _ in range(KILLS * SOAK):
            time.sleep(random.uniform(0.0, 0.15))
            hub.kill()
            hub.start()
            if gated(hub, task)["state"] != "running":
                break
        wait_until("the task ends", lambda: gated(hub, task)["state"] != "running")
        is_now = gated(hub, task)
        assert is_now["state"] == "completed", is_now
        keys = check_journal(hub, task)
        assert sorted(keys) == list(range(1, is_now["iteration"] + 1)) and len(keys) >= 2, (keys, is_now)


def killed_in_an_iteration_that_must_not_begin_again():
    """With on_restart "fail" the iteration's task fails, and so does the gated task, with that reason."""
    with hub_with_gates("fail") as hub:
        hub.env["TURN_SECONDS"] = "1000"
        connection = hub.start().connect()
        task = connection.call("sendTask", prompt="count up", gates=["count"])["taskId"]
        wait_until("its agent works", lambda: any(
            event["type"] == "task.process" for event in hub.events(types=["task.process"])))
        hub.kill()
        hub.start()
        wait_until("the task ends", lambda: gated(hub, task)["state"] != "running")
        is_now = gated(hub, task)
        assert is_now["state"] == "failed" and "daemon" in is_now["error"].lower(), is_now
        check_journal(hub, task)


def killed_before_it_is_acknowledged():
    """Whatever was stored of it, it is there whole or not at all, and its id is not used again."""
    with hub_with_gates("requeue") as hub:
        seen = set()
        for _ in range(6 * SOAK):
            connection = hub.start().connect()
            connection.send({"jsonrpc": "2.0", "id": 1, "method": "sendTask",
                             "params": {"prompt": "count up", "gates": ["count"], "maxIterations": 20}})
            time.sleep(random.uniform(0.0, 0.02))
            hub.kill()
        hub.start()
        connection = hub.connect()
        for one in connection.call("gated.list")["tasks"]:
            assert one["taskId"] not in seen, one
            seen.add(one["taskId"])
            assert one["prompt"] == "count up" and one["gates"] == ["count"], one
        wait_until("all have ended", lambda: all(
            one["state"] == "completed" for one in hub.connect().call("gated.list")["tasks"]), timeout=120)


def sent_again_with_its_key_after_a_kill():
    """Whoever did not hear the answer sends it again, to the next daemon: that is the same task."""
    with hub_with_gates("requeue") as hub:
        again = {"prompt": "count up", "gates": ["count"], "_meta": {"weft/idempotencyKey": "once"}}
        first = hub.start().connect().call("sendTask", **again)["taskId"]
        hub.kill()
        connection = hub.start().connect()
        assert connection.call("sendTask", **again)["taskId"] == first
        assert connection.call("sendTask", **again)["taskId"] == first
        hub.kill()
        connection = hub.start().connect()
        assert connection.call("sendTask", **again)["taskId"] == first
        try:
            connection.call("sendTask", **{**again, "prompt": "count down"})
            raise AssertionError("a key stands for one task")
        except Refused as error:
            assert error.reason == "idempotencyKeyReused", error.args
        assert len(connection.call("gated.list")["tasks"]) == 1
        assert connection.call("sendTask", prompt="count up", gates=["count"])["taskId"] != first


def it_failed_before_its_first_iteration():
    """Its agent is not configured any more when its turn comes. It has no task that could be looked at, so it is marked itself."""
    with hub_with_gates("requeue") as hub:
        config = config_with_gates("requeue")
        config["tasks"].update({"max_running": 1, "max_queue": 1})
        config["agents"]["sleeper"] = {"driver": "cli", "command": ["sleep", "1000"]}
        hub.configure(config)
        connection = hub.start().connect()
        for _ in range(2):
            connection.call("task.submit", prompt="the queue is full", agent="sleeper")
        task = connection.call("sendTask", prompt="count up", gates=["count"], agent="counter")["taskId"]
        hub.kill()
        del config["agents"]["counter"]
        config["default_agent"] = "sleeper"
        hub.configure(config)
        connection = hub.start().connect()
        for one in connection.call("task.list"):
            connection.call("task.cancel", taskId=one["id"])
        wait_until("it has failed", lambda: gated(hub, task)["state"] == "failed")
        is_now = gated(hub, task)
        assert is_now["reason"] == "notQueued" and "sessionId" not in is_now and "seen" not in is_now, is_now
        assert connection.call("task.seen", taskIds=[task])["seen"] == 1
        assert connection.call("task.seen", taskIds=[task])["seen"] == 0
        assert connection.call("gated.list")["tasks"][0]["seen"] is True
        hub.kill()
        hub.start()
        assert gated(hub, task)["seen"] is True


def a_build_that_nobody_saw_the_end_of():
    with Hub({"build": {"command": ["sleep", "1000"]}}) as hub:
        connection = hub.start().connect()
        connection.send({"jsonrpc": "2.0", "id": 1, "method": "build"})
        wait_until("it is built", lambda: hub.connect().call("build.last")["state"] == "running")
        hub.kill()
        hub.start()
        last = hub.connect().call("build.last")
        assert last["state"] == "failed" and "daemon" in last["why"], last


if __name__ == "__main__":
    main([killed_in_the_middle, killed_in_an_iteration_that_must_not_begin_again, killed_before_it_is_acknowledged, sent_again_with_its_key_after_a_kill,
          it_failed_before_its_first_iteration,          a_build_that_nobody_saw_the_end_of])
