#!/usr/bin/python3
"""Readers that are slow (F6, F7): one of many subscribers stops reading, and the others have everything, the hub's memory stays under
its limits, and the slow one has no hole when it reads again; and one that pauses in a burst loses nothing.

SOAK=N makes it up to 1,000 subscribers and a burst of 50,000; "make soak" also prints how long the others waited."""
import os
import selectors
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, SOAK, Hub, main, wait_until

SUBSCRIBERS = min(1000, 100 * SOAK)
BURST = min(50000, 10000 * SOAK)
MEMORY = 512 << 20
OUTPUT = 128 << 10  # of one round: what all of them hold at a time is less than MEMORY, so that nobody who reads is closed
ROUNDS = 24  # together more than a connection and the kernel hold for one who does not read


class Follower:
    """A subscriber of everything. It counts positions without reading the rest, because there are many."""

    def __init__(self, hub):
        self.connection = hub.connect()
        answer = self.connection.call("event.subscribe", after=0)
        assert answer["resumed"], answer
        self.buffer = self.connection.buffer
        self.seen = [message["params"]["gseq"] for message in self.connection.told if message.get("method") == "event"]
        self.reached = 0  # when it was told the last
        self.take(b"")
        self.connection.socket.setblocking(False)

    def take(self, data):
        self.buffer += data
        lines = self.buffer.split(b"\n")
        self.buffer = lines.pop()
        self.reached = time.monotonic()
        for line in lines:
            at = line.find(b'"gseq":')
            if b'"method":"event"' not in line[:80] or at < 0:
                continue
            end = at + 7
            while line[end:end + 1].isdigit():
                end += 1
            self.seen.append(int(line[at + 7:end]))

    def read(self):
        """What is there now. False: the hub has closed the connection."""
        try:
            data = self.connection.socket.recv(1 << 20)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        self.take(data)
        return bool(data)

    def last(self):
        return self.seen[-1] if self.seen else 0


def follow_until(followers, reached):
    """Read from all of them until it is reached."""
    selector = selectors.DefaultSelector()
    for follower in followers:
        selector.register(follower.connection.socket, selectors.EVENT_READ, follower)
    until = time.monotonic() + 4 * PATIENCE
    while not reached():
        assert time.monotonic() < until, "it never comes"
        for key, _ in selector.select(0.2):
            assert key.data.read(), "the hub has closed one that reads"
    selector.close()


def resident(hub):
    with open(f"/proc/{hub.process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10


def head_of(caller):
    """The position of the last event: a subscription from there on is told it."""
    return caller.call("event.subscribe", id="head")["head"]


def say_much(caller, followers):
    """An agent says so much; the followers read until they have all of it. The position of its last event, and how long 99 of 100
    followers took."""
    began, ends = time.monotonic(), []
    task = caller.call("task.submit", prompt=str(OUTPUT))["taskId"]

    def wait():
        wait_until("the task ends", lambda: caller.call("task.get", taskId=task)["state"] == "completed", 4 * PATIENCE)
        ends.append(head_of(caller))

    waiting = threading.Thread(target=wait)
    waiting.start()
    follow_until(followers, lambda: ends and all(f.last() >= ends[0] for f in followers))
    waiting.join()
    took = sorted(f.reached - began for f in followers)
    return ends[0], took[int(0.99 * (len(took) - 1))]


def rounds(caller, followers):
    """The position of the last event, and the longest of what 99 of 100 took."""
    said = [say_much(caller, followers) for _ in range(ROUNDS)]
    return said[-1][0], max(took for _, took in said)


def one_of_many_stops_reading():
    agent = {"driver": "cli", "command": ["sh", "-c", r"head -c $1 /dev/zero | tr '\0' x | fold -w 100", "sh", "{prompt}"]}
    with Hub({"agents": {"loud": agent}, "default_agent": "loud"}) as hub:
        hub.start()
        caller = hub.connect()
        slow = Follower(hub)
        followers = [Follower(hub) for _ in range(SUBSCRIBERS - 1)]
        before = resident(hub)
        _, usual = rounds(caller, followers + [slow])
        head, then = rounds(caller, followers)  # and now one does not read
        grown = resident(hub) - before
        for follower in followers:
            assert follower.seen == sorted(set(follower.seen)), "doubled, or out of order"
            assert follower.seen == followers[0].seen, "they were not told the same"
        # limits.max_memory is for the buffers of all connections together; the rest is the hub's own.
        assert grown < MEMORY + (64 << 20), f"the hub has grown by {grown >> 20} MiB"
        follow_until([slow], lambda: slow.last() >= head)
        assert slow.seen == followers[0].seen, "the slow one has a hole"
        if SOAK > 1:
            print(f"  {SUBSCRIBERS} subscribers: 99 of 100 had {OUTPUT >> 10} KiB within {usual:.3f} s, and with one who does not read "
                  f"within {then:.3f} s; the hub grew by {grown >> 20} MiB")


def burst(hub, number, count, acknowledged):
    """Changes of a collection, many under way at a time."""
    connection = hub.connect()
    connection.call("tinyvex/connect")
    sent = received = 0
    while received < count:
        while sent < count and sent - received < 512:
            connection.send({"jsonrpc": "2.0", "id": f"m{sent}", "method": "tinyvex/mutation",
                             "params": {"requestId": f"{number}-{sent}", "name": "doc.put",
                                        "args": {"collection": "burst", "key": f"k{number}-{sent % 50}", "value": sent}}})
            sent += 1
        answer = connection.receive()
        if "id" in answer:
            assert "result" in answer, answer
            received += 1
    acknowledged[number] = received
    connection.close()


def a_healthy_reader_pauses_in_a_burst():
    writers = 4
    with Hub() as hub:
        hub.start()
        caller = hub.connect()
        reader = Follower(hub)
        acknowledged = [0] * writers
        threads = [threading.Thread(target=burst, args=(hub, i, BURST // writers, acknowledged)) for i in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()  # meanwhile nobody reads
        assert acknowledged == [BURST // writers] * writers, acknowledged
        head = head_of(caller)
        follow_until([reader], lambda: reader.last() >= head)
        assert reader.seen == sorted(set(reader.seen)), "doubled, or out of order"
        told = set(reader.seen)
        puts = [event for event in hub.events(types=["doc.put"])]
        assert len(puts) == BURST // writers * writers, len(puts)
        missing = [event["gseq"] for event in puts if event["gseq"] not in told]
        assert not missing, f"lost {len(missing)}, first {missing[0]}"
        versions = [event["data"]["version"] for event in puts]
        assert versions == sorted(set(versions)), "a version twice"


main([one_of_many_stops_reading, a_healthy_reader_pauses_in_a_burst])
