#!/usr/bin/python3
"""F1 on the real program: kill -9 under 64 writers. Every task that was acknowledged is there once, no number is used twice."""
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SOAK, Gone, Hub, main

WRITERS = 64
ROUNDS = 8


class Writer(threading.Thread):
    """Submits until the hub is gone. Remembers what was acknowledged, and what may or may not have been stored."""

    def __init__(self, hub, name):
        super().__init__()
        self.hub, self.prefix = hub, name
        self.acknowledged = {}
        self.trouble = None

    def run(self):
        count = 0
        try:
            connection = self.hub.connect()
            while True:
                count += 1
                prompt = f"{self.prefix}-{count}"
                answer = connection.call("task.submit", prompt=prompt)
                assert answer["taskId"] not in self.acknowledged, answer
                self.acknowledged[answer["taskId"]] = prompt
        except (Gone, ConnectionError, FileNotFoundError):
            pass
        except Exception as error:
            self.trouble = error


def round_of_writers(hub, number):
    writers = [Writer(hub, f"r{number}w{i}") for i in range(WRITERS)]
    for writer in writers:
        writer.start()
    time.sleep(random.uniform(0.02, 0.4))
    hub.kill()
    acknowledged = {}
    for writer in writers:
        writer.join()
        if writer.trouble:
            raise writer.trouble
        for task, prompt in writer.acknowledged.items():
            assert task not in acknowledged, f"{task} was given to {prompt} and {acknowledged[task]}"
            acknowledged[task] = prompt
    return acknowledged


def check(hub, acknowledged):
    stored, last = {}, 0
    for event in hub.events(types=["task.queued"]):
        assert event["gseq"] > last, (event["gseq"], last)
        last = event["gseq"]
        task = event["data"]["taskId"]
        assert task not in stored, f"{task} is there twice"
        stored[task] = event["data"]["prompt"]
    for task, prompt in acknowledged.items():
        assert stored.get(task) == prompt, f"{task} ({prompt}) was acknowledged and is {stored.get(task)}"
    connection = hub.connect()
    assert connection.call("task.stats")["total"] == len(stored)
    connection.close()


def killed_under_writers():
    with Hub({"tasks": {"paused": True, "max_queue": 1000000}}) as hub:
        acknowledged = {}
        for number in range(ROUNDS * SOAK):
            hub.start()
            for task, prompt in round_of_writers(hub, number).items():
                assert task not in acknowledged, f"{task} is used again"
                acknowledged[task] = prompt
        assert acknowledged
        hub.start()
        check(hub, acknowledged)
        print(f"{len(acknowledged)} acknowledged tasks survived {ROUNDS * SOAK} kills", file=sys.stderr)


def a_repeat_after_the_kill_is_the_same_task():
    key = {"_meta": {"weft/idempotencyKey": "once"}}
    with Hub({"tasks": {"paused": True}}) as hub:
        connection = hub.start().connect()
        first = connection.call("task.submit", prompt="only once", **key)
        hub.kill()
        connection = hub.start().connect()
        assert connection.call("task.submit", prompt="only once", **key)["taskId"] == first["taskId"]
        assert connection.call("task.stats")["total"] == 1


if __name__ == "__main__":
    main([killed_under_writers, a_repeat_after_the_kill_is_the_same_task])
