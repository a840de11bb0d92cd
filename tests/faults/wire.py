#!/usr/bin/python3
"""F13 and the sins of the original on the real program: any split of the bytes gives the same answers, a line containing null
kills nobody, a peer that vanishes is forgotten."""
import json
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, SANITIZED, Hub, main, wait_until

LINES = [
    {"jsonrpc": "2.0", "id": 1, "method": "task.submit", "params": {"prompt": "Gr\u00fc\u00dfe \U0001f30d"}},
    None,
    {"jsonrpc": "2.0", "id": 2, "method": "task.get", "params": {"taskId": "task-0000"}},
    {"jsonrpc": "2.0", "id": 3, "method": "task.get", "params": {"taskId": "nope"}},
    {"jsonrpc": "2.0", "id": 4, "method": "task.stats"},
]
STABLE = {1: ("result", {"taskId": "task-0000", "state": "queued"}),
          None: ("code", -32600), 2: ("prompt", "Gr\u00fc\u00dfe \U0001f30d"), 3: ("code", -32000),
          4: ("result", {"total": 1, "queued": 1, "running": 0, "completed": 0, "failed": 0, "cancelled": 0})}


def summary(answer):
    what = STABLE[answer["id"]][0]
    if what == "code":
        return answer["error"]["code"]
    return answer["result"]["prompt"] if what == "prompt" else answer["result"]


def talk(pieces, framing):
    with Hub({"tasks": {"paused": True}}) as hub:
        connection = hub.start().connect()
        texts = [json.dumps(line, ensure_ascii=False).encode() for line in LINES]
        if framing == "content-length":
            data = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(text), text) for text in texts)
        else:
            data = b"".join(text + b"\r\n\n" for text in texts)
        for piece in pieces(data):
            connection.socket.sendall(piece)
        answers = {}
        while len(answers) < len(LINES):
            message = connection.receive() if framing == "ndjson" else sized(connection)
            if "method" not in message:
                answers[message["id"]] = summary(message)
        assert answers == {key: value for key, (_, value) in STABLE.items()}, answers
        assert connection.socket.fileno() >= 0
        connection.close()


def sized(connection):
    while b"\r\n\r\n" not in connection.buffer:
        connection.buffer += connection.socket.recv(65536)
    head, connection.buffer = connection.buffer.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(connection.buffer) < length:
        connection.buffer += connection.socket.recv(65536)
    body, connection.buffer = connection.buffer[:length], connection.buffer[length:]
    return json.loads(body)


def whole(data):
    return [data]


def bytewise(data):
    return [data[i:i + 1] for i in range(len(data))]


def in_sevens(data):
    return [data[i:i + 7] for i in range(0, len(data), 7)]


def any_split_gives_the_same():
    for framing in "ndjson", "content-length":
        for pieces in whole, bytewise, in_sevens:
            talk(pieces, framing)


def a_vanished_client_is_forgotten():
    with Hub() as hub:
        connection = hub.start().connect()
        others = [hub.connect() for _ in range(50)]
        for other in others:
            other.call("event.subscribe")
        assert connection.call("daemon.status")["subsystems"]["ipc"]["clients"] == 51
        descriptors = len(os.listdir(f"/proc/{hub.process.pid}/fd"))
        for other in others:
            other.close()
        wait_until("they are forgotten",
                   lambda: connection.call("daemon.status")["subsystems"]["ipc"]["clients"] == 1)
        assert len(os.listdir(f"/proc/{hub.process.pid}/fd")) <= descriptors - 50


def a_silent_websocket_is_noticed():
    """It takes what it is sent and says nothing, as a machine does whose cable was pulled: not even an answer to a ping."""
    with Hub({"limits": {"ping_ms": 300, "pong_ms": 300}}) as hub:
        connection = hub.start().connect()
        with open(os.path.join(hub.home, "endpoint.json")) as file:
            address = json.load(file)["ws"].split("/")[2]
        with open(os.path.join(hub.home, "token")) as file:
            token = file.read().strip()
        host, port = address.split(":")
        silent = socket.create_connection((host, int(port)))
        silent.sendall((f"GET /ws HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                        f"Authorization: Bearer {token}\r\n\r\n").encode())
        assert b" 101 " in silent.recv(4096)
        assert connection.call("daemon.status")["subsystems"]["ipc"]["clients"] == 2
        wait_until("it is noticed", lambda: connection.call("daemon.status")["subsystems"]["ipc"]["clients"] == 1)
        silent.close()


def a_slow_reader_misses_nothing_and_harms_nobody():
    """It subscribes and reads nothing while far more than its queue is told; then it has everything, once, in order."""
    script = "for i in range(60000): print('x' * 60, i)"
    with Hub({"agents": {"talks": {"driver": "cli", "command": [sys.executable, "-c", script]}}}) as hub:
        connection = hub.start().connect()
        slow = hub.connect()
        slow.call("event.subscribe", after=0)
        task = connection.call("task.submit", prompt="go", agent="talks")["taskId"]
        wait_until("it ends", lambda: connection.call("task.get", taskId=task)["state"] == "completed")
        text, last = "", 0
        while True:
            event = slow.notification("event")
            assert event["gseq"] == last + 1 or not last, (event["gseq"], last)
            last = event["gseq"]
            if event["type"] == "session.output":
                text += event["data"]["text"]
            if event["type"] == "task.completed":
                break
        assert text == "".join(f"{'x' * 60} {i}\n" for i in range(60000))


def web_of(hub):
    with open(os.path.join(hub.home, "endpoint.json")) as file:
        host, port = json.load(file)["http"].split("/")[2].split(":")
    with open(os.path.join(hub.home, "token")) as file:
        return (host, int(port)), file.read().strip()


def post(address, token):
    body = b'{"jsonrpc":"2.0","id":1,"method":"task.stats"}'
    with socket.create_connection(address) as web:
        web.settimeout(20)
        web.sendall(b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
                    b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (token.encode(), len(body), body))
        answer = b""
        while piece := web.recv(65536):
            answer += piece
        return int(answer.split()[1])


def memory(hub):
    with open(f"/proc/{hub.process.pid}/status") as file:
        return int(next(line for line in file if line.startswith("VmRSS:")).split()[1]) * 1024


def follow_events(hub):
    """GET /events from the beginning, with small buffers so that the hub soon cannot write. Asked for, not read."""
    address, token = web_of(hub)
    web = socket.socket()
    web.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    web.settimeout(PATIENCE)
    web.connect(address)
    web.sendall(b"GET /events?since=0 HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                b"Authorization: Bearer %s\r\n\r\n" % token.encode())
    return web


def call(hub, method, **params):
    """On a connection of its own: one that stays is told of all output, and this is not about that one."""
    connection = hub.connect()
    try:
        return connection.call(method, **params)
    finally:
        connection.close()


def a_slow_page_misses_nothing_and_harms_nobody():
    """The same with GET /events, many at once: what they do not read waits in the store and not in the hub's memory."""
    lines, pages = 300000, 24
    script = f"for i in range({lines}): print('x' * 60, i)"
    with Hub({"agents": {"talks": {"driver": "cli", "command": [sys.executable, "-c", script]}},
              "retention": {"output_bytes": 1 << 30}}) as hub:
        hub.start()
        slow = [follow_events(hub) for _ in range(pages)]
        files = [web.makefile("rb") for web in slow]
        for file in files:
            assert b" 200 " in file.readline()
            while file.readline() != b"\r\n":
                pass
        before = memory(hub)
        task = call(hub, "task.submit", prompt="go", agent="talks")["taskId"]
        wait_until("it ends", lambda: call(hub, "task.get", taskId=task)["state"] == "completed")
        grown = memory(hub) - before
        # 20 MB were said, which is 480 MB if it is held for each of them. Without any reader the hub grows by up to 60 MiB.
        # With a sanitizer, what was freed counts too.
        assert grown < 200 << 20 or SANITIZED, f"{grown >> 20} MiB more"
        for file in files[:: pages // 3]:
            text, last, position = [], 0, 0
            for line in file:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "id":
                    position = int(value.split(":")[1])
                elif name == "data":
                    event = json.loads(value)["params"]
                    assert event["gseq"] == position == last + 1, (event["gseq"], position, last)
                    last = event["gseq"]
                    if event["type"] == "session.output":
                        text.append(event["data"]["text"])
                    if event["type"] == "task.completed":
                        break
            assert "".join(text) == "".join(f"{'x' * 60} {i}\n" for i in range(lines))
        for web in slow:
            web.close()


def strangers_cannot_shut_out_the_owner():
    """Hundreds without a token say all that may be said without one, slowly; the owner does not notice."""
    sayings = [b"", b"GET /hea", b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
               b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
               b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    with Hub() as hub:
        connection = hub.start().connect()
        address, token = web_of(hub)
        strangers = []
        for i in range(400):
            strangers.append(socket.create_connection(address))
            strangers[-1].setblocking(False)
            strangers[-1].send(sayings[i % len(sayings)])
        for round in range(5):
            for stranger in strangers:
                try:
                    stranger.send(b"x")
                except OSError:
                    pass  # it had to go
            assert post(address, token) == 200
            assert connection.call("task.stats")["total"] == 0
            hub.connect().close()
        for stranger in strangers:
            stranger.close()


def wrong_tokens_do_not_lock_out_the_right_one():
    with Hub() as hub:
        hub.start()
        address, token = web_of(hub)
        assert [post(address, f"wrong{i}") for i in range(12)] == [401] * 10 + [429] * 2
        assert post(address, token) == 200


main([any_split_gives_the_same, a_vanished_client_is_forgotten, a_silent_websocket_is_noticed,
      a_slow_reader_misses_nothing_and_harms_nobody, a_slow_page_misses_nothing_and_harms_nobody, strangers_cannot_shut_out_the_owner,
      wrong_tokens_do_not_lock_out_the_right_one])
