#!/usr/bin/python3
"""Pairing: nothing is open before somebody on this machine asks for it; a code works once, for the one who has it; the certificate is
the one in the code; and a device is listed and can be sent away."""
import hashlib
import json
import os
import re
import socket
import ssl
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import JSON, PATIENCE, SOCKET, Answer, Doors, Gone, Refused, WebSocket, free_port, main, wait_until

FORM = "Content-Type: application/x-www-form-urlencoded"


class Pinned(Exception):
    """It is not the certificate of the code."""


class Phone:
    """A client that knows the hub by the link alone."""

    def __init__(self, link):
        found = re.fullmatch(r"https://([\d.]+):(\d+)/pair\?code=([0-9a-f]{32})#sha256=([0-9a-f]{64})", link)
        assert found, link
        self.host, self.port, self.code, self.fingerprint = found[1], int(found[2]), found[3], found[4]

    def connect(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        stream = context.wrap_socket(socket.create_connection((self.host, self.port), timeout=PATIENCE))
        if hashlib.sha256(stream.getpeercert(binary_form=True)).hexdigest() != self.fingerprint:
            stream.close()
            raise Pinned()
        return stream

    def ask(self, verb, target, headers=(), body=""):
        stream = self.connect()
        head = [f"{verb} {target} HTTP/1.1", f"Host: {self.host}:{self.port}", *headers]
        if body:
            head.append(f"Content-Length: {len(body.encode())}")
        stream.sendall(("\r\n".join(head) + "\r\n\r\n" + body).encode())
        data = b""
        while b"\r\n\r\n" not in data:
            piece = stream.recv(65536)
            if not piece:
                raise Gone("no answer")
            data += piece
        return Answer(stream, data)

    def show(self, code=None, name="phone"):
        return self.ask("POST", "/pair", [JSON], json.dumps({"code": code or self.code, "name": name}))

    def pair(self, name="phone"):
        answer = self.show(name=name)
        assert answer.status == 200, (answer.status, answer.body())
        return answer.json()


def start(doors, **more):
    return Phone(doors.owner.call("pair.start", address="127.0.0.1", port=free_port(), **more)["url"])


def is_closed(phone):
    try:
        phone.connect().close()
        return False
    except (ConnectionError, Pinned, OSError):
        return True


def a_phone_comes_in():
    with Doors() as doors:
        assert doors.owner.call("pair.status") == {"open": False, "waiting": False}
        phone = start(doors)
        page = phone.ask("GET", f"/pair?code={phone.code}")
        assert page.status == 200 and b"Pair this device" in page.body() and "default-src 'none'" in page.headers["content-security-policy"]
        phone.ask("HEAD", f"/pair?code={phone.code}")
        paired = phone.pair("my-phone")
        assert paired["name"] == "my-phone" and paired["scopes"] == "read work" and paired["expiresAt"], paired
        ws = WebSocket(phone.ask("GET", "/ws", [*SOCKET, f"Authorization: Bearer {paired['token']}"]))
        assert ws.call("task.submit", {"prompt": "echo from the phone"})["taskId"]
        try:
            ws.call("token.list")
        except Refused as refused:
            assert refused.code == 403
        else:
            raise AssertionError("it administers")
        listed = [row for row in doors.owner.call("token.list")["tokens"] if row["name"] == "my-phone"]
        assert listed and listed[0]["device"] and listed[0]["lastSeenAt"], listed
        status = doors.owner.call("pair.status")
        assert status["paired"]["name"] == "my-phone" and not status["waiting"] and status["open"], status
        doors.owner.call("token.revoke", name="my-phone")
        try:
            while True:
                ws.receive()
        except Gone:
            pass
        assert phone.ask("GET", "/ws", [*SOCKET, f"Authorization: Bearer {paired['token']}"]).status == 401


def a_browser_comes_in():
    with Doors() as doors:
        phone = start(doors, name="tablet", expiresIn=86400)
        own = f"Origin: https://{phone.host}:{phone.port}"
        answer = phone.ask("POST", "/pair", [FORM, own], f"code={phone.code}&name=%3Cscript%3E")
        assert answer.status == 200, (answer.status, answer.body())
        cookie = answer.headers["set-cookie"]
        for part in ("HttpOnly", "SameSite=Strict", "Secure", "Max-Age=86400"):
            assert part in cookie, cookie
        cookie = "Cookie: " + cookie.split(";")[0]
        page = phone.ask("GET", "/", [cookie, "Sec-Fetch-Site: same-origin"])
        assert page.status == 200 and f"wss://{phone.host}:{phone.port}" in page.headers["content-security-policy"]
        assert phone.ask("GET", "/login/state", [cookie]).json()["name"] == "tablet"
        ws = WebSocket(phone.ask("GET", "/ws", [*SOCKET, cookie, own]))
        assert ws.call("hub.whoami")["name"] == "tablet"


def a_code_works_once():
    with Doors() as doors:
        phone = start(doors)
        token = phone.pair()["token"]
        again = phone.show()
        assert again.status == 410 and token not in again.body().decode(), again.status
        assert len([row for row in doors.owner.call("token.list")["tokens"]]) == 1
        second = Phone(doors.owner.call("pair.start", address="127.0.0.1")["url"])
        assert second.port == phone.port and second.fingerprint == phone.fingerprint and second.code != phone.code
        assert second.show(code=phone.code).status == 401
        assert second.pair()["name"] == "phone-2"


def a_new_code_ends_the_one_before():
    with Doors() as doors:
        first = start(doors)
        second = Phone(doors.owner.call("pair.start", address="127.0.0.1")["url"])
        assert first.show().status == 401
        assert second.show().status == 200


def guesses_are_braked_and_spoil_nothing():
    with Doors() as doors:
        phone = start(doors)
        statuses = [phone.show(code=f"{i:032x}").status for i in range(30)]
        assert statuses[0] == 401 and 429 in statuses and set(statuses) <= {401, 429}, statuses
        for code in ("", "x", "0" * 31, "0" * 33, phone.code.upper(), phone.code + "\0", ["x"], {}):
            assert phone.ask("POST", "/pair", [JSON], json.dumps({"code": code})).status in (401, 429), code
        assert phone.ask("POST", "/pair", [JSON], "{").status in (401, 429)
        assert phone.pair()["token"]


def a_withdrawn_code_closes_the_door():
    with Doors() as doors:
        phone = start(doors)
        assert not is_closed(phone)
        assert doors.owner.call("pair.stop", code=True) == {"open": False}
        assert is_closed(phone)
        phone = start(doors)
        phone.pair()
        doors.owner.call("pair.start", address="127.0.0.1")
        assert doors.owner.call("pair.stop", code=True) == {"open": True}, "a device uses it"
        stream = phone.connect()
        assert doors.owner.call("pair.stop") == {"open": False}
        assert is_closed(phone)
        stream.settimeout(PATIENCE)
        try:
            assert stream.recv(1) == b"", "the device's connection is closed"
        except OSError:
            pass


def only_here():
    """An administrator's token does not open doors from afar; and there is no other way to pair."""
    with Doors() as doors:
        for method in ("pair.start", "pair.stop"):
            answer = doors.rpc(method)
            assert answer["error"]["code"] == 403 and answer["error"]["data"]["reason"] == "notHere", answer
        worker = doors.give("worker", "read work")
        assert doors.rpc("pair.status", token=worker)["error"]["code"] == 403
        phone = start(doors)
        for scheme in ("http", "https"):
            answer = doors.ask("POST", "/pair", [JSON], json.dumps({"code": phone.code}), scheme=scheme)
            assert answer.status == 410, "only by the door for devices"
            assert doors.ask("GET", f"/pair?code={phone.code}", scheme=scheme).status == 410
        assert phone.pair()["token"]


def nothing_else_without_a_token():
    with Doors() as doors:
        phone = start(doors)
        for verb, path, headers in (("GET", "/ws", SOCKET), ("POST", "/rpc", [JSON]), ("GET", "/metrics", []), ("GET", "/preview", []),
                                    ("GET", "/openrpc.json", [])):
            assert phone.ask(verb, path, headers).status == 401, path
        assert phone.ask("GET", "/").headers["location"] == "/login"
        stream = phone.connect()
        stream.sendall(b"GET /pair HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert stream.recv(100).startswith(b"HTTP/1.1 421"), "rebinding"
        answer = phone.ask("POST", "/pair", [FORM, "Origin: https://evil.example"], f"code={phone.code}")
        assert answer.status == 403
        page = phone.ask("GET", "/pair?code=%22%3E%3Cscript%3E")
        assert page.status == 410 and b"<script" not in page.body()


def the_certificate():
    with Doors() as doors:
        phone = start(doors)
        files = [os.path.join(root, name) for root, _, names in os.walk(doors.hub.env["XDG_STATE_HOME"]) for name in names if name.startswith("pair-")]
        keys = [path for path in files if path.endswith(".pem") and "PRIVATE KEY" in open(path).read()]
        assert keys and all(stat.S_IMODE(os.stat(path).st_mode) == 0o600 for path in keys), files
        for root, _, names in os.walk(doors.hub.home):
            for name in names:
                path = os.path.join(root, name)
                if os.path.isfile(path) and not stat.S_ISSOCK(os.stat(path).st_mode):
                    with open(path, "rb") as file:
                        assert b"PRIVATE KEY" not in file.read(), path
        certificate = ssl.DER_cert_to_PEM_cert(phone.connect().getpeercert(binary_form=True))
        path = os.path.join(doors.hub.folder, "seen.pem")
        with open(path, "w") as file:
            file.write(certificate)
        context = ssl.create_default_context(cafile=path)
        with context.wrap_socket(socket.create_connection((phone.host, phone.port)), server_hostname=phone.host) as stream:
            assert stream.version() in ("TLSv1.2", "TLSv1.3")
        wrong = Phone(f"https://{phone.host}:{phone.port}/pair?code={phone.code}#sha256={'0' * 64}")
        try:
            wrong.pair()
        except Pinned:
            pass
        else:
            raise AssertionError("another certificate passes")


def secrets_stay_where_they_are():
    with Doors() as doors:
        watcher = WebSocket(doors.ask("GET", "/ws", [*SOCKET, doors.bearer()]))
        watcher.call("traffic.watch", {"body": True})
        phone = start(doors)
        token = phone.pair()["token"]
        doors.owner.call("task.stats")
        text = ""
        while "task.stats" not in text:
            text += json.dumps(watcher.receive())
        said = doors.hub.said() + text
        for root, _, names in os.walk(doors.hub.home):
            for name in names:
                if name.endswith((".log", ".json")):
                    with open(os.path.join(root, name)) as file:
                        said += file.read()
        assert phone.code not in said and token not in said


def open_again_after_a_restart():
    for keep in (False, True):
        with Doors(config={"pair": {"keep": keep}}) as doors:
            phone = start(doors)
            token = phone.pair()["token"]
            doors.hub.kill()
            doors.hub.start()
            assert is_closed(phone) != keep, keep
            if keep:
                answer = phone.ask("POST", "/rpc", [JSON, f"Authorization: Bearer {token}"], '{"jsonrpc":"2.0","id":1,"method":"task.stats"}')
                assert answer.status == 200, "the same certificate, the same token"
                owner = doors.hub.connect()
                owner.call("pair.stop")
                doors.hub.kill()
                doors.hub.start()
                assert is_closed(phone), "not after it was closed"


main([a_phone_comes_in, a_browser_comes_in, a_code_works_once, a_new_code_ends_the_one_before, guesses_are_braked_and_spoil_nothing,
      a_withdrawn_code_closes_the_door, only_here, nothing_else_without_a_token, the_certificate, secrets_stay_where_they_are,
      open_again_after_a_restart])
