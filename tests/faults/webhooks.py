#!/usr/bin/env python3
"""Webhooks of rules against a real HTTP server: what it is sent, the examples of docs/automation.md, and that secrets are nowhere else."""
import http.server
import json
import os
import re
import subprocess
import threading

from hub import Hub, PATIENCE, WEFT, main, wait_until

SECRET = "s3cret-value-of-ours"


class Server:
    """Keeps what it was asked, and answers as it is told."""

    def __init__(self):
        seen = self.seen = []
        statuses = self.statuses = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                seen.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body.decode()))
                self.send_response(statuses.pop(0) if statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def rule(id, url, type="question.asked", **action):
    more = {name: action.pop(name) for name in ("conditions", "requiresApproval") if name in action}
    return {"id": id, "cooldownMs": 0, "trigger": {"type": type}, "action": {"type": "webhook", "url": url, **action}, **more}


def hub_with(*rules, **env):
    return Hub({"automation": {"rules": list(rules)}}, env)


def ask(hub, prompt="edit something"):
    connection = hub.connect()
    task = connection.call("task.submit", prompt=prompt)["taskId"]
    return connection, wait_until("it asks", lambda: connection.call("question.list")["questions"])[0], task


def runs(connection):
    return {run["ruleId"]: (run["status"], run.get("error")) for run in connection.call("automation.status")["recentExecutions"]}


def everything_of(hub):
    """What a daemon leaves: its journal and log, and what it said."""
    found = hub.said().encode()
    for folder, _, names in os.walk(hub.home):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and name != "config.json":
                with open(path, "rb") as file:
                    found += file.read()
    return found


def a_request_of_its_own():
    with Server() as server, hub_with(
            rule("put", server.url + "/a/{{payload.kind}}?q={{payload.title}}", method="PUT", body="{{payload.title}}: {{type}} {{payload.nope}}",
                 headers={"X-Task": "{{payload.taskId}}", "Content-Type": "text/markdown"}),
            rule("json", server.url + "/json", body={"text": "\"{{payload.title}}\"", "n": 5, "list": ["{{payload.kind}}", None, {"a": "{{type}}"}]}),
            rule("get", server.url + "/get", method="GET"), rule("own", server.url + "/own", message="{{payload.kind}}")) as hub:
        connection, question, task = ask(hub.start())
        wait_until("all were sent", lambda: len(runs(connection)) == 4)
        assert set(runs(connection).values()) == {("triggered", None)}, runs(connection)
        seen = {path.split("?")[0]: (method, path, headers, body) for method, path, headers, body in server.seen}
        method, path, headers, body = seen[f"/a/{question['kind']}"]
        assert method == "PUT" and body == f"{question['title']}: question.asked ", (method, body)
        assert " " not in path and headers["x-task"] == task and headers["content-type"] == "text/markdown", (path, headers)
        method, _, headers, body = seen["/json"]
        assert headers["content-type"] == "application/json" and method == "POST", headers
        assert json.loads(body) == {"text": f"\"{question['title']}\"", "n": 5, "list": [question["kind"], None, {"a": "question.asked"}]}, body
        assert seen["/get"][0] == "GET" and seen["/get"][3] == "" and "content-type" not in seen["/get"][2], seen["/get"]
        payload = json.loads(seen["/own"][3])
        assert payload["message"] == question["kind"] and payload["payload"]["questionId"] == question["id"], payload
        assert payload["payload"]["prompt"] == "edit something" and "detail" not in payload["payload"], payload


def the_whole_life_of_a_question():
    with Server() as server, hub_with(*[rule(kind, server.url + "/" + kind, "question." + kind, body="{{payload.state}} {{payload.option}} {{payload.by}}")
                                        for kind in ("asked", "answered", "withdrawn")]) as hub:
        connection, question, task = ask(hub.start())
        wait_until("it is told", lambda: "asked" in runs(connection))
        connection.call("question.answer", questionId=question["id"], option=question["options"][0]["id"])
        wait_until("its answer is told", lambda: "answered" in runs(connection))
        connection.call("task.submit", prompt="edit something")
        wait_until("the second one", lambda: connection.call("question.list")["questions"])
        connection.call("task.cancel", taskId="task-0001")
        wait_until("its end is told", lambda: "withdrawn" in runs(connection))
        said = {path: body for _, path, _, body in server.seen}
        assert said["/asked"].startswith("open ") and said["/withdrawn"].startswith("withdrawn "), said
        assert said["/answered"].startswith("answered " + question["options"][0]["id"]), said


def secrets_are_nowhere_else():
    with Server() as server:
        rules = [rule("env", server.url + "/${env:WEFT_TEST_KEY}/x", headers={"Authorization": "Bearer ${env:WEFT_TEST_KEY}", "X-Literal": SECRET},
                      body={"key": "${env:WEFT_TEST_KEY}", "cost": "$5 $$"}),
                 rule("file", server.url + "/file", headers={"X-Key": "${file:~/key}"}, body="$ ${file:~/key} ${nothing}"),
                 rule("missing", server.url + "/missing", headers={"X-Key": "${env:WEFT_TEST_NOT_SET}"}),
                 rule("gone", server.url + "/gone", body="${file:/nowhere/key}")]
        with hub_with(*rules, WEFT_TEST_KEY=SECRET) as hub:
            hub.env["HOME"] = hub.folder
            with open(os.path.join(hub.folder, "key"), "w") as file:
                file.write(SECRET + "\n")
            connection, _, _ = ask(hub.start())
            done = wait_until("all are done", lambda: len(runs(connection)) == 4 and runs(connection))
            assert done["env"] == done["file"] == ("triggered", None), done
            assert done["missing"] == ("failed", "the variable WEFT_TEST_NOT_SET is not set"), done
            assert done["gone"][0] == "failed" and done["gone"][1].startswith("/nowhere/key cannot be read"), done
            seen = {headers.get("x-literal") or "file": (path, headers, body) for _, path, headers, body in server.seen}
            path, headers, body = seen[SECRET]
            assert path == f"/{SECRET}/x" and headers["authorization"] == "Bearer " + SECRET, (path, headers)
            assert json.loads(body) == {"key": SECRET, "cost": "$5 $$"}, body
            assert seen["file"][1]["x-key"] == SECRET and seen["file"][2] == f"$ {SECRET} ${{nothing}}", seen["file"]
            status = json.dumps(connection.call("automation.status"))
            assert SECRET not in status and "Bearer" not in status and "***" in status, status
            os.unlink(os.path.join(hub.folder, "key"))
            hub.stop()
            assert SECRET.encode() not in everything_of(hub)


def an_event_names_no_secret():
    """Whoever words a prompt gets none of what the rule may read, nor another header or member."""
    nasty = "say ${env:WEFT_TEST_KEY} ${file:/etc/hostname} $$ {{payload.taskId}} \"}, \r\nX-Evil: 1"
    with Server() as server, hub_with(
            rule("r", server.url + "/{{payload.prompt}}", "task.queued", headers={"X-Key": "${env:WEFT_TEST_KEY}", "X-Prompt": "{{payload.prompt}}"},
                 body={"prompt": "{{payload.prompt}}"}),
            rule("own", server.url + "/own", "task.queued", headers={"X-Key": "${env:WEFT_TEST_KEY}"}), WEFT_TEST_KEY=SECRET) as hub:
        connection = hub.start().connect()
        connection.call("task.submit", prompt=nasty)
        wait_until("both were sent", lambda: len(server.seen) == 2)
        for _, path, headers, body in server.seen:
            assert headers["x-key"] == SECRET and SECRET not in path + body and "x-evil" not in headers, (path, headers, body)
            assert SECRET not in headers.get("x-prompt", ""), headers
            if path == "/own":
                assert json.loads(body)["payload"]["prompt"] == nasty, body
            else:
                assert json.loads(body) == {"prompt": nasty} and "${env:WEFT_TEST_KEY}" in headers["x-prompt"], body


def approved_with_its_secret():
    with Server() as server, hub_with(rule("r", server.url + "/x", "task.completed", headers={"X-Key": "${env:WEFT_TEST_KEY}"}, body="done",
                                           requiresApproval=True), WEFT_TEST_KEY=SECRET) as hub:
        connection = hub.start().connect()
        connection.call("task.submit", prompt="echo hello")
        question = wait_until("it asks", lambda: connection.call("question.list")["questions"])[0]
        assert SECRET not in json.dumps(question) and "${env:WEFT_TEST_KEY}" in json.dumps(question), question
        connection.call("question.answer", questionId=question["id"], option="allow")
        wait_until("it was sent", lambda: server.seen)
        assert server.seen[0][2]["x-key"] == SECRET


def no_rule_asks_about_questions():
    ask_all = {"id": "all", "cooldownMs": 0, "trigger": {"type": "*"}, "action": {"type": "notify", "message": "{{type}}"}, "requiresApproval": True}
    with Server() as server, hub_with(rule("r", server.url, requiresApproval=True), ask_all) as hub:
        connection, _, _ = ask(hub.start())
        wait_until("the rule for all asks", lambda: any(q.get("ruleId") == "all" for q in connection.call("question.list")["questions"]))
        status = {each["id"]: each for each in connection.call("automation.status")["rules"]}
        assert "cannot ask one itself" in status["r"]["error"], status
        kinds = [json.dumps(q) for q in connection.call("question.list")["questions"] if q.get("ruleId") == "all"]
        assert not any("question.asked" in kind for kind in kinds), kinds


def what_is_no_webhook():
    wrong = [({"method": "TRACE"}, "\"PATCH\""), ({"headers": {"Content-Length": "5"}}, "cannot send the header"), ({"headers": {"a:b": "5"}}, "cannot send the header"),
             ({"headers": {"A": 5}}, "must be a string"), ({"headers": ["A"]}, "object of strings"), ({"body": 5}, "\"body\" must be"),
             ({"body": "${env:A"}, "not closed"), ({"body": {"a": ["${env:1A}"]}}, "not the name of a variable"),
             ({"headers": {"A": "${file:relative}"}}, "not a path"), ({"headers": {f"A{n}": "" for n in range(33)}}, "more than 32"),
             ({"url": "${env:A}{{payload.title}}/x"}, "cannot be filled in"), ({"url": "ftp://${env:A}/"}, "the url is not valid"),
             ({"url": "https://${env:A}{{payload.title}}/"}, "cannot be filled in"), ({"url": "${env:A}"}, "")]
    with Hub() as hub:
        for action, why in wrong:
            with open(os.path.join(hub.folder, "checked.json"), "w") as file:
                json.dump({"automation": {"rules": [rule("r", action.pop("url", "http://127.0.0.1:9/"), **action)]}}, file)
            checked = subprocess.run([WEFT, "config", "check", "checked.json"], cwd=hub.folder, env=hub.env, stdin=subprocess.DEVNULL,
                                     capture_output=True, text=True, timeout=PATIENCE)
            said = " ".join((checked.stdout + checked.stderr).split())
            assert checked.returncode == (1 if why else 0) and why in said, (action, why, said)


def the_examples_work():
    """Each rule of docs/automation.md, with the host of a server of ours."""
    with open("docs/automation.md") as file:
        section = file.read().split("### To your phone")[1].split("\n## ")[0]
    rules = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", section, re.S)]
    assert [each["id"] for each in rules] == ["ntfy", "slack", "telegram", "gotify"], rules
    with Server() as server:
        for each in rules:
            key = {"slack": server.url + "/services/T0/B0/key"}.get(each["id"], "123:a-key")
            each["action"]["url"] = re.sub(r"https://[^/]+", server.url, each["action"]["url"])
            with hub_with(each) as hub:
                hub.env["HOME"] = hub.folder
                os.makedirs(os.path.join(hub.folder, ".config", "weft"))
                with open(os.path.join(hub.folder, ".config", "weft", "phone"), "w") as file:
                    file.write(key + "\n")
                connection, question, task = ask(hub.start())
                wait_until(f"{each['id']} is done", lambda: runs(connection))
                assert runs(connection) == {each["id"]: ("triggered", None)}, runs(connection)
        ntfy, slack, telegram, gotify = server.seen
        assert ntfy[:2] == ("POST", "/123:a-key") and ntfy[2]["title"] == "Weft needs you" and ntfy[2]["priority"] == "high", ntfy
        assert ntfy[3] == f"{question['title']} ({task})", ntfy
        assert slack[1] == "/services/T0/B0/key" and json.loads(slack[3])["blocks"][0]["text"]["text"].endswith(question["title"]), slack
        assert telegram[1] == "/bot123:a-key/sendMessage", telegram
        assert json.loads(telegram[3]) == {"chat_id": "123456789", "text": "Weft needs you: " + question["title"]}, telegram
        assert gotify[1] == "/message" and gotify[2]["x-gotify-key"] == "123:a-key", gotify
        assert json.loads(gotify[3]) == {"title": "Weft needs you", "message": question["title"], "priority": 8}, gotify


def tried_again_with_the_secret_of_then():
    with Server() as server, hub_with(rule("r", server.url + "/x", headers={"X-Key": "${env:WEFT_TEST_KEY}"}, body="b"), WEFT_TEST_KEY=SECRET) as hub:
        server.statuses += [503, 429]
        connection, _, _ = ask(hub.start())
        wait_until("it was taken", lambda: runs(connection))
        assert runs(connection) == {"r": ("triggered", None)} and len(server.seen) == 3, server.seen
        assert {headers["x-key"] for _, _, headers, _ in server.seen} == {SECRET}


main([a_request_of_its_own, the_whole_life_of_a_question, secrets_are_nowhere_else, an_event_names_no_secret, approved_with_its_secret,
      no_rule_asks_about_questions, what_is_no_webhook, the_examples_work, tried_again_with_the_secret_of_then])
