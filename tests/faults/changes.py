#!/usr/bin/python3
"""kill -9 at every step of a snapshot and of an undo, which is before and after every program of git that the hub runs. The
user's repository is as it was, an undo is done whole or not at all, and the journal says which."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SANITIZED, SOAK, Gone, Hub, Refused, main, wait_until

GIT = shutil.which("git")
EDIT = ("open('a', 'a').write('by the task\\n'); import os; os.makedirs('made/deep'); open('made/deep/new', 'w').write('new\\n');"
        "os.remove('gone'); os.chmod('run', 0o755); os.symlink('a', 'link')")
FILES = {"a": "1\n2\n3\n", "gone": "x\n", "run": "#!/bin/sh\n", "crlf": "a\r\nb\r\n"}
WRAPPER = """#!/bin/sh
here=%s
n=$(
    flock 9
    n=$(($(cat "$here/count") + 1))
    echo $n >"$here/count.new"
    mv "$here/count.new" "$here/count"
    echo $n
) 9>"$here/lock"
if [ "$n" = "$(cat "$here/at")" ]; then
    kill -9 "$(cat "$here/pid")"
    [ "$(cat "$here/how")" = before ] && exit 1
    %s "$@" </dev/stdin
    exit
fi
exec %s "$@"
"""


def git(folder, *args):
    return subprocess.run([GIT, "-C", folder, *args], check=True, capture_output=True,
                          env=dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")).stdout


class World:
    def __init__(self, **more):
        agent = {"driver": "cli", "command": [sys.executable, "-c", EDIT]}
        self.hub = Hub({"agents": {"edits": agent}, "default_agent": "edits", **more})
        self.folder, self.tools = self.hub.folder, os.path.join(self.hub.folder, "tools")
        self.hub.env.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
        outside = self.outside = os.path.join(os.path.dirname(self.folder), os.path.basename(self.folder) + "-git")
        os.mkdir(outside)
        with open(os.path.join(outside, "git"), "w") as file:
            file.write(WRAPPER % (outside, GIT, GIT))
        os.chmod(os.path.join(outside, "git"), 0o755)
        self.hub.env["PATH"] = outside + ":" + os.environ["PATH"]
        for name, text in FILES.items():
            with open(os.path.join(self.folder, name), "w", newline="") as file:
                file.write(text)
        with open(os.path.join(self.folder, ".gitignore"), "w") as file:
            file.write("/talk\n/state/\n/none/\n.weft/\n")
        git(self.folder, "init", "-q", "-b", "main")
        git(self.folder, "add", ".")
        git(self.folder, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first")
        self.repository = self.look_at_repository()
        self.before = self.tree()
        self.arm(0, "never")

    def put(self, name, text):
        with open(os.path.join(self.outside, name), "w") as file:
            file.write(str(text))

    def arm(self, at, how):
        self.put("count", 0)
        self.put("at", at)
        self.put("how", how)

    def reached(self):
        with open(os.path.join(self.outside, "count")) as file:
            return int(file.read())

    def start(self):
        self.hub.start()
        self.put("pid", self.hub.process.pid)
        return self.hub.connect()

    def look_at_repository(self):
        seen = {}
        for name in ("index", "HEAD", "config", "logs/HEAD", "refs/heads/main"):
            with open(os.path.join(self.folder, ".git", name), "rb") as file:
                seen[name] = file.read()
        return seen

    def tree(self):
        """Every file of the project that git does not ignore: its content, its mode, where a link leads."""
        seen = {}
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name not in (".git", ".weft", "state", "none")]
            for name in names:
                path = os.path.join(folder, name)
                key = os.path.relpath(path, self.folder)
                if key == "talk":
                    continue
                if os.path.islink(path):
                    seen[key] = ("link", os.readlink(path))
                else:
                    with open(path, "rb") as file:
                        seen[key] = (os.stat(path).st_mode & 0o111 != 0, file.read())
        return seen

    def check_repository(self, step):
        assert self.look_at_repository() == self.repository, f"{step}: the repository is changed"
        left = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(self.folder, ".git"))
                for name in names if name.endswith(".lock")]
        assert not left, f"{step}: locks are left: {left}"
        git(self.folder, "fsck", "--strict")

    def ended(self, connection, task):
        def look():
            found = connection.call("task.get", taskId=task)
            return found if found["state"] not in ("queued", "running") else None

        return wait_until(f"{task} ends", look)

    def reset(self):
        git(self.folder, "checkout", "-q", "--", ".")
        git(self.folder, "clean", "-qfd")
        assert self.tree() == self.before
        self.repository = self.look_at_repository()

    def done(self):
        self.hub.done()
        shutil.rmtree(self.outside, ignore_errors=True)


def steps(how, most):
    """Every program of git in "make soak", some of them otherwise; before and behind are not the same ones."""
    return range(1 if how == "before" else 3, most, 1 if SOAK > 1 else 11 if SANITIZED else 5)


def survives(connection, call):
    try:
        return call()
    except (Gone, ConnectionError, FileNotFoundError):
        return None


def killed_in_a_task(how):
    world = World()
    try:
        for step in steps(how, 60):
            connection = world.start()
            world.arm(step, how)
            task = survives(connection, lambda: connection.call("task.submit", prompt="go")["taskId"])
            if task:
                survives(connection, lambda: world.ended(connection, task))
            over = world.reached() < step
            world.hub.stop_now()
            world.arm(0, "never")
            connection = world.start()
            tasks = connection.call("task.list")
            tasks = tasks.get("tasks", tasks) if isinstance(tasks, dict) else tasks
            task = tasks[0]["id"]
            world.ended(connection, task)
            try:
                files = wait_until("changes", lambda: changes_or_none(connection, task))
                changed = {file["path"] for file in files["files"]}
                assert changed in (set(), {"a", "made/deep/new", "gone", "run", "link"}), changed
                assert (world.tree() == world.before) == (not changed), (step, changed)
            except Refused as refused:
                assert refused.reason == "changesUnknown", refused
            world.check_repository(f"{how} {step}")
            world.hub.stop()
            world.reset()
            if over:
                assert step > 8, step
                return
        raise AssertionError("a task runs git too often")
    finally:
        world.done()


def changes_or_none(connection, task):
    """A second snapshot may still be taken by the start."""
    about = connection.call("task.about", taskIds=[task])["tasks"][0].get("changes")
    if about and "files" not in about and "why" not in about:
        return None
    return connection.call("task.changes", taskId=task)


def killed_in_an_undo(how):
    world = World()
    try:
        for step in steps(how, 60):
            connection = world.start()
            task = connection.call("task.submit", prompt="go")["taskId"]
            world.ended(connection, task)
            after = world.tree()
            assert after != world.before
            world.arm(step, how)
            survives(connection, lambda: connection.call("task.undo", taskId=task))
            over = world.reached() < step
            world.hub.stop_now()
            world.arm(0, "never")
            connection = world.start()
            plan = os.path.join(world.hub.home, "changes", "undo.plan")
            wait_until("the undo is finished", lambda: not os.path.exists(plan))
            changes = connection.call("task.about", taskIds=[task])["tasks"][0]["changes"]
            now = world.tree()
            assert now in (world.before, after), f"{how} {step}: half done"
            assert (now == world.before) == changes.get("undone", False), (how, step, changes)
            world.check_repository(f"{how} {step}")
            world.hub.stop()
            world.reset()
            if over:
                assert now == world.before and step > 8, step
                return
        raise AssertionError("an undo runs git too often")
    finally:
        world.done()


def killed_before_git_in_a_task():
    killed_in_a_task("before")


def killed_behind_git_in_a_task():
    killed_in_a_task("behind")


def killed_before_git_in_an_undo():
    killed_in_an_undo("before")


def killed_behind_git_in_an_undo():
    killed_in_an_undo("behind")


if __name__ == "__main__":
    main([killed_before_git_in_a_task, killed_behind_git_in_a_task, killed_before_git_in_an_undo,
          killed_behind_git_in_an_undo])
