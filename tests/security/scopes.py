#!/usr/bin/python3
"""Every method needs its scope: a token with all the others is refused, before anything of the request is looked at, over every way in."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import GUARDED, SOCKET, Doors, Lines, Refused, WebSocket, main, wait_until

SCOPES = ("read", "work", "admin", "metrics", "exec", "runner", "standby")
# What REST has behind its paths, and the streams.
PATHS = {"/events": "read", "/metrics": "metrics", "/api/claude/run": "work", "/api/claude/stop": "work", "/api/claude/respond": "work", "/api/status": "read",
         "/api/claude/sessions": "read", "/api/claude/sessions/messages": "read", "/api/claude/sessions/elements": "read", "/api/git/status": "read",
         "/api/git/diff": "read", "/api/file": "read", "/api/files/list": "read"}


def rows(doors):
    """Every method and its scope, None: it needs none."""
    return {method["name"]: method.get("x-scope") for method in doors.owner.call("rpc.discover")["methods"]}


def all_but(doors, scope):
    return doors.give(f"not-{scope}", " ".join(one for one in SCOPES if one != scope))


def every_row_has_one():
    """Those that need none tell nothing of the project and change nothing."""
    with Doors() as doors:
        found = rows(doors)
        assert {name for name, scope in found.items() if not scope} <= {"echo", "rpc.discover", "weft.auth", "tinyvex/auth.setToken"}, found
        assert set(found.values()) - {None} <= set(SCOPES)


def without_it_every_row_is_refused_over_http():
    with Doors() as doors:
        tokens = {scope: all_but(doors, scope) for scope in SCOPES}
        for method, scope in rows(doors).items():
            if not scope:
                continue
            error = doors.rpc(method, token=tokens[scope]).get("error")
            assert error and error["code"] == 403, f"{method} without {scope}: {error}"
        assert doors.owner.call("task.stats")["total"] == 0 and doors.hub.process.poll() is None


def refused_by(call, method, scope):
    try:
        call(method)
    except Refused as refused:
        assert refused.code == 403, f"{method} without {scope}: {refused}"
        return
    raise AssertionError(f"{method} was answered without {scope}")


def and_over_a_websocket_and_tcp():
    with Doors() as doors:
        for scope in SCOPES:
            token = all_but(doors, scope)
            line = Lines(doors.connect("tcp"))
            line.call("weft.auth", {"token": token})
            others = [line, WebSocket(doors.ask("GET", "/ws", SOCKET + [doors.bearer(token)])),
                      WebSocket(doors.ask("GET", "/acp", SOCKET + [doors.bearer(token)]))]
            for other in others:
                for method, needed in rows(doors).items():
                    if needed == scope:
                        refused_by(other.call, method, scope)


def and_by_rest():
    with Doors() as doors:
        paths = {path.split("?")[0] for _, path, _, _ in GUARDED if path.startswith("/api/")} - {"/api/rpc/discover"}
        assert paths <= set(PATHS), f"not tried: {paths - set(PATHS)}"
        tokens = {scope: all_but(doors, scope) for scope in ("read", "work", "metrics")}
        for verb, path, headers, body in GUARDED:
            scope = PATHS.get(path.split("?")[0])
            if not scope:
                continue
            answer = doors.ask(verb, path, headers + [doors.bearer(tokens[scope])], body)
            assert answer.status == 403, f"{verb} {path} without {scope}: {answer.status} {answer.rest}"


def a_batch_has_no_other_rules():
    with Doors() as doors:
        reader = WebSocket(doors.ask("GET", "/ws", SOCKET + [doors.bearer(doors.give("reader", "read"))]))
        reader.send([{"jsonrpc": "2.0", "id": 1, "method": "task.stats"}, {"jsonrpc": "2.0", "id": 2, "method": "daemon.stop"},
                     {"jsonrpc": "2.0", "method": "daemon.stop"},
                     {"jsonrpc": "2.0", "id": 3, "method": "task.submit", "params": {"prompt": "echo no"}}])
        answers = {one["id"]: one for one in reader.receive()}
        assert "result" in answers[1] and answers[2]["error"]["code"] == 403 and answers[3]["error"]["code"] == 403, answers
        assert doors.owner.call("task.stats")["total"] == 0


def without_read_nothing_is_told():
    """No notification of any kind, though there is much to tell."""
    with Doors() as doors:
        deaf = WebSocket(doors.ask("GET", "/ws", SOCKET + [doors.bearer(doors.give("worker", "work"))]))
        for _ in range(3):
            deaf.call("task.submit", {"prompt": "echo told to nobody"})
        wait_until("they are done", lambda: doors.owner.call("task.stats")["completed"] == 3)
        deaf.send({"jsonrpc": "2.0", "id": "last", "method": "echo", "params": {}})
        message = deaf.receive()
        assert message.get("id") == "last", message


def the_old_commands_have_no_other_rules():
    """{command, payload}, as cdev's first clients speak."""
    with Doors() as doors:
        for name, scopes, made in ("reader", "read", 0), ("worker", "read work", 1):
            old = WebSocket(doors.ask("GET", "/ws", SOCKET + [doors.bearer(doors.give(name, scopes))]))
            old.send({"command": "run_claude", "payload": {"prompt": "echo no"}})
            old.send({"jsonrpc": "2.0", "id": 9, "method": "echo", "params": {}})
            while old.receive().get("id") != 9:
                pass
            assert wait_until("it is counted", lambda: doors.owner.call("task.stats")["total"] == made), name


def a_path_is_no_way_around_the_gates():
    """What a list keeps from a token, no GET gives it; what must be signed is refused as such by REST too."""
    def secret(folder):
        with open(os.open(os.path.join(folder, "ci.key"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("x" * 32 + "\n")

    gates = [{"token": "phone", "allow": ["task.*", "ping"]}, {"token": "slow", "methods": ["metrics.get"], "rate_per_minute": 1},
             {"methods": ["status/get"], "require": "signature"}]
    with Doors(config={"gates": gates, "keys": {"ci": {"file": "ci.key"}}}, project=secret) as doors:
        phone, slow, free = (doors.bearer(doors.give(name, "read work metrics")) for name in ("phone", "slow", "free"))
        for path, headers in ("/metrics", []), ("/events", ["Accept: text/event-stream"]), ("/openrpc.json", []), ("/api/rpc/discover", []):
            answer = doors.ask("GET", path, [phone] + headers)
            assert answer.status == 403 and answer.json()["error"] == "methodNotAllowed", (path, answer.status, answer.rest)
            assert doors.ask("GET", path, [free] + headers).status == 200, path
        assert doors.ask("GET", "/metrics", [slow]).status == 200
        late = doors.ask("GET", "/metrics", [slow])
        assert late.status == 429 and 0 < int(late.headers["retry-after"]) <= 60 and late.json()["retryAfterMs"] > 0, late.rest
        unsigned = doors.ask("GET", "/api/status", [free])
        assert unsigned.status == 401 and unsigned.json()["data"]["reason"] == "signatureMissing", unsigned.rest


main([every_row_has_one, without_it_every_row_is_refused_over_http, and_over_a_websocket_and_tcp, and_by_rest, a_batch_has_no_other_rules,
      without_read_nothing_is_told, the_old_commands_have_no_other_rules,
      a_path_is_no_way_around_the_gates])
