#!/usr/bin/python3
"""Three hubs with one journal on PostgreSQL, started for the test. One has the journal, the others hand their clients on and wait for
their turn. Whatever is killed, stopped or cut off: each task runs once, nothing that was acknowledged is lost, one answer wins."""
import glob
import http.client
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, SOAK, WEFT, Gone, Hub, Refused, Skipped, main, wait_until

CLIENTS = 64
TASKS = 2 * SOAK  # of each client
KILLS = 3 * SOAK
LEASE_MS = 3000
ENDED = ("completed", "failed", "cancelled")
# Says that it runs, takes its time, and says that it has. What comes behind it is the prompt.
MARKER = 'echo "began $1" >> "$MARKS"; sleep 0.05; echo "ended $1" >> "$MARKS"'


# Looks whether the one before it still runs.
LONELY = """old=$(cat "$MARKS.lonely" 2>/dev/null)
[ -z "$old" ] || ! kill -0 "$old" 2>/dev/null || echo overlap >> "$MARKS"
echo $$ > "$MARKS.lonely"
echo "began $1" >> "$MARKS"
exec sleep 600"""
# Connects to a socket as a person would, and says what it hears.
INTRUDER = ("import socket, sys\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.connect(open(sys.argv[1]).read())\n"
            "try:\n"
            "    s.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.list\"}\\n')\n"
            "except OSError:\n"
            "    pass\n"
            "print(s.makefile().readline())\n")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Database:
    def __init__(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
        if not found:
            raise Skipped("PostgreSQL is not installed")
        self.bin = found[-1]
        self.folder = tempfile.mkdtemp(prefix="weft-pg-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.prefix = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.prefix = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        subprocess.run([*self.prefix, f"{self.bin}/initdb", "-D", f"{self.folder}/data", "-U", "weft", "-A", "trust", "-E", "UTF8",
                        "--no-locale", "-N"], cwd="/", check=True, capture_output=True, timeout=PATIENCE)
        self.process = subprocess.Popen([*self.prefix, f"{self.bin}/postgres", "-D", f"{self.folder}/data", "-k", self.folder,
                                         "-c", "listen_addresses=", "-c", "fsync=off", "-c", "dynamic_shared_memory_type=mmap"],
                                        cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until("the database is up", lambda: self.sql("SELECT 'up'") == "up")
        self.url = f"postgresql:///postgres?host={self.folder}&user=weft"

    def sql(self, text):
        said = subprocess.run([f"{self.bin}/psql", "-h", self.folder, "-U", "weft", "-d", "postgres", "-qtA", "-c", text],
                              capture_output=True, text=True, timeout=PATIENCE)
        return said.stdout.strip()

    def holder(self):
        """The process of the database that has the lock of the journal: of the hub that leads. None: nobody does."""
        found = self.sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 22912 AND granted")
        return int(found) if found else None

    def done(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Way:
    """A way to the database that can be cut: then nothing arrives, and nobody at the hub's end hears of it."""

    def __init__(self, database):
        self.folder, self.to = tempfile.mkdtemp(prefix="weft-way-"), os.path.join(database.folder, ".s.PGSQL.5432")
        self.is_cut, self.far_ends = False, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.folder, ".s.PGSQL.5432"))
        self.listener.listen(16)
        self.url = f"postgresql:///postgres?host={self.folder}&user=weft"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                if not self.is_cut:
                    far.connect(self.to)
                    self.far_ends.append(far)
            except OSError:  # the database has ended
                near.close()
                continue
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()

    def carry(self, a, b):
        try:
            while data := a.recv(65536):
                if not self.is_cut:
                    b.sendall(data)
        except OSError:
            pass
        while self.is_cut:
            time.sleep(0.05)
        try:
            b.shutdown(socket.SHUT_RDWR)  # closing alone would not end what another thread reads
        except OSError:
            pass

    def cut(self):
        """The database hears that its sessions have ended; the hub hears nothing at all."""
        self.is_cut = True
        for far in self.far_ends:
            far.shutdown(socket.SHUT_RDWR)

    def heal(self):
        self.is_cut = False

    def done(self):
        self.heal()
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Three:
    """Hubs a, b and c, and what their agents have done."""

    def __init__(self, on_restart="fail", lease_ms=LEASE_MS, listen=False, tls=False):
        """listen: each on a port of its own too, with one token for all; tls: and a certificate of its own."""
        self.database = Database()
        self.marks = os.path.join(self.database.folder, "marks-of-agents")
        open(self.marks, "w").close()
        os.chmod(self.marks, 0o666)
        config = {"store": {"kind": "postgres", "url": self.database.url, "wait": True, "lease_ms": lease_ms},
                  "tasks": {"on_restart": on_restart, "max_queue": 1000, "retry_ms": 10},
                  "agents": {"marker": {"driver": "cli", "command": ["/bin/sh", "-c", MARKER, "marker"]},
                             "sleeper": {"driver": "cli", "command": ["/bin/sh", "-c", 'echo "began $1" >> "$MARKS"; exec sleep 600',
                                                                      "sleeper"]},
                             "lonely": {"driver": "cli", "command": ["/bin/sh", "-c", LONELY, "lonely"]},
                             "intruder": {"driver": "cli", "command": [sys.executable, "-c", INTRUDER,
                                                                       os.path.join(self.database.folder, "where-to")]}},
                  "default_agent": "demo"}
        self.hubs, self.ports = [], {}
        self.token = os.path.join(self.database.folder, "token-of-all")
        with open(os.open(self.token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(secrets.token_hex(16))
        self.way = Way(self.database)  # hub a's
        for name in "abc":
            config["store"]["hub"] = name
            config["store"]["url"] = self.way.url if name == "a" else self.database.url
            if listen:
                config["token_file"] = self.token
                self.ports[name] = free_port()
                s = "s" if tls else ""
                config["listen"] = [f"ws{s}://127.0.0.1:{self.ports[name]}/ws", f"http{s}://127.0.0.1:{self.ports[name]}/rpc"]
            if tls:
                config["tls"] = self.certificate(name)
            hub = Hub(config, env={"MARKS": self.marks})
            hub.name = name
            self.hubs.append(hub)
        for hub in self.hubs:
            hub.start()

    def certificate(self, name):
        paths = {kind: os.path.join(self.database.folder, f"{name}.{kind}") for kind in ("cert", "key")}
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", f"/CN={name}", "-keyout", paths["key"], "-out", paths["cert"]], check=True, capture_output=True,
                       timeout=PATIENCE)
        os.chmod(paths["key"], 0o600)
        return paths

    def leader(self):
        """The hub that leads, as it says itself."""
        for hub in self.hubs:
            try:
                with open(os.path.join(hub.home, "endpoint.json")) as file:
                    if hub.process and hub.process.poll() is None and '"waitsFor"' not in file.read():
                        return hub
            except FileNotFoundError:
                pass
        return None

    def wait_for_leader(self, other=None):
        return wait_until("one leads", lambda: (hub := self.leader()) and hub is not other and hub)

    def others(self):
        leader = self.leader()
        return [hub for hub in self.hubs if hub is not leader]

    def any(self):
        """A connection to any hub that lives."""
        return Client(self, 0)

    def done(self):
        for hub in self.hubs:
            hub.done()
        self.way.done()
        self.database.done()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done()

    def has_marks(self, line):
        with open(self.marks) as file:
            return file.read().split("\n").count(line)

    def check_history(self):
        """No position is missing or there twice, and what each task did makes sense. The outcome of each."""
        assert self.database.sql("SELECT count(*) = max(gseq) FROM weft_event") == "t"
        assert self.database.sql("SELECT count(*) FROM weft_stream s WHERE head <> (SELECT count(*) FROM weft_event e"
                                 " WHERE e.stream = s.id)") == "0"
        client = self.any()
        events = client.retry(lambda connection: all_events(connection))
        client.close()
        outcomes, starts, hubs = {}, {}, []
        for event in events:
            kind, data = event["type"], event["data"]
            task = data.get("taskId")
            if kind == "hub.started":
                hubs.append(data["hub"])
            elif kind == "task.started":
                assert task not in outcomes, f"{task} begins after its end"
                starts[task] = starts.get(task, 0) + 1
            elif kind in ("task.completed", "task.failed", "task.cancelled"):
                assert task not in outcomes, f"{task} ends twice"
                outcomes[task] = (kind.split(".")[1], data.get("reason"))
        return outcomes, starts, hubs


def all_events(connection):
    start = connection.call("event.subscribe", after=0)
    events = []
    while not events or events[-1]["gseq"] < start["head"]:
        events.append(connection.notification("event"))
    return events


class Client:
    """Speaks to one hub after the other, when the one it speaks to is gone."""

    def __init__(self, three, number):
        self.three, self.next, self.connection = three, number, None

    def retry(self, what):
        until = time.monotonic() + PATIENCE
        while True:
            try:
                if not self.connection:
                    self.next += 1
                    self.connection = self.three.hubs[self.next % 3].connect()
                return what(self.connection)
            except (Gone, OSError):
                self.close()
            except Refused as error:
                if error.code not in (-32011, 503) and error.reason not in ("stopping", "notReady", "storageFailed"):
                    raise
                self.close()
            if time.monotonic() > until:
                raise AssertionError("no hub answers")
            time.sleep(0.02)

    def call(self, method, **params):
        return self.retry(lambda connection: connection.call(method, **params))

    def wait_ended(self, task):
        while True:
            found = self.call("task.get", taskId=task)
            if found["state"] in ENDED:
                return found
            time.sleep(0.05)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Load:
    """CLIENTS clients, spread over the hubs: each submits task by task, every time by one key, and waits for each."""

    def __init__(self, three):
        self.three, self.tasks, self.failures = three, {}, []
        self.threads = [threading.Thread(target=self.run, args=(n,), daemon=True) for n in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        client = Client(self.three, number)
        try:
            for i in range(TASKS):
                prompt = f"{number}-{i}"
                task = client.call("task.submit", prompt=prompt, agent="marker",
                                   _meta={"weft/idempotencyKey": prompt})["taskId"]
                self.tasks[prompt] = task
                client.wait_ended(task)
        except Exception as error:  # noqa: whatever it was, the test fails with it
            self.failures.append(f"client {number}: {error!r}")
        client.close()

    def ended(self):
        with open(self.three.marks) as file:
            return file.read().count("ended ")

    def wait(self):
        for thread in self.threads:
            thread.join(PATIENCE * 2)
        assert not self.failures, self.failures[:3]
        assert len(self.tasks) == CLIENTS * TASKS

    def check(self):
        outcomes, starts, hubs = self.three.check_history()
        completed = 0
        for prompt, task in self.tasks.items():
            state, reason = outcomes[task]
            began, ended = self.three.has_marks(f"began {prompt}"), self.three.has_marks(f"ended {prompt}")
            assert starts.get(task, 0) == 1, (task, starts.get(task))
            if state == "completed":
                completed += 1
                assert (began, ended) == (1, 1), (task, began, ended)
            else:  # it ran when its hub was killed
                assert (state, reason) == ("failed", "daemonRestarted"), (task, state, reason)
                assert began <= 1 and ended <= 1, (task, began, ended)
        assert len(set(self.tasks.values())) == len(self.tasks)
        return completed, hubs


def each_task_runs_once():
    """Nothing is killed: every task completes, whichever hub it was given to."""
    with Three() as three:
        load = Load(three)
        load.wait()
        completed, hubs = load.check()
        assert completed == CLIENTS * TASKS and hubs == ["a"], (completed, hubs)


def any_hub_is_killed():
    """Those that lead and those that wait, in the middle."""
    with Three() as three:
        load = Load(three)
        for i in range(KILLS):
            seen = load.ended()
            wait_until("some tasks have ended", lambda: load.ended() > seen + 5 or not any(t.is_alive() for t in load.threads))
            leader = three.wait_for_leader()
            victim = leader if i % 2 == 0 else three.others()[0]
            victim.kill()
            if victim is leader:
                three.wait_for_leader()
            victim.start()
        load.wait()
        completed, hubs = load.check()
        assert len(hubs) >= 1 + (KILLS + 1) // 2, hubs
        assert completed >= CLIENTS * TASKS - 4 * KILLS, completed


def a_hub_that_stops_hands_over():
    """Nobody waits for a lease then; what was queued goes on elsewhere."""
    with Three(lease_ms=600000) as three:
        load = Load(three)
        wait_until("some tasks have ended", lambda: load.ended() > 5)
        first = three.leader()
        assert first.stop() == 0
        three.wait_for_leader()
        load.wait()
        completed, hubs = load.check()
        assert len(hubs) == 2, hubs


def one_answer_wins():
    """A question that is asked at the hub that leads, and answered at two others; a task that is cancelled at another one."""
    with Three() as three:
        one, two = three.others()
        a, b = one.connect(), two.connect()
        task = a.call("task.submit", prompt="write a file")["taskId"]
        question = wait_until("it asks", lambda: b.call("question.list")["questions"])[0]
        wins, reasons = 0, []
        for connection in (a, b):
            try:
                connection.call("question.answer", questionId=question["id"], option=question["options"][0]["id"])
                wins += 1
            except Refused as error:
                reasons.append(error.reason)
        assert wins == 1, reasons
        wait_until("it ends", lambda: a.call("task.get", taskId=task)["state"] == "completed")
        task = a.call("task.submit", prompt="long", agent="sleeper")["taskId"]
        wait_until("it runs", lambda: three.has_marks("began long"))
        b.call("task.cancel", taskId=task)
        wait_until("it is cancelled", lambda: a.call("task.get", taskId=task)["state"] == "cancelled")


def who_is_cut_off_ends_its_agents():
    """The database does not answer the hub that leads, and so nobody else takes the journal either. Its agents are ended in its
    lease. When its session is gone, another hub leads."""
    with Three() as three:
        first = three.leader()
        client = three.others()[0].connect()
        task = client.call("task.submit", prompt="cut", agent="sleeper")["taskId"]
        wait_until("it runs", lambda: three.has_marks("began cut"))
        holder = three.database.holder()
        os.kill(holder, signal.SIGSTOP)
        try:
            wait_until("the agent is ended", lambda: not running("sleep 600", three.marks))
            wait_until("it waits for its turn", lambda: "may be another hub's soon" in first.said())
        finally:
            os.kill(holder, signal.SIGCONT)
        wait_until("one leads again", lambda: three.leader() and three.database.holder())
        three.any().wait_ended(task)
        outcomes, starts, hubs = three.check_history()
        assert outcomes[task] == ("failed", "daemonRestarted"), outcomes
        assert starts[task] == 1 and len(hubs) == 2, (starts, hubs)


def a_hub_beyond_a_cut_has_ended_when_another_begins():
    """The database drops the sessions of the hub that leads, which hears nothing of that. Another takes over and runs the task again: by
    then the first one's agent is gone. The first one comes back and waits."""
    with Three(on_restart="requeue") as three:
        first = three.leader()
        assert first.name == "a"
        client = three.others()[0].connect()
        task = client.call("task.submit", prompt="alone", agent="lonely")["taskId"]
        client.close()
        wait_until("it runs", lambda: three.has_marks("began alone") == 1)
        three.way.cut()
        wait_until("it runs again", lambda: three.has_marks("began alone") == 2)
        assert three.has_marks("overlap") == 0
        three.way.heal()
        wait_until("the first one waits", lambda: '"waitsFor"' in read(os.path.join(first.home, "endpoint.json")))
        assert first.connect().call("task.get", taskId=task)["state"] == "running"
        outcomes, starts, hubs = three.check_history()
        assert starts[task] == 2 and hubs[0] == "a" and len(hubs) == 2, (starts, hubs)
        assert three.has_marks("began alone") == 2 and three.has_marks("overlap") == 0


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def a_session_that_breaks_is_made_again():
    """A hub whose connection is lost for a moment keeps the journal, and its agents go on. A moment is less than half a lease."""
    with Three(lease_ms=30000) as three:
        first = three.leader()
        client = three.others()[0].connect()
        task = client.call("task.submit", prompt="broken", agent="sleeper")["taskId"]
        wait_until("it runs", lambda: three.has_marks("began broken"))
        for _ in range(3):
            before = three.database.holder()
            three.database.sql(f"SELECT pg_terminate_backend({before})")
            wait_until("it is back", lambda: three.database.holder() not in (None, before))
        assert three.leader() is first
        assert client.call("task.get", taskId=task)["state"] == "running"
        outcomes, starts, hubs = three.check_history()
        assert hubs == ["a"], hubs


def what_is_said_goes_through():
    """Long messages, an end of what is said that is not the end of what is heard, many at once, and a reader that is slow."""
    with Three() as three:
        one, two = three.others()
        connection = one.connect()
        text = "x" * 9_000_000
        assert connection.call("echo", text=text)["text"] == text
        half = two.connect()
        half.send({"jsonrpc": "2.0", "id": 1, "method": "task.list", "params": {}})
        half.socket.shutdown(socket.SHUT_WR)
        assert "result" in half.receive()
        assert half.socket.recv(1) == b""
        many = [hub.connect() for hub in (one, two) for _ in range(150)]
        for one_of_them in many:
            one_of_them.send({"jsonrpc": "2.0", "id": 1, "method": "task.stats", "params": {}})
        for one_of_them in many:
            assert "result" in one_of_them.receive()
            one_of_them.close()
        slow = two.connect()
        slow.send({"jsonrpc": "2.0", "id": "slow", "method": "event.subscribe", "params": {"after": 0}})
        sender = threading.Thread(target=lambda: [slow.send({"jsonrpc": "2.0", "id": i, "method": "echo", "params": {"text": "z" * 100_000}})
                                                  for i in range(40)], daemon=True)
        sender.start()
        sender.join(1)  # until nothing goes through any more, as far as that comes
        answers, seen = set(), []
        while len(answers) < 40:
            message = slow.receive()
            if message.get("method") == "event":
                seen.append(message["params"]["gseq"])
            elif message.get("id") != "slow":
                assert message["result"]["text"] == "z" * 100_000
                answers.add(message["id"])
        assert seen == sorted(set(seen))


def agents_do_not_come_this_way():
    """A hub that waits would make an agent a person."""
    with Three() as three:
        with open(os.path.join(three.database.folder, "where-to"), "w") as file:
            file.write(os.path.join(three.others()[0].home, "daemon.sock"))
        client = three.any()
        task = client.call("task.submit", prompt="go", agent="intruder")["taskId"]
        ended = client.wait_ended(task)
        assert "Agents speak to the hub that runs them" in json.dumps(ended), ended


def a_token_is_needed_there_too():
    """By HTTP at a hub that waits: the one that has the journal looks at the token."""
    with Three(listen=True) as three:
        with open(three.token) as file:
            token = file.read().strip()
        for hub in three.hubs:
            for shown, status in ((token, 200), ("wrong", 401), (None, 401)):
                door = http.client.HTTPConnection("127.0.0.1", three.ports[hub.name], timeout=PATIENCE)
                head = {"Content-Type": "application/json", **({"Authorization": f"Bearer {shown}"} if shown else {})}
                door.request("POST", "/rpc", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "task.stats"}), head)
                answer = door.getresponse()
                assert answer.status == status, (hub.name, shown is token, answer.status, answer.read())
                door.close()


def tls_goes_through():
    """The certificate that a client sees at any hub is that of the one that has the journal."""
    with Three(listen=True, tls=True) as three:
        with open(os.path.join(three.database.folder, "a.cert")) as file:
            want = ssl.PEM_cert_to_DER_cert(file.read())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with open(three.token) as file:
            token = file.read().strip()
        for hub in three.hubs:
            door = http.client.HTTPSConnection("127.0.0.1", three.ports[hub.name], timeout=PATIENCE, context=context)
            door.request("POST", "/rpc", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "task.stats"}),
                         {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
            assert door.getresponse().status == 200
            assert door.sock.getpeercert(True) == want, hub.name
            door.close()


def who_comes_in_between_waits():
    """Nobody has the journal: who connects is answered when somebody has, by the same connection."""
    with Three() as three:
        leader = three.leader()
        others = three.others()
        leader.kill()
        calls = []
        for hub in others:
            connection = until_connected(hub)
            connection.send({"jsonrpc": "2.0", "id": 1, "method": "task.stats", "params": {}})
            calls.append(connection)
        for connection in calls:
            assert "result" in connection.receive()


def until_connected(hub):
    """A connection that is not joined to the hub that was killed just now."""
    while True:
        connection = hub.connect()
        connection.socket.settimeout(0.5)
        try:
            if connection.socket.recv(1) == b"":
                connection.close()
                continue
        except socket.timeout:
            pass
        connection.socket.settimeout(PATIENCE)
        return connection


def a_runner_goes_on():
    """It dials a hub that waits. The one that has the journal is killed: the runner's task goes on there, and ends once."""
    with Three(listen=True) as three:
        leader, (near, _) = three.leader(), three.others()
        runner = Hub({"agents": {"sleeper": {"driver": "cli", "command": ["/bin/sh", "-c",
                                             'echo "began $1" >> "$MARKS"; while [ ! -e go ]; do sleep 0.05; done; echo "ended $1" >> "$MARKS"',
                                             "sleeper"]}}}, env={"MARKS": three.marks})
        runner.command = [WEFT, "runner", f"ws://127.0.0.1:{three.ports[near.name]}/ws", "--token-file", three.token, "--name", "box",
                          "--agent", "sleeper"]
        with open(runner.talk, "a") as talk:
            runner.process = subprocess.Popen(runner.command, cwd=runner.folder, env=runner.env, stdin=subprocess.DEVNULL, stdout=talk,
                                              stderr=talk, start_new_session=True, restore_signals=False)
        try:
            client = three.any()
            wait_until("the runner is there", lambda: any(r["connected"] for r in client.call("runner.list")["runners"]))
            task = client.call("task.submit", prompt="far", agent="sleeper", runner="box")["taskId"]
            wait_until("it runs", lambda: three.has_marks("began far"))
            leader.kill()
            three.wait_for_leader()
            open(os.path.join(runner.folder, "go"), "w").close()
            ended = client.wait_ended(task)
            assert ended["state"] == "completed", (ended, runner.said())
            assert three.has_marks("began far") == 1 and three.has_marks("ended far") == 1
            three.check_history()
        finally:
            runner.done()


def running(command, marker):
    """Is a process there with this command line, whose environment has this?"""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode().strip()
            with open(f"/proc/{name}/environ", "rb") as file:
                if line == command and marker.encode() in file.read():
                    return True
        except OSError:
            pass
    return False


main([each_task_runs_once, any_hub_is_killed, a_hub_that_stops_hands_over, one_answer_wins, who_is_cut_off_ends_its_agents,
      a_hub_beyond_a_cut_has_ended_when_another_begins,
      a_session_that_breaks_is_made_again, what_is_said_goes_through, agents_do_not_come_this_way, a_token_is_needed_there_too,
      tls_goes_through, who_comes_in_between_waits, a_runner_goes_on])
