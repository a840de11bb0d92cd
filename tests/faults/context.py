#!/usr/bin/python3
"""update_context with the real hub, killed again and again: what was acknowledged is there with its version, what was not is
there whole or not at all, and prompts for a role carry it."""
import os
import random
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SOAK, Gone, Hub, Refused, main, wait_until

ROUNDS = 6
WRITERS = 4


class Writer(threading.Thread):
    """Sets its own two facts to the same number, in one change, again and again."""

    def __init__(self, hub, number, start):
        super().__init__()
        self.hub, self.number, self.sent, self.known = hub, number, start, start
        self.version = 0
        self.trouble = None

    def run(self):
        try:
            connection = self.hub.connect()
            while True:
                self.sent += 1
                answer = connection.call("update_context", action="add", context_type="state",
                                         data={f"a{self.number}": self.sent, f"b{self.number}": self.sent})
                assert answer["status"] == "success" and answer["version"] > self.version, answer
                self.version, self.known = answer["version"], self.sent
        except (Gone, ConnectionError, FileNotFoundError):
            pass
        except Exception as error:
            self.trouble = error


def killed_while_it_changes():
    with Hub() as hub:
        counts, acknowledged = [0] * WRITERS, 0
        for _ in range(ROUNDS * SOAK):
            hub.start()
            writers = [Writer(hub, i, counts[i]) for i in range(WRITERS)]
            for writer in writers:
                writer.start()
            goal = acknowledged + random.randrange(10, 200)
            wait_until("some changes are made", lambda: max(w.version for w in writers) > goal)
            hub.kill()
            for writer in writers:
                writer.join()
                if writer.trouble:
                    raise writer.trouble
            acknowledged = max(w.version for w in writers)
            hub.start()
            context = hub.connect().call("context.get")
            facts = {entry["key"]: entry["data"] for entry in context["entries"]}
            assert context["version"] >= acknowledged, (context["version"], acknowledged)
            acknowledged = context["version"]
            for i, writer in enumerate(writers):
                assert facts[f"a{i}"] == facts[f"b{i}"], f"half of a change: {facts}"
                assert writer.known <= facts[f"a{i}"] <= writer.sent, (i, facts, writer.known, writer.sent)
                counts[i] = facts[f"a{i}"]
        versions = [e["data"]["version"] for e in hub.events(types=["context.changed"])]
        assert versions == list(range(1, acknowledged + 1)), "the history has a gap, or something twice"


def what_a_caller_may_say():
    with Hub() as hub:
        caller = hub.start().connect()
        os.symlink("/etc", os.path.join(hub.folder, "out"))

        def update(**params):
            return caller.call("update_context", **params)["version"]

        assert update(action="add", context_type="file", data={"path": "./src/a.c", "why": "x"}) == 1
        assert update(action="add", context_type="file", data={"files": ["b.c", {"path": f"{hub.folder}/c.c"}]}) == 2
        assert update(action="add", context_type="dependency", data={"dependencies": {"react": "18"}}) == 3
        assert update(action="modify", context_type="dependency", data={"name": "react", "version": "19"}) == 4
        assert update(action="add", context_type="state", data={"key": "phase", "value": 2}) == 5
        assert update(action="remove", context_type="state", data={"keys": ["phase", "nothing"]}) == 6
        assert update(action="remove", context_type="state", data={"phase": None}) == 6
        context = caller.call("context.get")
        assert [(e["context_type"], e["key"]) for e in context["entries"]] == [
            ("file", "b.c"), ("file", "c.c"), ("file", "src/a.c"), ("dependency", "react")], context
        bad = [({"action": "burn", "context_type": "file", "data": {"path": "a"}}, "/action"),
               ({"action": "add", "context_type": "mood", "data": {"path": "a"}}, "/context_type"),
               ({"action": "add", "context_type": "file", "data": {}}, "/data"),
               ({"action": "add", "context_type": "file", "data": {"path": "../x"}}, "/data"),
               ({"action": "add", "context_type": "file", "data": {"path": "/etc/passwd"}}, "/data"),
               ({"action": "add", "context_type": "file", "data": {"files": ["ok", "out/passwd"]}}, "/data/1"),
               ({"action": "add", "context_type": "file", "data": {"path": ".weft/token"}}, "/data"),
               ({"action": "add", "context_type": "file", "data": {"path": "a\nb"}}, "/data"),
               ({"action": "add", "context_type": "state", "data": {}}, "/data"),
               ({"action": "modify", "context_type": "state", "data": {"unknown": 1}}, None),
               ({"action": "add", "context_type": "state", "data": {f"k{i}": i for i in range(65)}}, "/data")]
        for params, path in bad:
            try:
                caller.call("update_context", **params)
                raise AssertionError(f"{params} was taken")
            except Refused as refused:
                assert refused.code == -32602, (params, refused)
                assert not path or f"'path': '{path}'" in str(refused), (params, str(refused))
        assert caller.call("context.get") == context


def prompts_for_a_role_carry_it():
    with Hub({"agents": {"echo": {"driver": "cli", "command": ["printf", "%s", "{prompt}"]}}, "default_agent": "echo"}) as hub:
        caller = hub.start().connect()
        caller.call("update_context", action="add", context_type="file", data={"path": "src/a.c"})
        answer = caller.call("execute_task", task_type="analysis", prompt="look at it", context={}, options={})
        assert answer["output"]["code"].startswith("look at it\n"), answer
        assert "Context of the project:\n- file src/a.c" in answer["output"]["code"], answer
        plain = caller.call("task.submit", prompt="without")["taskId"]
        wait_until("it ends", lambda: caller.call("task.get", taskId=plain)["state"] == "completed")
        assert caller.call("task.get", taskId=plain)["output"] == "without"


class Holder(threading.Thread):
    """Somebody connected who holds a role, and answers what it is asked by this function; None: it goes away instead."""

    def __init__(self, hub, role, answer):
        super().__init__()
        self.connection, self.answer, self.asked = hub.connect(), answer, []
        self.name_there = self.connection.call("role.register", role=role).get("holder")
        self.start()

    def run(self):
        try:
            while True:
                message = self.connection.receive()
                if "method" not in message or "id" not in message:
                    continue
                self.asked.append((message["method"], message["params"]))
                answer = self.answer(message)
                if answer is None:
                    break
                self.connection.send({"jsonrpc": "2.0", "id": message["id"], **answer})
        except Gone:
            pass
        self.connection.close()


def holders_are_told():
    with Hub() as hub:
        caller = hub.start().connect()
        params = {"action": "add", "context_type": "state", "data": {"phase": 2}}
        good = Holder(hub, "executor", lambda message: {"result": {"ok": True}})
        answer = caller.call("update_context", **params)
        assert answer == {"status": "success", "version": 1, "delivered": 1, "failed": []}, answer
        assert good.asked == [("update_context", params)], good.asked
        bad = Holder(hub, "planner", lambda message: {"error": {"code": -32601, "message": "Method not found"}})
        gone = Holder(hub, "executor", lambda message: None)
        answer = caller.call("update_context", **params)
        assert answer["version"] == 2 and answer["delivered"] == 1 and len(answer["failed"]) == 2, answer
        gone.join()
        answer = caller.call("update_context", **params)
        assert answer["version"] == 3 and answer["delivered"] == 1 and len(answer["failed"]) == 1, answer
        assert len(good.asked) == 3 and len(bad.asked) == 2 and len(gone.asked) == 1
        hub.kill()
        for holder in good, bad:
            holder.join()


def code_is_passed_to_an_executor():
    """Where nobody here knows the language. What comes back is checked: it is a stranger's."""
    answers = [{"error": {"code": -32601, "message": "Method not found"}},
               {"result": {"valid": "yes"}},
               {"result": {"valid": False, "issues": [{"message": "bad", "line": -7, "severity": "odd", "more": 1}],
                           "unsupported_rules": ["x"]}}]
    with Hub() as hub:
        caller = hub.start().connect()
        executor = Holder(hub, "executor", lambda message: answers.pop(0))
        try:
            caller.call("validate_code", code="X.", language="cobol")
            raise AssertionError("it is known")
        except Refused as refused:
            assert refused.code == -32001 and refused.reason == "noChecker", refused
        try:
            caller.call("validate_code", code="X.", language="cobol")
            raise AssertionError("it was believed")
        except Refused as refused:
            assert refused.code == -32000 and refused.reason == "unreadableAnswer", refused
        answer = caller.call("validate_code", code="X.", language="cobol", rules=["x"])
        assert answer["issues"] == [{"rule": "syntax", "severity": "error", "line": 0, "column": 0, "message": "bad"}], answer
        assert not answer["valid"] and answer["unsupported_rules"] == ["x"] and len(answer["checkers"]) == 1, answer
        assert executor.asked[2] == ("validate_code", {"code": "X.", "language": "cobol", "rules": ["x"]}), executor.asked
        assert caller.call("validate_code", code="1", language="json")["checkers"] == ["weft"]
        assert len(executor.asked) == 3, "our own checkers come first"
        hub.kill()
        executor.join()


main([killed_while_it_changes, what_a_caller_may_say, prompts_for_a_role_carry_it, holders_are_told,
      code_is_passed_to_an_executor])
