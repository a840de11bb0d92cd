#!/usr/bin/python3
"""F12 on the real program: agents that do everything an agent should not. What comes out is valid JSON, what must end ends, and
the hub stays small."""
import json
import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SOAK, Hub, main, processes_with, wait_until

SCRIPTS = {
    "deaf": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(1000)",
    "forks": "import os, time\nprint('forked', flush=True)\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  time.sleep(1000)\n"
             " os._exit(0)\n",
    "closes": "import os, time\nprint('bye', flush=True)\nos.close(1)\nos.close(2)\ntime.sleep(1000)",
    "endless": "import sys\nfor _ in range(64 * %d):\n sys.stdout.write('x' * (1 << 20))\n" % min(16, 1 + SOAK),
    "bytes": "import sys\nsys.stdout.buffer.write(b'a\\0b\\xff\\xc3\\xa9\\xed\\xa0\\x80end\\n')",
    "split": "import sys, time\nfor b in 'Gr\\u00fc\\u00dfe \\U0001f30d\\n'.encode():\n sys.stdout.buffer.write(bytes([b]))\n"
             " sys.stdout.buffer.flush()\n time.sleep(0.002)",
    "fails": "import sys\nsys.stderr.write('boom\\n')\nsys.exit(3)",
    "crashes": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
    "talks": "for i in range(200000): print('line', i)",
}


def agents(marker):
    return {name: {"driver": "cli", "command": [sys.executable, "-c", script], "env": {"WEFT_MARK": marker}}
            for name, script in SCRIPTS.items()} | {
        "missing": {"driver": "cli", "command": ["weft-no-such-program"]},
        "mute": {"driver": "acp", "command": [sys.executable, "-c", "import time; time.sleep(1000)"],
                 "env": {"WEFT_MARK": marker}},
        "babbles": {"driver": "acp", "command": [sys.executable, "-c", "print('hello, I am no agent')"]}}


def memory_peak(hub):
    with open(f"/proc/{hub.process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024


class World:
    def __init__(self, name, **tasks):
        self.marker = f"agents-{os.getpid()}-{name}"
        self.hub = Hub({"agents": agents(self.marker), "tasks": {"grace_ms": 300, **tasks}}).start()
        self.connection = self.hub.connect()

    def submit(self, agent, **more):
        return self.connection.call("task.submit", prompt="go", agent=agent, **more)["taskId"]

    def ended(self, task):
        def look():
            found = self.connection.call("task.get", taskId=task)
            return found if found["state"] not in ("queued", "running") else None

        return wait_until(f"{task} ends", look)

    def output(self, task, part):
        wait_until(part, lambda: part in self.connection.call("task.get", taskId=task)["output"])

    def nothing_left(self):
        assert not processes_with(self.marker)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hub.done()


def one_that_ignores_sigterm_is_killed():
    with World("deaf") as world:
        task = world.submit("deaf")
        world.output(task, "deaf")
        world.connection.call("task.cancel", taskId=task)
        world.nothing_left()
        assert world.connection.call("task.get", taskId=task)["state"] == "cancelled"


def one_that_leaves_something_behind_is_cleared_up():
    with World("forks") as world:
        assert world.ended(world.submit("forks"))["state"] == "completed"
        world.nothing_left()


def one_that_closes_its_output_but_lives_is_ended():
    with World("closes") as world:
        assert "bye" in world.ended(world.submit("closes"))["output"]
        world.nothing_left()


def one_that_never_ends_its_line_is_cut():
    with World("endless") as world:
        found = world.ended(world.submit("endless"))
        assert found["state"] == "completed", found["error"]
        assert 1000 < len(found["output"]) < 1 << 20, len(found["output"])
        assert memory_peak(world.hub) < 100 * (4 if "asan" in os.environ.get("WEFT", "") else 1), memory_peak(world.hub)


def bytes_that_are_no_text_become_text():
    with World("bytes") as world:
        output = world.ended(world.submit("bytes"))["output"]
        assert output.startswith("a") and "\u00e9" in output and output.endswith("end\n") and "\0" not in output, output


def text_in_pieces_is_not_damaged():
    with World("split") as world:
        assert world.ended(world.submit("split"))["output"] == "Gr\u00fc\u00dfe \U0001f30d\n"


def failures_say_why():
    with World("fails") as world:
        found = world.ended(world.submit("fails"))
        assert found["state"] == "failed" and found["error"] == "boom\n" and found["result"] is None, found
        assert world.ended(world.submit("crashes"))["state"] == "failed"
        missing = world.ended(world.submit("missing"))
        assert missing["state"] == "failed" and "weft-no-such-program" in missing["error"], missing
        assert world.ended(world.submit("babbles"))["state"] == "failed"


def one_that_says_nothing_times_out():
    with World("mute") as world:
        found = world.ended(world.submit("mute", timeoutMs=300))
        assert found["state"] == "failed", found
        world.nothing_left()


def agents_inherit_nothing_of_ours():
    """Neither a token nor a descriptor nor the limits the daemon gave itself."""
    script = ("import json, os, resource\nmask = os.umask(0)\n"
              "print(json.dumps([sorted(os.environ), sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1], mask,"
              " resource.getrlimit(resource.RLIMIT_NOFILE)[0]]))")
    env = {"WEFT_TOKEN": "secret", "NOTIFY_SOCKET": "@nobody", "LISTEN_FDS": "1", "LISTEN_PID": "1"}
    with Hub({"agents": {"looks": {"driver": "cli", "command": [sys.executable, "-c", script]}}}, env) as hub:
        connection = hub.start().connect()
        task = connection.call("task.submit", prompt="go", agent="looks")["taskId"]
        found = wait_until("it ends", lambda: connection.call("task.get", taskId=task)["result"])
        names, descriptors, mask, limit = json.loads(found)
        assert not set(env) & set(names) and "WEFT_TASK_ID" in names, names
        assert descriptors == [0, 1, 2], descriptors
        before = os.umask(0)
        os.umask(before)
        assert mask == before and limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0], (mask, limit)


def much_output_is_all_there_in_order():
    with World("talks") as world:
        watcher = world.hub.connect()
        watcher.call("event.subscribe", types=["session.output", "task.completed"])
        task = world.submit("talks")
        text = ""
        while True:
            event = watcher.notification("event")
            if event["type"] == "task.completed":
                break
            text += event["data"]["text"]
        assert text == "".join(f"line {i}\n" for i in range(200000))
        assert world.connection.call("task.get", taskId=task)["output"] == text


def a_failing_task_is_tried_again():
    with World("retries") as world:
        task = world.submit("fails", retries=1)
        assert world.ended(task)["state"] == "failed"
        types = [e["type"] for e in world.hub.events(types=["task."]) if e["data"]["taskId"] == task]
        assert types.count("task.started") == 2 and types.count("task.retrying") == 1, types


main([one_that_ignores_sigterm_is_killed, one_that_leaves_something_behind_is_cleared_up,
      one_that_closes_its_output_but_lives_is_ended, one_that_never_ends_its_line_is_cut, bytes_that_are_no_text_become_text,
      text_in_pieces_is_not_damaged, failures_say_why, one_that_says_nothing_times_out,
      agents_inherit_nothing_of_ours, much_output_is_all_there_in_order,
      a_failing_task_is_tried_again])
