#!/usr/bin/python3
"""Runners: two machines, which are two folders, and between them a network that is cut. Whatever is killed or cut, what an agent
says is at the hub once, in order, and a task has one outcome. Then runners and hubs that mean no good."""
import json
import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, WEFT, Gone, Hub, Refused, main, wait_until

LINES = 400
# Says LINES numbered lines; in the middle it waits for the file "go", so that a test decides what happens meanwhile.
WRITER = ("import os, sys, time\n"
          "open('began', 'a').write('x')\n"
          "for i in range(%d):\n"
          "    print('line', i, flush=True)\n"
          "    while i == %d and not os.path.exists('go'):\n"
          "        time.sleep(0.01)\n"
          "open('ended', 'a').write('x')\n") % (LINES, LINES // 2)
TEXT = "".join(f"line {i}\n" for i in range(LINES))
# Changes a file that is there, and makes one.
EDITOR = ("open('old', 'a').write('second\\n')\n"
          "open('new', 'w').write('made\\n')\n")
# Speaks ACP: says SIZE bytes at once, asks with as many, and ends.
SIZE = 1000000
LARGE = ("import json, sys\n"
         "def say(**m):\n"
         "    print(json.dumps({'jsonrpc': '2.0', **m}), flush=True)\n"
         "large = [{'type': 'content', 'content': {'type': 'text', 'text': 'x' * %d}}]\n"
         "call = {'toolCallId': 't', 'title': 'large', 'kind': 'other', 'status': 'pending', 'content': large}\n"
         "options = [{'optionId': 'yes', 'name': 'Yes', 'kind': 'allow_once'}]\n"
         "for line in sys.stdin:\n"
         "    m = json.loads(line)\n"
         "    method, i = m.get('method'), m.get('id')\n"
         "    if method == 'initialize':\n"
         "        say(id=i, result={'protocolVersion': 1, 'agentCapabilities': {}, 'authMethods': []})\n"
         "    elif method == 'session/new':\n"
         "        say(id=i, result={'sessionId': 's'})\n"
         "    elif method == 'session/prompt':\n"
         "        turn = i\n"
         "        say(method='session/update', params={'sessionId': 's', 'update': {'sessionUpdate': 'tool_call', **call}})\n"
         "        say(id=99, method='session/request_permission', params={'sessionId': 's', 'toolCall': call, 'options': options})\n"
         "    elif i == 99:\n"
         "        say(id=turn, result={'stopReason': 'end_turn'})\n") % SIZE
AGENTS = {"agents": {"large": {"driver": "acp", "command": [sys.executable, "-c", LARGE]},
                     "editor": {"driver": "cli", "command": [sys.executable, "-c", EDITOR]},
                     "writer": {"driver": "cli", "command": [sys.executable, "-c", WRITER]},
                     "secret": {"driver": "cli", "command": [sys.executable, "-c", "open('secret', 'w')"]}},
          "default_agent": "demo"}


class Network:
    """A port that leads to another, until it is cut: then nothing arrives, and who is connected does not hear of it."""

    def __init__(self, port):
        self.to, self.cut_now, self.pairs = port, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if self.cut_now:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                near.close()
                continue
            self.pairs.append((near, far))
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()

    def carry(self, a, b):
        try:
            while data := a.recv(65536):
                while self.cut_now:
                    time.sleep(0.01)
                b.sendall(data)
        except OSError:
            pass
        self.end(a, b)

    @staticmethod
    def end(*sockets):
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.cut_now = True

    def reset(self):
        """Those who are connected are told; nobody comes through."""
        self.cut()
        pairs, self.pairs = self.pairs, []
        for pair in pairs:
            self.end(*pair)

    def heal(self):
        self.cut_now = False

    def done(self):
        self.listener.close()
        self.reset()


class Runner(Hub):
    """Another machine."""

    def __init__(self, url, *args, prefix=()):
        super().__init__(AGENTS)
        self.command = [*prefix, WEFT, "runner", url, *args]

    def start(self):
        self.stop_now()
        with open(self.talk, "a") as talk:
            self.process = subprocess.Popen(self.command, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=talk,
                                            stderr=talk, start_new_session=True, restore_signals=False)
        return self

    def has(self, name):
        return os.path.exists(os.path.join(self.folder, name))

    def make(self, name):
        open(os.path.join(self.folder, name), "w").close()

    def count(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return len(file.read())


class World:
    """A hub, a network, and machines behind it."""

    def __init__(self, names=("box",), lease_ms=60000, address=None, prefix=(), limits=None):
        """address: the hub listens there, and the runner reaches it without a network of ours."""
        self.address = address or "127.0.0.1"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.hub = Hub({"runners": {"lease_ms": lease_ms}, "tasks": {"retry_ms": 10}, "limits": limits or {}})
        self.networks = {} if address else {name: Network(self.port) for name in names}
        self.runners = {}
        self.start_hub()
        for name in names:
            token = self.token(name, "runner")
            port = self.port if address else self.networks[name].port
            self.runners[name] = Runner(f"ws://{self.address}:{port}/ws", "--token-file", token, "--label", "any", "--label",
                                        name + "-label", "--agent", "writer", "--agent", "demo", "--agent", "editor", "--agent", "large",
                                        prefix=prefix).start()
        for name in names:
            self.wait_for(name)
        self.runner, self.network = self.runners[names[0]], self.networks.get(names[0])

    def start_hub(self):
        self.hub.stop_now()
        with open(self.hub.talk, "a") as talk:
            self.hub.process = subprocess.Popen([WEFT, "serve", "--listen", f"ws://{self.address}:{self.port}/ws",
                                                 "--insecure-listen", "--allow-host", self.address],
                                                cwd=self.hub.folder, env=self.hub.env, stdin=subprocess.DEVNULL, stdout=talk,
                                                stderr=talk, start_new_session=True, restore_signals=False)
        wait_until("the hub is there", self.hub.is_ready)

    def token(self, name, scope):
        path = os.path.join(self.hub.folder, name + ".token")
        said = subprocess.run([WEFT, "token", "add", name, "--scope", scope], cwd=self.hub.folder, env=self.hub.env, check=True,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL, capture_output=True)
        with open(path, "wb") as file:
            file.write(said.stdout)
        os.chmod(path, 0o600)
        return path

    def call(self, method, **params):
        connection = self.hub.connect()
        try:
            return connection.call(method, **params)
        finally:
            connection.close()

    def is_there(self, name):
        return any(r["name"] == name and r["connected"] for r in self.call("runner.list")["runners"])

    def wait_for(self, name):
        try:
            wait_until(f"{name} is connected", lambda: self.is_there(name))
        except AssertionError as error:
            raise AssertionError(self.runners[name].said()) from error

    def submit(self, prompt="go", agent="writer", **more):
        return self.call("task.submit", prompt=prompt, agent=agent, **more)["taskId"]

    def task(self, task):
        return self.call("task.get", taskId=task)

    def about(self, task):
        return self.call("task.about", taskIds=[task])["tasks"][0]

    def wait_ended(self, task, state="completed"):
        found = wait_until(f"{task} has ended", lambda: (t := self.task(task))["state"] not in ("queued", "running") and t)
        assert found["state"] == state, (found["state"], found["error"], self.runner.said(), self.hub.said())
        return found

    def said(self, task, attempt=1):
        """What its agent said, as the journal has it."""
        events = [e["data"] for e in self.hub.events(types=["session.output"])]
        return "".join(e["text"] for e in events if e["taskId"] == task and e.get("attempt", 1) == attempt and
                       e["stream"] == "stdout")

    def of_types(self, *types):
        return [e for e in self.hub.events(types=list(types))]

    def open_question(self):
        found = self.call("question.list")["questions"]
        return found[0] if found else None

    def done(self):
        for runner in self.runners.values():
            runner.done()
        for network in self.networks.values():
            network.done()
        self.hub.done()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done()


def middle(world, runner=None):
    """The agent has said the first half, and the hub has some of it."""
    runner = runner or world.runner
    wait_until("the agent has begun", lambda: runner.has("began"))
    wait_until("the hub hears it", lambda: world.of_types("session.output"))


def check_whole(world, task):
    end = world.wait_ended(task)
    assert world.said(task) == TEXT, "what it said has a hole, or something twice"
    assert end["output"] == TEXT[-len(end["output"]):]
    kinds = [e["type"] for e in world.of_types("task.") if e["data"].get("taskId") == task]
    assert kinds.count("task.started") == 1 and kinds.count("task.completed") == 1, kinds


def places():
    with World(("box", "rig")) as world:
        for name in ("box", "rig"):
            world.runners[name].make("go")
        for where in ({"runner": "box"}, {"runner": "rig"}, {"label": "rig-label"}, {"label": "any"}):
            world.wait_ended(world.submit(**where))
        assert world.runners["box"].has("ended") and world.runners["rig"].has("ended")
        assert not os.path.exists(os.path.join(world.hub.folder, "ended")), "it ran at the hub"
        for wrong in ({"runner": "nobody"}, {"label": "nothing"}, {"runner": "box", "agent": "secret"},
                      {"runner": "box", "agent": "sh"}, {"runner": "box", "label": "rig-label"}):
            try:
                world.submit(**{"agent": "writer", **wrong})
                raise AssertionError(f"{wrong} was taken")
            except Refused as refused:
                assert refused.reason == "noRunner" and all(word in str(refused) for word in wrong.values()), refused


def waits_for_one_that_was_here():
    with World() as world:
        wait_until("it is stored that it was here", lambda: world.of_types("runner.joined"))
        world.runner.kill()
        world.hub.kill()
        world.start_hub()
        tasks = [world.submit(**where) for where in ({"runner": "box"}, {"label": "any"})]
        refused("noRunner", world.submit, label="nothing")
        for task in tasks:
            about = world.about(task)
            assert world.task(task)["state"] == "queued" and "box was not here since" in about["waits"], about
        listed = subprocess.run([WEFT, "task", "list"], cwd=world.hub.folder, env=world.hub.env, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=PATIENCE, check=True)
        assert "queued, box was not here" in listed.stdout, listed
        world.runner.make("go")
        world.runner.start()
        for task in tasks:
            world.wait_ended(task)
            assert "waits" not in world.about(task)


def asks_and_is_answered():
    with World() as world:
        task = world.submit("ask", agent="demo", runner="box")
        question = wait_until("it asks", world.open_question)
        assert question["taskId"] == task, question
        option = next(o["id"] for o in question["options"] if o["kind"] == "allow_once")
        world.call("question.answer", questionId=question["id"], option=option)
        assert "allow" in world.wait_ended(task)["output"]


def goes_on_in_its_session():
    with World() as world:
        first = world.submit("say one", agent="demo", runner="box")
        world.wait_ended(first)
        session = next(e["data"]["sessionId"] for e in world.of_types("task.queued"))
        second = world.submit("say two", agent=None, sessionId=session)
        world.wait_ended(second)
        sessions = {t["sessionId"] for t in (e["data"] for e in world.runner.events(types=["task.queued"]))}
        assert len(sessions) == 1, sessions


def writes_through_a_partition():
    with World() as world:
        task = world.submit(runner="box")
        middle(world)
        world.network.cut()
        world.runner.make("go")
        wait_until("it ends while nobody hears it", lambda: world.runner.has("ended"))
        world.network.reset()
        wait_until("the hub notices", lambda: not world.is_there("box"))
        assert world.task(task)["state"] == "running"
        world.network.heal()
        check_whole(world, task)
        assert world.runner.count("began") == 1


def somebody_else_answers():
    """At the hub's address, while it cannot be reached: another hub, which refuses the token. The agent goes on, and all that it says
    arrives when the hub is there again. Who starts a runner with a wrong token is told at once."""
    with World() as world, World(("other",)) as stranger:
        task = world.submit(runner="box")
        middle(world)
        world.network.reset()
        world.network.to = stranger.port
        world.network.heal()
        wait_until("it says why", lambda: "refused the token" in world.runner.said())
        world.runner.make("go")
        wait_until("it ends while nobody hears it", lambda: world.runner.has("ended"))
        world.network.reset()
        world.network.to = world.port
        world.network.heal()
        check_whole(world, task)
        assert world.runner.count("began") == 1 and world.runner.said().count("refused the token") == 1, world.runner.said()
        wrong = Runner(f"ws://127.0.0.1:{world.port}/ws", "--token-file", stranger.token("box", "runner"), "--agent", "demo").start()
        wait_until("it is told", lambda: wrong.process.poll() is not None)
        assert wrong.process.returncode == 1, wrong.said()
        wrong.done()


def silence_that_ends():
    """Nothing is lost on the wire, it is only late."""
    with World() as world:
        task = world.submit(runner="box")
        middle(world)
        world.network.cut()
        world.runner.make("go")
        wait_until("it ends while nobody hears it", lambda: world.runner.has("ended"))
        world.network.heal()
        check_whole(world, task)


def hub_is_killed():
    with World() as world:
        task = world.submit(runner="box")
        middle(world)
        world.hub.kill()
        world.runner.make("go")
        wait_until("it goes on", lambda: world.runner.has("ended"))
        world.start_hub()
        check_whole(world, task)
        assert world.runner.count("began") == 1


def hub_is_killed_often():
    with World() as world:
        task = world.submit(runner="box")
        middle(world)
        for _ in range(3):
            world.hub.kill()
            world.start_hub()
            assert world.task(task)["state"] == "running"
        world.runner.make("go")
        check_whole(world, task)


def hub_stops_and_starts():
    with World() as world:
        task = world.submit(runner="box")
        middle(world)
        assert world.hub.stop() == 0
        world.runner.make("go")
        wait_until("it goes on", lambda: world.runner.has("ended"))
        world.start_hub()
        check_whole(world, task)


def question_outlives_the_hub():
    with World() as world:
        task = world.submit("ask", agent="demo", runner="box")
        question = wait_until("it asks", world.open_question)
        world.hub.kill()
        world.start_hub()
        world.wait_for("box")
        again = wait_until("it is still asked", world.open_question)
        assert again["id"] == question["id"], (question, again)
        wait_until("somebody waits for it", lambda: world.of_types("question.adopted"))
        world.call("question.answer", questionId=question["id"], option=again["options"][0]["id"])
        world.wait_ended(task)


def runner_is_killed():
    with World() as world:
        task = world.submit(runner="box", retries=1)
        middle(world)
        world.runner.kill()
        world.runner.make("go")
        world.runner.start()
        world.wait_ended(task)
        starts = [e["data"]["attempt"] for e in world.of_types("task.started") if e["data"]["taskId"] == task]
        assert starts == [1, 2], starts
        assert world.said(task, 2) == TEXT
        assert TEXT.startswith(world.said(task, 1))


def answered_while_it_is_away():
    with World() as world:
        task = world.submit("ask", agent="demo", runner="box")
        question = wait_until("it asks", world.open_question)
        world.network.reset()
        wait_until("the hub notices", lambda: not world.is_there("box"))
        world.call("question.answer", questionId=question["id"], option=question["options"][0]["id"])
        world.network.heal()
        world.wait_ended(task)


def is_cancelled():
    with World() as world:
        task = world.submit(runner="box")
        middle(world)
        world.call("task.cancel", taskId=task)
        world.wait_ended(task, "cancelled")
        wait_until("nothing runs there", lambda: not world.runner.connect().call("task.list", state="running"))
        assert not world.runner.has("ended")
        wait_until("it is let go", lambda: world.runner.connect().call("daemon.status")["weft"]["runner"]["leases"] == 0)
        assert "did not wait" not in world.runner.said(), world.runner.said()
        world.network.reset()
        wait_until("the hub notices", lambda: not world.is_there("box"))
        world.network.heal()
        world.wait_for("box")
        world.runner.make("go")
        check_whole(world, world.submit(runner="box"))
        assert not world.of_types("runner.late"), "what was cancelled is told again"


def lease_is_over():
    """Two machines never both finish one task; what the first says later is kept and changes nothing."""
    with World(("box", "rig"), lease_ms=300) as world:
        task = world.submit(label="any", retries=1)
        wait_until("one of them has begun", lambda: any(r.has("began") for r in world.runners.values()))
        first = "box" if world.runners["box"].has("began") else "rig"
        other = world.runners["rig" if first == "box" else "box"]
        middle(world, world.runners[first])
        world.networks[first].reset()
        world.runners[first].make("go")
        other.make("go")
        end = world.wait_ended(task)
        assert world.said(task, 2) == TEXT and end["state"] == "completed"
        wait_until("the first has ended too", lambda: world.runners[first].has("ended"))
        before = world.task(task)
        world.networks[first].heal()
        late = wait_until("what it says is kept", lambda: [e["data"] for e in world.of_types("runner.late")
                                                            if e["data"]["type"] == "task.completed"])
        assert late[0]["runner"] == first and late[0]["taskId"] == task, late
        assert world.task(task) == before
        kinds = [e["type"] for e in world.of_types("task.") if e["data"].get("taskId") == task]
        assert kinds.count("task.completed") == 1 and kinds.count("task.retrying") == 1, kinds
        reason = next(e["data"]["reason"] for e in world.of_types("task.retrying"))
        assert reason == "leaseOver", reason
        seqs = [e["data"]["seq"] for e in world.of_types("runner.late")]
        assert seqs == sorted(set(seqs)), "late, and twice"


def late_and_deleted():
    """What a machine says late of a session that somebody deletes goes with it, and what it says after that is not kept at all."""
    def texts():
        return [e for e in world.of_types("runner.late", "session.output") if TEXT[:6] in json.dumps(e["data"])]

    with World(lease_ms=300) as world:
        for late_first in (True, False):
            for name in ("began", "ended", "go"):
                if world.runner.has(name):
                    os.unlink(os.path.join(world.runner.folder, name))
            task = world.submit(runner="box")
            middle(world)
            world.network.reset()
            world.runner.make("go")
            world.wait_ended(task, "failed")
            wait_until("it has ended there", lambda: world.runner.has("ended"))
            if late_first:
                world.network.heal()
                wait_until("what it says is kept", lambda: world.of_types("runner.late"))
                assert texts()
            session = next(e["data"]["sessionId"] for e in world.of_types("task.queued") if e["data"].get("taskId") == task)
            world.call("session.delete", sessionId=session)
            world.network.heal()
            world.wait_for("box")
            wait_until("the machine has nothing more to tell", lambda: not runner_status(world.runner)["leases"])
            assert not texts(), texts()


def runner_status(runner):
    connection = runner.connect()
    try:
        return connection.call("daemon.status")["weft"]["runner"]
    finally:
        connection.close()


def late_and_still_running():
    with World(lease_ms=200) as world:
        task = world.submit(runner="box")
        middle(world)
        world.network.reset()
        assert world.wait_ended(task, "failed")["error"]
        world.network.heal()
        wait_until("it is ended there", lambda: [e for e in world.runner.events(types=["task.cancelled"])])
        assert not world.runner.has("ended")


def edit(world):
    with open(os.path.join(world.runner.folder, "old"), "w") as file:
        file.write("first\n")
    task = world.submit(agent="editor", runner="box")
    world.wait_ended(task)
    return task


def changes_are_asked_there():
    with World() as world:
        task = edit(world)
        counts = world.about(task)["changes"]
        assert (counts["files"], counts["added"], counts["modified"], counts["additions"]) == (2, 1, 1, 2), counts
        found = world.call("task.changes", taskId=task)
        assert found["taskId"] == task and [f["path"] for f in found["files"]] == ["new", "old"], found
        assert [f["path"] for f in world.call("task.changes", taskId=task, path="old")["files"]] == ["old"]
        session = next(e["data"]["sessionId"] for e in world.of_types("task.queued"))
        whole = world.call("task.diff", sessionId=session)
        assert whole["sessionId"] == session and "+second" in whole["diff"] and "+made" in whole["diff"], whole
        for words, found in ((["diff"], "+second"), (["diff", "--stat"], "2 files"), (["get"], "2 files")):
            said = subprocess.run([WEFT, "task", *words, task], cwd=world.hub.folder, env=world.hub.env, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=PATIENCE)
            assert found in said.stdout, said
        refused("invalidParams", world.call, "task.diff", taskId=task, path="/etc/passwd")
        refused("invalidParams", world.call, "task.comment", taskId=task,
                comments=[{"path": "none", "line": 1, "text": "why?"}])
        more = world.call("task.comment", taskId=task, comments=[{"path": "old", "line": 2, "text": "say it twice"}])["taskId"]
        world.wait_ended(more)
        assert world.about(more)["sessionId"] == session
        assert "say it twice" in json.dumps(world.runner.events(types=["task.queued"]))
        undone = world.call("task.undo", taskId=more)
        assert undone["ok"] and undone["taskId"] == more, undone
        undone = world.call("task.undo", taskId=task)
        assert undone["ok"] and not world.runner.has("new"), undone
        assert world.about(task)["changes"]["undone"] is True
        refused("alreadyUndone", world.call, "task.undo", taskId=task)
        assert world.call("task.undo", taskId=task, redo=True)["ok"] and world.runner.has("new")
        assert not world.about(task)["changes"].get("undone")


def changes_of_one_that_is_away():
    with World() as world:
        task = edit(world)
        world.network.reset()
        wait_until("the hub notices", lambda: not world.is_there("box"))
        for method in ("task.changes", "task.diff", "task.undo"):
            try:
                world.call(method, taskId=task)
                raise AssertionError(f"{method} was answered")
            except Refused as error:
                assert error.reason == "runnerAway" and "box" in str(error) and "since 20" in str(error), error
        refused("runnerAway", world.call, "task.comment", taskId=task, comments=[{"path": "old", "line": 2, "text": "x"}])
        world.hub.kill()
        world.start_hub()
        refused("runnerAway", world.call, "task.diff", taskId=task)
        assert world.about(task)["changes"]["files"] == 2
        world.network.heal()
        world.wait_for("box")
        assert "+second" in world.call("task.diff", taskId=task)["diff"]
        world.runner.kill()
        world.runner.start()
        wait_until("the hub notices", lambda: len(world.of_types("runner.left")) > 1)
        world.wait_for("box")
        assert "+second" in world.call("task.diff", taskId=task)["diff"]


def doctor_says(world, verb="doctor"):
    said = subprocess.run([WEFT, verb], cwd=world.runner.folder, env=world.runner.env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE)
    return said.stdout + said.stderr


def doctor_knows_the_hub():
    with World() as world:
        said = doctor_says(world)
        assert f"runs tasks of ws://127.0.0.1:{world.network.port}/ws as box, with writer, demo, editor, large" in said, said
        assert f"box of ws://127.0.0.1:{world.network.port}/ws, connected; 0 of its tasks" in doctor_says(world, "status")
        about = world.runner.connect().call("daemon.status")["weft"]["runner"]
        assert about["connected"] and about["agents"] == ["writer", "demo", "editor", "large"] and about["leases"] == 0, about
        world.network.reset()
        wait_until("it notices", lambda: not world.runner.connect().call("daemon.status")["weft"]["runner"]["connected"])
        said = doctor_says(world)
        assert "is not there: " in said and "as box" not in said, said
        assert ", away: " in doctor_says(world, "status")


def larger_than_the_hub_takes():
    """What is too large is named; questions and ends are told all the same, and nobody else's task waits for it."""
    with World(limits={"max_body": 300000}) as world:
        task, other = world.submit(agent="large", runner="box"), world.submit(runner="box")
        world.runner.make("go")
        check_whole(world, other)
        question = wait_until("it asks", world.open_question)
        assert question["taskId"] == task and [option["id"] for option in question["options"]] == ["yes"], question
        world.call("question.answer", questionId=question["id"], option="yes")
        world.wait_ended(task)
        said = [e["data"]["text"] for e in world.of_types("session.output") if e["data"]["taskId"] == task]
        assert len(said) == 1 and "session.update of 1000" in said[0] and "larger than the hub takes" in said[0], said
        assert not world.of_types("runner.left"), "the connection was lost"


def join(connection, name, instance="i", **more):
    return connection.call("runner.hello", **{"name": name, "instance": instance, "agents": ["writer"], "folders": ["*"],
                                              "slots": 4, **more})


def refused(reason, call, *args, **params):
    try:
        call(*args, **params)
    except Refused as error:
        assert error.reason == reason or error.code == reason, (reason, str(error))
        return
    raise AssertionError(f"{reason} was expected")


def hostile_runners():
    with World() as world:
        task = world.submit(runner="box")
        middle(world)
        lease = next(e["gseq"] for e in world.of_types("task.started"))
        evil = world.hub.connect()
        end = [{"seq": 1 << 40, "type": "task.completed", "data": {}}]
        refused("notARunner", evil.call, "runner.deliver", lease=lease, taskId=task, events=end)
        refused("runnerConnected", join, evil, "box")
        refused("invalidParams", join, evil, "e@vil")
        refused("invalidParams", join, evil, "e\x1b[2Jvil")
        refused("invalidParams", join, evil, "evil", labels=["a\nb"])
        refused("invalidParams", join, evil, "evil", agents=["x"] * 1000)
        refused("invalidParams", join, evil, "evil", agents=[{}])
        refused("invalidParams", join, evil, "evil", slots=0)
        refused("invalidParams", join, evil, "x" * 5000)
        join(evil, "evil", leases=[{"lease": lease, "taskId": task}, {"lease": -1}, 7])
        for number in (lease, lease + 1, 1):
            assert evil.call("runner.deliver", lease=number, taskId=task, events=end)["state"] == "gone"
        assert evil.call("runner.deliver", lease=lease, taskId="task-9999", events=end)["state"] == "gone"
        ask = [{"seq": 1, "type": "question.asked", "data": {"questionId": "question-0000", "kind": "permission",
                                                             "title": "Pay?", "options": [{"id": "y", "name": "y"}]}}]
        assert evil.call("runner.deliver", lease=lease, taskId=task, events=ask)["state"] == "gone"
        refused("invalidParams", evil.call, "runner.deliver", lease=lease, taskId=task, events=[{}] * 257)
        refused("invalidParams", evil.call, "runner.deliver", lease=0, taskId=task, events=[])
        assert world.task(task)["state"] == "running" and not world.open_question()
        # One that has a lease, and says nonsense in it.
        mine = world.submit(runner="evil")
        while True:
            message = evil.told.pop(0) if evil.told else evil.receive()
            if message.get("method") == "runner.start":
                break
        params = message["params"]
        assert params["taskId"] == mine and params["agent"] == "writer", params
        evil.send({"jsonrpc": "2.0", "id": message["id"], "result": {"taskId": "task-0000", "sessionId": "session-0000"}})
        junk = [{"seq": -1, "type": "session.output", "data": {"text": "x"}}, {"seq": 1}, {"type": 7}, 3, None,
                {"seq": 2, "type": "session.output", "data": {"text": 7}}, {"seq": 3, "type": "session.update", "data": []},
                {"seq": 4, "type": "question.asked", "data": {"questionId": "q"}},
                {"seq": 5, "type": "question.asked", "data": {"questionId": "question-1", "title": "t", "options": []}},
                {"seq": 6, "type": "session.state", "data": {"name": "modes", "value": 3}},
                {"seq": 7, "type": "session.output", "data": {"stream": "stdout", "text": "kept\n"}},
                {"seq": 7, "type": "session.output", "data": {"stream": "stdout", "text": "twice\n"}},
                {"seq": 6, "type": "session.output", "data": {"stream": "stdout", "text": "older\n"}}]
        assert evil.call("runner.deliver", lease=params["lease"], taskId=mine, events=junk)["state"] == "held"
        for i in range(300):
            text = [{"seq": 100 + i, "type": "session.output", "data": {"stream": "stdout", "text": "y" * 30000}}]
            evil.call("runner.deliver", lease=params["lease"], taskId=mine, events=text)
        evil.call("runner.deliver", lease=params["lease"], taskId=mine, events=end)
        world.wait_ended(mine)
        said = world.said(mine)
        assert said.startswith("kept\nyyy") and "twice" not in said and "older" not in said
        assert len(said) == 5 + 300 * 30000, len(said)
        evil.close()
        wait_until("the hub is well", lambda: not world.is_there("evil"))
        world.runner.make("go")
        check_whole(world, task)


def scopes():
    with World() as world:
        for name, scope, method, params in (("worker", "read,work", "runner.hello",
                                             {"instance": "i", "agents": [], "folders": [], "slots": 1}),
                                            ("box2", "runner", "task.submit", {"prompt": "x"}),
                                            ("box3", "runner", "task.list", {}),
                                            ("box4", "runner", "runner.list", {})):
            token = world.token(name, scope)
            said = subprocess.run([WEFT, "call", f"ws://127.0.0.1:{world.port}/ws", "--token-file", token, method,
                                   json.dumps(params)], env=world.hub.env, capture_output=True, text=True, timeout=PATIENCE,
                                  stdin=subprocess.DEVNULL)
            assert said.returncode == 4 and "403" in said.stderr + said.stdout, (name, said)
        wrong = Runner(f"ws://127.0.0.1:{world.port}/ws", "--token-file", world.token("looker", "read"))
        wrong.start()
        assert wrong.process.wait(PATIENCE) == 1
        assert "scope" in wrong.said(), wrong.said()
        wrong.process = None
        wrong.done()


class FalseHub:
    """Speaks to one runner, line by line, and asks for what it should not get."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE)
        self.url = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.id, self.buffer = 0, b""

    def receive(self):
        while b"\n" not in self.buffer:
            data = self.peer.recv(65536)
            if not data:
                raise Gone("end of file")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def send(self, message):
        self.peer.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def welcome(self):
        self.peer, _ = self.listener.accept()
        self.peer.settimeout(PATIENCE)
        return self.answer_hello("e" * 32)

    def answer_hello(self, epoch):
        hello = self.receive()
        assert hello["method"] == "runner.hello", hello
        self.send({"id": hello["id"], "result": {"runner": "box", "epoch": epoch, "leaseMs": 1, "leases": []}})
        return hello["params"]

    def call(self, method, /, **params):
        self.id += 1
        self.send({"id": self.id, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self.id and "method" not in message:
                return message
            if message.get("method") == "runner.deliver":
                self.send({"id": message["id"], "result": {"state": "held"}})


def false_hub():
    hub = FalseHub()
    runner = Runner(hub.url, "--agent", "writer", "--agent", "demo")
    runner.start()
    try:
        assert hub.welcome()["agents"] == ["writer", "demo"]
        local = runner.connect()
        session = None
        local.call("task.submit", prompt="say mine", agent="demo")
        wait_until("a person's own task has ended", lambda: local.call("task.list")[0]["state"] == "completed")
        session = runner.events(types=["task.queued"])[0]["data"]["sessionId"]
        start = {"lease": 5, "taskId": "task-0001", "prompt": "x"}
        for more in ({"agent": "secret"}, {"agent": "/bin/sh"}, {"agent": ""}, {"agent": "writer", "folder": ".."},
                     {"agent": "writer", "folder": "/etc"}, {"agent": "writer", "folder": "none"},
                     {"agent": "writer", "taskId": "../x"}, {"agent": "writer", "lease": 0},
                     {"agent": "writer", "settings": {"command": ["sh"]}}):
            answer = hub.call("runner.start", **{**start, **more})
            assert "error" in answer, (more, answer)
        assert "error" in hub.call("task.submit", prompt="x"), "a hub may call a method of people"
        assert "error" in hub.call("runner.cancel", lease=9, taskId="task-0001")
        assert "error" in hub.call("runner.answer", lease=9, taskId="task-0001", questionId="question-0000", option="x")
        ask = {"lease": 9, "taskId": "task-0001"}
        for more in ({"method": "task.diff"}, {"method": "task.list"}, {"method": "daemon.stop"}, {"method": "task.submit"}):
            assert "error" in hub.call("runner.ask", **{**ask, **more}), more
        # A session of somebody else's is not gone on with; the same lease twice is one task.
        first = hub.call("runner.start", **start, agent="demo", sessionId=session)["result"]
        assert first["sessionId"] != session, first
        assert hub.call("runner.start", **start, agent="demo")["result"] == first
        assert not runner.has("secret") and not runner.has("began")
        # What people here changed is not shown, whatever the hub calls it.
        wait_until("it has ended", lambda: not local.call("task.list", state="running"))
        ask = {"lease": 5, "taskId": "task-0001"}
        assert hub.call("runner.ask", **ask, method="task.changes", params={"taskId": "task-0000"})["result"]["taskId"] == first["taskId"]
        for more in ({"taskId": "task-0000"}, {"lease": 6}, {"method": "task.submit"}, {"method": "task.undo", "ofSession": True}):
            assert "error" in hub.call("runner.ask", **{**ask, "method": "task.changes", **more}), more
    finally:
        runner.done()


def an_old_lease_is_not_forgotten():
    """However many came after it and were let go, also by a runner that is killed meanwhile."""
    hub = FalseHub()
    runner = Runner(hub.url, "--agent", "writer")
    runner.start()
    try:
        hub.welcome()
        hub.call("runner.start", lease=1, taskId="task-0001", prompt="x", agent="writer")
        wait_until("it runs", lambda: runner.has("began"))
        for n in range(2, 1103):
            lease = {"lease": n, "taskId": f"task-{n:04}"}
            assert "result" in hub.call("runner.start", **lease, prompt="x", agent="writer"), n
            hub.send({"method": "runner.released", "params": {**lease, "late": False}})
        hub.call("runner.cancel", lease=2, taskId="task-0002")
        runner.kill()
        runner.start()
        known = [each["lease"] for each in hub.welcome()["leases"]]
        assert 1 in known and len(known) < 100, known
    finally:
        runner.done()


def false_epoch():
    """What a hub calls its journal goes into ours with each lease."""
    hub = FalseHub()
    runner = Runner(hub.url, "--agent", "demo")
    runner.start()
    try:
        hub.peer, _ = hub.listener.accept()
        hub.peer.settimeout(PATIENCE)
        for epoch in ('a","number":9,"x":"', None, "e" * 33):
            hub.answer_hello(epoch)
            answer = hub.call("runner.start", lease=5, taskId="task-0001", prompt="x", agent="demo")
            assert "error" in answer, (epoch, answer)
        assert "cannot be understood" in runner.connect().call("daemon.status")["weft"]["runner"]["why"]
        hub.answer_hello("e" * 32)
        assert "result" in hub.call("runner.start", lease=5, taskId="task-0001", prompt="x", agent="demo")
    finally:
        runner.done()


if __name__ == "__main__":
    main([places, waits_for_one_that_was_here, asks_and_is_answered, goes_on_in_its_session, writes_through_a_partition, somebody_else_answers,
          silence_that_ends, hub_is_killed, hub_is_killed_often, hub_stops_and_starts, question_outlives_the_hub, runner_is_killed, answered_while_it_is_away,
          is_cancelled, changes_are_asked_there, changes_of_one_that_is_away, lease_is_over, late_and_deleted, late_and_still_running,
          larger_than_the_hub_takes, hostile_runners, doctor_knows_the_hub, scopes, false_hub, false_epoch,
          an_old_lease_is_not_forgotten])
