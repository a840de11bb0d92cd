#!/usr/bin/python3
"""F17 on the real program: agents that kill or stop their guard, its keeper, the daemon, or several of them, and fork away in
every manner. Nothing of them is left, and what the daemon says about their tasks is true."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, SOAK, Gone, Hub, main, wait_until

# The command line of whatever stays bears the mark: it is found there also when it has no environment.
AGENT = r"""
import os, signal, sys, time
MARK, steps = sys.argv[1], sys.argv[2].split(",")
def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])
guard = os.getppid()
keeper = parent(guard)
daemon = parent(keeper)
STAY = [sys.executable, "-c", "import time\nwhile True: time.sleep(1)", MARK]
def stay(env):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.execve(STAY[0], STAY, env)
def forked(act):
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        act(done)
        os._exit(0)
    os.close(done)
    os.read(ready, 1)  # the end: everybody who holds the other end has become something else
    os.close(ready)
def orphan(env):
    def act(done):
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.set_inheritable(done, False)
            stay(env)
    forked(act)
def stop_for_ever(pids):
    def act(done):
        os.setsid()
        os.close(done)
        sys.argv[2] = ""
        while True:
            for pid in pids:
                try: os.kill(pid, signal.SIGSTOP)
                except OSError: pass
    forked(act)
def bomb():
    for i in range(20):
        forked(lambda done: (os.setsid() if i % 3 else None, os.fork() if i % 2 else None, stay(os.environ)))
def stopped():
    orphan(os.environ)
    forked(lambda done: (os.setsid(), os.close(done), os.kill(os.getpid(), signal.SIGSTOP)))
def send(number, *pids):
    for pid in pids:
        try: os.kill(pid, number)
        except ProcessLookupError: pass
DO = {
    "orphan": lambda: orphan(dict(os.environ)), "nameless": lambda: orphan({}), "bomb": bomb, "stopped": stopped,
    "deaf": lambda: [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGHUP)],
    "kill-guard": lambda: send(signal.SIGKILL, guard), "kill-keeper": lambda: send(signal.SIGKILL, keeper),
    "kill-both": lambda: send(signal.SIGKILL, guard, keeper), "kill-both-down": lambda: send(signal.SIGKILL, keeper, guard),
    "kill-group": lambda: os.killpg(os.getpgid(guard), signal.SIGKILL),
    "kill-daemon": lambda: send(signal.SIGKILL, daemon),
    "guard-daemon": lambda: send(signal.SIGKILL, guard, daemon),
    "keeper-daemon": lambda: send(signal.SIGKILL, keeper, daemon),
    "daemon-guard": lambda: send(signal.SIGKILL, daemon, guard),
    "everybody": lambda: send(signal.SIGKILL, guard, keeper, daemon),
    "stop-guard": lambda: send(signal.SIGSTOP, guard), "stop-keeper": lambda: send(signal.SIGSTOP, keeper),
    "stop-both": lambda: send(signal.SIGSTOP, keeper, guard),
    "stop-keeper-kill-guard": lambda: (send(signal.SIGSTOP, keeper), send(signal.SIGKILL, guard)),
    "stop-guard-kill-keeper": lambda: (send(signal.SIGSTOP, guard), send(signal.SIGKILL, keeper)),
    "term-both": lambda: send(signal.SIGTERM, keeper, guard),
    "stop-for-ever": lambda: stop_for_ever([keeper, guard]),
    "away": lambda: (forked(lambda done: (os.setsid(), act_away(done)))),
    "say": lambda: print("ready", flush=True),
}
def act_away(done):  # the program itself dies with the guard; this one acts after it has gone
    os.close(done)
    for step in steps[steps.index("away") + 1:]:
        DO[step]()
    stay(dict(os.environ))
for step in steps:
    if step == "linger":
        while True: time.sleep(1)
    if step == "exit":
        os._exit(0)
    DO[step]()
    if step == "away":
        while True: time.sleep(1)
"""


def marked(mark):
    """Living processes with this among their arguments."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                has = mark.encode() in file.read().split(b"\0")
            with open(f"/proc/{name}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if has and state not in "ZX":
            found.append(int(name))
    return found


class World:
    count = 0

    def __init__(self, **config):
        World.count += 1
        self.mark = f"escapes-{os.getpid()}-{World.count}"
        self.hub = Hub({"agents": {"wild": {"driver": "cli",
                                            "command": [sys.executable, "-c", AGENT, self.mark, "{prompt}"]}},
                        "default_agent": "wild", "tasks": {"grace_ms": 300, "max_running": 8}, **config})

    def __enter__(self):
        self.connection = self.hub.start().connect()
        return self

    def __exit__(self, *_):
        self.hub.done()
        for pid in marked(self.mark):
            os.kill(pid, signal.SIGKILL)

    def submit(self, steps):
        return self.connection.call("task.submit", prompt=steps)["taskId"]

    def get(self, task):
        return self.connection.call("task.get", taskId=task)

    def ended(self, task):
        return wait_until("the task has ended", lambda: (lambda t: t["state"] != "running" and t["completedAt"] and t)(
            self.get(task)))

    def ready(self, task):
        return wait_until("it has done it", lambda: "ready" in self.get(task)["output"])

    def until_killed(self, steps):
        """The daemon is killed by its agent, which may be ended before it gets there: then again."""
        process = self.hub.process
        for _ in range(50):
            task = self.submit(steps)
            if wait_until("the daemon or the task has ended", lambda: self.how_it_ended(task)) == "daemon":
                break
            self.nothing_left(steps)
        assert process.wait(PATIENCE) == -signal.SIGKILL
        self.hub.process = None

    def how_it_ended(self, task):
        try:
            return "task" if self.get(task)["completedAt"] else None
        except Gone:
            return "daemon"

    def nothing_left(self, what):
        wait_until(f"nothing of it is left ({what}): {marked(self.mark)}", lambda: not marked(self.mark))


LOSE_GUARD = ["kill-guard", "kill-keeper", "kill-both", "kill-both-down", "kill-group", "stop-keeper-kill-guard",
              "stop-guard-kill-keeper"]
FORK = ["orphan", "nameless", "orphan,nameless,stopped", "bomb", "deaf,orphan"]


def an_agent_that_kills_its_guard_is_ended():
    """Its task has failed when nothing of it is left, and not before."""
    with World() as world:
        for _ in range(SOAK):
            for fork in FORK:
                for lose in LOSE_GUARD if fork != "bomb" else ["kill-both"]:
                    for how in (f"{fork},{lose},linger", f"{fork},away,{lose}"):
                        found = world.ended(world.submit(how))
                        left = marked(world.mark)
                        assert not left, f"{how}: it is said to have ended, but {left} run"
                        assert found["state"] == "failed", (how, found)
        assert world.hub.stop() == 0, world.hub.said()


def many_at_once():
    with World() as world:
        tasks = [world.submit(f"{fork},{lose},linger") for fork in FORK[:3] for lose in LOSE_GUARD]
        for task in tasks:
            assert world.ended(task)["state"] == "failed"
        world.nothing_left("many")


def a_quiet_neighbour_is_left_alone():
    with World() as world:
        quiet = world.submit("orphan,say,linger")
        world.ready(quiet)
        mine = marked(world.mark)
        for lose in LOSE_GUARD:
            world.ended(world.submit(f"orphan,away,{lose}"))
        assert world.get(quiet)["state"] == "running" and sorted(mine) == sorted(marked(world.mark))
        world.connection.call("task.cancel", taskId=quiet)
        world.nothing_left("the neighbour")


def a_stopped_guard_goes_on():
    """It is noticed at once: the end of its task is told, a cancel ends it."""
    with World() as world:
        for stop in ("stop-guard", "stop-keeper", "stop-both", "term-both"):
            assert world.ended(world.submit(f"{stop},exit"))["state"] == "completed", stop
            task = world.submit(f"orphan,{stop},say,linger")
            world.ready(task)
            assert world.connection.call("task.cancel", taskId=task) == {"cancelled": True}
            assert not marked(world.mark), stop


def one_that_stops_its_guard_for_ever_is_ended():
    with World() as world:
        for _ in range(3):
            world.ended(world.submit("orphan,stop-for-ever,linger"))
            world.nothing_left("stopped for ever")


def killed_with_the_daemon_nothing_is_left():
    """Without any restart: one of the three that watch is still there, or two."""
    for kill in ("kill-daemon", "guard-daemon", "keeper-daemon", "daemon-guard"):
        for fork in FORK[:3]:
            with World() as world:
                world.until_killed(f"{fork},away,{kill}")
                world.nothing_left(f"{fork} {kill}")


def what_survives_everybody_ends_at_the_next_start():
    with World() as world:
        world.until_killed("orphan,away,everybody")
        assert marked(world.mark), "the test means to leave something behind"
        world.hub.start()
        assert not marked(world.mark)
        assert "of an earlier hub's agents still ran; killed" in world.hub.said(), world.hub.said()


def a_daemon_that_stops_leaves_nothing():
    """Also when the guards are killed while it does."""
    for how in ("orphan,kill-guard,linger", "orphan,say,linger", "bomb,say,linger"):
        with World(limits={"grace_ms": 2000}) as world:
            task = world.submit(how)
            if "say" in how:
                world.ready(task)
            world.hub.process.send_signal(signal.SIGTERM)
            world.hub.process.send_signal(signal.SIGTERM)
            assert world.hub.process.wait(PATIENCE) == 0, world.hub.said()
            world.hub.process = None
            assert not marked(world.mark), how


def a_stop_takes_no_longer_than_it_may():
    """limits.grace_ms is the time for all of it, with agents that do not listen and whose grace time is longer."""
    with World(limits={"grace_ms": 3000}, tasks={"grace_ms": 60000}) as world:
        tasks = [world.submit("deaf,orphan,say,linger") for _ in range(2)]
        for task in tasks:
            world.ready(task)
        since = time.monotonic()
        assert world.hub.stop() == 0
        took = time.monotonic() - since
        assert took < 60, f"{took} s: the agents' own grace time was waited for"
        world.nothing_left("stopped")
        connection = world.hub.start().connect()
        for task in tasks:
            assert connection.call("task.get", taskId=task)["state"] == "failed"


main([an_agent_that_kills_its_guard_is_ended, many_at_once, a_quiet_neighbour_is_left_alone, a_stopped_guard_goes_on,
      one_that_stops_its_guard_for_ever_is_ended, killed_with_the_daemon_nothing_is_left,
      what_survives_everybody_ends_at_the_next_start, a_daemon_that_stops_leaves_nothing,
      a_stop_takes_no_longer_than_it_may])
