#!/usr/bin/python3
"""After a clean stop a hub is ready before it has read what is over. Whoever asks in that moment, and whenever it is killed in it,
everything is there: every task once, the same counts, the same keys."""
import http.client
import os
import random
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, SOAK, WEFT, Connection, Hub, main

TASKS = 600
CONFIG = {"tasks": {"paused": True, "max_queue": 10 * TASKS}}
KEY = {"_meta": {"weft/idempotencyKey": "once"}}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connects(browser):
    try:
        browser.connect()
    except OSError:
        return False
    return True


def with_past(hub):
    """Tasks that are over, without a single process; two that wait; and one that was submitted with a key."""
    connection = hub.start().connect()
    first = connection.call("task.submit", prompt="first", **KEY)["taskId"]
    for n in range(TASKS):
        connection.send({"jsonrpc": "2.0", "id": 1000 + n, "method": "task.submit", "params": {"prompt": f"task {n}"}})
    ids = [first]
    while len(ids) <= TASKS:
        message = connection.receive()
        if message.get("id", 0) and message["id"] >= 1000:
            ids.append(message["result"]["taskId"])
    waits = set(random.sample(ids[1:], 2))
    for task in ids:
        if task not in waits:
            connection.call("task.cancel", taskId=task)
    stats = connection.call("task.stats")
    connection.close()
    assert hub.stop() == 0
    return ids, waits, stats


def start_soon(hub):
    """The first connection that the hub takes, which is before it has read anything old."""
    hub.stop_now()
    path = os.path.join(hub.home, "daemon.sock")
    with open(hub.talk, "a") as talk:
        hub.process = subprocess.Popen([WEFT, "serve"], cwd=hub.folder, env=hub.env, stdin=subprocess.DEVNULL, stdout=talk,
                                       stderr=talk, start_new_session=True)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return Connection(path)
        except OSError:
            assert hub.process.poll() is None and time.monotonic() < until, hub.said()
            time.sleep(0.0005)


def listed(connection):
    return [task["id"] for task in connection.call("task.list", limit=1000)]


def whoever_asks_first_sees_everything():
    port = free_port()
    with Hub({"listen": [f"http://127.0.0.1:{port}"], "auth": "none", **CONFIG}) as hub:
        ids, waits, stats = with_past(hub)

        def all_are_listed(connection):
            assert sorted(listed(connection)) == sorted(ids)

        def one_is_found(connection):
            task = random.choice(ids)
            assert connection.call("task.get", taskId=task)["state"] == ("queued" if task in waits else "cancelled")

        def the_key_is_known(connection):
            assert connection.call("task.submit", prompt="first", **KEY)["taskId"] == ids[0]

        def sessions_are_listed(connection):
            assert len(connection.call("session.list", limit=1000)["sessions"]) == len(ids)

        def counts_are_the_same(connection):
            assert connection.call("task.stats") == stats

        def an_end_is_known(connection):
            try:
                connection.call("task.cancel", taskId=ids[0])
            except Exception as error:  # what it says is another test's
                assert "not found" not in str(error).lower(), error
            else:
                raise AssertionError("it was cancelled twice")

        def events_are_all_told(connection):
            start = connection.call("event.subscribe", after=0, taskId=ids[5])
            types = []
            while "task.cancelled" not in types and ids[5] not in waits:
                types.append(connection.notification("event")["type"])
            assert start["resumed"] and (types[0] == "task.queued" if types else True), types

        def browsers_are_told_too(_):
            task = next(task for task in ids[7:] if task not in waits)
            browser = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            while not connects(browser):  # it listens there a moment later
                assert hub.process.poll() is None, hub.said()
            browser.request("GET", f"/events?since=0&session={task.replace('task', 'session')}")
            answer = browser.getresponse()
            assert answer.status == 200, answer.read()
            told = b""
            while b"task.cancelled" not in told:
                line = answer.readline()
                assert line, told
                told += line
            assert b"task.queued" in told and task.encode() in told, told
            browser.close()

        asks = [browsers_are_told_too, all_are_listed, one_is_found, the_key_is_known, sessions_are_listed, counts_are_the_same, an_end_is_known,
                events_are_all_told]
        for ask in asks * 2 * SOAK:
            connection = start_soon(hub)
            ask(connection)
            connection.close()
            assert hub.stop() == 0, ask.__name__


def killed_while_the_past_is_read():
    """Anything new is there or was never acknowledged; nothing old is lost, and no number is given twice."""
    with Hub(CONFIG) as hub:
        ids, waits, _ = with_past(hub)
        known = set(ids)
        for i in range(12 * SOAK):
            connection = start_soon(hub)
            new = connection.call("task.submit", prompt="new")["taskId"]
            assert new not in known, new
            known.add(new)
            connection.send({"jsonrpc": "2.0", "id": 1, "method": "task.cancel", "params": {"taskId": random.choice(ids)}})
            time.sleep(random.random() * 0.02)  # any moment of the first 20 ms
            hub.kill()
            connection.close()
            # After a kill everything is read first. The stop makes the next start an early one.
            connection = start_soon(hub)
            found = listed(connection)
            assert len(found) == len(set(found)), "a task twice"
            missing = known - set(found)
            assert not missing, missing
            known = set(found)
            connection.close()
            assert hub.stop() == 0


main([whoever_asks_first_sees_everything, killed_while_the_past_is_read])
