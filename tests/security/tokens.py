#!/usr/bin/python3
"""Who comes over the network shows a token, by every way there is, and one that does not count opens nothing: none, a wrong one, one that
has expired, one that was revoked."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import GUARDED, JSON, PATIENCE, PUBLIC, SOCKET, WEFT, Doors, Gone, Lines, Refused, WebSocket, main, wait_until

HTTP = ("http", "https")
SOCKETS = [("ws", "/ws"), ("ws", "/acp"), ("wss", "/ws"), ("wss", "/acp")]
BYTES = ("tcp", "tls")
OPEN = ("rpc.discover", "weft.auth", "tinyvex/auth.setToken")  # for strangers: what there is, and who they are


def with_token(doors, way, token, path, headers):
    """The path and the headers of a request that shows it in this way."""
    if way == "header":
        return path, headers + [f"Authorization: Bearer {token}"]
    if way == "query":
        return f"{path}{'&' if '?' in path else '?'}token={token}", headers
    if way == "protocol":
        return path, headers + [f"Sec-WebSocket-Protocol: weft.token.{token}"]
    return path, headers + [f"Cookie: weft_session_{doors.port('http')}={token}", "Sec-Fetch-Site: same-origin"]


WAYS = ("header", "query", "protocol", "cookie")


def dead_tokens(doors):
    """One that has expired, and one that was revoked. Both were good once."""
    short, taken = doors.give("short", expiresIn=1), doors.give("taken")
    assert "result" in doors.rpc("task.stats", token=taken)
    doors.owner.call("token.revoke", name="taken")
    wait_until("it has expired", lambda: doors.ask("GET", "/api/status", [doors.bearer(short)]).status in (401, 429))
    return {"expired": short, "revoked": taken}


def is_refused(answer, what):
    assert answer.status in (401, 429), f"{what}: {answer.status} {answer.rest}"
    assert b"result" not in answer.body(), what


def no_token_on_every_path():
    with Doors() as doors:
        for scheme in HTTP:
            for verb, path, headers, body in GUARDED:
                is_refused(doors.ask(verb, path, headers, body, scheme), f"{scheme} {verb} {path}")
            for verb, path, headers, body in PUBLIC:
                answer = doors.ask(verb, path, headers, body, scheme)
                assert answer.status not in (101, 404), f"{scheme} {verb} {path}"
        assert doors.owner.call("task.stats")["total"] == 0


def bad_expired_and_revoked_tokens_on_every_path_by_every_way():
    with Doors() as doors:
        dead = dead_tokens(doors)
        dead.update(bad="nonsense", almost=doors.token[:-1], longer=doors.token + "0", upper=doors.token.upper(), odd="%00")
        if dead["upper"] == doors.token:
            del dead["upper"]
        for kind, token in dead.items():
            for way in WAYS:
                for verb, path, headers, body in GUARDED:
                    target, lines = with_token(doors, way, token, path, headers)
                    is_refused(doors.ask(verb, target, lines, body), f"{kind} by {way}: {verb} {path}")
        assert doors.owner.call("task.stats")["total"] == 0
        for way in "header", "query":
            target, lines = with_token(doors, way, doors.token, "/api/status", [])
            assert doors.ask("GET", target, lines).status == 200, f"the right one by {way}, after all of these"


def other_words_for_it_do_not_count():
    """The right token, in a place that is none."""
    with Doors() as doors:
        cookie = f"Cookie: weft_session_{doors.port('http')}={doors.token}"
        for lines in ([f"Authorization: {doors.token}"], [f"Authorization: Basic {doors.token}"], [f"Proxy-Authorization: Bearer {doors.token}"],
                      [cookie, "Sec-Fetch-Site: same-origin"], [f"Cookie: token={doors.token}"], [f"X-Token: {doors.token}"]):
            is_refused(doors.ask("GET", "/api/status", lines), lines[0].split()[0])
        for query in (f"Token={doors.token}", f"xtoken={doors.token}", f"token%3d{doors.token}", f"a=token={doors.token}"):
            is_refused(doors.ask("GET", f"/api/status?{query}"), query[:10])


def by_every_way_the_right_one_opens():
    """Otherwise the tests above would prove nothing."""
    with Doors() as doors:
        for scheme, path in SOCKETS:
            for way in "header", "query", "protocol":
                target, lines = with_token(doors, way, doors.token, path, SOCKET)
                assert doors.ask("GET", target, lines, scheme=scheme).status == 101, (scheme, path, way)
        for scheme in HTTP:
            assert doors.ask("GET", "/api/status", [doors.bearer()], scheme=scheme).status == 200
            assert doors.ask("GET", "/events", [doors.bearer(), "Accept: text/event-stream"], scheme=scheme).status == 200
        for scheme in BYTES:
            line = Lines(doors.connect(scheme))
            line.call("weft.auth", {"token": doors.token})
            assert line.call("task.stats")["total"] == 0
        cookie = log_in(doors, doors.token)
        assert doors.ask("GET", "/api/status", [cookie, "Sec-Fetch-Site: same-origin"]).status == 200


def log_in(doors, token):
    answer = doors.ask("POST", "/login", ["Content-Type: application/x-www-form-urlencoded", f"Origin: http://127.0.0.1:{doors.port('http')}"],
                       f"token={token}")
    assert answer.status == 303 and token not in answer.headers["set-cookie"], (answer.status, answer.headers)
    for word in ("HttpOnly", "SameSite=Strict"):
        assert word.lower() in answer.headers["set-cookie"].lower(), answer.headers["set-cookie"]
    return "Cookie: " + answer.headers["set-cookie"].split(";")[0]


def a_cookie_ends_with_its_token():
    with Doors() as doors:
        cookie = log_in(doors, doors.give("browser"))
        own = [cookie, "Sec-Fetch-Site: same-origin"]
        assert doors.ask("GET", "/api/status", own).status == 200
        for site in ("cross-site", "same-site"):
            is_refused(doors.ask("GET", "/api/status", [cookie, f"Sec-Fetch-Site: {site}"]), site)
        is_refused(doors.ask("GET", "/ws", SOCKET + [cookie]), "a WebSocket of who knows whom")
        is_refused(doors.ask("POST", "/rpc", [JSON, cookie], '{"jsonrpc":"2.0","id":1,"method":"task.stats"}'), "a POST of who knows whom")
        doors.owner.call("token.revoke", name="browser")
        is_refused(doors.ask("GET", "/api/status", own), "revoked")


def on_tcp_and_tls_nothing_comes_before_it():
    """Every method of the hub is answered 401, and weft.auth takes no dead token."""
    with Doors() as doors:
        methods = [method["name"] for method in doors.owner.call("rpc.discover")["methods"]]
        assert len(methods) > 50
        dead = dead_tokens(doors)
        for scheme in BYTES:
            line = Lines(doors.connect(scheme))
            for method in methods:
                if method in OPEN:
                    continue
                try:
                    line.call(method)
                    raise AssertionError(f"{scheme}: {method} was answered")
                except Refused as refused:
                    assert refused.code == 401, (scheme, method, refused)
            for kind, token in {"bad": "nonsense", **dead}.items():
                stranger = Lines(doors.connect(scheme))
                for params in {"token": token}, {"token": ""}, {"token": None}, {}:
                    try:
                        stranger.call("weft.auth", params)
                        raise AssertionError(f"{scheme}: {kind} {params} was taken")
                    except (Refused, Gone):
                        pass
                try:
                    stranger.call("task.stats")
                    raise AssertionError(f"{scheme}: in after a {kind} token")
                except (Refused, Gone):
                    pass
        assert doors.owner.call("task.stats")["total"] == 0


def revoking_closes_every_kind_of_connection():
    with Doors() as doors:
        token = doors.give("phone")
        open_ones = {}
        for scheme, path in SOCKETS:
            open_ones[scheme + path] = WebSocket(doors.ask("GET", path, SOCKET + [doors.bearer(token)], scheme=scheme))
        for scheme in BYTES:
            open_ones[scheme] = Lines(doors.connect(scheme))
            open_ones[scheme].call("weft.auth", {"token": token})
        events = doors.ask("GET", "/events", [doors.bearer(token), "Accept: text/event-stream"])
        assert events.status == 200
        doors.owner.call("token.revoke", name="phone")
        for one in open_ones.values():
            try:
                while True:
                    one.receive()
            except Gone:
                pass
        while events.stream.recv(65536):
            pass
        assert "result" in doors.rpc("task.stats"), "the others stay"


def open_all(doors, token):
    """A connection of each kind with this token; None: it had expired before they were there."""
    answers = [doors.ask("GET", path, SOCKET + [doors.bearer(token)], scheme=scheme) for scheme, path in SOCKETS]
    events = doors.ask("GET", "/events", [doors.bearer(token), "Accept: text/event-stream"])
    lines = [Lines(doors.connect(scheme)) for scheme in BYTES]
    try:
        for line in lines:
            line.call("weft.auth", {"token": token})
    except (Refused, Gone):
        return None
    if events.status != 200 or any(answer.status != 101 for answer in answers):
        return None
    return [WebSocket(answer) for answer in answers] + lines, events


def a_token_that_expires_closes_its_connections():
    """With more and more time, until there is enough to connect in."""
    with Doors() as doors:
        for seconds in (2, 5, 20):
            found = open_all(doors, doors.give(f"for-{seconds}", expiresIn=seconds))
            if found:
                break
        assert found, "it expires too early"
        for one in found[0]:
            try:
                while True:
                    one.receive()
            except Gone:
                pass
        while found[1].stream.recv(65536):
            pass


def listening_beyond_this_machine():
    """Not without TLS unless it is asked for in words, and never without tokens."""
    with Doors() as doors:
        doors.hub.stop()
        for url in ("tcp://0.0.0.0:0", "ws://0.0.0.0:0/ws", "http://0.0.0.0:0/rpc", "ws://[::]:0/ws"):
            for more in [], ["--auth", "none"], ["--auth", "none", "--insecure-listen"]:
                done = subprocess.run([WEFT, "serve", "--listen", url, *more], cwd=doors.hub.folder, env=doors.hub.env, stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=PATIENCE)
                assert done.returncode not in (0, -9) and "listening on" not in done.stderr, (url, more, done.stderr)


main([no_token_on_every_path, bad_expired_and_revoked_tokens_on_every_path_by_every_way, other_words_for_it_do_not_count,
      by_every_way_the_right_one_opens, a_cookie_ends_with_its_token, on_tcp_and_tls_nothing_comes_before_it,
      revoking_closes_every_kind_of_connection, a_token_that_expires_closes_its_connections,
      listening_beyond_this_machine])
