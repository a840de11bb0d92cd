#!/usr/bin/python3
"""A standby: two machines, which are two folders, and between them a network that is cut. Whatever is killed, cut or full, the
standby's journal is what the hub's was at one moment; promoted, it has everything that was acknowledged up to then, once. Then
hubs that mean no good, and an old hub that comes back."""
import http.server
import json
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, SOAK, WEFT, Connection, Gone, Hub, Refused, main, wait_until
from killed import Writer
from liar import Liar
from runners import Network

PAUSED = {"tasks": {"paused": True, "max_queue": 1000000}}
ROWS = ("SELECT gseq, (SELECT name FROM stream WHERE id = event.stream), seq, time, type, key, CAST(data AS TEXT) FROM event"
        " ORDER BY gseq")
DOCUMENTS = "SELECT key, CAST(data AS TEXT) FROM document ORDER BY key"


class Place(Hub):
    """A folder with a hub at a port of its own, or with a standby of another; and whatever becomes of it."""

    def __init__(self, config=None):
        super().__init__({**PAUSED, **(config or {})})
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"ws://127.0.0.1:{self.port}/ws"
        self.args = []

    def start(self, *more, prefix=()):
        self.stop_now()
        with open(self.talk, "a") as talk:
            self.process = subprocess.Popen([*prefix, WEFT, "serve", "--listen", self.url, *self.args, *more], cwd=self.folder,
                                            env=self.env, stdin=subprocess.DEVNULL, stdout=talk, stderr=talk,
                                            start_new_session=True, restore_signals=False)
        wait_until(f"it is ready: {self.said()}", lambda: self.is_ready() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()
        return self

    def weft(self, *args, check=True):
        done = subprocess.run([WEFT, *args], cwd=self.folder, env=self.env, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        assert not check or done.returncode == 0, (args, done.stdout, done.stderr, self.said())
        return done

    def standby_of(self, hub, port=None, token=None):
        """From the next start on."""
        path = os.path.join(self.folder, "hub.token")
        if token is None:
            name = f"standby-{random.getrandbits(40)}"
            token = hub.weft("token", "add", name, "--scope", "standby").stdout
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(token)
        self.args = ["--standby-of", f"ws://127.0.0.1:{port or hub.port}/ws", "--standby-token", path]
        return self

    def state(self):
        return self.call("daemon.status")["weft"]["standby"]

    def wait_level(self, hub):
        """It has everything that the hub has now."""
        head = hub.call("event.subscribe", after=0)["head"]
        try:
            wait_until("it has everything", lambda: (s := self.state())["whole"] and s["head"] >= head and
                       s["state"] == "following")
        except AssertionError as error:
            raise AssertionError((self.state(), head, self.said())) from error
        return self

    def promote(self, *args):
        return json.loads(self.weft("promote", "--json", *args).stdout)

    def database(self):
        return os.path.join(self.home, "weft.db")

    def rows(self, sql=ROWS):
        """Of a file that nobody writes to now."""
        copy = os.path.join(self.folder, "look.db")
        for end in ("", "-wal"):
            if os.path.exists(self.database() + end):
                shutil.copy(self.database() + end, copy + end)
        database = sqlite3.connect(copy)
        found = database.execute(sql).fetchall()
        database.close()
        for end in ("", "-wal", "-shm"):
            if os.path.exists(copy + end):
                os.unlink(copy + end)
        return found


class Pair:
    """A hub, a standby of it, and the network between them."""

    def __init__(self, config=None, tasks=20):
        self.hub, self.standby, self.network = Place(config), Place(config), None
        self.hub.start()
        for i in range(tasks):
            self.hub.call("task.submit", prompt=f"before-{i}")
        self.network = Network(self.hub.port)
        self.standby.standby_of(self.hub, self.network.port)

    def begin(self):
        self.standby.start().wait_level(self.hub)
        return self

    def stop_both(self):
        self.hub.stop_now()
        self.standby.stop_now()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.standby.done()
        self.hub.done()
        if self.network:
            self.network.done()


def check_equal(pair):
    """Row by row, when nothing runs any more."""
    pair.stop_both()
    there, here = pair.hub.rows(), pair.standby.rows()
    assert len(there) == len(here), (len(there), len(here))
    for a, b in zip(there, here):
        assert a == b, (a, b)
    assert pair.hub.rows(DOCUMENTS) == pair.standby.rows(DOCUMENTS), "documents differ"


def check_prefix(there, here, head):
    """What was copied is what happened there, up to the position that was told when it was promoted."""
    there, here = [e for e in there if e["gseq"] <= head], [e for e in here if e["gseq"] <= head]
    assert there == here, next((a, b) for a, b in zip(there + [None], here + [None]) if a != b)


def check_tasks(hub, acknowledged, head, there):
    """there: the events of the hub that was. Each task that it acknowledged up to there is here, once."""
    queued = {e["data"]["taskId"]: e["gseq"] for e in there if e["type"] == "task.queued"}
    events = hub.events(types=["task.queued"])
    stored = {e["data"]["taskId"]: e["data"]["prompt"] for e in events}
    assert len(stored) == len(events), "a task is there twice"
    missing = 0
    for task, prompt in acknowledged.items():
        if queued[task] <= head:
            assert stored.get(task) == prompt, f"{task} was acknowledged before {head} and is {stored.get(task)}"
        else:
            missing += 1
            assert task not in stored or stored[task] != prompt
    return missing


def write_and_kill(hub, number, writers=16, seconds=(0.05, 0.5)):
    all_of_them = [Writer(hub, f"r{number}w{i}") for i in range(writers)]
    for writer in all_of_them:
        writer.start()
    time.sleep(random.uniform(*seconds))
    hub.kill()
    acknowledged = {}
    for writer in all_of_them:
        writer.join()
        if writer.trouble:
            raise writer.trouble
        acknowledged.update(writer.acknowledged)
    return acknowledged


# ---- following ----

def it_follows():
    with Pair().begin() as pair:
        for i in range(50):
            pair.hub.call("task.submit", prompt=f"task {i}", metadata={"n": i})
        pair.standby.wait_level(pair.hub)
        check_equal(pair)


def a_hub_with_a_limit_of_requests():
    """It asks again when it may, and goes on where it was."""
    with Pair({"rate_per_minute": 60}, tasks=0) as pair:
        for i in range(75):
            pair.hub.call("task.submit", prompt=f"{i}" + "x" * 500000)
        pair.begin()
        samples = [sample for metric in pair.hub.call("metrics.get")["metrics"] for sample in metric["samples"]]
        assert any("rateLimited" in sample["labels"].values() and sample["value"] for sample in samples), "it was never too fast"
        check_equal(pair)
        assert "copied again" not in pair.standby.said(), pair.standby.said()


def it_is_killed_at_any_time():
    """Of a first copy, of pages, of changes: what it has is what the hub had at one moment, or there is nothing."""
    with Pair(tasks=300) as pair:
        stop = threading.Event()

        def write():
            connection, n = pair.hub.connect(), 0
            while not stop.is_set():
                connection.call("task.submit", prompt=f"while-{n}")
                n += 1
            connection.close()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(12 * SOAK):
                pair.standby.start()
                time.sleep(random.uniform(0, 0.25))
                pair.standby.kill()
        finally:
            stop.set()
            writer.join()
        pair.standby.start().wait_level(pair.hub)
        check_equal(pair)


def the_hub_is_killed_and_comes_back():
    with Pair().begin() as pair:
        for number in range(6 * SOAK):
            write_and_kill(pair.hub, number)
            pair.hub.start()
            if number % 2:
                pair.standby.wait_level(pair.hub)
        pair.standby.wait_level(pair.hub)
        check_equal(pair)


def the_network_is_cut():
    """While it is away events are trimmed, sessions deleted, tasks begun and ended."""
    agents = {"tasks": {"max_running": 2}, "default_agent": "demo", "retention": {"events": 400}}
    with Pair(agents) as pair:
        pair.hub.configure(agents), pair.hub.start()  # they run
        pair.standby.start().wait_level(pair.hub)
        for turn in range(3):
            if turn < 2:
                pair.network.reset()
            else:
                pair.network.cut()  # nobody is told
            tasks = [pair.hub.call("task.submit", prompt=f"say {turn}-{i}")["taskId"] for i in range(8)]
            for task in tasks:
                wait_until("it has ended", lambda: pair.hub.call("task.get", taskId=task)["state"] == "completed")
            sessions = pair.hub.call("session.list")["sessions"]
            pair.hub.call("session.delete", sessionId=sessions[-1]["id"])
            pair.network.heal()
            if turn == 2:
                pair.network.reset()
                pair.network.heal()
            pair.standby.wait_level(pair.hub)
        wait_until("it has the last", lambda: pair.standby.state()["behind"] == 0)
        pair.hub.stop()
        pair.standby.stop()
        assert any(row[4] == "removed" for row in pair.standby.rows()), "nothing was deleted"
        there, here = pair.hub.rows(), pair.standby.rows()
        assert here == [row for row in there if row[0] <= here[-1][0] and row[0] >= here[0][0]]
        assert here[0][0] == there[0][0], "what is trimmed there is kept here"


def somebody_else_answers():
    """At the hub's address, while it is gone: another hub, which refuses the token, and one that knows no standbys. A standby that has
    followed waits, can be promoted, and goes on when the hub is back."""
    def stays(words):
        wait_until(f"it says {words}", lambda: words in json.dumps(pair.standby.call("daemon.status")))
        assert pair.standby.state()["state"] == "away" and pair.standby.process.poll() is None, pair.standby.said()

    class NoHub(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def log_message(self, *_):
            pass

    with Pair().begin() as pair, http.server.HTTPServer(("127.0.0.1", 0), NoHub) as no_hub:
        threading.Thread(target=no_hub.serve_forever, daemon=True).start()
        stranger = Place()
        try:
            stranger.start()
            for port, words in ((stranger.port, "refused the token"), (no_hub.server_address[1], "404")):
                pair.network.reset()
                pair.network.to = port
                pair.network.heal()
                stays(words)
            pair.network.reset()
            pair.network.to = pair.hub.port
            pair.network.heal()
            pair.hub.call("task.submit", prompt="and then")
            pair.standby.wait_level(pair.hub)
            assert pair.standby.promote("--force")["missing"] == 0
        finally:
            no_hub.shutdown()
            stranger.done()


def a_large_event():
    """Larger than one answer: it comes in pieces."""
    text = "\"\\" * 500000 + "\u00e9" * 20000  # each is quoted twice on its way
    with Pair() as pair:
        pair.hub.call("task.submit", prompt=text)
        pair.begin()
        pair.hub.call("task.submit", prompt=text[:-1])
        pair.standby.wait_level(pair.hub)
        check_equal(pair)


def it_says_nothing_else():
    with Pair().begin() as pair:
        for method in ("task.submit", "task.list", "event.subscribe", "session.list", "journal.follow", "nonsense"):
            try:
                pair.standby.call(method, prompt="x")
                raise AssertionError(f"{method} was answered")
            except Refused as refused:
                assert refused.code == 503 and refused.reason == "standby" and "weft promote" in str(refused), refused
        done = pair.standby.weft("task", "list", check=False)
        assert done.returncode and "weft promote" in done.stderr, done
        said = pair.standby.weft("status").stdout
        assert "standby" in said and "following" in said and "0 behind" in said, said
        doctor = pair.standby.weft("doctor", check=False).stdout
        assert "standby of" in doctor, doctor
        try:
            pair.standby.call("standby.promote")
            raise AssertionError("promoted beside a hub that lives")
        except Refused as refused:
            assert refused.reason == "hubAnswers", refused
        pair.network.reset()
        wait_until("it notices", lambda: pair.standby.state()["state"] == "away")
        assert "promote" in pair.standby.weft("doctor", check=False).stdout
        assert pair.standby.weft("stop").returncode == 0
        pair.standby.process.wait(PATIENCE)


def it_needs_its_scope():
    with Pair() as pair:
        token = pair.hub.weft("token", "add", "reader", "--scope", "read").stdout
        pair.standby.standby_of(pair.hub, token=token)
        with open(pair.standby.talk, "a") as talk:
            ended = subprocess.run([WEFT, "serve", *pair.standby.args], cwd=pair.standby.folder, env=pair.standby.env,
                                   timeout=PATIENCE, stdin=subprocess.DEVNULL, stdout=talk, stderr=talk)
        assert ended.returncode == 1 and "scope" in pair.standby.said(), (ended, pair.standby.said())
        token = pair.hub.weft("token", "add", "box", "--scope", "standby").stdout.strip()
        done = pair.hub.weft("call", pair.hub.url, "task.list", "--token-file", "/dev/stdin", check=False)
        assert done.returncode != 0


# ---- promoting ----

def promoted_under_load():
    """Nothing acknowledged up to the position that it tells is missing, nothing is there twice, and nobody goes on as if
    nothing had happened."""
    for number in range(4 * SOAK):
        with Pair().begin() as pair:
            client = pair.hub.connect()
            before = client.call("event.subscribe", after=0)
            client.close()
            acknowledged = write_and_kill(pair.hub, number)
            wait_until("it notices", lambda: pair.standby.state()["state"] == "away")
            said = pair.standby.promote()
            assert said["epoch"] == before["epoch"] and said["missing"] == max(0, said["hubHead"] - said["head"]), said
            connection = pair.standby.connect()
            resumed = connection.call("event.subscribe", epoch=before["epoch"], after=said["head"])
            assert resumed["resumed"] is False and resumed["reason"] == "epochChanged", resumed
            connection.close()
            assert resumed["epoch"] != before["epoch"], "it passes for the hub that was"
            here = pair.standby.events()
            pair.hub.start()  # by itself, to compare
            there = pair.hub.events()
            check_prefix(there, here, said["head"])
            missing = check_tasks(pair.standby, acknowledged, said["head"], there)
            last = max(int(t.split("-")[1]) for t in acknowledged) if acknowledged else 0
            new = pair.standby.call("task.submit", prompt="new")["taskId"]
            assert new not in {e["data"]["taskId"] for e in here if e["type"] == "task.queued"}
            print(f"{len(acknowledged)} acknowledged, {missing} of them after event {said['head']}, last {last}", file=sys.stderr)


def promoted_level_lacks_nothing():
    with Pair().begin() as pair:
        tasks = {pair.hub.call("task.submit", prompt=f"p{i}")["taskId"]: f"p{i}" for i in range(100)}
        pair.standby.wait_level(pair.hub)
        pair.hub.kill()
        wait_until("it notices", lambda: pair.standby.state()["state"] == "away")
        said = pair.standby.promote()
        assert said["missing"] == 0, said
        stored = {e["data"]["taskId"]: e["data"]["prompt"] for e in pair.standby.events(types=["task.queued"])}
        assert tasks.items() <= stored.items()
        first = pair.standby.call("daemon.status")["weft"]
        assert "standby" not in first, first
        # The command line is still that of a standby, as in a unit.
        pair.standby.kill()
        pair.standby.start()
        assert "standby" not in pair.standby.call("daemon.status")["weft"]
        assert tasks.items() <= {e["data"]["taskId"]: e["data"]["prompt"]
                                 for e in pair.standby.events(types=["task.queued"])}.items()


def what_ran_is_as_after_a_crash():
    running = {"tasks": {"on_restart": "fail"}, "agents": {"slow": {"driver": "cli", "command": ["sleep", "1000"]}},
               "default_agent": "slow"}
    with Pair(running, tasks=0) as pair:
        for place in (pair.hub, pair.standby):
            place.configure(running)
        pair.hub.start()
        pair.begin()
        task = pair.hub.call("task.submit", prompt="x")["taskId"]
        wait_until("it runs", lambda: pair.hub.call("task.get", taskId=task)["state"] == "running")
        pair.standby.wait_level(pair.hub)
        pair.hub.kill()
        wait_until("it notices", lambda: pair.standby.state()["state"] == "away")
        pair.standby.promote()
        found = pair.standby.call("task.get", taskId=task)
        assert found["state"] == "failed", found


def killed_while_it_is_promoted():
    """Whenever that is: it is a standby that can be promoted again, or a hub."""
    for _ in range(5 * SOAK):
        with Pair().begin() as pair:
            pair.hub.kill()
            wait_until("it notices", lambda: pair.standby.state()["state"] == "away")
            promoting = threading.Thread(target=lambda: pair.standby.weft("promote", check=False))
            promoting.start()
            time.sleep(random.uniform(0, 0.15))
            pair.standby.kill()
            promoting.join()
            pair.standby.start()
            status = pair.standby.call("daemon.status")["weft"]
            if "standby" in status:
                wait_until("it notices", lambda: pair.standby.state()["state"] == "away")
                pair.standby.promote()
            queued = pair.standby.events(types=["task.queued"])
            assert [e["data"]["prompt"] for e in queued] == [f"before-{i}" for i in range(20)]


def two_promotions():
    """There and back: the old hub comes back as a standby of the new one, and takes its place again."""
    with Pair().begin() as pair:
        a, b = pair.hub, pair.standby
        a.kill()
        wait_until("it notices", lambda: b.state()["state"] == "away")
        first = b.promote()
        b.call("task.submit", prompt="at b")
        a.standby_of(b)
        a.start().wait_level(b)  # b has everything that a had, so a gives in
        kept = [name for name in os.listdir(a.home) if "damaged" in name]
        assert kept, "the journal of the old hub is gone"
        b.kill()
        wait_until("it notices", lambda: a.state()["state"] == "away")
        second = a.promote()
        assert second["epoch"] != first["epoch"] and second["head"] > first["head"], (first, second)
        a.call("task.submit", prompt="at a")
        prompts = [e["data"]["prompt"] for e in a.events(types=["task.queued"])]
        assert prompts == [f"before-{i}" for i in range(20)] + ["at b", "at a"], prompts


def an_old_hub_that_was_stopped_gives_in():
    """That it was stopped is its last event, and nobody else has that; it is nobody's loss. doctor and promote say what is so."""
    with Pair().begin() as pair:
        a, b = pair.hub, pair.standby
        refused = a.weft("promote", check=False)
        assert refused.returncode == 8 and "is a hub already" in refused.stderr, refused
        a.stop()
        wait_until("it notices", lambda: b.state()["state"] == "away")
        said = b.weft("doctor", check=False).stdout
        assert "standby of" in said and "weft promote" in said and "cannot store" not in said, said
        b.promote()
        a.standby_of(b)
        a.start().wait_level(b)
        assert [name for name in os.listdir(a.home) if "damaged" in name]


def an_old_hub_with_more_is_not_overruled():
    with Pair().begin() as pair:
        a, b = pair.hub, pair.standby
        pair.network.reset()
        wait_until("it notices", lambda: b.state()["state"] == "away")
        a.call("task.submit", prompt="nobody else has this")
        a.kill()
        b.promote()
        a.standby_of(b)
        with open(a.talk, "a") as talk:
            ended = subprocess.run([WEFT, "serve", *a.args], cwd=a.folder, env=a.env, timeout=PATIENCE,
                                   stdin=subprocess.DEVNULL, stdout=talk, stderr=talk)
        assert ended.returncode == 1, ended
        assert "does not have" in a.said() and "--discard" in a.said(), a.said()
        args, a.args = a.args, []
        a.start()  # it is still there
        assert any(e["data"]["prompt"] == "nobody else has this" for e in a.events(types=["task.queued"]))
        a.kill()
        a.args = args
        a.start("--discard").wait_level(b)
        assert [name for name in os.listdir(a.home) if "damaged" in name]
        a.stop()
        assert a.rows(DOCUMENTS) == b.rows(DOCUMENTS)


def a_restored_hub_is_copied_again():
    with Pair().begin() as pair:
        pair.hub.stop()
        with open(pair.hub.database(), "rb") as file:
            old = file.read()
        pair.hub.start()
        pair.hub.call("task.submit", prompt="lost by the restore")
        pair.standby.wait_level(pair.hub)
        epoch = pair.standby.state()["epoch"]
        pair.hub.stop()
        with open(pair.hub.database(), "wb") as file:
            file.write(old)
        os.unlink(pair.hub.database() + "-mark")
        pair.hub.start()
        wait_until("it is another journal", lambda: pair.standby.state()["epoch"] != epoch)
        pair.standby.wait_level(pair.hub)
        assert "copied" in pair.standby.said(), pair.standby.said()
        check_equal(pair)


# ---- what is against it ----

def the_disk_is_full():
    """A file that may not grow is a disk that is full. When there is room again it goes on."""
    with Pair().begin() as pair:
        limit = os.path.getsize(pair.standby.database()) + 65536
        resource.prlimit(pair.standby.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        for i in range(75):
            pair.hub.call("task.submit", prompt=f"{i}" + "x" * 20000)
        wait_until("it says so", lambda: pair.standby.state().get("error"))
        assert pair.standby.state()["behind"] > 0
        assert "trouble" in pair.standby.weft("status").stdout
        resource.prlimit(pair.standby.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        pair.standby.wait_level(pair.hub)
        assert "error" not in pair.standby.state()
        check_equal(pair)


def lies(state):
    """Each: what is said to journal.follow, journal.page and journal.changes, beside the truth of nothing."""
    epoch, head = state["epoch"], state["head"]
    follow = {"epoch": epoch, "log": "0" * 32, "last": 0, "head": head + 5, "resumed": False}
    event = {"gseq": head + 1, "seq": 10 ** 6, "stream": "hub", "type": "x", "time": 1, "data": "{}"}
    end = {"rows": [], "last": head, "more": False, "head": head, "trimmed": 0}
    changes = {"changes": [], "current": 0, "head": head}
    wrong = [{"rows": [event], "last": head + 1}, {"rows": [{**event, "seq": 1}], "last": head + 1}, {"rows": {}}, {"rows": [7]},
             {"rows": [], "last": head, "more": True}, {"size": 10 ** 15}, {"size": -1}, [], None, 7, {},
             {"rows": [{**event, "gseq": 2 ** 63}], "last": 0}, '{"rows":[' + "[" * 90 + "]" * 90 + '],"last":1}',
             {"rows": [{**event, "data": "x" * (1 << 20), "seq": -1}] * 20, "last": head + 1}]
    for page in wrong:
        yield lambda method, params, page=page: follow if method == "journal.follow" else page
    for change in ([7], [{}], {}, [{"number": 1, "events": [event]}], [{"number": 99}], [{"number": 1, "trimmed": {"upto": 2 ** 62}}],
                   [{"number": 1, "documents": [{"key": "", "data": "x"}]}]):
        yield lambda method, params, change=change: (
            follow if method == "journal.follow" else {**end, "last": params.get("after", 0)} if method == "journal.page"
            else {**changes, "changes": change, "current": 9})
    for hello in ({**follow, "epoch": "short"}, {**follow, "log": ""}, {**follow, "head": -1}, {**follow, "epoch": "f" * 32}, [], 7,
                  {**follow, "resumed": True}, {**follow, "head": 2 ** 63 - 1}):
        yield lambda method, params, hello=hello: hello if method == "journal.follow" else {**changes, "current": 5}
    yield lambda method, params: follow if method == "journal.follow" else {"size": 100} if method != "journal.piece" else {"text": ""}
    yield lambda method, params: (follow if method == "journal.follow" else {"size": 10} if method != "journal.piece"
                                  else {"text": "x" * 100})


def a_hub_that_lies():
    with Pair().begin() as pair:
        state = pair.standby.state()
        pair.standby.stop()
        before, documents = pair.standby.rows(), pair.standby.rows(DOCUMENTS)
        args, count = pair.standby.args, 0
        for answer in lies(state):
            liar = Liar(lambda method, params, answer=answer: method == "weft.auth" or answer(method, params))
            pair.standby.args = ["--standby-of", f"tcp://127.0.0.1:{liar.port}"]
            pair.standby.start()
            wait_until("it has heard the lie", lambda: pair.standby.state().get("error") or
                       pair.standby.state()["state"] != "waiting" and liar.asked.count("journal.changes") > 1)
            assert pair.standby.state()["whole"]
            pair.standby.kill()
            liar.done()
            assert pair.standby.rows() == before and pair.standby.rows(DOCUMENTS) == documents, f"lie {count} was believed"
            count += 1
        pair.standby.args = args
        pair.hub.call("task.submit", prompt="true")
        pair.standby.start().wait_level(pair.hub)
        pair.hub.kill()
        wait_until("it notices", lambda: pair.standby.state()["state"] == "away")
        pair.standby.promote()
        assert pair.standby.events(types=["task.queued"])[-1]["data"]["prompt"] == "true"
        print(f"{count} lies", file=sys.stderr)


if __name__ == "__main__":
    main([it_follows, a_hub_with_a_limit_of_requests, it_is_killed_at_any_time, the_hub_is_killed_and_comes_back, the_network_is_cut, somebody_else_answers,
          a_large_event,
          it_says_nothing_else, it_needs_its_scope, promoted_under_load, promoted_level_lacks_nothing, what_ran_is_as_after_a_crash,
          killed_while_it_is_promoted, two_promotions, an_old_hub_that_was_stopped_gives_in,
          an_old_hub_with_more_is_not_overruled, a_restored_hub_is_copied_again,
          the_disk_is_full, a_hub_that_lies])
