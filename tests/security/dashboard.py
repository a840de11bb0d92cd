#!/usr/bin/python3
"""The dashboard: nobody gets it without logging in, its pages keep to themselves, and what an administrator sees of other people's
messages has no secrets in it."""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import SOCKET, Doors, Refused, Skipped, WebSocket, main, wait_until

NAVIGATE = ["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"]


def policy(answer):
    return {part.split()[0]: part.split()[1:] for part in answer.headers["content-security-policy"].split(";") if part.strip()}


def session(doors, link, scheme="http", headers=()):
    """The Cookie header after opening a link."""
    answer = doors.ask("GET", "/" + link.split("/", 3)[3], [*NAVIGATE, *headers], scheme=scheme)
    assert answer.status == 200, (answer.status, answer.body())
    assert "set-cookie" in answer.headers, answer.body()
    return answer, "Cookie: " + answer.headers["set-cookie"].split(";")[0]


def assets_of(doors):
    answer = doors.ask("GET", "/", [doors.bearer()])
    found = re.findall(r"/assets/[0-9a-f]{16}", answer.body().decode())
    return found[0] if found else None


def nothing_without_a_login():
    with Doors() as doors:
        for scheme in ("http", "https"):
            answer = doors.ask("GET", "/", scheme=scheme)
            assert answer.status == 303 and answer.headers["location"] == "/login", answer.status
            for path in ("/preview", "/assets/", "/assets/x", (assets_of(doors) or "/assets/none") + "/dashboard/index.html"):
                answer = doors.ask("GET", path, scheme=scheme)
                assert answer.status == 401, (path, answer.status)
                assert b"<html" not in answer.body()
            state = doors.ask("GET", "/login/state", scheme=scheme).json()
            assert state == {"authenticated": False}, state


def pages_keep_to_themselves():
    with Doors() as doors:
        page = doors.ask("GET", "/", [doors.bearer()])
        assert page.status == 200
        rules = policy(page)
        assert rules["default-src"] == ["'none'"] and rules["script-src"] == ["'self'"] and rules["style-src"] == ["'self'"], rules
        assert rules["frame-ancestors"] == ["'none'"] and rules["base-uri"] == ["'none'"], rules
        assert rules["require-trusted-types-for"] == ["'script'"] and "trusted-types" in rules, rules
        assert rules["connect-src"] == ["'self'", f"ws://127.0.0.1:{doors.port('http')}"], rules
        for name, value in (("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"), ("referrer-policy", "no-referrer"),
                            ("cross-origin-opener-policy", "same-origin"), ("cross-origin-resource-policy", "same-origin"),
                            ("cache-control", "no-cache")):
            assert page.headers[name] == value, (name, page.headers.get(name))
        assert "camera=()" in page.headers["permissions-policy"]
        secure = doors.ask("GET", "/", [doors.bearer()], scheme="https")
        assert policy(secure)["connect-src"] == ["'self'", f"wss://127.0.0.1:{doors.port('https')}"]
        assert "unsafe" not in page.headers["content-security-policy"]


def a_strange_host_stays_out_of_the_policy():
    """Where every Host is allowed, one cannot add to the policy."""
    with Doors(config={"allowed_hosts": ["*"]}) as doors:
        page = doors.ask("GET", "/", [doors.bearer()], host="x.example;script-src")
        assert page.status in (200, 400), page.status
        if page.status == 200:
            assert policy(page)["connect-src"] == ["'self'"] and policy(page)["script-src"] == ["'self'"]


def assets_are_theirs_alone():
    """No path leads out, and pages are not served there without their policy."""
    with Doors() as doors:
        base = assets_of(doors)
        version = base or "/assets/0000000000000000"
        for path in ("/../../etc/passwd", "/dashboard/../../../../etc/passwd", "/dashboard/%2e%2e/%2e%2e/x", "/dashboard/index.html",
                     "/dashboard/preview.html", "/dashboard/", "/weft/..%2f..%2fx.js", "//etc/passwd", "/dashboard/nothing.js", "", "/"):
            answer = doors.ask("GET", version + path, [doors.bearer()])
            assert answer.status == 404, (path, answer.status)
            assert b"root:" not in answer.body()
        answer = doors.ask("GET", "/assets/0123456789abcdef/dashboard/app.js", [doors.bearer()])
        assert answer.status == 404 and answer.headers["cache-control"] == "no-store", answer.headers
        for verb in ("POST", "PUT", "DELETE"):
            assert doors.ask(verb, version + "/dashboard/app.js", [doors.bearer()]).status == 405, verb


def a_folder_in_place_of_the_program():
    """Links in it are not followed, and nothing beside it is served."""
    def project(folder):
        os.makedirs(os.path.join(folder, "own/dashboard"))
        for name, text in (("own/dashboard/index.html", "<p>{{assets}} mine</p>"), ("own/dashboard/a.js", "a()" * 2000),
                           ("own/secret.js", "no"), ("secret.js", "no")):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        os.symlink("../../secret.js", os.path.join(folder, "own/dashboard/link.js"))

    with Doors(config={"web": "own"}, project=project) as doors:
        page = doors.ask("GET", "/", [doors.bearer()])
        assert page.body() == b"<p>/assets/folder mine</p>", page.body()
        script = doors.ask("GET", "/assets/folder/dashboard/a.js", [doors.bearer()])
        assert script.status == 200 and script.headers["content-type"].startswith("text/javascript"), script.headers
        assert script.headers["cache-control"] == "no-store" and len(script.body()) == 6000
        for path in ("dashboard/link.js", "secret.js", "../secret.js", "dashboard/../secret.js", "dashboard/../../secret.js"):
            assert doors.ask("GET", f"/assets/folder/{path}", [doors.bearer()]).status == 404, path


def a_link_works_once():
    with Doors() as doors:
        link = doors.owner.call("login.code")["url"]
        answer, cookie = session(doors, link)
        flags = [part.strip() for part in answer.headers["set-cookie"].split(";")[1:]]
        assert "HttpOnly" in flags and "SameSite=Strict" in flags and "Path=/" in flags and "Secure" not in flags, flags
        assert doors.ask("GET", "/", [cookie, *NAVIGATE]).status == 200
        again = doors.ask("GET", "/" + link.split("/", 3)[3], NAVIGATE)
        assert again.status == 401 and "set-cookie" not in again.headers, again.status
        answer, _ = session(doors, doors.owner.call("login.code")["url"], scheme="https")
        assert "Secure" in answer.headers["set-cookie"], answer.headers["set-cookie"]
        state = doors.ask("GET", "/login/state", [cookie]).json()
        assert state["authenticated"] and state["name"] == "token", state


def a_link_gives_no_more_than_its_maker_has():
    with Doors() as doors:
        reader = doors.give("reader", "read")
        link = doors.rpc("login.code", token=reader)["result"]["url"]
        _, cookie = session(doors, link)
        state = doors.ask("GET", "/login/state", [cookie]).json()
        assert state["name"] == "reader" and state["scopes"] == "read", state
        doors.owner.call("token.revoke", name="reader")
        wait_until("the session ends with its token", lambda: doors.ask("GET", "/", [cookie, *NAVIGATE]).status == 303)
        doors.give("counter", "metrics")


def another_users_browser_cannot_use_a_link():
    """The link was an argument of the program that opened it, which every user can read."""
    if os.geteuid() != 0:
        raise Skipped("needs root, to be somebody else")
    with Doors() as doors:
        link = doors.owner.call("login.code")["url"]
        path = "/" + link.split("/", 3)[3]
        code = ("import os, sys, socket\nos.setgid(65534); os.setuid(65534)\n"
                "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
                "s.sendall(('GET %s HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' % sys.argv[2]).encode())\n"
                "data = b''\nwhile True:\n    piece = s.recv(65536)\n    if not piece: break\n    data += piece\n"
                "print(data.split()[1].decode())\n")
        said = subprocess.run([sys.executable, "-c", code, str(doors.port("http")), path], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == "401", said
        session(doors, link)


def others_messages_have_no_secrets():
    with Doors() as doors:
        watcher = WebSocket(doors.ask("GET", "/ws", [*SOCKET, doors.bearer()]))
        assert watcher.call("traffic.watch", {"body": True}) == {"watching": True}
        other = WebSocket(doors.ask("GET", "/ws", [*SOCKET, doors.bearer()]))
        made = other.call("token.add", {"name": "spy", "scopes": "read"})["token"]
        link = other.call("login.code")["url"]
        other.call("echo", {"apiKey": "k3y", "deep": [{"Authorization": "Bearer b34rer", "env": {"A": "3nv"}}], "url": "http://x/?token=t0ken", "say": "hello"})
        other.send({"jsonrpc": "2.0", "id": "x", "method": "weft.auth", "params": ["p0sition"]})
        other.call("task.stats")
        frames, text = [], ""
        while not any(frame.get("method") == "task.stats" and frame["dir"] == "out" for frame in frames):
            message = watcher.receive()
            assert message.get("method") == "traffic", message
            frames += message["params"]["frames"]
            text += str(message)
        for secret in (made, link.split("=")[1], "k3y", "b34rer", "3nv", "t0ken", "p0sition"):
            assert secret not in text, secret
        assert "hello" in text and doors.token not in text
        requests = [frame for frame in frames if frame["kind"] == "request"]
        assert [frame["method"] for frame in requests] == ["token.add", "login.code", "echo", "weft.auth", "task.stats"], requests
        answers = [frame for frame in frames if frame["kind"] in ("answer", "error") and frame["method"] == "echo"]
        assert answers and answers[0]["ms"] >= 0 and answers[0]["dir"] == "out" and answers[0]["size"] > 50, answers
        assert len({frame["conn"] for frame in frames}) == 1, "only the other's"
        watcher.call("traffic.unwatch")
        other.call("echo", {"after": 1})
        assert watcher.call("echo", {"n": 7}) == {"n": 7}


def watching_others_is_for_administrators():
    with Doors() as doors:
        token = doors.give("worker", "read work")
        worker = WebSocket(doors.ask("GET", "/ws", [*SOCKET, doors.bearer(token)]))
        for method in ("traffic.watch", "traffic.unwatch", "connection.list", "token.list"):
            try:
                worker.call(method)
            except Refused as refused:
                assert "403" in str(refused), refused
            else:
                raise AssertionError(method)
        assert worker.call("health.history")["samples"], "for readers"
        assert worker.call("task.page")["total"] == 0
        assert worker.call("hub.whoami")["scopes"] == ["read", "work"]


def watchers_are_few():
    with Doors() as doors:
        watchers = [WebSocket(doors.ask("GET", "/ws", [*SOCKET, doors.bearer()])) for _ in range(9)]
        for one in watchers[:8]:
            one.call("traffic.watch")
        try:
            watchers[8].call("traffic.watch")
        except Refused as refused:
            assert "tooManyWatchers" in str(refused), refused
        else:
            raise AssertionError("nine")
        watchers[0].stream.close()

        def is_room():
            try:
                return watchers[8].call("traffic.watch")["watching"]
            except Refused:
                return False
        wait_until("who has gone makes room", is_room)


def who_is_connected():
    with Doors() as doors:
        token = doors.give("phone", "read")
        one = WebSocket(doors.ask("GET", "/ws", [*SOCKET, doors.bearer(token)]))
        one.call("task.stats")
        listed = doors.owner.call("connection.list")["connections"]
        mine = [row for row in listed if row.get("current")]
        phone = [row for row in listed if row["name"] == "phone"]
        assert len(mine) == 1 and mine[0]["transport"] == "unix", listed
        assert len(phone) == 1 and phone[0]["transport"] == "ws" and phone[0]["address"].startswith("127."), listed
        tokens = doors.owner.call("token.list")["tokens"]
        seen = [row for row in tokens if row["name"] == "phone"][0].get("lastSeenAt")
        assert seen and abs(time.time() - time.mktime(time.strptime(seen[:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone) < 60, tokens
        assert token not in str(listed) + str(tokens)


def the_history_of_a_file_runs_nothing():
    def project(folder):
        git = ["git", "-c", "user.name=A b", "-c", "user.email=a@example", "-C", folder]
        for words in (["init", "-q", "-b", "main"], ["add", "a.txt"], ["commit", "-qm", "first <script>"]):
            with open(os.path.join(folder, "a.txt"), "w") as file:
                file.write("one\ntwo\nthree\n")
            subprocess.run([*git, *words], check=True, capture_output=True)
        subprocess.run([*git, "mv", "a.txt", "b.txt"], check=True)
        subprocess.run([*git, "commit", "-qm", "second"], check=True, capture_output=True)
        subprocess.run([*git, "config", "core.pager", "touch ran"], check=True)
        subprocess.run([*git, "config", "core.fsmonitor", "touch ran"], check=True)
        subprocess.run([*git, "config", "log.showSignature", "true"], check=True)

    with Doors(project=project) as doors:
        log = doors.owner.call("git.log", path="b.txt")
        assert [commit["subject"] for commit in log["commits"]] == ["second", "first <script>"] and not log["more"], log
        log = doors.owner.call("git.log", limit=1)
        assert [commit["subject"] for commit in log["commits"]] == ["second"] and log["more"], log
        assert doors.owner.call("git.log", limit=1, skip=1)["commits"][0]["author"] == "A b"
        assert doors.owner.call("git.log", path="nothing")["commits"] == []
        for path in ("--output=ran", "../x", "/etc/passwd"):
            try:
                commits = doors.owner.call("git.log", path=path)["commits"]
                assert commits == [], path
            except Refused:
                pass
        assert not os.path.exists(os.path.join(doors.hub.folder, "ran"))


CHATTER = r"""
import json, sys
def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "session/prompt":
        for i in range(5000):
            send({"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "tool_call", "toolCallId": "t%d" % i,
                  "title": "call %d%s" % (i, " needle" if i % 100 == 0 else ""), "kind": "read", "status": "pending"}}})
    answers = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}, "session/new": {"sessionId": "s"}, "session/prompt": {"stopReason": "end_turn"}}
    if message.get("method") in answers:
        send({"id": message["id"], "result": answers[message["method"]]})
    sys.stdout.flush()
"""


def a_long_session_is_searched_in_pieces():
    """No call reads all of it, and all of them together miss nothing."""
    def project(folder):
        with open(os.path.join(folder, "agent.py"), "w") as file:
            file.write(CHATTER)

    def found(text, limit):
        hits, calls, answer = [], 0, {"next": None}
        while "next" in answer:
            more = {"before": answer["next"]} if answer["next"] else {}
            answer = doors.owner.call("session.find", sessionId=session_id, text=text, limit=limit, **more)
            assert len(answer["hits"]) <= limit
            hits, calls = hits + [hit["seq"] for hit in answer["hits"]], calls + 1
        assert hits == sorted(set(hits), reverse=True), "each once, the latest first"
        return len(hits), calls

    config = {"agents": {"chatter": {"driver": "acp", "command": [sys.executable, "agent.py"]}}, "default_agent": "chatter"}
    with Doors(config=config, project=project) as doors:
        task = doors.owner.call("task.submit", prompt="talk")["taskId"]
        wait_until("it has talked", lambda: doors.owner.call("task.get", taskId=task)["state"] == "completed", 120)
        session_id = doors.owner.call("task.about", taskIds=[task])["tasks"][0]["sessionId"]
        assert found("NEEDLE", 7)[0] == 50
        assert found("call", 200) == (5000, 25), found("call", 200)
        assert found("haystack", 50)[0] == 0


def a_mark_outlives_the_hub():
    config = {"agents": {"bad": {"driver": "cli", "command": ["/bin/false", "{prompt}"]}}, "default_agent": "bad"}
    with Doors(config=config) as doors:
        task = doors.owner.call("task.submit", prompt="fail")["taskId"]
        wait_until("it has failed", lambda: doors.owner.call("task.get", taskId=task)["state"] == "failed", 60)
        assert doors.owner.call("task.page", state="failed", unseen=True)["total"] == 1
        assert doors.owner.call("task.seen", taskIds=[task]) == {"seen": 1}
        for stop in (doors.hub.kill, doors.hub.stop, doors.hub.kill):
            stop()
            doors.hub.start()
            owner = doors.hub.connect()
            assert owner.call("task.page", state="failed", unseen=True)["total"] == 0
            assert owner.call("task.page", state="failed")["tasks"][0]["seen"]


main([nothing_without_a_login, pages_keep_to_themselves, a_strange_host_stays_out_of_the_policy, assets_are_theirs_alone,
     a_folder_in_place_of_the_program, a_link_works_once, a_link_gives_no_more_than_its_maker_has,
     another_users_browser_cannot_use_a_link, others_messages_have_no_secrets, watching_others_is_for_administrators, watchers_are_few,
     who_is_connected, the_history_of_a_file_runs_nothing, a_long_session_is_searched_in_pieces,
      a_mark_outlives_the_hub])
