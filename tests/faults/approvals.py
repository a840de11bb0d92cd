#!/usr/bin/python3
"""What an agent may do without asking ends where its files end: at links that a clone brought, at the worktree it works in, at
the folder of a command. And an agent does not say what is trusted."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import WEFT, Hub, main, wait_until

# The prompt is a list of tool calls; each is asked for, and the answers are said. "@" stands for where it works.
AGENT = r"""
import json, sys
def send(**m): print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
folder = None
for line in sys.stdin:
    m = json.loads(line)
    method, i = m.get("method"), m.get("id")
    if method == "initialize": send(id=i, result={"protocolVersion": 1, "agentCapabilities": {}})
    elif method == "session/new":
        folder = m["params"]["cwd"]
        send(id=i, result={"sessionId": "s"})
    elif method == "session/prompt":
        for n, call in enumerate(json.loads(m["params"]["prompt"][0]["text"].replace("@", folder))):
            send(id=f"q{n}", method="session/request_permission", params={"sessionId": "s",
                 "toolCall": {"toolCallId": f"c{n}", **call},
                 "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                             {"optionId": "n", "name": "No", "kind": "reject_once"}]})
            sys.stdin.readline()
        send(id=i, result={"stopReason": "end_turn"})
"""


def edit(path):
    return {"kind": "edit", "title": "edit", "locations": [{"path": path}]}


def run(command, **more):
    return {"kind": "execute", "title": "run", "rawInput": {"command": command, **more}}


def git(folder, *args):
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org", *args], check=True,
                   capture_output=True)


class World:
    def __init__(self):
        agent = {"driver": "acp", "command": [sys.executable, "-c", AGENT]}
        shell = {"driver": "cli", "command": ["/bin/sh", "-c", "eval \"$1\"", "sh", "{prompt}"]}
        self.hub = Hub({"agents": {"asks": agent, "shell": shell}, "default_agent": "asks"})
        folder = self.hub.folder
        os.makedirs(os.path.join(folder, "src"))
        with open(os.path.join(folder, "src", "a"), "w") as file:
            file.write("a\n")
        os.symlink("/usr", os.path.join(folder, "src", "out"))
        os.symlink("../../elsewhere", os.path.join(folder, "src", "new"))
        with open(os.path.join(folder, ".gitignore"), "w") as file:
            file.write("/talk\n.weft/\n")
        git(folder, "init", "-q")
        git(folder, "add", "src", ".gitignore")
        git(folder, "commit", "-qm", "first")
        self.hub.start()
        self.calls = self.hub.connect()

    def asks(self, call, **how):
        """Whether a person is asked; then the answer is no."""
        task = self.calls.call("task.submit", prompt=json.dumps([call]), **how)["taskId"]
        found = []

        def is_decided():
            found[:] = self.calls.call("question.list")["questions"]
            return found or self.calls.call("task.get", taskId=task)["state"] not in ("queued", "running")

        wait_until("the agent has asked or ended", is_decided)
        asked = bool(found)
        for question in found:
            self.calls.call("question.answer", questionId=question["id"], option="n")
        wait_until("the task has ended", lambda: self.calls.call("task.get", taskId=task)["state"] == "completed")
        return asked

    def give(self, call, **always):
        task = self.calls.call("task.submit", prompt=json.dumps([call]))["taskId"]
        wait_until("it asks", lambda: self.calls.call("question.list")["questions"])
        question = self.calls.call("question.list")["questions"][0]
        self.calls.call("question.answer", questionId=question["id"], option="y", always=always)
        wait_until("the task has ended", lambda: self.calls.call("task.get", taskId=task)["state"] == "completed")


def links():
    """A link in the repository does not make more of what was allowed."""
    world = World()
    try:
        for path, asked in (("@/src/a", False), ("src/made", False), ("@/src/out/x", True), ("src/out", True), ("src/new", True)):
            assert world.asks(edit(path), permission="edit") == asked, path
        world.give(edit("src/a"), scope="project", path="src")
        for path, asked in (("@/src/b", False), ("@/src/out/x", True), ("src/new", True)):
            assert world.asks(edit(path)) == asked, path
        world.give(run("make"), scope="project", command=["make"])
        for how, asked in (({}, False), ({"cwd": "@/src"}, False), ({"cwd": "@/src/out"}, True), ({"cwd": "/"}, True)):
            assert world.asks(run("make all", **how)) == asked, how
    finally:
        world.hub.done()


def worktrees():
    """In a worktree its files count, and not those of the project."""
    world = World()
    try:
        for path, asked in (("@/src/a", False), ("src/a", False), (os.path.join(world.hub.folder, "src", "a"), True),
                            ("@/src/out/x", True), ("@/.git", True)):
            assert world.asks(edit(path), permission="edit", isolation="worktree") == asked, path
        world.give(edit("src/a"), scope="project", path="src")
        assert not world.asks(edit("@/src/b"), isolation="worktree")
        assert world.asks(edit(os.path.join(world.hub.folder, "src", "a")), isolation="worktree")
    finally:
        world.hub.done()


def trusting():
    """An agent that is told to type "weft trust" cannot."""
    world = World()
    try:
        made = os.path.join(world.hub.folder, "made")
        text = json.dumps({"agents": {"other": {"driver": "cli", "command": ["touch", made]}}})
        prompt = f"echo '{text}' >.weft/config.json; {WEFT} trust --yes >said 2>&1; echo \"ended with $?\" >>said"
        task = world.calls.call("task.submit", prompt=prompt, agent="shell")["taskId"]
        wait_until("the task has ended", lambda: world.calls.call("task.get", taskId=task)["state"] == "completed")
        with open(os.path.join(world.hub.folder, "said")) as file:
            said = file.read()
        assert "an agent may not say what is trusted" in said and said.endswith("ended with 4\n"), said
    finally:
        world.hub.done()


main([links, worktrees, trusting])
