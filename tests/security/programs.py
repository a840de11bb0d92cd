#!/usr/bin/python3
"""A remote caller chooses a name, never a command: MCP servers and folders for an agent's session need the scope exec, and nobody leaves the
project's folder."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import JSON, SOCKET, Doors, Lines, WebSocket, main

SERVER = {"name": "evil", "command": "/bin/sh", "args": ["-c", "id"], "env": []}
REMOTE = {"type": "http", "name": "evil", "url": "http://evil.example/", "headers": []}


def ways(doors, token):
    """A connection of each kind that can make sessions, as a function of method and params that returns the whole answer."""
    def over(connection):
        def call(method, params):
            connection.last_id += 1
            message = {"jsonrpc": "2.0", "id": connection.last_id, "method": method, "params": params}
            if isinstance(connection, Lines):
                connection.stream.sendall(json.dumps(message).encode() + b"\n")
            else:
                connection.send(message)
            while True:
                answer = connection.receive()
                if answer.get("id") == connection.last_id and "method" not in answer:
                    return answer
        return call

    line = Lines(doors.connect("tcp"))
    line.call("weft.auth", {"token": token})
    return {"ws": over(WebSocket(doors.ask("GET", "/ws", SOCKET + [doors.bearer(token)]))),
            "acp": over(WebSocket(doors.ask("GET", "/acp", SOCKET + [doors.bearer(token)]))),
            "tcp": over(line), "http": lambda method, params: doors.rpc(method, params, token)}


def acp(call):
    call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    return call


def commands_and_folders_without_exec():
    with Doors() as doors:
        token, folder = doors.give("phone", "read work admin metrics"), doors.hub.folder
        os.mkdir(f"{folder}/sub")
        calls = ways(doors, token)
        for way, call in calls.items():
            for params in {"mcpServers": [SERVER]}, {"mcpServers": [REMOTE]}, {"mcpServers": []}, {"folder": "sub"}, {"folder": "/"}:
                answer = call("session.create", params)
                assert answer.get("error", {}).get("code") == 403, f"{way}: session.create {params}: {answer}"
        new = acp(calls["acp"])
        for cwd, servers in (folder, [SERVER]), (folder, [REMOTE]), (f"{folder}/sub", []), ("/", []), ("/etc", [SERVER]), (f"{folder}/..", []):
            answer = new("session/new", {"cwd": cwd, "mcpServers": servers})
            assert "error" in answer and answer["error"]["code"] in (403, -32602), f"session/new {cwd} {servers}: {answer}"
        for more in ({"additionalDirectories": ["/"]},):
            assert "error" in new("session/new", {"cwd": folder, "mcpServers": [], **more}), more
        assert not doors.owner.call("session.list")["sessions"]
        made = new("session/new", {"cwd": folder, "mcpServers": []})
        assert "result" in made, f"without them it may: {made}"
        for method in "session/load", "session/resume":
            answer = new(method, {"sessionId": made["result"]["sessionId"], "cwd": folder, "mcpServers": [SERVER]})
            assert answer.get("error", {}).get("code") == 403, f"{method}: {answer}"
        assert not doors.owner.call("session.get", sessionId=made["result"]["sessionId"])["session"]["mcpServers"]


def over_streamable_http():
    with Doors() as doors:
        token = doors.give("phone")
        lines = [JSON, doors.bearer(token), "Accept: application/json, text/event-stream"]

        def post(method, params, more=()):
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            return doors.ask("POST", "/acp", lines + list(more), body)

        first = post("initialize", {"protocolVersion": 1})
        assert first.status == 200, (first.status, first.rest)
        connection = f"Acp-Connection-Id: {first.headers['acp-connection-id']}"
        stream = doors.ask("GET", "/acp", [doors.bearer(token), "Accept: text/event-stream", connection])
        assert stream.status == 200, (stream.status, stream.rest)
        answer = post("session/new", {"cwd": doors.hub.folder, "mcpServers": [SERVER]}, [connection])
        said = answer.body() if answer.status != 202 else b""
        while b'"error"' not in said and b'"result"' not in said + stream.rest:
            if b'"error"' in stream.rest:
                break
            stream.rest += stream.stream.recv(65536)
        assert b'"result"' not in said + stream.rest and b"403" in said + stream.rest, (said, stream.rest)
        assert not doors.owner.call("session.list")["sessions"]


def with_exec_nobody_leaves_the_folder():
    with Doors() as doors:
        token, folder = doors.give("desk", "read work exec"), doors.hub.folder
        os.mkdir(f"{folder}/sub")
        os.symlink("/etc", f"{folder}/link")
        calls = ways(doors, token)
        for way, call in calls.items():
            for bad in ("/", "/etc", "..", "../..", "link", "sub/../..", f"{folder}/..", "/proc/self/cwd", ".weft", ".git", "nowhere", "\0"):
                answer = call("session.create", {"folder": bad})
                assert "error" in answer, f"{way}: {bad}: {answer}"
        new = acp(calls["acp"])
        for bad in ("/", "/etc", f"{folder}/..", f"{folder}/link", f"{folder}/sub/../..", f"{folder}/.weft", f"{folder}-outside", "relative", ""):
            answer = new("session/new", {"cwd": bad, "mcpServers": []})
            assert answer.get("error", {}).get("code") == -32602, f"{bad}: {answer}"
        made = calls["ws"]("session.create", {"folder": "sub", "mcpServers": [SERVER]})
        assert "result" in made, made
        assert "result" in new("session/new", {"cwd": f"{folder}/sub", "mcpServers": []})


def nobody_remote_configures_an_agent():
    """No method takes a command, arguments or an environment."""
    with Doors() as doors:
        for method in doors.owner.call("rpc.discover")["methods"]:
            names = {param["name"] for param in method.get("params", [])}
            names -= {"args"} if method["name"] in ("tinyvex/mutation", "tinyvex/action", "console") else set()  # values, not words of a command
            assert not names & {"command", "argv", "args", "env", "program", "shell", "driver"}, (method["name"], names)


main([commands_and_folders_without_exec, over_streamable_http, with_exec_nobody_leaves_the_folder, nobody_remote_configures_an_agent])
