#!/usr/bin/python3
"""A token is in the hands of who has it and nowhere else: not in the log, also not with WEFT_DEBUG=1, not in the arguments or the environment of
a process, not in the journal, not in an answer."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import JSON, PATIENCE, SOCKET, WEFT, Doors, Gone, Lines, Refused, WebSocket, main, wait_until

SHOW = "import os, sys; print(sys.argv, dict(os.environ))"
CLI = {"agents": {"show": {"driver": "cli", "command": [sys.executable, "-c", SHOW]}}, "default_agent": "show"}


def show_everywhere(doors, token):
    """Every way there is to show a token, on every path that logs something."""
    for scheme in ("http", "https"):
        for headers, query in ([doors.bearer(token)], ""), ([], f"?token={token}"), ([f"Cookie: weft_session_{doors.port(scheme)}={token}"], ""):
            for verb, path, more, body in ("GET", "/api/status", [], ""), ("GET", "/nowhere", [], ""), ("POST", "/rpc", [JSON], "{"), \
                    ("POST", "/rpc", [JSON], json.dumps({"jsonrpc": "2.0", "id": 1, "method": "echo", "params": {"token": token}})):
                answer = doors.ask(verb, path + query, headers + more + ["Connection: close"], body, scheme)
                said = answer.body().decode()
                assert token not in said or "echo" in body, said
        doors.ask("POST", "/login", ["Content-Type: application/x-www-form-urlencoded"], f"token={token}", scheme).body()
        doors.ask("GET", f"/login?token={token}", [], "", scheme).body()
    for more in f"Sec-WebSocket-Protocol: weft.token.{token}", f"Sec-WebSocket-Protocol: json, weft.token.{token}":
        doors.ask("GET", "/ws", SOCKET + [more])
    doors.ask("GET", f"/ws?token={token}", SOCKET)
    for scheme in ("tcp", "tls"):
        for params in {"token": token}, [token]:
            line = Lines(doors.connect(scheme))
            try:
                line.call("weft.auth", params)
                line.call("task.stats")
            except (Refused, Gone):
                pass


def files_with(folder, secret):
    """Every file below that contains it."""
    found = []
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    if secret.encode() in file.read():
                        found.append(os.path.relpath(path, folder))
    return found


def not_in_any_file():
    """With everything logged that can be."""
    with Doors(config={"log": {"file": "requests.log", "level": "debug", "requests": True}}, env={"WEFT_DEBUG": "1"}) as doors:
        phone = doors.give("phone")
        for token in (doors.token, phone, "wrong-" + phone):
            show_everywhere(doors, token)
        socket = WebSocket(doors.ask("GET", "/ws", SOCKET + [doors.bearer()]))
        desk = socket.call("token.add", {"name": "desk", "scopes": "read"})["token"]
        socket.call("token.list")
        for params in {"mcpServers": [{"name": "m", "command": "/bin/true", "args": [], "env": [{"name": "API_KEY", "value": "env-" + desk}]}]}, \
                {"mcpServers": [{"type": "http", "name": "m", "url": "http://127.0.0.1:1/", "headers": [{"name": "Authorization", "value": "h-" + desk}]}]}:
            try:
                socket.call("session.create", params)
            except Refused:
                pass
        assert doors.hub.said().count('"way":"in"'), "nothing is logged, so nothing was proved"
        with open(os.path.join(doors.hub.folder, "requests.log")) as file:
            assert '"method":"weft.auth"' in file.read(), "no request is logged"
        doors.hub.stop()
        assert files_with(doors.hub.folder, doors.token) == [".weft/token"], files_with(doors.hub.folder, doors.token)
        assert not files_with(doors.hub.folder, phone), files_with(doors.hub.folder, phone)
        for name in doors.hub.talk, os.path.join(doors.hub.folder, "requests.log"):
            with open(name) as file:
                assert desk not in file.read()


def not_in_arguments_nor_in_agents():
    """While the program calls with one, and in what an agent is given."""
    with Doors(config=CLI, env={"WEFT_TOKEN": "of-somebody-who-started-it"}) as doors:
        phone = doors.give("phone")
        with open(os.path.join(doors.hub.folder, "phone.txt"), "w") as file:
            file.write(phone)
        url = next(url for url in doors.urls if url.startswith("ws://") and url.endswith("/ws"))
        listens = subprocess.Popen([WEFT, "listen", url, "--token-file", "phone.txt"], cwd=doors.hub.folder, env=doors.hub.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until("it listens", lambda: doors.owner.call("daemon.status")["subsystems"]["ipc"]["clients"] >= 2)
            task = doors.owner.call("task.submit", prompt="x")["taskId"]
            done = wait_until("it has ended", lambda: (lambda t: t["completedAt"] and t)(doors.owner.call("task.get", taskId=task)))
            assert "WEFT_TASK_ID" in done["output"], done
            for secret in (phone, doors.token):
                assert secret not in done["output"], done
                for name in filter(str.isdigit, os.listdir("/proc")):
                    for part in ("cmdline", "environ"):
                        try:
                            with open(f"/proc/{name}/{part}", "rb") as file:
                                assert secret.encode() not in file.read(), f"{part} of {name}"
                        except OSError:
                            pass
        finally:
            listens.kill()
            listens.wait()


def those_of_mcp_servers_are_told_to_nobody():
    """Who may read sees which servers a session has, and nothing that was said to start or reach them."""
    secret = "only-for-the-agent"
    servers = [{"name": "local", "command": "/bin/true", "args": ["--key", secret], "env": [{"name": "KEY", "value": secret}]},
               {"type": "http", "name": "remote", "url": f"http://u:{secret}@127.0.0.1:1/?k={secret}",
                "headers": [{"name": "Authorization", "value": secret}]}]
    with Doors() as doors:
        ids = [doors.owner.call("session.create", mcpServers=[server])["session"]["id"] for server in servers]
        reader = doors.give("reader", "read")
        said = [doors.rpc(method, params, reader) for one in ids for method, params in (
            ("session.list", {}), ("session.get", {"sessionId": one}), ("session/list", {}), ("session/get", {"session_id": one}))]
        assert "local" in json.dumps(said), said
        follows = WebSocket(doors.ask("GET", "/ws", SOCKET + [doors.bearer(reader)]))
        head = follows.call("event.subscribe", {"after": 0})["head"]
        while True:
            said.append(follows.receive())
            if said[-1].get("params", {}).get("gseq", 0) >= head:
                break
        assert "session.created" in json.dumps(said) and secret not in json.dumps(said), said


def not_an_option():
    """There is no way to say a token on a command line, so that nobody does."""
    for verb in ("call", "listen", "serve", "task", "bridge", "token"):
        said = subprocess.run([WEFT, verb, "--help"], capture_output=True, text=True, timeout=PATIENCE).stdout
        for line in said.splitlines():
            assert not line.strip().startswith("--token ") and " --token TOKEN" not in line, line


main([not_in_any_file, not_in_arguments_nor_in_agents, those_of_mcp_servers_are_told_to_nobody, not_an_option])
