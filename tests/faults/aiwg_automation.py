#!/usr/bin/env python3
"""Rules, watching and jobs of a real AIWG project: each edit of a person's is seen, and what is left out is said."""
import os
import subprocess

from aiwg_hub import Project
from hub import PATIENCE, main, wait_until

DEBOUNCE = 100


def config(rules, paths=("src/",), **watch):
    return {"daemon": {"max_parallel_actions": 3}, "schedule": {"enabled": False},
            "watch": {"enabled": True, "paths": list(paths), "debounce_ms": DEBOUNCE, **watch}, "rules": rules}


def agent(id, type="file.modify", prompt="look at {{payload.path}}", **more):
    return {"id": id, "trigger": {"type": type}, "action": {"type": "agent", "prompt": prompt}, **more}


def started(rules, files=("src/a.ts",), **more):
    project = Project(config(rules, **more))
    for name in files:
        project.write(name, "one\n")
    project.start()
    return project


def prompts(connection):
    return sorted(task["prompt"] for task in connection.call("task.list", limit=1000))


def five_files_together():
    files = [f"src/f{n}.ts" for n in range(5)]
    with started([agent("r")], files) as project:
        connection = project.connect()
        for name in files:
            project.write(name, "two\n")
        wait_until("there are five tasks", lambda: prompts(connection) == [f"look at {name}" for name in files])
        # That a rule fired is stored behind its task.
        wait_until("each is on record", lambda: len(connection.call("automation.status")["recentExecutions"]) == 5)
        status = connection.call("automation.status")
        assert [run["status"] for run in status["recentExecutions"]] == ["submitted"] * 5, status
        assert {run["taskId"] for run in status["recentExecutions"]} == {f"task-{n:04}" for n in range(5)}
        assert status["rules"] == [{"id": "r", "trigger": {"type": "file.modify"}, "action": {
            "type": "agent", "prompt": "look at {{payload.path}}"}, "enabled": True, "cooldownMs": 0,
            "requiresApproval": False}], status["rules"]
        wait_until("it is in the log", lambda: project.log().count("Event received: watch - file.modify") == 5)


def eight_edits_in_a_row():
    """Each while a task of the rule runs, or has just ended: a person's edit is no loop."""
    with started([agent("r", prompt="sleep 1")]) as project:
        connection = project.connect()
        for n in range(8):
            project.write("src/a.ts", f"{n}\n" * (n + 2))
            wait_until(f"edit {n} is a task", lambda: connection.call("task.stats")["total"] == n + 1)
        assert all(run["status"] == "submitted" for run in connection.call("automation.status")["recentExecutions"])


def a_loop_ends():
    """A rule whose task changes the file that it watches: it stops, and says so."""
    with Project(config([agent("loop", prompt="edit")])) as project:
        with open(os.path.join(project.bin, "claude"), "w") as file:
            file.write("#!/bin/sh\ndate +%N >>src/a.ts\n")
        project.write("src/a.ts", "one\n")
        connection = project.start().connect()
        project.write("src/a.ts", "two\n")
        wait_until("it was stopped", lambda: any(run["status"] == "skipped" for run in connection.call(
            "automation.status")["recentExecutions"]), 4 * PATIENCE)
        total = connection.call("task.stats")["total"]
        assert total == 25, total
        assert "rule loop: skipped for file.modify" in project.log(), project.log()[-2000:]


def a_cooldown_is_said():
    with started([agent("r", cooldownMs=60000)], ["src/a.ts", "src/b.ts"]) as project:
        connection = project.connect()
        project.write("src/a.ts", "two\n")
        wait_until("it fired", lambda: connection.call("task.stats")["total"] == 1)
        project.write("src/b.ts", "two\n")
        wait_until("it is recorded", lambda: [run["status"] for run in connection.call(
            "automation.status")["recentExecutions"]] == ["submitted", "skipped"])
        assert "rule r: skipped for file.modify" in project.log()
        assert connection.call("task.stats")["total"] == 1


def texts_and_sources():
    rules = [agent("modify", prompt="{{source}} {{type}} {{payload.event_type}} {{payload.path}} {{nope}} {{path}}"),
             {"id": "create", "trigger": {"source": "watch", "type": "file.create"},
              "conditions": [{"field": "source", "operator": "equals", "value": "watch"}],
              "action": {"type": "notify", "message": "{{payload.path}}"}},
             {"id": "pattern", "trigger": {"pattern": "delete:watch$"}, "action": {"type": "agent", "prompt": "gone"}},
             {"id": "guide", "trigger": {"type": "file_change", "pattern": "src/**/*.ts"},
              "action": {"type": "submit_task", "prompt": "x"}}]
    with started(rules) as project:
        connection = project.connect()
        project.write("src/a.ts", "two\n")
        project.write("src/new.ts", "")
        wait_until("both fired", lambda: len(connection.call("automation.status")["recentExecutions"]) == 2)
        os.unlink(project.path("src/new.ts"))
        wait_until("the third too", lambda: prompts(connection) == [
            "gone", "watch file.modify modify src/a.ts {{nope}} {{path}}"])
        wait_until("each is recorded", lambda: {run["ruleId"]: run["status"] for run in connection.call("automation.status")[
            "recentExecutions"]} == {"modify": "submitted", "create": "notified", "pattern": "submitted"})
        status = connection.call("automation.status")
        assert status["ruleCount"] == 4 and status["rules"][2]["trigger"] == {"pattern": "delete:watch$"}, status
        assert "error" in status["rules"][3], "a rule that cannot fire is reported"


def conditions_and_types():
    """A field has its whole name, what is not there is not null, and a type is no pattern."""
    def when(id, field, operator, **value):
        return agent(id, prompt=id, conditions=[{"field": field, "operator": operator, **value}])

    rules = [when("whole", "payload.path", "exists"), when("other", "payload.none", "neq", value="x"),
             when("not there", "payload.none", "not_exists"), when("bare", "path", "exists"),
             when("null", "payload.none", "eq", value=None), agent("star", "file.*"), agent("all", "*"), agent("last", prompt="last")]
    with started(rules) as project:
        connection = project.connect()
        project.write("src/a.ts", "two\n")
        wait_until("all have fired that do", lambda: prompts(connection) == ["last", "not there", "other", "whole"])
        wait_until("and are recorded", lambda: len(connection.call("automation.status")["recentExecutions"]) == 4)
        errors = {rule["id"]: rule.get("error", "") for rule in connection.call("automation.status")["rules"]}
        assert "\"*\"" in errors["star"] and "\"*\"" in errors["all"], errors


def paths_and_events():
    paths = ["plain/", {"path": "typed", "events": ["create"], "extensions": [".ts"], "ignore": ["skip*"]}, ".aiwg/"]
    rules = [agent(type, type, "{{type}} {{payload.path}}") for type in ("file.create", "file.modify", "file.delete")]
    files = ["plain/a", "typed/a.ts", ".aiwg/notes.md", "elsewhere/a"]
    with started(rules, files, paths=paths, events=["modify"], ignore=["*.log"]) as project:
        connection = project.connect()
        for name in files + ["plain/new", "plain/x.log", "typed/b.ts", "typed/b.js", "typed/skipped.ts"]:
            project.write(name, "two\n")
        want = ["file.create typed/b.ts", "file.modify .aiwg/notes.md", "file.modify plain/a"]
        wait_until("what is wanted was seen", lambda: prompts(connection) == want)
        project.write("plain/a", "the last\n")
        wait_until("and nothing else", lambda: prompts(connection) == sorted(want + ["file.modify plain/a"]))
        watcher = connection.call("daemon.status")["subsystems"]["file_watcher"]
        assert watcher == {"enabled": True, "paths": ["plain/", "typed", ".aiwg/"], "events_received": 4}, watcher


def what_lies_outside():
    """It is not watched, and that is said."""
    paths = ["../", "/etc", "a/../../b", "src", "./src/../docs"]
    with started([agent("r")], ["src/a.ts", "docs/b"], paths=paths) as project:
        connection = project.connect()
        with open(os.path.join(project.folder, "other"), "w") as file:
            file.write("x")
        project.write("src/a.ts", "two\n")
        wait_until("what lies inside is", lambda: prompts(connection) == ["look at src/a.ts"])
        said = project.log()
        assert all(f"{path} is not watched" in said for path in ("..", "/etc", "a/../../b")), said
        assert "src is not" not in said and "docs is not" not in said, said


def what_git_ignores():
    with Project(config([agent("r")], ["generated/"])) as project:
        project.write(".gitignore", "generated/\n*.ts\n")
        project.write("generated/a.ts", "one\n")
        project.write("generated/node_modules/b.ts", "one\n")
        subprocess.run(["git", "init", "-q"], cwd=project.project, check=True)
        connection = project.start().connect()
        project.write("generated/node_modules/b.ts", "two\n")
        project.write("generated/.gitkeep", "")
        project.write("generated/a.ts", "two\n")
        wait_until("it is watched all the same", lambda: prompts(connection) == ["look at generated/a.ts"])


def jobs_by_name_and_utc():
    """A job is an event; where the file has AIWG 2026.5.1's supervisor, an action that AIWG knows is a loop besides."""
    jobs = [{"name": "named", "cron": "0 9 * * 1", "action": "x"}, {"id": "minute", "cron": "* * * * *", "action": "doctor"}]
    rules = [{"id": "r", "trigger": {"source": "schedule"},
              "action": {"type": "agent", "prompt": "{{source}} {{payload.job_id}} {{payload.action}}"}}]
    more = [{"id": "other", "cron": "* * * * *", "action": "health-check"}]
    newer = {"daemon": {}, "supervisor": {}, "schedule": {"enabled": True, "jobs": jobs + more}, "rules": []}
    with Project({"daemon": {}, "schedule": {"enabled": True, "jobs": jobs}, "rules": rules}, {"TZ": "Asia/Kolkata"}) as project, \
            Project(newer) as newer:
        connection = project.start().connect()
        loops = newer.start().connect()
        status = connection.call("daemon.status")["subsystems"]
        assert status["scheduler"] == {"enabled": True, "jobs": 2, "last_fires": {}}, status["scheduler"]
        assert status["file_watcher"] == {"enabled": False}, status["file_watcher"]
        wait_until("a minute is over", lambda: prompts(connection) == ["schedule minute doctor"], 65 + PATIENCE)
        fires = connection.call("daemon.status")["subsystems"]["scheduler"]["last_fires"]
        assert list(fires) == ["minute"], fires
        task = wait_until("the loop has a task", lambda: loops.call("task.list"), 65 + PATIENCE)[-1]
        assert "aiwg doctor" in task["prompt"] and task["priority"] == 1, task
        assert {**task["metadata"], "loopId": ""} == {"loopId": "", "source": "scheduler", "jobId": "minute", "action": "doctor"}, task
        wait_until("the loop is over", lambda: loops.call("daemon.loop.history"))
        wait_until("the other job was due", lambda: newer.log().count("Event received: schedule") >= 2)
        assert all("aiwg doctor" in one["prompt"] for one in loops.call("task.list")), "an action that AIWG does not know starts nothing"
        assert "Executing job minute: doctor" in newer.log(), newer.log()
        schedule = loops.call("schedule.status")
        assert schedule["started"] and "doctor" in schedule["registeredActions"], schedule
        [run] = schedule["jobHistory"]
        assert run["jobId"] == "minute" and run["action"] == "doctor" and run["runCount"] >= 1 and run["lastRun"], run
        assert connection.call("schedule.status")["jobHistory"] == []


main([five_files_together, eight_edits_in_a_row, a_loop_ends, a_cooldown_is_said, texts_and_sources, conditions_and_types, paths_and_events,
      what_lies_outside, what_git_ignores, jobs_by_name_and_utc])
