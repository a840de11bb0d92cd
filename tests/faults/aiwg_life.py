#!/usr/bin/env python3
"""The life of a daemon with AIWG's files: beside AIWG's own, after a crash of either, and when somebody removes its files."""
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time

from aiwg_hub import Project
from hub import Gone, PATIENCE, Refused, main, wait_until

QUIET = {"daemon": {"heartbeat_interval_seconds": 1}, "watch": {"enabled": False}, "schedule": {"enabled": False}}
FILES = [".aiwg/daemon.pid", ".aiwg/daemon/.lock", ".aiwg/daemon/daemon.sock"]


def answers(project):
    try:
        connection = project.connect(5)
        pong = connection.call("ping")["pong"]
        connection.close()
        return pong
    except (OSError, Gone):
        return False


class Theirs:
    """AIWG's own daemon, as others see it: a process "... daemon-main.mjs" in the folder, its lock and its pid file."""

    def __init__(self, project, name="daemon-main.mjs", cwd=None):
        os.makedirs(project.home, exist_ok=True)
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", name], cwd=cwd or project.project)
        project.write(".aiwg/daemon/.lock", str(self.process.pid))
        project.write(".aiwg/daemon.pid", str(self.process.pid))

    def end(self):
        self.process.kill()
        self.process.wait()


def first_start():
    with Project() as project:
        project.start()
        config = json.loads(project.read(".aiwg/daemon.json"))
        assert [path["path"] for path in config["watch"]["paths"]] == [".aiwg/", "src/", "test/"], config
        assert [job["id"] for job in config["schedule"]["jobs"]] == ["health-check", "artifact-audit"], config
        status = project.connect().call("daemon.status")
        assert status["subsystems"]["scheduler"]["jobs"] == 2, status
        before = project.read(".aiwg/daemon.json")
        assert project.stop() == 0
        project.start()
        assert project.read(".aiwg/daemon.json") == before


def broken_configuration():
    with Project('{"daemon": {"max_parallel_actions": 1') as project:
        project.start()
        assert project.connect().call("daemon.status")["subsystems"]["supervisor"]["maxConcurrency"] == 3
        assert project.read(".aiwg/daemon.json").startswith('{"daemon": {"max'), "the file stays as it is"
        assert "defaults" in project.said(), project.said()


def yaml_is_not_passed_over_in_silence():
    with Project(QUIET) as project:
        project.write(".aiwg/daemon.yaml", "daemon:\n  max_parallel_actions: 9\n")
        project.start()
        assert ".aiwg/daemon.yaml is not read" in project.said() and ".aiwg/daemon.yaml is not read" in project.log()


def files_and_their_end():
    with Project(QUIET) as project:
        project.start()
        pid = project.process.pid
        assert project.pid_file() == pid and project.read(".aiwg/daemon/.lock") == str(pid)
        first = json.loads(project.read(".aiwg/daemon/heartbeat"))
        wait_until("the heart beats", lambda: json.loads(project.read(".aiwg/daemon/heartbeat")) != first)
        state = json.loads(project.read(".aiwg/daemon/state.json"))
        assert state["pid"] == pid and state["daemon_supervisor"]["circuit"] == "closed", state
        assert project.stop() == 0
        assert not any(project.has(name) for name in FILES), os.listdir(project.home)


def while_it_drains():
    """The pid file is there until the process has ended; nobody is let in any more."""
    with Project(QUIET) as project:
        connection = project.start().connect()
        connection.call("task.submit", prompt="sleep 2")
        wait_until("it runs", lambda: "Agent task started: task-0000" in project.log())
        project.process.send_signal(signal.SIGTERM)
        wait_until("it is stopping", lambda: "Shutdown initiated" in project.log())
        assert project.pid_file() == project.process.pid
        assert not answers(project)
        said = project.weft("status", "--aiwg")
        if project.process.poll() is None and project.has(".aiwg/daemon.pid"):
            assert said.stdout.strip() in ("stopping", "not running"), said
        assert project.process.wait(PATIENCE) == 0
        project.process = None
        assert not project.has(".aiwg/daemon.pid")
        assert "Agent task completed: task-0000" in project.log(), project.log()
        assert "Daemon stopped gracefully" in project.log()


def removed_by_hand():
    with Project(QUIET) as project:
        project.start()
        connected = project.connect()
        for names in ([FILES[0]], [FILES[1]], [FILES[2]], FILES, FILES + [".aiwg/daemon/endpoint.json"]):
            for _ in range(3):
                for name in names:
                    os.unlink(project.path(name))
                wait_until(f"{names} are there again", lambda: all(project.has(name) for name in names) and answers(project))
                said = project.weft("status", "--aiwg")
                assert said.returncode == 0 and said.stdout.startswith("running"), said
        assert project.pid_file() == project.process.pid
        assert project.read(".aiwg/daemon/.lock") == str(project.process.pid)
        assert connected.call("ping")["pong"], "who was connected still is"
        assert project.weft("stop", "--aiwg").returncode == 0
        project.process.wait(PATIENCE)
        project.process = None
        assert not any(project.has(name) for name in FILES)


def beside_theirs():
    with Project(QUIET) as project:
        theirs = Theirs(project)
        process = project.spawn()
        assert process.wait(PATIENCE) == 6, project.said()
        assert "AIWG's own daemon is running" in project.said(), project.said()
        assert project.read(".aiwg/daemon/.lock") == str(theirs.process.pid), "nothing of it is touched"
        assert project.pid_file() == theirs.process.pid
        theirs.end()
        project.start()  # killed: what it left is not believed
        assert project.read(".aiwg/daemon/.lock") == str(project.process.pid)


class Node(Theirs):
    """The same as node shows it: the interpreter, and the program's path."""

    def __init__(self, project):
        program = os.path.join(project.folder, "daemon-main.mjs")
        with open(program, "w") as file:
            file.write("import time; time.sleep(600)")
        os.makedirs(project.home, exist_ok=True)
        self.process = subprocess.Popen(["node", program], executable=sys.executable, cwd=project.project)
        project.write(".aiwg/daemon/.lock", str(self.process.pid))
        project.write(".aiwg/daemon.pid", str(self.process.pid))
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(os.path.join(project.home, "daemon.sock"))
        self.socket.listen()

    def end(self):
        super().end()
        self.socket.close()


def beside_theirs_without_its_files():
    """Whatever of it somebody has removed, it is seen; and nothing of ours stays behind."""
    for count in range(len(FILES) + 1):
        for removed in itertools.combinations(FILES, count):
            with Project(QUIET) as project:
                theirs = Node(project)
                for name in removed:
                    os.unlink(project.path(name))
                process = project.spawn()
                assert process.wait(PATIENCE) == 6, (removed, project.said())
                assert [name for name in FILES if project.has(name)] == [name for name in FILES if name not in removed], removed
                theirs.end()


def an_editor_is_no_daemon():
    with Project(QUIET) as project:
        editor = subprocess.Popen(["vi", "-c", "import time; time.sleep(600)", "daemon-main.mjs"],
                                  executable=sys.executable, cwd=project.project)
        project.start()
        editor.kill()
        editor.wait()


def locks_that_were_left():
    with Project(QUIET) as project:
        elsewhere = Theirs(project, cwd="/")
        project.start()
        project.stop()
        elsewhere.end()
        other = Theirs(project, name="a-server.mjs")  # a number that was given to another program of this folder
        project.start()
        assert project.pid_file() == project.process.pid
        project.stop()
        other.end()
        for text in ("", "nonsense", "999999999"):
            project.write(".aiwg/daemon/.lock", text)
            project.start()
            project.stop()


def after_a_crash_of_ours():
    with Project(QUIET) as project:
        project.start().connect().call("task.submit", prompt="sleep 600")
        wait_until("it runs", lambda: "Agent task started" in project.log())
        project.kill()
        assert all(project.has(name) for name in FILES), "as after a crash of AIWG's own"
        os.rename(project.path(".aiwg/daemon/daemon.log"), project.path(".aiwg/daemon/daemon.log.1"))
        project.start()
        task = project.connect().call("task.get", taskId="task-0000")
        assert task["state"] == "failed", task
        project.kill()
        assert project.weft("stop", "--aiwg").returncode == 0
        assert not project.has(FILES[0]) and not project.has(FILES[1]), "AIWG's own can start"


def a_foreign_pid_file_is_left_alone():
    with Project(QUIET) as project:
        project.start()
        project.write(".aiwg/daemon.pid", "1")
        project.stop()
        assert project.read(".aiwg/daemon.pid") == "1"


TASKS = {"version": 1, "updatedAt": "2026-11-15T02:50:30.086Z", "tasks": [
    {"id": f"task-{n:04}", "prompt": prompt, "agent": None, "priority": n, "state": state,
     "createdAt": "2026-11-15T02:50:21.613Z", "startedAt": "2026-11-15T02:50:22.613Z", "completedAt": None if state in
     ("queued", "running") else "2026-11-15T02:50:23.613Z", "pid": None, "result": None, "error": "boom" if state == "failed"
     else None, "output": "said\n", "metadata": {"source": "ipc-chat"}}
    for n, (prompt, state) in enumerate([("a", "completed"), (123, "failed"), ("c", "running"), ("d", "queued"),
                                         ("e", "cancelled")])]}


def history_is_taken_over_once():
    with Project(QUIET) as project:
        odd = [{"id": "mine", "prompt": "x"}, {"id": "task-7", "prompt": "x"}, 5, None, {"id": "task-0004", "prompt": "again"}]
        project.write(".aiwg/daemon/tasks.json", json.dumps({**TASKS, "tasks": TASKS["tasks"] + odd}))
        connection = project.start().connect()
        listed = {task["id"]: task for task in connection.call("task.list", limit=100)}
        assert sorted(listed) == [f"task-{n:04}" for n in range(5)], listed
        states = [listed[f"task-{n:04}"]["state"] for n in range(5)]
        assert states == ["completed", "failed", "failed", "failed", "cancelled"], states
        assert listed["task-0001"]["prompt"] == "123" and listed["task-0001"]["error"] == "boom"
        assert listed["task-0000"]["output"] == "said\n" and listed["task-0000"]["metadata"] == {"source": "ipc-chat"}
        assert listed["task-0000"]["createdAt"] == "2026-11-15T02:50:21.613Z"
        assert connection.call("task.stats") == {"total": 5, "queued": 0, "running": 0, "completed": 1, "failed": 3,
                                                 "cancelled": 1}
        assert connection.call("task.submit", prompt="new")["taskId"] == "task-0005"
        wait_until("it has ended", lambda: connection.call("task.get", taskId="task-0005")["state"] == "completed")
        project.stop()
        project.start()
        connection = project.connect()
        assert len(connection.call("task.list", limit=100)) == 6, "nothing is taken over twice"
        assert connection.call("task.stats")["total"] == 6
        kept = json.loads(project.read(".aiwg/daemon/tasks.json.aiwg"))
        assert len(kept["tasks"]) == 10, "what AIWG had stays as it was"


def hostile_history():
    """Numbers beyond all counting, NULs, wrong types: what can be told is told, and counting goes on where it was."""
    odd = [{"id": "task-0005", "prompt": "a\0b\x1b[2J", "state": "failed", "error": "\0", "createdAt": "yesterday",
            "completedAt": 1e300, "metadata": 5, "agent": ["x"], "output": "\0", "pid": 1},
           {"id": "task-1000000000", "prompt": "x"}, {"id": "task-18446744073709551615", "prompt": "x"}, {"id": "task--001"}]
    with Project(QUIET) as project:
        project.write(".aiwg/daemon/tasks.json", json.dumps({"tasks": odd}))
        connection = project.start().connect()
        [task] = connection.call("task.list", limit=100)
        assert task["prompt"] == json.dumps("a\0b\x1b[2J") and task["error"] == json.dumps("\0"), task
        assert task["createdAt"].startswith("20"), task
        assert task["metadata"] == {} and task["agent"] is None and task["pid"] is None, task
        assert connection.call("task.submit", prompt="new")["taskId"] == "task-0006"
        assert "\x1b" not in project.log() and project.stop() == 0


def links_are_not_followed():
    """What came with a clone may be links to files of ours: none of them is read into the hub, or written."""
    names = ["daemon.pid", "daemon/.lock", "daemon/heartbeat", "daemon/state.json", "daemon/tasks.json", "daemon/tasks.json.aiwg",
             "daemon.json"]
    for make in (os.symlink, os.link):
        for name in names:
            with Project() as project:
                mine = os.path.join(project.folder, "mine")
                with open(mine, "w") as file:
                    file.write(json.dumps({"tasks": [{"id": "task-0000", "prompt": "precious"}]}))
                os.makedirs(project.home)
                make(mine, project.path(".aiwg/" + name))
                project.start()
                if make is os.symlink:
                    assert project.connect().call("task.list") == [], name
                assert project.stop() == 0
                with open(mine) as file:
                    assert "precious" in file.read(), (make, name)


def there_and_back():
    """AIWG's daemon goes on with what we did, and we with what it did."""
    with Project(QUIET) as project:
        project.write(".aiwg/daemon/tasks.json", json.dumps(TASKS))
        connection = project.start().connect()
        connection.call("task.submit", prompt="ours")
        wait_until("it has ended", lambda: connection.call("task.stats")["completed"] == 2)
        project.stop()
        theirs = json.loads(project.read(".aiwg/daemon/tasks.json"))
        assert [task["id"] for task in theirs["tasks"]] == [f"task-{n:04}" for n in range(6)], theirs
        assert theirs["tasks"][5]["output"] == "echo:ours agent=\n", theirs["tasks"][5]
        theirs["tasks"].append({**TASKS["tasks"][0], "id": "task-0006", "prompt": "theirs"})
        project.write(".aiwg/daemon/tasks.json", json.dumps(theirs))
        connection = project.start().connect()
        assert connection.call("task.get", taskId="task-0006")["prompt"] == "theirs"
        assert connection.call("task.submit", prompt="ours again")["taskId"] == "task-0007"


def history_that_is_none():
    for text in ("", "{", "[]", '{"tasks": 5}', '{"tasks": {"id": "task-0000"}}', "null"):
        with Project(QUIET) as project:
            project.write(".aiwg/daemon/tasks.json", text)
            connection = project.start().connect()
            assert connection.call("task.list") == [], text
            assert connection.call("task.submit", prompt="x")["taskId"] == "task-0000", text
            assert project.read(".aiwg/daemon/tasks.json.aiwg") == text


def a_clone_runs_nothing():
    """What somebody else's .aiwg says opens no door to others and calls nobody before "weft trust"."""
    doors = [
        {"interface": {"web": {"enabled": True, "port": 0, "host": "0.0.0.0"}}},
        {"interface": {"web": {"enabled": True, "port": 0, "token": "known to whoever sent it"}}},
        {"rules": [{"id": "r", "trigger": {"type": "file.modify"}, "action": {"type": "webhook", "url": "http://127.0.0.1:9/"}}]},
    ]
    for door in doors:
        with Project({**QUIET, **door}) as project:
            process = project.spawn()
            assert process.wait(PATIENCE) == 4, (door, project.said())
            assert "weft trust" in project.said(), project.said()
            assert not project.has(".aiwg/daemon/daemon.sock")


main([first_start, broken_configuration, yaml_is_not_passed_over_in_silence,
      files_and_their_end, while_it_drains, removed_by_hand, beside_theirs,
      beside_theirs_without_its_files, an_editor_is_no_daemon,
      locks_that_were_left, after_a_crash_of_ours, a_foreign_pid_file_is_left_alone, history_is_taken_over_once, hostile_history, links_are_not_followed,
      there_and_back, history_that_is_none, a_clone_runs_nothing])
