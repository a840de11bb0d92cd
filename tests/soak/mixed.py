#!/usr/bin/python3
"""The real hub under everything at once, for SOAK_TIME seconds (600): tasks of every kind, cancels, questions that two people
answer at the same time, killed agents, readers that are slow, vanish and resume, strangers that talk rubbish.

In the first half the hub is killed or stopped every few seconds and started again; in the second it lives through and is
measured whenever it rests. What must hold:
  - every acknowledged task is stored once and has exactly one end, and nothing is said about it afterwards;
  - whoever resumes a subscription sees every gseq once, in order, and the same events as everybody else;
  - of two answers to a question one wins;
  - a killed hub leaves no process behind, and neither does a stopped one;
  - at rest it has the descriptors it began with, and memory grows with the tasks it keeps, not with time.

A second, shorter run keeps next to nothing: there a position may be gone, but never silently, and every task still has one end."""
import json
import os
import random
import signal
import socket
import sqlite3
import sys
import threading
import time

sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
from hub import WEFT, Gone, Hub, Refused, main, processes_with, wait_until

SOAK_TIME = float(os.environ.get("SOAK_TIME", "600"))
SEED = int(os.environ.get("SOAK_SEED", str(random.randrange(1 << 30))))
MARK = f"soak-{os.getpid()}"
SUBMITTERS, READERS, ANSWERERS = 12, 6, 2
LIFE = (3, 12)         # seconds between two ends of the hub, in the first half
STRETCH = 20           # seconds of work between two rests, in the second
TASK_BYTES = 24 * 1024 # of memory for a task that is kept: 16 KiB of output and itself
SPARE_BYTES = 24 << 20 # of memory beyond that: buffers, caches of the database, the allocator's holes
SANITIZED = "asan" in WEFT or "tsan" in WEFT  # they keep what is freed
ENDS = ("task.completed", "task.failed", "task.cancelled")

def cli(*command, **more):
    return {"driver": "cli", "command": list(command), **more}


AGENTS = {
    "echo": cli("/bin/echo", "{prompt}"),
    "true": cli("/bin/true"),
    "false": cli("/bin/false"),
    "sleep": cli("/bin/sleep", "0.5", prompt="stdin"),
    "long": cli("/bin/sleep", "30", prompt="stdin"),
    "talk": cli("/usr/bin/seq", "1", "3000", prompt="stdin"),
    "none": cli("weft-no-such-program"),
    "leave": cli(sys.executable, "-c", "import os, time\nif os.fork() == 0:\n os.setsid()\n time.sleep(99)"),
}
PROMPTS = ["echo hello", "lines 200", "quiet", "slow 300ms quiet", "ask", "fix it", "fail", "crash", "exit 3"]


class Broken(AssertionError):
    """Something that must hold does not."""


class World:
    """What all threads share. A thread that finds something wrong says so here, and everything ends."""

    def __init__(self, hub, keeps_all):
        self.hub, self.keeps_all = hub, keeps_all
        self.lock = threading.Lock()
        self.tasks = {}      # acknowledged: id to prompt
        self.recent = []
        self.events = {}     # gseq to what everybody must have seen there
        self.ended = {}      # task to the gseq of its end
        self.answers = {}    # question to the one whose answer was taken
        self.trouble = []
        self.over = threading.Event()
        self.work = threading.Event()
        self.work.set()
        self.counts = {}

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + n

    def broken(self, what):
        with self.lock:
            self.trouble.append(what)
        self.over.set()

    def acknowledged(self, task, prompt):
        with self.lock:
            before = self.tasks.setdefault(task, prompt)
            self.recent = (self.recent + [task])[-200:]
        if before != prompt:
            raise Broken(f"{task} is {before} and {prompt}")

    def saw(self, event):
        seen = (event["type"], event["stream"], event["seq"], json.dumps(event["data"], sort_keys=True)[:200])
        with self.lock:
            before = self.events.setdefault(event["gseq"], seen)
            task = event["data"].get("taskId")
            end = self.ended.setdefault(task, event["gseq"]) if event["type"] in ENDS else event["gseq"]
        if before != seen:
            raise Broken(f"gseq {event['gseq']} is {before} to one and {seen} to another")
        if end != event["gseq"]:
            raise Broken(f"{task} ended at gseq {end} and at {event['gseq']}")


class Worker(threading.Thread):
    """Does one thing again and again, over one connection after the other."""

    def __init__(self, world, number):
        super().__init__(daemon=True)
        self.world, self.random, self.number = world, random.Random(f"{SEED}/{type(self).__name__}/{number}"), number
        self.connection = None

    def run(self):
        while not self.world.over.is_set():
            try:
                if not self.world.work.is_set():
                    self.leave()
                    self.world.work.wait(0.2)
                    continue
                if not self.connection:
                    self.connection = self.world.hub.connect()
                    self.arrived()
                self.step()
            except (Gone, ConnectionError, FileNotFoundError):
                self.leave()
                time.sleep(0.05)
            except Exception as error:
                self.world.broken(f"{type(self).__name__} {self.number}: {type(error).__name__}: {error}")
        self.leave()

    def leave(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def arrived(self):
        pass


class Submitter(Worker):
    """Until a submission is acknowledged it is repeated with its key, over the next connection too."""

    open = None
    made = 0

    def step(self):
        if not self.open:
            self.made += 1
            agent = self.random.choice([None, None, *AGENTS])
            prompt = self.random.choice(PROMPTS) if not agent else f"{agent} {self.number}-{self.made}"
            self.open = {"prompt": prompt, "priority": self.random.randrange(3), **({"agent": agent} if agent else {}),
                         "_meta": {"weft/idempotencyKey": f"{self.number}-{self.made}"}}
        try:
            task = self.connection.call("task.submit", **self.open)["taskId"]
        except Refused as refused:
            if refused.reason not in ("queueFull", "shuttingDown"):
                raise
            self.world.count(refused.reason)
            time.sleep(0.1)
            return
        self.world.acknowledged(task, f"{self.open['prompt']} #{self.number}-{self.made}")
        self.open = None
        self.connection.told.clear()
        self.world.count("submitted")
        time.sleep(self.random.uniform(0, 0.4))


class Canceller(Worker):
    def step(self):
        time.sleep(self.random.uniform(0, 0.3))
        with self.world.lock:
            task = self.random.choice(self.world.recent) if self.world.recent else None
        try:
            if task and self.connection.call("task.cancel", taskId=task) == {"cancelled": True}:
                self.world.count("cancelled")
        except Refused as refused:
            if refused.reason not in ("taskNotCancellable", "shuttingDown"):
                raise
        self.connection.told.clear()


class Answerer(Worker):
    """Two of them ask for what is open and answer it at once."""

    def step(self):
        for question in self.connection.call("question.list", state="open")["questions"]:
            try:
                self.connection.call("question.answer", questionId=question["id"], option=question["options"][0]["id"])
            except Refused as refused:
                self.world.count(f"answer refused: {refused.reason}")
                continue
            with self.world.lock:
                before = self.world.answers.setdefault(question["id"], self.number)
            self.world.count("answered")
            if before != self.number:
                raise Broken(f"{question['id']} was answered by two")
        self.connection.told.clear()
        time.sleep(0.1)


class Reader(Worker):
    """Resumes where it was, again and again; now and then it does not read for a while."""

    at = 0
    epoch = None
    buffer = b""

    def arrived(self):
        self.buffer = b""
        self.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096 << self.random.randrange(6))
        start = self.connection.call("event.subscribe", after=self.at, **({"epoch": self.epoch} if self.epoch else {}))
        if not start["resumed"] and not self.world.keeps_all and start["reason"] == "trimmed":
            self.world.count("trimmed positions")
            self.at = 0
            start = self.connection.call("event.subscribe", after=0)
        if not start["resumed"]:
            raise Broken(f"gseq {self.at} cannot be resumed: {start}")
        self.epoch = start["epoch"]

    def step(self):
        chance = self.random.random()
        if chance < 0.0002:
            self.world.count("vanished readers")
            self.leave()
            return
        if chance < 0.0004:
            self.world.count("slow readers")
            self.world.over.wait(self.random.uniform(1, 5))
        message = self.connection.told.pop(0) if self.connection.told else self.receive()
        if message and message.get("method") == "event":
            self.take(message["params"])

    def receive(self):
        """None after a while without anything, so that whoever wants it to end is heard."""
        self.connection.socket.settimeout(1)
        try:
            return self.connection.receive()
        except TimeoutError:
            return None

    def take(self, event):
        if event["gseq"] != self.at + 1 and (self.world.keeps_all or event["gseq"] <= self.at):
            raise Broken(f"gseq {event['gseq']} after {self.at}")
        self.at = event["gseq"]
        self.world.saw(event)
        self.world.count("deliveries")


class Stranger(Worker):
    """Rubbish, halves of messages, and leaving in the middle."""

    RUBBISH = [b"\0\xff\n", b'{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":', b"null\n[]\n[1]\n", b"[" * 5000 + b"\n",
               b"Content-Length: 99999999999999\r\n\r\n", b'{"jsonrpc":"2.0","id":1,"method":"task.list"}\n' * 50, b"GET / HTTP/1.1\r\n\r\n"]

    def step(self):
        self.connection.socket.settimeout(0.2)
        try:
            self.connection.socket.sendall(self.random.choice(self.RUBBISH))
            if self.random.random() < 0.5:
                self.connection.socket.recv(4096)
        except OSError:
            pass
        self.leave()
        time.sleep(self.random.uniform(0, 0.2))


class Murderer(Worker):
    """Kills agents from outside, and sometimes their guards."""

    def step(self):
        time.sleep(self.random.uniform(0.2, 1.5))
        running = [task for task in self.connection.call("task.list", state="running", limit=100) if task.get("pid")]
        self.connection.told.clear()
        if running:
            try:
                os.kill(self.random.choice(running)["pid"], signal.SIGKILL)
                self.world.count("killed agents")
            except ProcessLookupError:
                pass


def resident(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def nobody_left(what):
    wait_until(f"no process left by {what}", lambda: not processes_with(MARK), 8)


def stop_and_start(world, dice):
    """The hub's end, one way or the other, and its next life."""
    hub = world.hub
    if dice.random() < 0.6:
        hub.kill()
        world.count("kills")
    else:
        status = hub.stop()
        world.count("stops")
        if status:
            raise Broken(f"the hub stopped with status {status}:\n{hub.said()}")
    nobody_left("the hub that ended")
    hub.start()


def lively(world, until):
    dice = random.Random(f"{SEED}/chaos")
    while time.monotonic() < until and not world.over.wait(min(dice.uniform(*LIFE), max(0, until - time.monotonic()))):
        if world.hub.process.poll() is not None:
            raise Broken(f"the hub ended by itself with status {world.hub.process.returncode}:\n{world.hub.said()}")
        stop_and_start(world, dice)


def rest(world):
    """Nobody asks for anything; wait until every task has ended, and say what the hub holds then."""
    world.work.clear()
    connection = world.hub.connect()
    answerer = Answerer(world, -1)
    answerer.connection = connection

    def idle():
        answerer.step()
        stats = connection.call("task.stats")
        if stats["queued"] + stats["running"] == 0:
            return stats
        for task in connection.call("task.list", state="running", limit=100):
            if task.get("agent") == "long":
                try:
                    connection.call("task.cancel", taskId=task["id"])
                except Refused:
                    pass
        return None
    stats = wait_until("every task ends", idle, 180)
    wait_until("only this client is left", lambda: connection.call("daemon.status")["subsystems"]["ipc"]["clients"] <= 1)
    pid = world.hub.process.pid
    measured = {"tasks": stats["total"], "rss": resident(pid), "fds": descriptors(pid)}
    connection.close()
    return measured


def steady(world, until):
    """One life with rests."""
    first = last = rest(world)
    print(f"at rest: {first}", file=sys.stderr, flush=True)
    while time.monotonic() < until and not world.over.is_set():
        world.work.set()
        world.over.wait(min(STRETCH, max(0, until - time.monotonic())))
        last = rest(world)
        print(f"at rest: {last}", file=sys.stderr, flush=True)
        if last["fds"] > first["fds"]:
            raise Broken(f"{last['fds']} descriptors at rest, {first['fds']} in the beginning")
        allowed = first["rss"] + (last["tasks"] - first["tasks"]) * TASK_BYTES + SPARE_BYTES
        if last["rss"] > allowed and not SANITIZED:
            raise Broken(f"{last['rss']} bytes at rest, {first['rss']} in the beginning, {allowed} would be fair")


def check_journal(world):
    queued, ended, at = {}, {}, 0
    for event in world.hub.events():
        assert event["gseq"] == at + 1, f"gseq {event['gseq']} after {at} in the journal"
        at = event["gseq"]
        world.saw(event)
        task = event["data"].get("taskId")
        if event["type"] == "task.queued":
            assert task not in queued, f"{task} was queued twice"
            queued[task] = event["data"]["key"].rsplit(" ", 1)[-1]  # behind whose it is
        elif event["type"] in ENDS:
            assert task not in ended, f"{task}: {event['type']} after {ended[task]}"
            ended[task] = event["type"]
        elif event["type"].startswith(("task.", "session.output", "session.update")):
            assert task not in ended, f"{task}: {event['type']} after {ended[task]}"
    for task, prompt in world.tasks.items():
        assert queued.get(task) == prompt.rsplit("#", 1)[1], f"{task} ({prompt}) was acknowledged and is {queued.get(task)}"
    assert set(queued) == set(ended), f"no end: {sorted(set(queued) - set(ended))[:10]}"
    return at


def check_tasks(world):
    """What is still known of acknowledged tasks."""
    connection, known = world.hub.connect(), 0
    for task in world.tasks:
        try:
            state = connection.call("task.get", taskId=task)["state"]
        except Refused as refused:
            assert refused.reason == "taskNotFound", refused
            continue
        assert state in ("completed", "failed", "cancelled"), f"{task} is {state}"
        known += 1
    connection.close()
    assert known, "every task is forgotten"
    return known


def check_database(world):
    connection = sqlite3.connect(os.path.join(world.hub.home, "weft.db"))
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()


def soak(seconds, keeps_all, **config):
    print(f"{seconds:.0f} s, SOAK_SEED={SEED}", file=sys.stderr, flush=True)
    config = {"agents": AGENTS, "tasks": {"max_running": 8, "max_queue": 200, "grace_ms": 500}, "limits": {"grace_ms": 1000}, **config}
    with Hub(config, env={"WEFT_MARK": MARK}) as hub:
        hub.env["XDG_STATE_HOME"] = os.path.join(hub.folder, "state")
        world = World(hub, keeps_all)
        hub.start()
        begun = time.monotonic()
        workers = [kind(world, i) for kind, n in ((Submitter, SUBMITTERS), (Reader, READERS), (Answerer, ANSWERERS), (Canceller, 2),
                                                  (Stranger, 2), (Murderer, 1)) for i in range(n)]
        for worker in workers:
            worker.start()
        try:
            lively(world, begun + seconds / 2)
            if not world.trouble:
                steady(world, begun + seconds)
        except (Gone, ConnectionError) as error:
            status = hub.process.poll() if hub.process else None
            raise Broken(f"the hub is gone ({error}), status {status}, troubles {world.trouble}:\n{hub.said()}") from error
        finally:
            world.over.set()
            for worker in workers:
                worker.join(60)
        assert not world.trouble, "\n".join(world.trouble) + "\n" + hub.said()
        rest(world)
        kept = check_journal(world) if keeps_all else check_tasks(world)
        assert hub.stop() == 0, hub.said()
        nobody_left("the hub that stopped")
        check_database(world)
        print(f"{kept} {'events' if keeps_all else 'tasks still known'}, " +
              ", ".join(f"{n} {what}" for what, n in sorted(world.counts.items())), file=sys.stderr)


def everything_at_once():
    soak(SOAK_TIME, True)


def everything_at_once_and_little_kept():
    soak(SOAK_TIME / 5, False, retention={"bytes": 1 << 20, "output_bytes": 1 << 16})


main([everything_at_once, everything_at_once_and_little_kept])
