#!/usr/bin/python3
"""A page of another site, or one whose name was made to point here, reaches nothing: Host and Origin are checked on every path,
before the token and in addition to it."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import GUARDED, PUBLIC, SOURCE, Doors, main

EVERY = GUARDED + PUBLIC
# AIWG's web interface is a listener of its own, which only "weft serve --aiwg" opens: tests/interop/aiwg_live.mjs tries these.
OF_AIWG = {("POST", "/api/submit"), ("GET", "/sse/events"), ("GET", "/api/loops"), ("GET", "/api/history"), ("GET", "/api/resources")}


def sources():
    for folder, _, names in os.walk(os.path.join(SOURCE, "src")):
        for name in names:
            if name.endswith(".c"):
                with open(os.path.join(folder, name)) as file:
                    yield file.read()


def every_path_of_the_hub_is_in_these_tests():
    """A new route must be listed in door.py, and is then tried in every way."""
    known = {(verb, path.split("?")[0]) for verb, path, _, _ in EVERY}
    found = set()
    for text in sources():
        found |= set(re.findall(r'weft_server_route\(server, "([A-Z]+)", "([^"]+)"', text))
        found |= {(verb, path) for verb, path in re.findall(r'\{"(GET|POST|PUT|DELETE|PATCH)", "(/[^"]*)"', text)}
    assert len(found) > 15, found
    assert found <= known | OF_AIWG, f"not tried: {found - known - OF_AIWG}"


def refused(doors, headers, host, wanted, what, **more):
    for verb, path, own, body in EVERY:
        for token in ([], [doors.bearer()]):
            answer = doors.ask(verb, path, own + token + headers, body, host=host, **more)
            assert answer.status in wanted, f"{verb} {path} with {what}, token {bool(token)}: {answer.status} {answer.rest}"
            text = answer.body().decode()
            assert doors.hub.folder not in text and "jsonrpc\":\"2.0\",\"id\":1,\"result" not in text, text
            assert "access-control-allow-origin" not in answer.headers, (verb, path, what)


def evil_origin():
    """With the right token too, and also where none is needed."""
    with Doors() as doors:
        port = doors.port("http")
        for origin in ("http://evil.example", f"http://evil.example:{port}", "null", "", "http://127.0.0.1", f"https://127.0.0.1:{port}",
                       f"http://127.0.0.1:{port + 1}", f"http://localhost.evil.example:{port}", f"http://127.0.0.1:{port}.evil.example",
                       f"http://127.0.0.1:{port}@evil.example", f"http://127.0.0.1:{port}/", "file://", "vscode-webview://x"):
            refused(doors, [f"Origin: {origin}"], None, {403}, f"Origin {origin}")
        own = f"Origin: http://127.0.0.1:{port}"
        refused(doors, [own, "Origin: http://evil.example"], None, {403}, "two Origins")
        assert doors.owner.call("task.stats")["total"] == 0
        for verb, path, headers, body in EVERY:
            answer = doors.ask(verb, path, headers + [doors.bearer(), own], body)
            assert answer.status != 403, f"{verb} {path}: our own page is refused"


def evil_origin_asks_first():
    """The browser's question before a request: no path says yes to another site."""
    with Doors() as doors:
        for _, path, _, _ in EVERY:
            answer = doors.ask("OPTIONS", path, ["Origin: http://evil.example", "Access-Control-Request-Method: POST",
                                                 "Access-Control-Request-Headers: authorization"])
            assert answer.status == 403 and "access-control-allow-origin" not in answer.headers, (path, answer.status)


def rebinding_host():
    with Doors() as doors:
        port = doors.port("http")
        for host in (f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}", f"localhost.evil.example:{port}", "0.0.0.0",
                     f"2130706433:{port}", f"127.1:{port}", f"127.0.0.1:{port}.evil.example", f"127.0.0.1:{port}@evil.example",
                     "[::ffff:127.0.0.1]", "", "localhost."):
            refused(doors, [], host, {421, 400}, f"Host {host}")
        refused(doors, [], [], {400}, "no Host")
        refused(doors, [], [f"Host: 127.0.0.1:{port}", "Host: evil.example"], {400}, "two Hosts")
        for verb, path, headers, body in EVERY:
            answer = doors.ask(verb, f"http://evil.example{path}", headers + [doors.bearer()], body)
            assert answer.status in (400, 421), f"{verb} http://evil.example{path}: {answer.status}"
            answer = doors.ask(verb, path, headers + [doors.bearer(), "X-Forwarded-Host: localhost", "Forwarded: host=localhost"], body,
                               host="evil.example")
            assert answer.status == 421, f"{verb} {path}: a header in Host's place counts, {answer.status}"
        assert doors.owner.call("task.stats")["total"] == 0


def also_behind_tls():
    with Doors() as doors:
        for verb, path, headers, body in EVERY:
            for more, host, wanted in (["Origin: http://evil.example"], None, 403), ([], "evil.example", 421):
                answer = doors.ask(verb, path, headers + [doors.bearer()] + more, body, "https", host)
                assert answer.status == wanted, (verb, path, more, host, answer.status)
        plain = f"Origin: http://127.0.0.1:{doors.port('https')}"
        assert doors.ask("GET", "/api/status", [doors.bearer(), plain], scheme="https").status == 403


def also_without_tokens():
    """--auth none leaves these two checks as the only ones."""
    with Doors("none") as doors:
        refused(doors, ["Origin: http://evil.example"], None, {403}, "Origin")
        refused(doors, [], "evil.example", {421}, "Host")
        assert doors.ask("GET", "/api/status").status == 200


main([every_path_of_the_hub_is_in_these_tests, evil_origin, evil_origin_asks_first, rebinding_host, also_behind_tls, also_without_tokens])
