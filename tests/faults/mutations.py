#!/usr/bin/python3
"""Mutations under kill -9, with 64 clients: what was acknowledged was done once and is answered the same for ever; what was not
is done by its repeat, or was done already, but never twice. The disk fills up: nothing is acknowledged that is not stored."""
import os
import random
import resource
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SOAK, Gone, Hub, Refused, main, wait_until

CLIENTS = 64
ROUNDS = 6


class Client(threading.Thread):
    """Appends to its own list, one number at a time: the value of its key is the list, so what was lost or done twice shows.
    Every request that the kill left open is repeated first, by the same id."""

    def __init__(self, hub, number):
        super().__init__()
        self.hub, self.number = hub, number
        self.answers = {}  # requestId: what was answered
        self.requests = {}  # requestId: name and args
        self.open = None  # the one that has no answer yet
        self.version = 0
        self.done = 0  # posts to the shared collection
        self.trouble = None

    def send(self, connection, request):
        name, args = self.requests[request]
        self.open = request
        answer = connection.call("tinyvex/mutation", requestId=request, name=name, args=args)
        assert answer["requestId"] == request
        self.answers[request] = answer["value"]
        self.open = None
        return answer["value"]

    def begin(self):
        """Each change expects the version of the one before it: a change that is done twice would be refused."""
        request = f"c{self.number}-{self.done}"
        args = {"collection": f"c{self.number % 4}", "key": f"k{self.number}", "value": {"n": self.done},
                "expectedVersion": self.version}
        self.requests[request] = ("doc.put", args)
        return request

    def work(self, connection):
        request = self.open or self.begin()
        value = self.send(connection, request)
        assert value["version"] > self.version, (value, self.version)
        self.version = value["version"]
        self.done += 1

    def run(self):
        try:
            connection = self.hub.connect()
            while True:
                self.work(connection)
        except (Gone, ConnectionError, FileNotFoundError):
            pass
        except Exception as error:
            self.trouble = error


class Again(Client):
    """The same client after the kill."""

    def __init__(self, hub, before):
        super().__init__(hub, before.number)
        for name in ("answers", "requests", "open", "version", "done"):
            setattr(self, name, getattr(before, name))


def killed_under_mutations():
    with Hub() as hub:
        clients = [Client(hub, i) for i in range(CLIENTS)]
        for number in range(ROUNDS * SOAK):
            hub.start()
            if number:
                clients = [Again(hub, client) for client in clients]
            for client in clients:
                client.start()
            time.sleep(random.uniform(0.05, 0.4))
            hub.kill()
            for client in clients:
                client.join()
                if client.trouble:
                    raise client.trouble
        connection = hub.start().connect()
        connection.call("tinyvex/connect")
        # Every answer again, from another connection; a sample of them, and all that were open.
        total = 0
        for client in clients:
            total += client.done
            if client.open:
                client.work(connection)
            for request in random.sample(sorted(client.answers), min(20, len(client.answers))):
                assert client.send(connection, request) == client.answers[request]
        check_values(connection, clients)
        check_events(hub, clients)
        print(f"{total} mutations were acknowledged over {ROUNDS * SOAK} kills", file=sys.stderr)


def check_values(connection, clients):
    for group in range(4):
        name = f"c{group}"
        connection.call("tinyvex/subscribe", subId=name, name="documents", params={"collection": name})
        value = connection.notification("tinyvex/data")["value"]
        connection.call("tinyvex/unsubscribe", subId=name)
        stored = {item["key"]: item for item in value}
        assert [item["key"] for item in value] == sorted(stored), "the keys are not in their order"
        for client in clients:
            if client.number % 4 == group and client.done:
                item = stored[f"k{client.number}"]
                assert item["value"] == {"n": client.done - 1}, (item, client.done)
                assert item["version"] == client.version, (item, client.version)


def check_events(hub, clients):
    """The journal has each of them once."""
    seen = {}
    for event in hub.events(types=["doc."]):
        request = event["data"]["request"]["requestId"]
        assert request not in seen, f"{request} was done twice"
        seen[request] = event["data"]["version"]
    for client in clients:
        for request, value in client.answers.items():
            assert seen.get(request) == value["version"], f"{request} was answered {value} and is {seen.get(request)}"


def two_clients_send_one_request():
    """In the same moment, many times: one change, two answers, both the same."""
    with Hub() as hub:
        hub.start()
        connections = [hub.connect() for _ in range(8)]
        for number in range(200):
            message = {"jsonrpc": "2.0", "id": 1, "method": "tinyvex/mutation",
                       "params": {"requestId": f"r{number}", "name": "doc.put",
                                  "args": {"collection": "c", "key": "k", "value": number}}}
            for connection in connections:
                connection.send(message)
            answers = [connection.receive()["result"]["value"]["version"] for connection in connections]
            assert answers == [number + 1] * len(connections), answers


def the_disk_is_full():
    """F3: 507 in words, nothing half done, and everything goes on when there is room."""
    with Hub() as hub:
        hub.start()
        connection = hub.connect()
        put = lambda request, key, value: connection.call(
            "tinyvex/mutation", requestId=request, name="doc.put", args={"collection": "c", "key": key, "value": value})
        first = put("first", "k", 0)
        size = sum(os.path.getsize(os.path.join(hub.home, name)) for name in os.listdir(hub.home)
                   if name.startswith("weft.db"))
        resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        refused = stored = 0
        for number in range(400):
            try:
                put(f"r{number}", "k", "x" * 20000)
                stored += 1
            except Refused as error:
                assert error.code == 507 and error.reason == "storageFailed", error
                refused += 1
                if refused == 5:
                    break
        assert refused == 5, (refused, stored)
        assert put("first", "k", 0) == first, "what was done before is still answered"
        resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

        def again():
            try:
                return put("last", "k", 1)
            except Refused as error:
                assert error.code == 507, error
                return None

        last = wait_until("it works again, without a restart", again)
        hub.kill()
        connection = hub.start().connect()
        assert connection.call("tinyvex/mutation", requestId="last", name="doc.put",
                               args={"collection": "c", "key": "k", "value": 1}) == last


def what_is_deleted_is_gone_after_a_kill():
    with Hub() as hub:
        connection = hub.start().connect()
        secret = "a-word-that-nobody-else-says"
        create = connection.call("tinyvex/mutation", requestId="t", name="thread.create", args={"title": secret})
        thread = create["value"]["threadId"]
        connection.call("tinyvex/mutation", requestId="m", name="message.post", args={"threadId": thread, "text": secret})
        wait_until("its task ends", lambda: not connection.call("session.get", sessionId=thread)["session"]["busy"])
        connection.call("tinyvex/history.deleteSession", session_id=thread)
        hub.kill()
        connection = hub.start().connect()
        assert secret not in repr(list(hub.events(types=[]))), "it can still be read"
        try:
            connection.call("tinyvex/history.sessionUpdates", session_id=thread)
            raise AssertionError("the session is there again")
        except Refused as error:
            assert error.reason == "sessionNotFound"
        # Its number is not used again, and the requests that made it are answered as before.
        assert connection.call("tinyvex/mutation", requestId="t", name="thread.create", args={"title": secret}) == create
        again = connection.call("tinyvex/mutation", requestId="t2", name="thread.create", args={})
        assert again["value"]["threadId"] != thread


main([killed_under_mutations, two_clients_send_one_request, the_disk_is_full, what_is_deleted_is_gone_after_a_kill])
