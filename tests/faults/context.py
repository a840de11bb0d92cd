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


main([killed_while_it_changes, what_a_caller_may_say, prompts_for_a_role_carry_it])
