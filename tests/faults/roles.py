#!/usr/bin/python3
"""Holders of a role that die: in the middle of a stream, with the hub, between two tasks. What the caller sees has no hole, and
nothing stays behind."""
import os
import random
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SOAK, Gone, Hub, Refused, main, processes_with, wait_until

# A child that speaks the planner's protocol. "count" streams; its first attempt stops in the middle and waits to be killed.
CHILD = r"""
import json, os, signal, sys
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def stream(text, size, stop):
    say(method="stream_start", params={"stream_id": "s", "task_id": str(request["id"])})
    chunks = [text[i:i + size] for i in range(0, len(text), size)]
    for n, chunk in enumerate(chunks, 1):
        say(method="stream_data", params={"stream_id": "s", "chunk": chunk, "sequence": n})
        if n == stop:
            with open(os.environ["DIED"] + ".new", "w") as file:
                file.write(str(os.getpid()))
            os.rename(os.environ["DIED"] + ".new", os.environ["DIED"])
            signal.pause()
    say(method="stream_end", params={"stream_id": "s", "total_chunks": len(chunks)})
for line in sys.stdin:
    request = json.loads(line)
    prompt = request["params"]["prompt"]
    code = prompt.upper()
    if prompt == "mute":
        signal.pause()
    if prompt == "huge":
        code = "x" * (33 << 20)
    if prompt == "count":
        first = not os.path.exists(os.environ["DIED"])
        code = "".join(f"{i} " for i in range(100))
        stream(code, 11 if first else 7, 5 if first else 0)
    say(id=request["id"], result={"status": "success", "output": {"code": code}, "metadata": {"model": sys.argv[1]}})
"""
COUNTED = "".join(f"{i} " for i in range(100))


class World:
    def __init__(self, name, **tasks):
        self.marker = f"roles-{os.getpid()}-{name}"
        self.hub = Hub()
        self.died = os.path.join(self.hub.folder, "died")
        agents = {agent: {"driver": "planner", "command": [sys.executable, "-c", CHILD, agent],
                          "env": {"WEFT_MARK": self.marker, "DIED": self.died}} for agent in ("one", "two")}
        self.hub.configure({"agents": agents, "roles": {"executor": ["one", "two"]}, "tasks": {"grace_ms": 300, **tasks}})
        self.hub.start()

    def victim(self):
        wait_until("it is in the middle", lambda: os.path.exists(self.died))
        with open(self.died) as file:
            return int(file.read())

    def nothing_left(self):
        wait_until("no process is left", lambda: not processes_with(self.marker))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hub.done()


def execute(connection, prompt, **options):
    return connection.call("execute_task", task_type="testing", prompt=prompt, context={}, options=options)


def send(connection, request_id, prompt, **options):
    connection.send({"jsonrpc": "2.0", "id": request_id, "method": "execute_task",
                     "params": {"task_type": "testing", "prompt": prompt, "context": {}, "options": options}})


def next_of_stream(connection):
    """The socket's own dialect tells more."""
    while True:
        message = connection.receive()
        if "id" in message or message["method"].startswith("stream_"):
            return message


def test_dies_in_the_middle_of_a_stream():
    with World("stream") as world:
        caller, told = world.hub.connect(), []
        send(caller, "task_001", "count", stream=True)
        while sum(len(message["params"].get("chunk", "")) for message in told) < 55:  # what was said up to there
            told.append(next_of_stream(caller))
        os.kill(world.victim(), signal.SIGKILL)
        while "id" not in told[-1]:
            told.append(next_of_stream(caller))
        methods = [message.get("method") for message in told]
        chunks = [message["params"] for message in told if message.get("method") == "stream_data"]
        assert methods[0] == "stream_start" and methods[-2] == "stream_end" and methods.count("stream_start") == 1, methods
        assert [chunk["sequence"] for chunk in chunks] == list(range(1, len(chunks) + 1)), chunks
        assert told[-2]["params"]["total_chunks"] == len(chunks), told[-2]
        assert "".join(chunk["chunk"] for chunk in chunks) == COUNTED, chunks
        result = told[-1]["result"]
        assert result["output"]["code"] == COUNTED, result
        about = caller.call("task.about", taskIds=[result["metadata"]["task_id"]])["tasks"][0]
        assert about["attempt"] == 2 and about["agent"] == result["metadata"]["model"] == "two", (about, result)
        world.nothing_left()


def test_says_nothing_and_is_ended():
    with World("mute") as world:
        try:
            execute(world.hub.connect(), "mute", timeout_ms=100)
            raise AssertionError("it was answered")
        except Refused as error:
            assert error.code == -32000 and error.reason == "executionTimeout", error
        world.nothing_left()


def test_an_answer_over_the_size_limit():
    """It is not waited for any longer, and not asked for again: the next attempt would say the same."""
    with World("huge") as world:
        try:
            execute(world.hub.connect(), "huge", timeout_ms=600000)
            raise AssertionError("33 MiB were answered")
        except Refused as error:
            assert error.reason == "unreadableAnswer" and "over the size limit" in str(error), error
        world.nothing_left()


def hub_dies(on_restart):
    with World("hub" + on_restart, on_restart=on_restart) as world:
        caller = world.hub.connect()
        send(caller, 1, "count", stream=True)
        world.victim()
        task = caller.call("task.list", limit=1)[0]["id"]
        world.hub.kill()
        world.nothing_left()
        world.hub.start()
        again = world.hub.connect()
        ended = wait_until("it ends", lambda: (lambda t: t if t["state"] in ("completed", "failed") else None)(
            again.call("task.get", taskId=task)))
        world.nothing_left()
        starts = [e["data"].get("agent") for e in world.hub.events(types=["task.started"])]
        return ended, starts


def test_hub_is_killed_and_the_task_fails():
    ended, starts = hub_dies("fail")
    assert ended["state"] == "failed" and starts == ["one"], (ended, starts)


def test_hub_is_killed_and_the_task_is_done_again():
    ended, starts = hub_dies("requeue")
    assert ended["state"] == "completed" and ended["output"] == COUNTED, ended
    assert len(starts) == 2, starts


def test_hub_is_killed_and_the_caller_comes_back():
    """By its key it finds the task that runs again, from the first byte on, whatever was said before."""
    with World("back", on_restart="requeue") as world:
        params = {"task_type": "testing", "prompt": "count", "context": {}, "options": {"stream": True},
                  "_meta": {"weft/idempotencyKey": "mine"}}
        world.hub.connect().send({"jsonrpc": "2.0", "id": 1, "method": "execute_task", "params": params})
        world.victim()
        world.hub.kill()
        world.hub.start()
        caller, told = world.hub.connect(), []
        caller.send({"jsonrpc": "2.0", "id": 2, "method": "execute_task", "params": params})
        while not told or "id" not in told[-1]:
            told.append(next_of_stream(caller))
        chunks = [message["params"]["chunk"] for message in told if message.get("method") == "stream_data"]
        assert told[-1]["result"]["output"]["code"] == COUNTED, told
        assert not chunks or "".join(chunks) == COUNTED, told  # none: it had ended before the caller was back
        assert len(world.hub.events(types=["task.queued"])) == 1
        world.nothing_left()


class Holder(threading.Thread):
    """Somebody connected who registers, works, leaves and comes back, at any moment."""

    def __init__(self, hub, seed):
        super().__init__(daemon=True)
        self.hub, self.random, self.stopping, self.wrong = hub, random.Random(seed), False, None

    def run(self):
        try:
            while not self.stopping:
                self.once()
        except Exception as error:
            self.wrong = self.wrong or error

    def once(self):
        connection = self.hub.connect()
        try:
            connection.call("role.register", role="executor", concurrency=self.random.randint(1, 3))
            for _ in range(self.random.randint(0, 5)):
                if self.stopping or not self.work(connection):
                    break
        except Gone:
            pass
        finally:
            connection.close()

    def work(self, connection):
        connection.socket.settimeout(0.2)
        try:
            request = connection.told.pop(0) if connection.told else connection.receive()
        except TimeoutError:
            return True
        finally:
            connection.socket.settimeout(30)
        if request.get("method") != "execute_task":
            return True
        dice = self.random.random()
        if dice < 0.1:
            return False  # it goes with the task
        if dice < 0.3:
            connection.call("role.unregister", role="executor")
        connection.send({"jsonrpc": "2.0", "id": request["id"],
                         "result": {"status": "success", "output": {"code": request["params"]["prompt"].upper()}}})
        return dice >= 0.3


def test_holders_come_and_go():
    with World("races", max_running=8) as world:
        holders = [Holder(world.hub, seed) for seed in range(4)]
        for holder in holders:
            holder.start()
        caller, count = world.hub.connect(), 40 * SOAK
        for n in range(count):
            send(caller, n, f"task {n}")
        answers = {}
        while len(answers) < count:
            message = next_of_stream(caller)
            assert message["id"] not in answers, message
            answers[message["id"]] = message
        for holder in holders:
            holder.stopping = True
        for holder in holders:
            holder.join(30)
            assert not holder.is_alive() and not holder.wrong, holder.wrong
        for n, answer in answers.items():
            if "result" in answer:
                assert answer["result"]["output"]["code"] == f"TASK {n}", answer
                continue
            about = caller.call("task.about", taskIds=[answer["error"]["data"]["taskId"]])["tasks"][0]
            assert about["attempt"] == 4, (answer, about)  # whoever had it left, every time
        assert sum("result" in answer for answer in answers.values()) > count // 2
        left = caller.call("role.list", role="executor")["holders"]
        assert [holder["holder"] for holder in left] == ["one", "two"], left
        world.nothing_left()


def test_files_that_nobody_told_of():
    """An agent of a command line says nothing of the files it writes: they are found by comparing."""
    script = "echo new > new.txt; echo more >> old.txt; rm gone.txt; echo done"
    with Hub() as hub:
        for name in ("old.txt", "gone.txt"):
            with open(os.path.join(hub.folder, name), "w") as file:
                file.write("was there\n")
        hub.configure({"agents": {"silent": {"driver": "cli", "command": ["/bin/sh", "-c", script]}}, "default_agent": "silent"})
        output = hub.start().connect().call("execute_task", task_type="code_generation", prompt="x")["output"]
        assert output["files_created"] == ["new.txt"] and output["files_modified"] == ["old.txt"], output
        assert hub.stop() == 0


main([test_files_that_nobody_told_of, test_dies_in_the_middle_of_a_stream, test_says_nothing_and_is_ended, test_an_answer_over_the_size_limit,
      test_hub_is_killed_and_the_task_fails,
      test_hub_is_killed_and_the_task_is_done_again, test_hub_is_killed_and_the_caller_comes_back, test_holders_come_and_go])
