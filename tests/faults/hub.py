"""A hub to be mistreated: the real program in a folder of its own, and connections to its socket that trust nobody.

SOAK=N in the environment makes every test N times as long; "make soak" sets it."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

WEFT = os.environ.get("WEFT", os.path.join(os.getcwd(), "build", "weft"))
SOAK = int(os.environ.get("SOAK", "1"))
SANITIZED = "asan" in WEFT or "tsan" in WEFT
PATIENCE = 240 if SANITIZED else 120  # only a failure takes so long


class Refused(Exception):
    """The hub answered with an error."""

    def __init__(self, error):
        super().__init__(f"{error.get('code')} {error.get('message')} {error.get('data')}")
        self.code = error.get("code")
        self.reason = (error.get("data") or {}).get("reason")


class Gone(Exception):
    """The connection ended before an answer came."""


class Connection:
    """NDJSON over the hub's Unix socket, one call at a time; what else arrives is kept."""

    def __init__(self, path, timeout=PATIENCE):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.buffer = b""
        self.told = []
        self.last_id = 0

    def send(self, message):
        try:
            self.socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Gone(str(error)) from error

    def receive(self):
        while b"\n" not in self.buffer:
            try:
                data = self.socket.recv(1 << 20)
            except socket.timeout as error:
                raise TimeoutError("the hub says nothing") from error
            except OSError as error:
                raise Gone(str(error)) from error
            if not data:
                raise Gone("end of file")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def call(self, method, **params):
        self.last_id += 1
        self.send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self.last_id and "method" not in message:
                if "error" in message:
                    raise Refused(message["error"])
                return message["result"]
            self.told.append(message)

    def notification(self, method, timeout=PATIENCE):
        """The next notification of this name, kept or to come."""
        until = time.monotonic() + timeout
        while True:
            for i, message in enumerate(self.told):
                if message.get("method") == method:
                    return self.told.pop(i)["params"]
            self.socket.settimeout(max(0.01, until - time.monotonic()))
            self.told.append(self.receive())

    def close(self):
        self.socket.close()


class Hub:
    def __init__(self, config=None, env=None):
        self.folder = tempfile.mkdtemp(prefix="weft-fault-")
        self.home = os.path.join(self.folder, ".weft")
        self.process = None
        self.env = dict(os.environ, XDG_CONFIG_HOME=os.path.join(self.folder, "none"),
                        XDG_STATE_HOME=os.path.join(self.folder, "state"), **(env or {}))
        self.env.pop("WEFT_STORE_KIND", None)
        self.talk = os.path.join(self.folder, "talk")
        os.mkdir(self.home, 0o700)
        self.configure(config or {})

    def configure(self, config):
        path = os.path.join(self.home, "config.json")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(config, file)
        self.trust()

    def trust(self):
        """What the test has put there is the user's own."""
        subprocess.run([WEFT, "trust", "--yes"], cwd=self.folder, env=self.env, check=True, timeout=PATIENCE,
                       stdin=subprocess.DEVNULL, capture_output=True)

    def start(self):
        """Python ignores SIGXFSZ, and so does what it starts: a file that grows beyond its limit is an error, not the end."""
        self.stop_now()
        open(self.talk, "w").close()  # what an earlier one said would only mislead
        with open(self.talk, "a") as talk:
            self.process = subprocess.Popen([WEFT, "serve"], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=talk, stderr=talk, start_new_session=True, restore_signals=False)
        until = time.monotonic() + PATIENCE
        while not self.is_ready():
            ended, late = self.process.poll() is not None, time.monotonic() > until
            if ended or late:
                why = f"it ended with {self.process.returncode}" if ended else f"it is not ready after {PATIENCE} s"
                raise AssertionError(f"the hub did not start, {why}:\n{self.said()}")
            time.sleep(0.005)
        return self

    def is_ready(self):
        try:
            with open(os.path.join(self.home, "daemon.pid")) as file:
                return file.read().strip() == str(self.process.pid)
        except FileNotFoundError:
            return False

    def said(self):
        with open(self.talk) as talk:
            return talk.read()[-4000:]

    def connect(self, timeout=PATIENCE):
        return Connection(os.path.join(self.home, "daemon.sock"), timeout)

    def call(self, method, **params):
        """One call, on a connection of its own."""
        connection = self.connect()
        try:
            return connection.call(method, **params)
        finally:
            connection.close()

    def kill(self):
        """As a power cut would, for this process."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.process = None
        return status

    def stop_now(self):
        if self.process:
            self.kill()

    def events(self, after=0, types=None):
        """Every event that is kept now, in order."""
        connection = self.connect()
        start = connection.call("event.subscribe", after=after)
        assert start["resumed"], start
        events = []
        while not events or events[-1]["gseq"] < start["head"]:
            events.append(connection.notification("event"))
        connection.close()
        return [event for event in events if not types or any(event["type"].startswith(t) for t in types)]

    def done(self):
        self.stop_now()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done()


def wait_until(what, condition, timeout=PATIENCE):
    until = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(f"never: {what}")
        time.sleep(0.01)


def processes_with(marker):
    """Living processes that have this text in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                has = marker.encode() in file.read()
            with open(f"/proc/{name}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if has and state not in "ZX":
            found.append(int(name))
    return found


class Skipped(Exception):
    """It cannot run here, and says why."""


def main(tests):
    """Run them all and close as every test program does."""
    passed = failed = skipped = 0
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for test in tests:
        if only not in test.__name__:
            continue
        try:
            test()
            passed += 1
        except Skipped as why:
            skipped += 1
            print(f"skip {test.__name__}: {why}")
        except Exception:
            failed += 1
            print(f"FAIL {test.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)
