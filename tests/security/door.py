"""What the tests of this folder share: the real hub with every door open, and strangers at each of them.

Each script is one line of the security list in docs/security.md; its functions are the promises."""
import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "faults"))
from hub import PATIENCE, WEFT, Gone, Hub, Refused, Skipped, main, wait_until  # noqa: F401

SOURCE = os.environ.get("SOURCE", os.path.dirname(os.path.dirname(HERE)))
JSON = "Content-Type: application/json"
SOCKET = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
          "Sec-WebSocket-Version: 13"]

# Every path of the hub: verb, path, headers, body. host_and_origin.py compares them with the source.
CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "task.stats"})
GUARDED = [
    ("POST", "/rpc", [JSON], CALL),
    ("GET", "/rpc", ["Accept: text/event-stream"], ""),
    ("GET", "/events", ["Accept: text/event-stream"], ""),
    ("GET", "/metrics", [], ""),
    ("GET", "/ws", SOCKET, ""),
    ("GET", "/acp", SOCKET, ""),
    ("POST", "/acp", [JSON, "Accept: application/json, text/event-stream"],
     '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'),
    ("GET", "/acp", ["Accept: text/event-stream", "Acp-Connection-Id: none"], ""),
    ("DELETE", "/acp", ["Acp-Connection-Id: none"], ""),
    ("GET", "/openrpc.json", [], ""),
    ("GET", "/api/rpc/discover", [], ""),
    ("POST", "/api/claude/run", [JSON], '{"prompt":"echo run by a stranger"}'),
    ("POST", "/api/claude/stop", [JSON], "{}"),
    ("POST", "/api/claude/respond", [JSON], '{"response":"yes"}'),
    ("GET", "/api/status", [], ""),
    ("GET", "/api/claude/sessions", [], ""),
    ("GET", "/api/claude/sessions/messages?sessionId=x", [], ""),
    ("GET", "/api/claude/sessions/elements?sessionId=x", [], ""),
    ("GET", "/api/git/status", [], ""),
    ("GET", "/api/git/diff?path=x", [], ""),
    ("GET", "/api/file?path=x", [], ""),
    ("GET", "/api/files/list", [], ""),
    ("GET", "/assets/x/dashboard/app.js", [], ""),
    ("GET", "/preview", [], ""),
    ("GET", "/nowhere", [], ""),
    ("PUT", "/rpc", [JSON], CALL),
]
PUBLIC = [
    ("GET", "/health", [], ""),
    ("GET", "/readyz", [], ""),
    ("GET", "/", [], ""),
    ("GET", "/favicon.ico", [], ""),
    ("GET", "/login", [], ""),
    ("GET", "/login/state", [], ""),
    ("POST", "/login", ["Content-Type: application/x-www-form-urlencoded"], "token=nonsense"),
    ("POST", "/logout", [], ""),
    ("GET", "/pair", [], ""),
    ("POST", "/pair", ["Content-Type: application/x-www-form-urlencoded"], "code=nonsense"),
]


class Answer:
    def __init__(self, stream, data):
        head, self.rest = data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        self.stream = stream

    def body(self):
        """To its length, or as far as the hub sends before it closes."""
        length = int(self.headers.get("content-length", 1 << 30))
        while len(self.rest) < length and (piece := self.stream.recv(65536)):
            self.rest += piece
        return self.rest

    def json(self):
        return json.loads(self.body())


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Doors:
    """A hub that listens on http, ws, https, wss, tcp and tls, with the demo agent."""

    def __init__(self, auth="token", config=None, env=None, project=None):
        if not shutil.which("openssl"):
            raise Skipped("needs openssl, for a certificate")
        self.hub = Hub(env=env)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", "key.pem", "-out", "cert.pem", "-days", "1", "-subj", "/CN=localhost"], cwd=self.hub.folder,
                       check=True, capture_output=True)
        os.chmod(os.path.join(self.hub.folder, "key.pem"), 0o600)
        if project:
            project(self.hub.folder)
        self.start(8, {"auth": auth, "rate_per_minute": 0, "tls": {"cert": "cert.pem", "key": "key.pem"}, **(config or {})})
        with open(os.path.join(self.hub.home, "endpoint.json")) as file:
            self.urls = json.load(file)["urls"]
        self.token = "none is needed"
        if auth != "none":
            with open(os.path.join(self.hub.home, "token")) as file:
                self.token = file.read().strip()
        self.owner = self.hub.connect()

    def start(self, tries, config):
        """HTTP and WebSockets share a port, so it has a number: one that was free a moment ago."""
        plain, secure = free_port(), free_port()
        listen = [f"http://127.0.0.1:{plain}/rpc", f"ws://127.0.0.1:{plain}/ws", f"ws://127.0.0.1:{plain}/acp", "tcp://127.0.0.1:0",
                  f"https://127.0.0.1:{secure}/rpc", f"wss://127.0.0.1:{secure}/ws", f"wss://127.0.0.1:{secure}/acp", "tls://127.0.0.1:0"]
        self.hub.configure({"listen": listen, **config})
        try:
            self.hub.start()
        except AssertionError:
            if tries <= 1 or "already listening" not in self.hub.said():
                raise
            self.start(tries - 1, config)

    def port(self, scheme):
        return next(int(re.search(r":(\d+)", url.split("//")[1])[1]) for url in self.urls if url.startswith(scheme + "://"))

    def connect(self, scheme="http"):
        stream = socket.create_connection(("127.0.0.1", self.port(scheme)))
        stream.settimeout(PATIENCE)
        if scheme in ("https", "wss", "tls"):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            stream = context.wrap_socket(stream)
        return stream

    def ask(self, verb, target, headers=(), body="", scheme="http", host=None):
        """host None: the right one; a list: these lines."""
        stream = self.connect(scheme)
        hosts = host if isinstance(host, list) else [f"Host: {host if host is not None else f'127.0.0.1:{self.port(scheme)}'}"]
        head = [f"{verb} {target} HTTP/1.1", *hosts, *headers]
        if body:
            head.append(f"Content-Length: {len(body.encode())}")
        stream.sendall(("\r\n".join(head) + "\r\n\r\n" + body).encode())
        data = b""
        while b"\r\n\r\n" not in data:
            piece = stream.recv(65536)
            if not piece:
                raise Gone(f"{verb} {target}: no answer, only {data!r}")
            data += piece
        return Answer(stream, data)

    def bearer(self, token=None):
        return f"Authorization: Bearer {token or self.token}"

    def rpc(self, method, params=None, token=None, scheme="http"):
        """One call over HTTP; its answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}})
        answer = self.ask("POST", "/rpc", [JSON, self.bearer(token), "Connection: close"], body, scheme)
        return answer.json()

    def give(self, name, scopes="read work", **more):
        return self.owner.call("token.add", name=name, scopes=scopes, **more)["token"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hub.done()


class WebSocket:
    """Text messages, one after the other."""

    def __init__(self, answer):
        assert answer.status == 101, (answer.status, answer.rest)
        self.stream, self.data, self.last_id = answer.stream, answer.rest, 0

    def need(self, count):
        while len(self.data) < count:
            try:
                piece = self.stream.recv(65536)
            except TimeoutError:
                raise AssertionError("it stays open, and nothing comes") from None
            except OSError as error:
                raise Gone(str(error)) from error
            if not piece:
                raise Gone("end of file")
            self.data += piece
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def receive(self):
        while True:
            first, size = self.need(2)
            size = struct.unpack("!H", self.need(2))[0] if size == 126 else struct.unpack("!Q", self.need(8))[0] if size == 127 else size
            payload = self.need(size)
            if first & 15 == 8:
                raise Gone(f"closed {struct.unpack('!H', payload[:2])[0] if payload else ''}")
            if first & 15 == 1:
                return json.loads(payload)

    def send(self, message):
        text = json.dumps(message).encode()
        size = len(text)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack("!H", size) if size < 65536 else b"\xff" + struct.pack("!Q", size)
        self.stream.sendall(b"\x81" + length + b"\0\0\0\0" + text)

    def call(self, method, params=None):
        self.last_id += 1
        self.send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params or {}})
        while True:
            message = self.receive()
            if message.get("id") == self.last_id and "method" not in message:
                if "error" in message:
                    raise Refused(message["error"])
                return message["result"]


class Lines:
    """NDJSON over a stream that is connected already."""

    def __init__(self, stream):
        self.stream, self.data, self.last_id = stream, b"", 0

    def receive(self):
        while b"\n" not in self.data:
            try:
                piece = self.stream.recv(65536)
            except TimeoutError:
                raise AssertionError("it stays open, and nothing comes") from None
            except OSError as error:
                raise Gone(str(error)) from error
            if not piece:
                raise Gone("end of file")
            self.data += piece
        line, self.data = self.data.split(b"\n", 1)
        return json.loads(line)

    def call(self, method, params=None):
        self.last_id += 1
        try:
            self.stream.sendall(json.dumps({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params or {}}).encode() + b"\n")
        except OSError as error:
            raise Gone(str(error)) from error
        while True:
            message = self.receive()
            if message.get("id") == self.last_id and "method" not in message:
                if "error" in message:
                    raise Refused(message["error"])
                return message["result"]
