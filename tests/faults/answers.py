#!/usr/bin/python3
"""What is answered is what the agent gets, and no more: every order of every set of options, by the hub's method, by "weft answer",
at the prompt of "task submit --wait" and in "weft chat". And how a turn ended is said wherever a task is shown."""
import itertools
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import WEFT, Hub, Refused, main, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["allow_once", "allow_always", "reject_once", "reject_always"]

# The prompt is JSON: options to ask for, how to end the turn when a question was not allowed, and otherwise.
AGENT = r"""
import json, sys
def send(m): print(json.dumps(dict(m, jsonrpc="2.0")), flush=True)
def reply(m, r): send({"id": m["id"], "result": r})
asked = None
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize": reply(m, {"protocolVersion": 1})
    elif m.get("method") == "session/new": reply(m, {"sessionId": "s"})
    elif m.get("method") == "session/prompt":
        turn, wish = m, json.loads(m["params"]["prompt"][0]["text"])
        if "options" in wish:
            send({"id": 7, "method": "session/request_permission", "params": {"sessionId": "s",
                  "toolCall": {"toolCallId": "t", "title": wish.get("title", "rm -r x") * wish.get("times", 1)}, "options": wish["options"]}})
        else: reply(turn, {"stopReason": wish["stop"]})
    elif m.get("id") == 7:
        chosen = m["result"]["outcome"].get("optionId", "nothing")
        send({"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk",
              "content": {"type": "text", "text": "chose " + chosen}}}})
        allowed = any(o["optionId"] == chosen and o["kind"].startswith("allow") for o in wish["options"])
        reply(turn, {"stopReason": "end_turn" if allowed else wish.get("stop", "end_turn")})
"""


def hub(**more):
    made = Hub()
    path = os.path.join(made.folder, "agent.py")
    with open(path, "w") as file:
        file.write(AGENT)
    agent = dict({"driver": "acp", "command": ["/usr/bin/python3", path]}, **more)
    made.configure({"agents": {"it": agent}, "default_agent": "it", "tasks": {"max_queue": 1000}})
    return made


def options(kinds, names=None):
    return [{"optionId": (names or {}).get(kind, "id-" + kind), "name": "x", "kind": kind} for kind in kinds]


def orders():
    return [order for n in range(1, 5) for order in itertools.permutations(KINDS, n)]


def expected(kinds, word):
    if word == "allow":
        return "id-allow_once" if "allow_once" in kinds else None
    return "id-reject_once" if "reject_once" in kinds else "nothing"


def ask(connection, wish):
    task = connection.call("task.submit", prompt=json.dumps(wish))["taskId"]
    return task, wait_until("it asks", lambda: [q for q in connection.call("question.list")["questions"] if q["taskId"] == task])[0]


def ended(connection, task):
    return wait_until("it ends", lambda: (lambda t: t if t["state"] in ("completed", "failed", "cancelled") else None)(
        connection.call("task.get", taskId=task)))


def weft(made, *args):
    return subprocess.run([WEFT, *args], cwd=made.folder, env=made.env, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def person(made, steps, *args):
    """At a terminal."""
    return subprocess.run(["/usr/bin/python3", os.path.join(HERE, "..", "cli", "person.py"), steps, WEFT, *args],
                          cwd=made.folder, env=dict(made.env, TERM="xterm"), capture_output=True, text=True, timeout=60)


def every_order_by_the_method():
    with hub() as made:
        connection = made.start().connect()
        for kinds in orders():
            for word in ("allow", "deny"):
                want = expected(kinds, word)
                task, question = ask(connection, {"options": options(kinds)})
                try:
                    got = connection.call("question.answer", questionId=question["id"], option=word)
                    assert want and got["option"] == (None if want == "nothing" else want), (kinds, word, got)
                except Refused as error:
                    assert want is None and error.code == -32602, (kinds, word, error)
                    connection.call("question.answer", questionId=question["id"], option="deny")
                    want = expected(kinds, "deny")
                assert ended(connection, task)["output"] == "chose " + want, (kinds, word)


def ids_that_deceive():
    names = {"allow_always": "allow", "allow_once": "deny", "reject_once": "allow_always", "reject_always": "yes"}
    with hub() as made:
        connection = made.start().connect()
        for word, want in (("allow", "deny"), ("deny", "allow_always"), ("allow_always", "allow"), ("allow_once", "deny")):
            task, question = ask(connection, {"options": options(KINDS, names)})
            done = weft(made, "answer", question["id"], word)
            assert done.returncode == 0, done
            assert ended(connection, task)["output"] == "chose " + want, word


def the_command_line():
    some = [("allow_always", "allow_once", "reject_always", "reject_once"), ("reject_always", "allow_always"), ("allow_always",),
            ("reject_once", "reject_always", "allow_always", "allow_once"), ("reject_always", "allow_once")]
    with hub() as made:
        connection = made.start().connect()
        for kinds in some:
            for word in ("allow", "deny"):
                want = expected(kinds, word)
                task, question = ask(connection, {"options": options(kinds)})
                done = weft(made, "answer", question["id"], word)
                assert (done.returncode == 0) == (want is not None), (kinds, word, done)
                if want is None:
                    assert "can only be allowed permanently" in done.stderr, done
                    assert weft(made, "answer", question["id"], "allow_always").returncode == 0
                    want = "id-allow_always"
                assert ended(connection, task)["output"] == "chose " + want, (kinds, word)
        for verb in (["task", "submit", "--wait"], ["chat"]):
            for kinds in some[:3]:
                steps = "your answer=>no\n" if "allow_once" not in kinds else "your answer=>y\n"
                want = expected(kinds, "deny" if "allow_once" not in kinds else "allow")
                done = person(made, steps, *verb, json.dumps({"options": options(kinds)}))
                assert "chose " + want in done.stdout, (verb, kinds, done)
        done = person(made, "your answer=>y\n;;permanently=>2\n", "task", "submit", "--wait",
                      json.dumps({"options": options(["reject_once", "allow_always"])}))
        assert "chose id-allow_always" in done.stdout, done


def the_configuration_answers():
    for permission, kinds, want in (("allow", KINDS[::-1], "id-allow_once"), ("deny", KINDS, "id-reject_once"),
                                    ("deny", KINDS[:2], "nothing"), ("deny", ["reject_always"], "nothing")):
        with hub(permission=permission) as made:
            connection = made.start().connect()
            task = connection.call("task.submit", prompt=json.dumps({"options": options(kinds)}))["taskId"]
            assert ended(connection, task)["output"] == "chose " + want, (permission, kinds)
    with hub(permission="allow") as made:  # for good is for a person to give
        connection = made.start().connect()
        _, question = ask(connection, {"options": options(["allow_always"])})
        assert question["state"] == "open", question


def a_long_title_is_asked():
    with hub() as made:
        connection = made.start().connect()
        task, question = ask(connection, {"options": options(KINDS), "title": "x" * 20000 + "\nend"})
        assert question["title"].startswith("xxxx") and "(cut: 15908 more bytes)" in question["title"], question["title"][-60:]
        assert question["detail"]["title"].endswith("x\nend"), "the detail has all of it"
        connection.call("question.answer", questionId=question["id"], option="allow")
        assert ended(connection, task)["output"] == "chose id-allow_once"


def an_unseen_title_is_seen():
    with hub() as made:
        connection = made.start().connect()
        task = connection.call("task.submit", prompt=json.dumps({"options": options(KINDS), "title": "\u2028" * 20000}))["taskId"]
        question = wait_until("it asks", lambda: connection.call("question.list")["questions"])[0]
        assert len(question["title"]) < 5000 and question["title"].startswith("\\u2028\\u2028"), question["title"][:40]
        connection.call("question.answer", questionId=question["id"], option="deny")
        ended(connection, task)


def what_nobody_can_be_asked_is_said():
    """More than an event holds: the agent hears that nothing was chosen, and whoever watches is told."""
    with hub() as made:
        connection = made.start().connect()
        task = connection.call("task.submit", prompt=json.dumps({"options": options(KINDS), "title": "x", "times": 17 << 20}))["taskId"]
        assert ended(connection, task)["output"] == "chose nothing"
        assert "asked something that nobody can be asked" in weft(made, "events", "--since", "0", "--type", "session.output").stdout


def how_a_turn_ended():
    with hub() as made:
        connection = made.start().connect()
        for stop in ("max_tokens", "max_turn_requests", "refusal", "end_turn"):
            done = weft(made, "task", "submit", "--wait", json.dumps({"stop": stop}))
            assert done.returncode == (0 if stop == "end_turn" else 1), (stop, done)
            listed = connection.call("task.list", limit=1)[0]
            assert listed["state"] == ("failed" if stop == "refusal" else "completed"), (stop, listed)
            assert listed.get("stopReason") == (None if stop == "end_turn" else stop), (stop, listed)
            assert connection.call("task.get", taskId=listed["id"]).get("stopReason") == listed.get("stopReason")
            assert connection.call("task.about", taskIds=[listed["id"]])["tasks"][0]["stopReason"] == stop
            shown, table = weft(made, "task", "get", listed["id"]).stdout, weft(made, "task", "list").stdout.splitlines()[1]
            assert (stop in shown) == (stop != "end_turn") or stop == "end_turn", shown
            word = "refused" if stop == "refusal" else stop
            assert (word in table.split("{")[0]) == (stop != "end_turn"), table
            if stop.startswith("max"):
                assert "stopped before it was done" in done.stderr and stop in done.stderr, done


def denied_is_not_cancelled():
    with hub() as made:
        connection = made.start().connect()
        connection.call("event.subscribe", types=["task.failed"])
        for answer, reason in (("deny", "denied"), ("id-reject_always", "denied")):
            task, question = ask(connection, {"options": options(KINDS[1:4:2] if answer == "deny" else KINDS), "stop": "cancelled"})
            connection.call("question.answer", questionId=question["id"], option=answer)
            done = ended(connection, task)
            about = connection.call("task.about", taskIds=[task])["tasks"][0]
            assert done["state"] == "failed" and about["reason"] == reason, (done, about)
            assert "failed, denied" in weft(made, "task", "list").stdout.splitlines()[1]
            assert "denied " + question["id"] in done["error"] and "rm -r x" in done["error"], done["error"]
        # Nobody denied anything, nobody cancelled it.
        task = connection.call("task.submit", prompt=json.dumps({"stop": "cancelled"}))["taskId"]
        done = ended(connection, task)
        assert done["state"] == "failed" and "which nobody asked for" in done["error"], done


def nobody_answered_is_not_denied():
    with hub() as made:
        agents = {"it": {"driver": "acp", "command": ["/usr/bin/python3", os.path.join(made.folder, "agent.py")]}}
        made.configure({"agents": agents, "default_agent": "it", "questions": {"timeout_ms": 100}})
        connection = made.start().connect()
        task = connection.call("task.submit", prompt=json.dumps({"options": options(KINDS), "stop": "cancelled"}))["taskId"]
        done = ended(connection, task)
        about = connection.call("task.about", taskIds=[task])["tasks"][0]
        assert done["state"] == "failed" and about["reason"] == "unanswered" and "nobody answered" in done["error"], (done, about)


def a_denial_without_an_option_is_remembered():
    with hub() as made:
        connection = made.start().connect()
        task, question = ask(connection, {"options": options(["allow_once"])})
        connection.call("question.answer", questionId=question["id"], option="deny", text="no")
        ended(connection, task)
        made.kill()
        again = made.start().connect().call("question.list", all=True)["questions"][0]
        assert again["state"] == "answered" and again["answer"]["option"] is None and again["answer"]["text"] == "no", again


main([every_order_by_the_method, ids_that_deceive, the_command_line, the_configuration_answers, a_long_title_is_asked,
      an_unseen_title_is_seen, what_nobody_can_be_asked_is_said, how_a_turn_ended, denied_is_not_cancelled, nobody_answered_is_not_denied,
      a_denial_without_an_option_is_remembered])
