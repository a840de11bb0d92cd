#!/usr/bin/python3
"""Plans on the real program: kill -9 in the middle, again and again. The plan goes on where it was and ends; what had ended
does not run again, and every step is one task."""
import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SOAK, Gone, Hub, Refused, main, wait_until

KILLS = 12
# It writes down that it began, waits a little, and writes down that it has ended; then it says what it did.
AGENT = """
import os, sys, time
step = sys.argv[1].split()[0]
def note(what):
    with open(os.environ["NOTES"], "a") as file:
        file.write(f"{what} {step}\\n")
note("began")
time.sleep(0.03)
note("ended")
print(f"answer of {step}")
"""


def layers(width, depth):
    """Every step needs all of the layer before it."""
    tasks, before = [], []
    for layer in range(depth):
        names = [f"s{layer}_{i}" for i in range(width)]
        tasks += [{"id": name, "type": "testing", "description": f"{name} of the plan", "dependencies": before} for name in names]
        before = names
    return {"tasks": tasks}


def hub_with_agent(on_restart):
    hub = Hub({"agents": {"notes": {"driver": "cli", "command": [sys.executable, "-c", AGENT, "{prompt}"]}},
               "default_agent": "notes", "tasks": {"on_restart": on_restart}})
    hub.env["NOTES"] = os.path.join(hub.folder, "notes")
    return hub


def plan_of(hub, plan):
    connection = hub.connect()
    try:
        return connection.call("plan.get", planId=plan)["plan"]
    finally:
        connection.close()


def check_journal(hub, plan, tasks):
    """Every step was queued as one task, completed once, and after everything that it needs."""
    needs = {task["id"]: task["dependencies"] for task in tasks}
    queued, completed = {}, []
    for event in hub.events(types=["task."]):
        data = event["data"]
        if event["type"] == "task.queued" and data["metadata"].get("planId") == plan:
            step = data["metadata"]["planTask"]
            assert step not in queued, f"{step} is there twice: {queued[step]} and {data['taskId']}"
            assert all(need in completed for need in needs[step]), f"{step} was queued before what it needs"
            for need in needs[step]:
                assert f"answer of {need}" in data["prompt"], data["prompt"]
            queued[step] = data["taskId"]
        if event["type"] == "task.completed":
            step = next(name for name, task in queued.items() if task == data["taskId"])
            assert step not in completed, f"{step} completed twice"
            completed.append(step)
    assert sorted(completed) == sorted(needs), (sorted(completed), sorted(needs))


def killed_in_the_middle():
    plan = layers(3, 5)
    with hub_with_agent("requeue") as hub:
        connection = hub.start().connect()
        ran = connection.call("run_plan", plan=plan, options={"wait": False})
        for _ in range(KILLS * SOAK):
            time.sleep(random.uniform(0.0, 0.08))
            hub.kill()
            hub.start()
            if plan_of(hub, ran["plan_id"])["state"] != "running":
                break
        wait_until("the plan ends", lambda: plan_of(hub, ran["plan_id"])["state"] != "running")
        is_now = plan_of(hub, ran["plan_id"])
        assert is_now["state"] == "completed", is_now
        check_journal(hub, ran["plan_id"], plan["tasks"])
        ended = [event for event in hub.events(types=["plan.finished"]) if event["data"]["planId"] == ran["plan_id"]]
        assert len(ended) == 1, ended


def killed_before_it_is_acknowledged():
    """Whatever was stored of it, the plan is there whole or not at all, and runs once."""
    with hub_with_agent("requeue") as hub:
        for _ in range(6 * SOAK):
            connection = hub.start().connect()
            connection.send({"jsonrpc": "2.0", "id": 1, "method": "run_plan",
                             "params": {"plan": layers(2, 2), "options": {"wait": False}}})
            time.sleep(random.uniform(0.0, 0.02))
            hub.kill()
        connection = hub.start().connect()
        wait_until("no plan runs", lambda: all(plan["state"] != "running" for plan in connection.call("plan.list")["plans"]))
        for plan in connection.call("plan.list")["plans"]:
            assert plan["state"] in ("created", "completed"), plan
            assert plan["taskCount"] == 4, plan


def what_ran_has_failed():
    with hub_with_agent("fail") as hub:
        connection = hub.start().connect()
        plan = {"tasks": [{"id": "a", "type": "testing", "description": "a"},
                          {"id": "b", "type": "testing", "description": "b", "dependencies": ["a"]}]}
        ran = connection.call("run_plan", plan=plan, options={"wait": False})
        wait_until("it runs", lambda: os.path.exists(hub.env["NOTES"]))
        hub.kill()
        connection = hub.start().connect()
        wait_until("the plan ends", lambda: plan_of(hub, ran["plan_id"])["state"] != "running")
        states = {task["id"]: task["state"] for task in plan_of(hub, ran["plan_id"])["tasks"]}
        # It may have been quick enough.
        assert states in ({"a": "failed", "b": "skipped"}, {"a": "completed", "b": "completed"},
                          {"a": "completed", "b": "failed"}), states


def cancelled_and_killed():
    with hub_with_agent("requeue") as hub:
        connection = hub.start().connect()
        ran = connection.call("run_plan", plan=layers(4, 4), options={"wait": False})
        connection.send({"jsonrpc": "2.0", "id": 99, "method": "plan.cancel", "params": {"planId": ran["plan_id"]}})
        wait_until("it is stopping", lambda: plan_of(hub, ran["plan_id"]).get("stopping")
                   or plan_of(hub, ran["plan_id"])["state"] != "running")
        hub.kill()
        hub.start()
        wait_until("the plan ends", lambda: plan_of(hub, ran["plan_id"])["state"] != "running")
        is_now = plan_of(hub, ran["plan_id"])
        assert is_now["state"] == "cancelled" and is_now["counts"]["skipped"] > 0, is_now


class Holder(threading.Thread):
    """Somebody connected who holds a role, and answers what is asked of it by a function; that may also leave."""

    def __init__(self, hub, role, answer, **more):
        super().__init__(daemon=True)
        self.connection = hub.connect()
        self.connection.call("role.register", role=role, **more)
        self.answer, self.asked = answer, []
        self.start()

    def run(self):
        try:
            while True:
                message = self.connection.receive()
                if "method" not in message or "id" not in message:
                    continue
                self.asked.append(message)
                result = self.answer(message)
                if result is None:
                    self.connection.close()
                    return
                self.connection.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        except (Gone, TimeoutError, OSError):
            pass


def executed(message):
    return {"status": "success", "output": {"code": f"did: {message['params']['prompt'].split()[0]}", "explanation": "",
                                            "files_modified": [], "files_created": []},
            "metadata": {"execution_time_ms": 1, "tokens_used": 2, "model": "test"}}


def somebody_connected_plans_and_executes():
    """A planner that answers with the shape itself; one executor leaves in the middle of a task, the other one does it."""
    plans = [{"plan": {"tasks": [{"id": "a", "type": "testing", "description": "a", "dependencies": ["z"]}]}},
             {"plan": {"tasks": [{"id": "a", "type": "testing", "description": "first"},
                                 {"id": "b", "type": "testing", "description": "second", "dependencies": ["a"]}],
                       "estimated_time_seconds": 5, "explanation": "why"}}]
    with Hub() as hub:
        caller = hub.start().connect()
        planner = Holder(hub, "planner", lambda message: plans[len(planner.asked) - 1])
        leaves = Holder(hub, "executor", lambda message: None)
        try:
            caller.call("create_plan", user_request="wish", constraints={"max_tasks": 4})
            raise AssertionError("a dependency that is not there")
        except Refused as refused:
            assert refused.code == -32000 and "a depends on z" in str(refused), refused
        assert len(planner.asked) == 1, "somebody who speaks the protocol is not told to try again"
        assert planner.asked[0]["method"] == "create_plan", planner.asked
        assert planner.asked[0]["params"]["user_request"] == "wish", planner.asked
        plan = caller.call("create_plan", user_request="wish")["plan"]
        assert plan["explanation"] == "why" and plan["tasks"][1]["dependencies"] == ["a"], plan
        runner = hub.connect()
        runner.send({"jsonrpc": "2.0", "id": 7, "method": "run_plan", "params": {"planId": plan["plan_id"]}})
        wait_until("the first one has the task", lambda: leaves.asked)
        stays = Holder(hub, "executor", executed)
        answer = runner.receive()
        while answer.get("id") != 7:
            answer = runner.receive()
        assert answer["result"]["status"] == "success", answer
        codes = [result["output"]["code"] for result in answer["result"]["results"]]
        assert codes == ["did: first", "did: second"], codes
        assert "did: first" in stays.asked[1]["params"]["prompt"], stays.asked
        assert stays.asked[1]["params"]["task_type"] == "testing", stays.asked


def executors_come_back_behind_a_kill():
    """Steps wait for who had registered: the default agent, which would do something else, gets none of them."""
    tasks = [{"id": "a", "type": "testing", "description": "first"},
             {"id": "b", "type": "testing", "description": "second", "dependencies": ["a"]}]
    killed = threading.Event()

    def until_the_kill(message):
        return executed(message) if message["params"]["prompt"].startswith("first") else killed.wait() and None

    with Hub({"tasks": {"on_restart": "requeue"}}) as hub:
        caller = hub.start().connect()
        before = Holder(hub, "executor", until_the_kill)
        ran = caller.call("run_plan", plan={"tasks": tasks}, options={"wait": False})
        wait_until("it has both", lambda: len(before.asked) >= 2)
        hub.kill()
        killed.set()
        caller = hub.start().connect()
        again = Holder(hub, "executor", executed)
        wait_until("the plan ends", lambda: plan_of(hub, ran["plan_id"])["state"] != "running")
        now = plan_of(hub, ran["plan_id"])
        assert now["state"] == "completed", now
        assert [message["params"]["prompt"].split()[0] for message in again.asked] == ["second"], again.asked
        agents = {task["id"]: task["agent"] for task in caller.call("task.about", taskIds=[
            step["taskId"] for step in now["tasks"]])["tasks"]}
        assert all(agent.startswith("executor@") for agent in agents.values()), agents


def what_is_deleted_is_gone_from_the_plan():
    """With the session of a step goes what its plan says of it, and with the last of them the plan; also behind a kill."""
    tasks = [{"id": "a", "type": "testing", "description": "true secret-one"},
             {"id": "b", "type": "testing", "description": "echo secret-two; exit 3", "dependencies": ["a"]},
             {"id": "c", "type": "testing", "description": "echo secret-three", "dependencies": ["b"]}]
    agents = {"sh": {"driver": "cli", "command": ["/bin/sh", "-c", "{prompt}"]}}

    def readable(hub):
        connection = hub.connect()
        try:
            plans = connection.call("plan.list")["plans"]
            return json.dumps([hub.events(), plans, [plan_of(hub, plan["id"]) for plan in plans]])
        except Refused as refused:  # it goes in this moment
            assert refused.reason == "planNotFound", refused
            return "secret"
        finally:
            connection.close()

    with Hub({"agents": agents, "default_agent": "sh"}) as hub:
        caller = hub.start().connect()
        ran = caller.call("run_plan", plan={"user_request": "secret-wish", "tasks": tasks}, options={"wait": False})["plan_id"]
        wait_until("the plan ends", lambda: plan_of(hub, ran)["state"] != "running")
        steps = plan_of(hub, ran)["tasks"]
        sessions = [step["taskId"].replace("task", "session") for step in steps[:2]]
        assert "secret-one" in readable(hub) and "secret-wish" in readable(hub)
        caller.call("session.delete", sessionId=sessions[0])
        hub.kill()
        caller = hub.start().connect()
        wait_until("what it says of the step is gone", lambda: "secret-one" not in readable(hub))
        assert "secret-two" in readable(hub) and "secret-wish" in readable(hub)
        now = plan_of(hub, ran)["tasks"]
        assert [step["state"] for step in now] == ["completed", "failed", "skipped"], now
        assert now[0]["description"] == "(no longer kept)" and "secret-two" in now[1]["description"], now
        caller.call("session.delete", sessionId=sessions[1])
        wait_until("all of it is gone", lambda: "secret" not in readable(hub))
        assert caller.call("plan.list")["plans"] == []
        hub.stop()
        hub.start()
        assert "secret" not in readable(hub) and hub.connect().call("plan.list")["plans"] == []


main([killed_in_the_middle, killed_before_it_is_acknowledged, what_ran_has_failed, cancelled_and_killed,
      somebody_connected_plans_and_executes, executors_come_back_behind_a_kill,
      what_is_deleted_is_gone_from_the_plan])
