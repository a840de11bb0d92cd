#!/usr/bin/python3
"""Relays: hubs that follow other hubs. Whatever is killed, who watches a relay is told what happened at the hub, once and in order,
or that it must begin anew; what is asked of a relay is done at the hub; and nobody may do more by way of it."""
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, SOAK, WEFT, Gone, Hub, Refused, Skipped, main, wait_until
from liar import Liar

# What is about the hub's own process, or is not copied.
LEFT_OUT = ("hub.", "doc.", "request.", "context.", "lease.", "relay.", "removed")


class Served(Hub):
    """A hub with arguments of its own, or a relay."""

    def __init__(self, *args, config=None):
        super().__init__(config or {"tasks": {"retry_ms": 10}})
        self.args = args

    def start(self, wait=True):
        self.stop_now()
        with open(self.talk, "a") as talk:
            self.process = subprocess.Popen([WEFT, "serve", *self.args], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=talk, stderr=talk, start_new_session=True, restore_signals=False)
        if wait:
            wait_until("it is ready", lambda: self.is_ready() or self.check_alive())
        return self

    def check_alive(self):
        assert self.process.poll() is None, self.said()

    def ended(self):
        status = self.process.wait(PATIENCE)
        self.process = None
        return status

    def refused(self, method, **params):
        try:
            answer = self.call(method, **params)
        except Refused as error:
            return error
        raise AssertionError(f"{method} was not refused: {answer}")

    def hubs(self):
        return self.call("daemon.status")["weft"]["relay"]["hubs"]

    def wait_following(self, state="following"):
        return wait_until(f"all are {state}", lambda: all(h["state"] == state for h in self.hubs()) and self.hubs())

    def token(self, name, scope):
        path = os.path.join(self.folder, name + ".token")
        said = subprocess.run([WEFT, "token", "add", name, "--scope", scope], cwd=self.folder, env=self.env, check=True,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL, capture_output=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(said.stdout)
        return path

    def cli(self, *args, check=True):
        return subprocess.run([WEFT, *args], cwd=self.folder, env=self.env, check=check, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)


def url(hub):
    return "unix:" + os.path.join(hub.home, "daemon.sock")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def copied(events):
    return [(e["stream"], e["type"], e["data"], e["time"]) for e in events if not e["type"].startswith(LEFT_OUT)]


def ends(hub, task):
    return wait_until(f"{task} has ended", lambda: (t := hub.call("task.get", taskId=task))["state"] not in
                      ("queued", "running") and t)


def question_at(hub):
    return wait_until("a question is open", lambda: hub.call("question.list")["questions"])[0]


# ---- what a relay is for ----

def one_hub():
    """Submit, watch, answer and cancel by way of a relay, over a socket and a WebSocket; ids are the hub's."""
    port = free_port()
    with Served() as hub:
        hub.start()
        before = hub.call("task.submit", prompt="echo before")["taskId"]
        ends(hub, before)
        with Served("--relay", url(hub), "--listen", f"ws://127.0.0.1:{port}/ws") as relay:
            relay.start()
            relay.wait_following()
            wait_until("what was before is known", lambda: relay.call("task.list"))
            assert "The agent is" not in relay.said(), relay.said()
            assert relay.call("task.get", taskId=before) == hub.call("task.get", taskId=before)
            task = relay.call("task.submit", prompt="echo by way of it")["taskId"]
            relay.call("task.get", taskId=task)  # who submits finds it
            assert ends(relay, task)["output"] == "by way of it", relay.call("task.get", taskId=task)
            # a person, with a token of the relay's
            token = relay.token("ann", "read work")
            said = relay.cli("task", "submit", "--wait", "echo hello", "--url", f"ws://127.0.0.1:{port}/ws", "--token-file", token)
            assert said.stdout == "hello\n", (said.stdout, said.stderr)
            said = relay.cli("task", "submit", "--wait", "--hub", "hub", "echo again")
            assert said.stdout == "again\n", (said.stdout, said.stderr)
            said = hub.cli("task", "submit", "--hub", "hub", "echo astray", check=False)
            assert said.returncode == 2 and "is for relays" in said.stderr, said
            asks = relay.call("task.submit", prompt="ask me")["taskId"]
            question = question_at(relay)
            assert question == question_at(hub)
            relay.cli("answer", question["id"], "allow_once", "--url", f"ws://127.0.0.1:{port}/ws", "--token-file", token)
            assert ends(relay, asks)["state"] == "completed"
            by = [e["data"]["by"] for e in hub.events(types=["question.answered"])]
            assert by == [f"uid {os.getuid()} for ann"], by
            hangs = relay.call("task.submit", prompt="hang")["taskId"]
            wait_until("it runs", lambda: relay.call("task.get", taskId=hangs)["state"] == "running")
            relay.call("task.cancel", taskId=hangs)
            assert ends(relay, hangs)["state"] == "cancelled"
            assert relay.refused("task.cancel", taskId="task-9999").reason == "taskNotFound"
            wait_until("all is copied", lambda: copied(relay.events()) == copied(hub.events()))
            # a relay that is stopped leaves the hub's work alone, and goes on where it was
            runs = relay.call("task.submit", prompt="ask me")["taskId"]
            question = question_at(relay)
            head = relay.events()[-1]["gseq"]
            assert relay.stop() == 0
            relay.start()
            relay.wait_following()
            connection = relay.connect()
            assert connection.call("event.subscribe", after=head)["resumed"]
            assert relay.call("task.get", taskId=runs)["state"] == hub.call("task.get", taskId=runs)["state"] == "running"
            relay.call("question.answer", questionId=question["id"], option="allow_once")
            assert ends(relay, runs)["state"] == "completed"
            # what a person deletes is gone from the copy as well
            session = hub.call("session.list")["sessions"][0]["id"]
            hub.call("session.delete", sessionId=session)
            wait_until("it is erased", lambda: not [e for e in relay.events() if e["data"].get("sessionId") == session and
                                                    e["type"] != "session.deleted"])


def several_hubs():
    """Each under its name: one list, and what is asked goes to the hub that it is about."""
    with Served() as one, Served() as two:
        one.start(), two.start()
        with Served("--relay", "one=" + url(one), "--relay", "two=" + url(two)) as relay:
            relay.start()
            relay.wait_following()
            first = relay.call("task.submit", prompt="ask the one")["taskId"]
            second = relay.call("task.submit", prompt="ask the other", hub="two")["taskId"]
            assert (first, second) == ("one:task-0000", "two:task-0000"), (first, second)
            wait_until("both ask", lambda: len(relay.call("question.list")["questions"]) == 2)
            for question in relay.call("question.list")["questions"]:
                assert question["taskId"].split(":")[0] == question["id"].split(":")[0] == question["sessionId"].split(":")[0]
                answer = relay.call("question.answer", questionId=question["id"], option="allow_once")
                assert answer["questionId"] == question["id"], answer
            for task in first, second:
                assert ends(relay, task)["state"] == "completed"
            assert [len(hub.call("task.list")) for hub in (one, two)] == [1, 1]
            again = relay.call("session.prompt", sessionId="two:session-0000", prompt="echo again")
            assert again["taskId"] == "two:task-0001", again
            assert ends(relay, "two:task-0001")["output"] == "again"
            assert sorted(t["id"] for t in relay.call("task.list")) == ["one:task-0000", "two:task-0000", "two:task-0001"]
            assert relay.refused("task.submit", prompt="x", hub="three").reason == "hubNotFound"
            assert relay.refused("task.cancel", taskId="one:task-0000", hub="two").code == -32602
            # "hub" is in no row: the command line knows which methods take it at a relay
            said = relay.cli("call", "task.submit", "prompt=echo typed", "hub=two", "--json")
            assert ends(relay, json.loads(said.stdout)["taskId"])["output"] == "typed" and '"two:' in said.stdout, said
            said = relay.cli("call", "task.list", "hub=two", check=False)
            assert said.returncode == 2 and 'no param "hub"' in said.stderr, said
            said = one.cli("call", "task.submit", "prompt=echo astray", "hub=two", check=False)
            assert said.returncode == 2 and "is for relays" in said.stderr, said
            assert len(one.call("task.list")) == 1
            # one is away: what is known is served, the other one goes on
            two.kill()
            wait_until("two is away", lambda: [h["state"] for h in relay.hubs()] == ["following", "away"])
            assert relay.refused("task.submit", prompt="x", hub="two").reason == "hubAway"
            assert relay.call("task.get", taskId="two:task-0001")["state"] == "completed"
            assert ends(relay, relay.call("task.submit", prompt="echo on")["taskId"])["output"] == "on"
            relay.stop()
            relay.start()
            assert relay.call("task.get", taskId="two:task-0001")["state"] == "completed"
            two.start()
            relay.wait_following()
            assert ends(relay, relay.call("task.submit", prompt="echo back", hub="two")["taskId"])["output"] == "back"


def gated_tasks():
    """A gated task is sent, watched, waited for and cancelled by way of a relay; its gates are the hub's."""
    config = {"tasks": {"gates": {"yes": ["true"], "no": ["false"]}}}
    with Served(config=config) as one, Served(config=config) as two:
        one.start(), two.start()
        with Served("--relay", "one=" + url(one), "--relay", "two=" + url(two)) as relay:
            relay.start()
            relay.wait_following()
            key = {"weft/idempotencyKey": "once"}
            task = relay.call("sendTask", prompt="echo x", gates=["yes"], hub="two", _meta=key)["taskId"]
            assert task == "two:gated-0001", task
            assert relay.call("sendTask", prompt="echo x", gates=["yes"], hub="two", _meta=key)["taskId"] == task
            assert relay.call("awaitTask", taskId=task) == {"taskId": task, "state": "completed", "iterations": 1,
                                                            "sessionId": "two:session-0000"}
            turns = relay.call("gated.get", taskId=task)["task"]["iterations"]
            assert [turn["taskId"] for turn in turns] == ["two:task-0000"], turns
            assert ends(relay, "two:task-0000")["output"] == "x"
            assert relay.refused("awaitTask", taskId="two:gated-0009").reason == "gatedNotFound"
            assert relay.refused("sendTask", prompt="x", gates=["none"]).code == -32602
            said = relay.cli("task", "get", task)
            assert "completed" in said.stdout and "two:task-0000" in said.stdout, said
            assert "two:gated-0001 completed" in relay.cli("task", "watch", task).stderr
            endless = relay.call("sendTask", prompt="hang", gates=["no"], hub="one")["taskId"]
            assert "cancelled" in relay.cli("task", "cancel", endless).stderr
            assert relay.refused("awaitTask", taskId=endless).code == -32004
            for hub in "one", "two":
                said = relay.cli("task", "submit", "--wait", "--gate", "yes", "--hub", hub, "echo typed")
                assert f"{hub}:gated-" in said.stderr and "passed" in said.stderr and "typed" in said.stdout, said
            assert [len(hub.call("gated.list")["tasks"]) for hub in (one, two)] == [2, 2]


def scopes():
    """The relay's own tokens count, and so does its token at the hub; the lesser of both decides."""
    port, near = free_port(), free_port()
    with Served("--listen", f"ws://127.0.0.1:{port}/ws") as hub:
        hub.start()
        reads, works = hub.token("reads", "read"), hub.token("works", "read work")
        with Served("--relay", f"ws://127.0.0.1:{port}/ws", "--relay-token-file", reads) as relay:
            relay.start()
            relay.wait_following()
            refused = relay.refused("task.submit", prompt="x")
            assert refused.code == 403, refused
            assert relay.refused("agent.use", name="demo").code == 403
        with Served("--relay", f"ws://127.0.0.1:{port}/ws", "--relay-token-file", works, "--listen",
                    f"ws://127.0.0.1:{near}/ws") as relay:
            relay.start()
            relay.wait_following()
            mine = relay.token("mine", "read")
            said = relay.cli("task", "submit", "x", "--url", f"ws://127.0.0.1:{near}/ws", "--token-file", mine, check=False)
            assert said.returncode and "Not permitted" in said.stderr, said.stderr
            for method, params in (("session/prompt", {"sessionId": "session-0000", "prompt": []}), ("role.register", {}),
                                   ("tinyvex/mutation", {}), ("agent/run", {"prompt": "x"}), ("execute_task", {}),
                                   ("tinyvex/subscribe", {"subId": "d", "name": "documents", "params": {"collection": "notes"}})):
                assert relay.refused(method, **params).reason == "notOnRelay", method
            assert relay.refused("agent.use", name="demo").code == 403
            # who says for whom it asks cannot pass for another
            relay.call("task.submit", prompt="ask", _meta={"weft/for": "the king"})
            relay.call("question.answer", questionId=question_at(relay)["id"], option="reject_once", _meta={"weft/for": "the king"})
            by = [e["data"]["by"] for e in hub.events(types=["question.answered"])]
            assert by == [f"works for uid {os.getuid()}"], by
        assert not [t for t in hub.call("task.list") if t["prompt"] == "x"]
        with Served("--relay", f"ws://127.0.0.1:{port}/ws") as relay:  # no token
            relay.start()
            wait_until("it is refused", lambda: "401" in relay.hubs()[0].get("trouble", ""))
            assert relay.hubs()[0]["state"] == "away"


# ---- what is killed ----

class Watcher:
    """Watches a relay across all ends of it, and checks what it is told."""

    def __init__(self, relay):
        self.relay, self.epoch, self.events, self.over, self.wrong = relay, None, [], False, None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over:
            try:
                connection = self.relay.connect(timeout=1)
                self.watch(connection)
            except (Gone, OSError, TimeoutError):
                time.sleep(0.02)
            except Exception as error:  # told by who waits for us
                self.wrong = error
                return

    def watch(self, connection):
        after = self.events[-1]["gseq"] if self.events else 0
        start = connection.call("event.subscribe", after=after, **({"epoch": self.epoch} if self.epoch else {}))
        assert start["resumed"], start
        self.epoch = start["epoch"]
        while not self.over:
            try:
                event = connection.notification("event", timeout=0.5)
            except (TimeoutError, socket.timeout):
                continue
            last = self.events[-1]["gseq"] if self.events else 0
            assert event["gseq"] == last + 1, (last, event["gseq"])
            self.events.append(event)

    def done(self):
        self.over = True
        self.thread.join(PATIENCE)
        if self.wrong:
            raise self.wrong


def submit_somehow(relay, prompt, key):
    """Again and again until it is answered, as a client with a key may."""
    def submit():
        try:
            return relay.call("task.submit", prompt=prompt, _meta={"weft/idempotencyKey": key})["taskId"]
        except Refused as error:
            assert error.reason in ("hubAway", "shuttingDown"), error
        except (Gone, OSError):
            pass
    return wait_until(f"{key} is submitted", submit)


def killed():
    """The hub, the relay and both are killed while work goes on. Who watches the relay hears what the hub has in its journal."""
    chance = random.Random(int(os.environ.get("SEED", "16")))
    with Served(config={"tasks": {"retry_ms": 10, "on_restart": "fail"}}) as hub:
        hub.start()
        with Served("--relay", url(hub)) as relay:
            relay.start()
            relay.wait_following()
            watcher = Watcher(relay)
            asked, turns = [], threading.Semaphore(0)

            def submit_all():
                for i in range(40 * SOAK):
                    if i % 5 == 0:
                        turns.acquire()  # some in each turn, so that they meet what is killed
                    asked.append(submit_somehow(relay, f"echo {i}", f"key-{i}"))
            submitter = threading.Thread(target=submit_all, daemon=True)
            submitter.start()
            for turn in range(8 * SOAK):
                for _ in range(3):
                    hub.call("task.submit", prompt=chance.choice(["lines 200", "echo x", "slow 1s"]))
                wait_until("something is told", lambda: relay.process is None or len(relay.events()) > turn)
                time.sleep(chance.random() * 0.3)
                turns.release()
                victims = chance.choice([[hub], [relay], [hub, relay], [relay, hub]])
                for victim in victims:
                    victim.kill()
                for victim in chance.sample(victims, len(victims)):
                    victim.start()
                relay.wait_following()
            submitter.join(PATIENCE)
            assert len(set(asked)) == 40 * SOAK, asked
            prompts = [e["data"]["prompt"] for e in hub.events(types=["task.queued"])]
            assert all(prompts.count(f"echo {i}") == 1 for i in range(40 * SOAK)), prompts
            wait_until("all has ended", lambda: all(t["state"] not in ("queued", "running") for t in hub.call("task.list")))
            wait_until("all is copied", lambda: copied(relay.events()) == copied(hub.events()))
            wait_until("the watcher has all", lambda: watcher.wrong or copied(watcher.events) == copied(hub.events()))
            watcher.done()
            assert relay.call("task.list") == hub.call("task.list")


def asked_while_killed():
    """A request whose hub ends before it answers is answered, and says that nobody knows."""
    with Served() as hub:
        hub.start()
        with Served("--relay", url(hub)) as relay:
            relay.start()
            relay.wait_following()
            hub.process.send_signal(19)  # SIGSTOP: it takes the request and says nothing
            connection = relay.connect()
            connection.send({"jsonrpc": "2.0", "id": 1, "method": "task.submit", "params": {"prompt": "echo x"}})
            wait_until("it is under way", lambda: relay.call("task.list") == [])
            hub.kill()
            answer = connection.receive()
            assert answer["error"]["data"]["reason"] == "hubAway", answer
            assert relay.refused("task.submit", prompt="x").reason == "hubAway"


# ---- positions that cannot be gone on from ----

def over_tls():
    """A hub's certificate is one that the system trusts, or that --relay-ca names."""
    if not shutil.which("openssl"):
        raise Skipped("needs openssl, for a certificate")
    port = free_port()
    with Served() as hub, Served() as relay:
        cert, key = (os.path.join(hub.folder, name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=hub", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, capture_output=True, timeout=PATIENCE)
        hub.args = ("--listen", f"wss://127.0.0.1:{port}/ws", "--tls-cert", cert, "--tls-key", key)
        hub.start()
        place = ("--relay", f"wss://127.0.0.1:{port}/ws", "--relay-token-file", hub.token("relay", "read work"))
        relay.args = place
        relay.start()
        wait_until("it is not trusted", lambda: "certificate" in relay.hubs()[0].get("trouble", ""))
        relay.stop()
        relay.args = (*place, "--relay-ca", cert)
        relay.start()
        relay.wait_following()
        assert ends(relay, relay.call("task.submit", prompt="echo safe")["taskId"])["output"] == "safe"
        relay.stop()
        # a name stands for the certificates too, wherever the hub is meant by it
        place, token = f"wss://127.0.0.1:{port}/ws", hub.token("named", "read work")
        relay.cli("hubs", "add", "strange", place, "--token-file", token)
        relay.cli("hubs", "add", "safe", place, "--token-file", token, "--cacert", os.path.relpath(cert, relay.folder))
        with open(os.path.join(relay.env["XDG_STATE_HOME"], "weft", "hubs.json")) as kept:
            assert [one.get("caFile") for one in json.load(kept)["hubs"]] == [None, cert]
        strange, safe = (json.loads(line) for line in relay.cli("hubs", "--json").stdout.splitlines())
        assert "certificate" in strange["error"] and "questions" in safe, (strange, safe)
        for verb in ("task", "list"), ("task", "submit", "--wait", "echo x"), ("events",):
            refused = relay.cli(*verb, "--url", "strange", check=False)
            assert refused.returncode and "certificate" in refused.stderr, refused
            assert relay.cli(*verb, "--url", "strange", "--cacert", cert).stdout
            assert relay.cli(*verb, "--url", "safe").stdout
        refused = relay.cli("hubs", "add", "other", place, "--cacert", "none.pem", check=False)
        assert refused.returncode == 2 and "none.pem" in refused.stderr, refused
        refused = relay.cli("hubs", "add", "other", place, "--insecure", check=False)
        assert refused.returncode == 2 and "not kept" in refused.stderr, refused
        refused = relay.cli("task", "list", "--url", "nobody", check=False)
        assert refused.returncode == 2 and "neither a URL nor a hub" in refused.stderr, refused
        assert "neither a URL nor a hub" in relay.cli("events", "--url", "nobody", check=False).stderr
        relay.args = ("--relay", "safe", "--relay", "strange")
        relay.start()
        wait_until("the one is followed and the other is not trusted", lambda: [h["state"] for h in relay.hubs()] == ["following", "away"] and
                   "certificate" in relay.hubs()[1]["trouble"])


def begins_anew():
    """A new journal, or events that were removed before they were copied: a new epoch, never a silent gap."""
    config = {"tasks": {"retry_ms": 10}, "retention": {"output_bytes": 65536}}
    with Served(config=config) as hub:
        hub.start()
        with Served("--relay", url(hub)) as relay:
            relay.start()
            relay.wait_following()
            ends(relay, relay.call("task.submit", prompt="echo one")["taskId"])
            watched = relay.connect().call("event.subscribe", after=0)
            relay.kill()
            session = hub.call("session.list")["sessions"][0]["id"]
            for _ in range(2):
                ends(hub, hub.call("session.prompt", sessionId=session, prompt="lines 9000")["taskId"])
            wait_until("the hub has trimmed", lambda: trimmed(hub, watched["head"]))
            relay.start()
            now = wait_until("a new epoch", lambda: new_epoch(relay, watched["epoch"]))
            relay.wait_following()
            connection = relay.connect()
            assert connection.call("event.subscribe", after=watched["head"], epoch=watched["epoch"])["reason"] == "epochChanged"
            wait_until("what is known is the hub's", lambda: relay.call("task.list") == hub.call("task.list"))
            # and while it runs: the hub's journal is another one
            hub.stop()
            for name in os.listdir(hub.home):
                if name.startswith("weft.db"):
                    os.unlink(os.path.join(hub.home, name))
            hub.trust()
            hub.start()
            wait_until("a new epoch again", lambda: new_epoch(relay, now))
            relay.wait_following()
            wait_until("nothing of the old one is left", lambda: relay.call("task.list") == [])
            assert ends(relay, relay.call("task.submit", prompt="echo two")["taskId"])["output"] == "two"


def beginning_is_gone():
    """A hub that has removed its first events: the relay knows what the hub knows of them, also what waits."""
    with Served(config={"tasks": {"retry_ms": 10}, "retention": {"bytes": 1048576}}) as hub:
        hub.start()
        ends(hub, hub.call("task.submit", prompt="echo first")["taskId"])
        hub.call("session.set", sessionId="session-0000", name="title", value="the first")
        hub.call("session.close", sessionId="session-0000")
        asks = hub.call("task.submit", prompt="ask me")["taskId"]
        question = question_at(hub)
        waits = hub.call("session.prompt", sessionId=question["sessionId"], prompt="echo after it")["taskId"]
        session = hub.call("task.submit", prompt="echo much")["taskId"].replace("task", "session")
        def is_gone():
            ends(hub, hub.call("session.prompt", sessionId=session, prompt="lines 9000")["taskId"])
            connection = hub.connect()
            answer = connection.call("event.subscribe", after=2, stream="hub")
            connection.close()
            return answer.get("reason") == "trimmed"
        wait_until("the beginning is gone", is_gone)
        for names in ((), ("one", "two")):
            places = [f"{name}=" + url(hub) for name in names] or [url(hub)]
            with Served(*(word for place in places for word in ("--relay", place))) as relay:
                relay.start()
                relay.wait_following()
                prefix = "two:" if names else ""
                wait_until("all is known", lambda: len(relay.call("task.list", limit=500)) >= len(hub.call("task.list", limit=500)) * len(places))
                for task in hub.call("task.list", limit=500):
                    of = relay.call("task.get", taskId=prefix + task["id"])
                    # all of the output is where its events are; the relay has what is known of it, which is its end
                    assert bool(of.pop("output")) == bool(of.pop("result")) and (of.pop("outputTruncated", 1) or 1), of
                    assert {**task, **of, "id": task["id"], "pid": None} == {**task, "pid": None}, (of, task)
                much = relay.call("task.get", taskId=prefix + hub.call("task.list")[0]["id"])
                assert much["output"].endswith("line 9000\n"), much
                of = next(s for s in relay.call("session.list", limit=500)["sessions"] if s["id"] == prefix + "session-0000")
                assert of["title"] == "the first" and of["closed"], of
                assert prefix + question["id"] in [q["id"] for q in relay.call("question.list")["questions"]]
                if names:
                    relay.call("question.answer", questionId="two:" + question["id"], option="allow_once")
                    for task in asks, waits:
                        assert ends(relay, "two:" + task)["state"] == "completed"
                        assert ends(relay, "one:" + task)["state"] == "completed"


def trimmed(hub, after):
    connection = hub.connect()
    try:
        return connection.call("event.subscribe", after=after).get("reason") == "trimmed"
    finally:
        connection.close()


def new_epoch(relay, old):
    try:
        epoch = relay.call("event.subscribe")["epoch"]
    except (Gone, OSError, Refused):
        return None
    return epoch if epoch != old else None


def other_hubs():
    """The same folder with other hubs: the copy begins anew. A hub's own journal is no relay's, and a copy no hub's."""
    with Served() as hub, Served() as relay:
        hub.start()
        relay.args = ("--relay", "a=" + url(hub))
        relay.start()
        relay.wait_following()
        ends(relay, relay.call("task.submit", prompt="echo x")["taskId"])
        relay.stop()
        relay.args = ("--relay", "a=" + url(hub), "--relay", "b=" + url(hub))
        relay.start()
        wait_until("both are there", lambda: [t["id"] for t in relay.call("task.list")] in
                   (["a:task-0000", "b:task-0000"], ["b:task-0000", "a:task-0000"]))
        relay.stop()
        relay.args = ()
        assert relay.start(wait=False).ended() != 0 and "copy of other hubs" in relay.said()
        relay.args = ("--relay-token-file", relay.token("none", "read"))
        assert relay.start(wait=False).ended() == 2 and "belong to --relay" in relay.said()
        hub.stop()
        hub.args = ("--relay", "a=" + url(relay))
        assert hub.start(wait=False).ended() != 0 and "a hub's own" in hub.said()


def loops():
    """A relay of itself, and relays that follow each other, are refused; a relay of a relay is fine."""
    with Served() as hub, Served() as one, Served() as two:
        hub.start()
        one.args = ("--relay", "self=" + url(one))
        one.start()
        wait_until("it is refused", lambda: "cannot follow itself" in one.hubs()[0].get("trouble", ""))
        one.stop()
        one.args = ("--relay", "two=" + url(two))
        two.args = ("--relay", "one=" + url(one))
        one.start(), two.start()
        wait_until("both wait", lambda: all("each other" in r.hubs()[0].get("trouble", "") for r in (one, two)))
        one.stop()
        one.args = ("--relay", "two=" + url(hub))
        one.start()
        two.wait_following()
        task = two.call("task.submit", prompt="echo far")["taskId"]
        assert ends(two, task)["output"] == "far"
        assert copied(two.events()) == copied(hub.events())
        one.stop()
        one.args = ("--relay", "two=" + url(two))  # now it would be a ring
        one.start()
        wait_until("the ring is refused", lambda: "cannot follow itself" in one.hubs()[0].get("trouble", ""))


# ---- a hub that means no good ----

def liar_at(path, events, result=None, known=None):
    answers = {"relay.hello": {"epoch": "e" * 32, "version": "9", "chain": ["e" * 32]},
               "event.subscribe": result or {"resumed": True, "epoch": "e" * 32, "head": 9},
               "relay.known": known or {"events": []}}
    return Liar(lambda method, _: answers.get(method, {"cancelled": True, "ok": "task-0001"}),
                lambda method: [{"method": "event", "params": event} for event in events if method == "event.subscribe"], path)


def false_hub():
    """Names and numbers that cannot be are refused; ids that are not ids are text; the relay lives."""
    good = {"gseq": 1, "seq": 1, "stream": "hub", "type": "notice", "time": "2026-01-01T00:00:00.000Z",
            "data": {"message": "\x1b[2J task-0001", "ruleId": None, "level": "info"}}
    bad = [{**good, "gseq": 2, "stream": "a\nb"}, {**good, "gseq": 2, "stream": "x" * 4000}, {**good, "gseq": 2, "type": ""},
           {**good, "gseq": -1}, {**good, "gseq": 2, "stream": 7}, {"gseq": 2}, {**good, "gseq": "2"}]
    for i, event in enumerate(bad):
        with Served() as relay:
            path = os.path.join(relay.folder, "false.sock")
            hub = liar_at(path, [good, event])
            relay.args = ("--relay", "bad=unix:" + path)
            relay.start()
            wait_until(f"event {i} is refused", lambda: relay.hubs()[0].get("trouble", "").startswith("event"))
            assert [e["data"] for e in relay.events() if e["type"] == "notice"] in ([good["data"]], []), i
            hub.done()
    odd = [{**good, "gseq": 1, "data": 5}, {**good, "gseq": 2, "data": []}, {**good, "gseq": 2}, {**good, "gseq": 9, "type": "task.queued"},
           {**good, "gseq": 10, "type": "task.queued", "data": {"taskId": "task-0001", "number": 7}},
           {**good, "gseq": 11, "type": "task.started", "data": {"taskId": {}, "sessionId": "../../etc"}},
           {**good, "gseq": 12, "type": "question.asked", "data": {"questionId": "question-0001", "number": -1}},
           {**good, "gseq": 13, "type": "session.deleted", "data": {"sessionId": 5}},
           {**good, "gseq": 14, "stream": "session/..", "type": "session.output", "data": {"text": "x"}},
           {**good, "gseq": 15}]
    with Served() as relay:
        path = os.path.join(relay.folder, "false.sock")
        hub = liar_at(path, odd)
        relay.args = ("--relay", "odd=unix:" + path, "--relay", "two=unix:" + path)
        relay.start()
        wait_until("all is taken in", lambda: [h["at"] for h in relay.hubs()] == [15, 15])
        assert relay.call("task.list") == []
        assert relay.call("task.cancel", taskId="odd:task-0001") == {"cancelled": True, "ok": "task-0001"}
        hub.done()


def never_ends():
    """A hub whose pages lead nowhere is left alone for a while."""
    with Served() as relay:
        path = os.path.join(relay.folder, "false.sock")
        hub = liar_at(path, [], {"resumed": False, "reason": "trimmed", "epoch": "e" * 32, "head": 9}, {"events": [], "next": 1})
        relay.args = ("--relay", "bad=unix:" + path)
        relay.start()
        wait_until("it is refused", lambda: "relay.known cannot be understood" in relay.hubs()[0].get("trouble", ""))
        hub.done()


def speaks_of_another():
    """What a hub says is about its own tasks, however it calls them: another hub's are not touched."""
    with Served() as hub, Served() as relay:
        hub.start()
        task = "good:" + hub.call("task.submit", prompt="ask me")["taskId"]
        question_at(hub)
        told = [("task.completed", {"taskId": task, "output": "evil", "outputBytes": 4}, "hub"),
                ("task.failed", {"taskId": task, "error": "evil"}, "hub"),
                ("question.withdrawn", {"questionId": "good:question-0000", "taskId": task, "reason": "taskEnded"}, "hub"),
                ("session.output", {"sessionId": "good:session-0000", "taskId": task, "stream": "stdout", "text": "evil"},
                 "session/good:session-0000"),
                ("session.deleted", {"sessionId": "good:session-0000"}, "hub")]
        path = os.path.join(relay.folder, "false.sock")
        bad = liar_at(path, [{"gseq": n + 2, "seq": n + 2, "stream": stream, "type": kind, "time": "2026-01-01T00:00:00.000Z",
                               "data": data} for n, (kind, data, stream) in enumerate(told)])
        relay.args = ("--relay", "good=" + url(hub), "--relay", "bad=unix:" + path)
        relay.start()
        wait_until("all is taken in", lambda: relay.hubs()[1]["at"] == len(told) + 1 and question_at(relay))
        found = relay.call("task.get", taskId=task)
        assert found["state"] == "running" and "evil" not in json.dumps(found), found
        assert question_at(relay)["id"] == "good:question-0000"
        bad.done()


def far_hubs():
    """A relay of relays that have several hubs: each name stands before an id, and leads back there."""
    with Served() as one, Served() as two, Served() as near, Served() as other, Served() as far:
        one.start(), two.start()
        near.args = ("--relay", "a=" + url(one), "--relay", "b=" + url(two))
        other.args = ("--relay", "a=" + url(two), "--relay", "b=" + url(one))
        near.start(), other.start()
        near.wait_following(), other.wait_following()
        far.args = ("--relay", "near=" + url(near), "--relay", "other=" + url(other))
        far.start()
        far.wait_following()
        task = one.call("task.submit", prompt="ask me")["taskId"]
        ids = wait_until("both ways lead there", lambda: len(t := far.call("task.list")) == 2 and [each["id"] for each in t])
        assert sorted(ids) == ["near:a:" + task, "other:b:" + task], ids
        question = wait_until("a question is open", lambda: len(q := far.call("question.list")["questions"]) == 2 and q)[0]
        far.call("question.answer", questionId=question["id"], option="allow_once")
        assert ends(one, task)["state"] == "completed"
        assert ends(far, "near:a:" + task)["state"] == "completed"
        second = far.call("task.submit", prompt="hang", hub="other")["taskId"]
        assert second == "other:a:task-0000", second
        far.call("task.cancel", taskId=second)
        assert ends(two, "task-0000")["state"] == "cancelled"


if __name__ == "__main__":
    main([one_hub, several_hubs, gated_tasks, scopes, killed, asked_while_killed, begins_anew, beginning_is_gone, other_hubs, loops, false_hub,
          never_ends, speaks_of_another, far_hubs, over_tls])
