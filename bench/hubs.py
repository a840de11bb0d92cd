"""Several hubs with one journal on PostgreSQL, for bench/run: how long an event is under way from whoever publishes it at one hub to
whoever follows at another, beside the same at the hub that has the journal."""

import contextlib
import json
import socket
import time

from hub import PATIENCE, Hub

NAMES = ("a", "b", "c")
ROUNDS, EVENTS = 5, 200
TARGET_MS = 20  # p99, on one machine
BEAT_MS = 2     # from one event to the next: each by itself


class Wire:
    """NDJSON over a hub's Unix socket."""

    def __init__(self, hub):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(hub.unix[len("unix:"):])
        self.buffer, self.last = b"", 0

    def line(self):
        while b"\n" not in self.buffer:
            data = self.socket.recv(1 << 16)
            if not data:
                raise RuntimeError("a hub has closed a connection")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def send(self, method, **params):
        self.last += 1
        self.socket.sendall(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}).encode() + b"\n")

    def call(self, method, **params):
        self.send(method, **params)
        while (message := self.line()).get("id") != self.last:
            continue
        if "error" in message:
            raise RuntimeError(message["error"]["message"])
        return message["result"]

    def follow(self):
        self.call("event.subscribe", types=["session.created"])

    def close(self):
        self.socket.close()


def measure(follower, publisher, count):
    """Milliseconds of each event, the shortest first."""
    reader, writer, took = Wire(follower), Wire(publisher), []
    reader.follow()
    for _ in range(count):
        begun = time.perf_counter()
        writer.send("session.create")
        event = None
        while not event:  # before the answer or behind it
            message = reader.line()
            event = message.get("method") == "event" and message["params"]["data"].get("sessionId")
        took.append((time.perf_counter() - begun) * 1e3)
        while (message := writer.line()).get("id") != writer.last:
            continue
        if message.get("result", {}).get("session", {}).get("id") != event:
            raise RuntimeError("an event of somebody else's")
        time.sleep(BEAT_MS / 1e3)
    reader.close()
    writer.close()
    return sorted(took)


def line(title, took, target=None, verdict=None):
    p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
    text = f"{title:44}{p50:>9.2f}{p99:>9.2f}{took[-1]:>9.2f}"
    return text + (f"  ≤ {target}  {verdict(p99 <= target)}" if target else "")


def hubs(bench, url):
    """url: of a database for this alone."""
    rounds, count = (2, 50) if bench.quick else (ROUNDS, EVENTS)
    yield f"Three hubs with one journal on PostgreSQL: {rounds * count} events, from sending one until it is heard, in ms"
    yield f"{'':44}{'p50':>9}{'p99':>9}{'most':>9}  target of p99"
    with contextlib.ExitStack() as stack:
        three = []
        for name in NAMES:
            store = {"kind": "postgres", "url": url, "wait": True, "hub": name}
            three.append(stack.enter_context(Hub(bench, {"store": store, "listen": [], "default_agent": "demo"})))
        home, across = [], []
        for _ in range(rounds):
            home += measure(three[0], three[0], count)
            across += measure(three[1], three[2], count)
        yield line("at the hub that has the journal", sorted(home))
        yield line("published at one that waits, heard at another", sorted(across), TARGET_MS, bench.verdict)
