#!/usr/bin/python3
"""W3C trace context goes through the hub: from the request that submits a task, over a restart, to the agent that does it, and into the log."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "security"))
from door import JSON, Doors, Hub, main, wait_until

ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{ID}-00f067aa0ba902b7-01"
META = {"traceparent": PARENT, "tracestate": "rojo=00f067aa0ba902b7,congo=t61"}
SHOW = "import json, os; print(json.dumps({name: os.environ.get(name) for name in ('TRACEPARENT', 'TRACESTATE')}))"
ACP = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "session/prompt":
        text = json.dumps(params.get("_meta"))
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}}), flush=True)
    result = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}, "session/new": {"sessionId": "s"},
              "session/prompt": {"stopReason": "end_turn"}}.get(method, {})
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
AGENTS = {"cli": {"driver": "cli", "command": [sys.executable, "-c", SHOW]}, "acp": {"driver": "acp", "command": [sys.executable, "-c", ACP]}}
CONFIG = {"agents": AGENTS, "default_agent": "cli", "log": {"file": "hub.log", "requests": True}}


def output(connection, task):
    done = wait_until("it has ended", lambda: (lambda t: t["completedAt"] and t)(connection.call("task.get", taskId=task)))
    assert done["state"] == "completed", done
    return json.loads(done["output"])


def logged(hub, method):
    with open(os.path.join(hub.folder, "hub.log")) as file:
        return [one["data"].get("trace_id") for one in map(json.loads, file) if one.get("data", {}).get("method") == method]


def to_a_program_and_an_acp_agent():
    with Hub(CONFIG) as hub:
        hub.start()
        connection = hub.connect()
        task = connection.call("task.submit", prompt="x", agent="cli", _meta=META)["taskId"]
        assert output(connection, task) == {"TRACEPARENT": PARENT, "TRACESTATE": META["tracestate"]}
        task = connection.call("task.submit", prompt="x", agent="acp", _meta=META)["taskId"]
        assert output(connection, task) == META
        assert logged(hub, "task.submit") == [ID, ID]
        session = connection.call("session.create", agent="acp")["session"]["id"]
        task = connection.call("session.prompt", sessionId=session, prompt="x", _meta={"traceparent": PARENT})["taskId"]
        assert output(connection, task) == {"traceparent": PARENT}
        task = connection.call("session.prompt", sessionId=session, prompt="x")["taskId"]  # the next turn has its own, or none
        assert output(connection, task) is None


def what_is_malformed_is_ignored():
    with Hub(CONFIG) as hub:
        hub.env["TRACEPARENT"] = PARENT  # of who started the hub: not that of a task
        hub.start()
        connection = hub.connect()
        for meta in {}, {"traceparent": PARENT + "x"}, {"traceparent": "00-" + "0" * 32 + "-00f067aa0ba902b7-01"}, {"traceparent": ["x"]}, \
                {"traceparent": PARENT.upper()}, {"tracestate": "a=1"}:
            task = connection.call("task.submit", prompt="x", agent="cli", _meta=meta)["taskId"]
            assert output(connection, task) == {"TRACEPARENT": None, "TRACESTATE": None}, meta
        assert set(logged(hub, "task.submit")) == {None}
        task = connection.call("task.submit", prompt="x", agent="cli", _meta={"traceparent": PARENT, "tracestate": "bad state\n"})["taskId"]
        assert output(connection, task) == {"TRACEPARENT": PARENT, "TRACESTATE": None}


def over_a_restart():
    """A task that waits keeps it, also when the hub is killed."""
    with Hub({**CONFIG, "tasks": {"paused": True}}) as hub:
        hub.start()
        task = hub.connect().call("task.submit", prompt="x", agent="cli", _meta=META)["taskId"]
        hub.kill()
        hub.start()
        hub.stop()
        hub.configure(CONFIG)
        hub.start()
        assert output(hub.connect(), task) == {"TRACEPARENT": PARENT, "TRACESTATE": META["tracestate"]}


def by_http():
    with Doors(config=CONFIG) as doors:
        def submit(headers, params):
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "task.submit", "params": params})
            answer = doors.ask("POST", "/rpc", [JSON, doors.bearer(), "Connection: close", *headers], body).json()
            return output(doors.owner, answer["result"]["taskId"])

        other = PARENT.replace("4bf9", "5bf9")
        assert submit([f"traceparent: {PARENT}"], {"prompt": "x", "agent": "cli"})["TRACEPARENT"] == PARENT
        assert logged(doors.hub, "task.submit") == [ID]
        assert submit([f"Traceparent: {other}"], {"prompt": "x", "agent": "cli", "_meta": META})["TRACEPARENT"] == PARENT
        for headers in [], ["traceparent: nonsense"], [f"traceparent: {PARENT}", f"traceparent: {other}"]:
            assert submit(headers, {"prompt": "x", "agent": "cli"})["TRACEPARENT"] is None, headers


main([to_a_program_and_an_acp_agent, what_is_malformed_is_ignored, over_a_restart, by_http])
