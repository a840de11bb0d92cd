#!/usr/bin/python3
"""kill -9 before and after every program of git that a merge, a merge with conflicts, a discard or a prune of a worktree runs.
The project is as it was, or it is merged, and the journal says which; what a person has changed is never lost, nothing of
the worktree is, no lock is left, and the same call does it at the next start."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from changes import World, git, survives
from hub import SANITIZED, SOAK, main, wait_until
from worktrees import forget_worktrees, worktrees

EDIT = ("import os; n = os.path.basename(os.getcwd()); open('a', 'w').write('by ' + n + '\\n2\\n3\\n4\\n5\\n6\\n');"
        "os.makedirs('made', exist_ok=True); open('made/' + n, 'w').write('new\\n'); os.chmod('run', os.stat('run').st_mode ^ 0o111);"
        "os.path.lexists('link') and os.remove('link'); os.symlink(n, 'link')")


def steps(how, most):
    """Every program of git in "make soak", some of them otherwise; before and behind are not the same ones."""
    return range(1 if how == "before" else 6, most, 1 if SOAK > 1 else 37 if SANITIZED else 19)


class MergeWorld(World):
    def __init__(self):
        super().__init__(agents={"edits": {"driver": "cli", "command": [sys.executable, "-c", EDIT]}})
        git(self.folder, "config", "user.name", "a")
        git(self.folder, "config", "user.email", "a@example.org")
        self.write("a", "1\n2\n3\n4\n5\n6\n")
        git(self.folder, "commit", "-qam", "longer")
        self.turn = 0

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def head(self):
        return git(self.folder, "rev-parse", "HEAD").decode().strip()

    def status(self, folder=None):
        return git(folder or self.folder, "--no-optional-locks", "status", "--porcelain").decode()

    def check_sound(self, step):
        left = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(self.folder, ".git"))
                for name in names if name.endswith(".lock") or name.startswith("index.weft")]
        # The next merge in a worktree begins its index anew.
        left = [path for path in left if os.path.sep + "worktrees" + os.path.sep not in path]
        assert not left, (step, left)
        git(self.folder, "fsck", "--strict")

    def work(self, connection):
        """A task has worked in a worktree, the project has gone on, and a person has changed a file."""
        self.turn += 1
        task = connection.call("task.submit", prompt="go", isolation="worktree")["taskId"]
        assert self.ended(connection, task)["state"] == "completed"
        self.write("other", f"{self.turn}\n")
        git(self.folder, "add", "other")
        git(self.folder, "commit", "-qm", f"other {self.turn}")
        self.write("crlf", f"by the person {self.turn}\n")
        return task

    def again(self, step, how):
        over = self.reached() < step
        self.hub.stop_now()
        self.arm(0, "never")
        connection = self.start()
        changes = os.path.join(self.hub.home, "changes")
        wait_until("the merge is finished",
                   lambda: not any(os.path.exists(os.path.join(changes, name)) for name in ("merge.plan", "index.lock")))
        return connection, over

    def next(self):
        self.hub.stop()
        git(self.folder, "checkout", "-q", "--", ".")
        forget_worktrees(self)


def merged_of(connection, task):
    return connection.call("task.about", taskIds=[task])["tasks"][0]["changes"].get("merged")


def check_merged(world, task, where):
    assert world.status() == " M crlf\n", (where, world.status())
    with open(os.path.join(world.folder, "a")) as file:
        assert file.read().startswith(f"by {task}\n"), where
    assert os.path.exists(os.path.join(world.folder, "made", task)), where
    assert os.readlink(os.path.join(world.folder, "link")) == task, where


def killed_in_a_merge(how, strategy):
    world = MergeWorld()
    try:
        for step in steps(how, 160):
            where = f"{strategy} {how} {step}"
            connection = world.start()
            task = world.work(connection)
            before, files = world.head(), world.tree()
            world.arm(step, how)
            survives(connection, lambda: connection.call("task.merge", taskId=task, strategy=strategy))
            connection, over = world.again(step, how)
            after, merged = world.head(), merged_of(connection, task)
            assert merged == (after if after != before else None), (where, merged, before, after)
            if after == before:
                assert world.tree() == files, (where, world.status())
                assert world.status() == " M crlf\n", (where, world.status())
                world.check_sound(where)
                answer = connection.call("task.merge", taskId=task, strategy=strategy)
                assert answer["ok"], (where, answer)
                assert merged_of(connection, task) == world.head() == answer["commit"], where
            check_merged(world, task, where)
            world.check_sound(where)
            events = [e for e in world.hub.events() if e["type"] == "worktree.merged" and e["data"]["taskId"] == task]
            assert len(events) == 1, (where, events)
            tree = os.path.join(world.folder, ".weft", "worktrees", task)
            assert world.status(tree) == "", (where, world.status(tree))
            world.next()
            if over:
                assert step > 20, step
                return
        raise AssertionError("a merge runs git too often")
    finally:
        world.done()


def killed_with_conflicts(how):
    world = MergeWorld()
    try:
        for step in steps(how, 160):
            where = f"conflicts {how} {step}"
            connection = world.start()
            task = world.work(connection)
            world.write("a", f"by the person {world.turn}\n2\n3\n4\n5\n6\n")
            git(world.folder, "commit", "-q", "-m", "person", "a")
            before, files = world.head(), world.tree()
            tree = os.path.join(world.folder, ".weft", "worktrees", task)
            world.arm(step, how)
            survives(connection, lambda: connection.call("task.merge", taskId=task))
            connection, over = world.again(step, how)
            assert (world.head(), world.tree()) == (before, files), where
            assert merged_of(connection, task) is None, where
            answer = connection.call("task.merge", taskId=task)
            assert not answer["ok"] and answer["where"] == "worktree", (where, answer)
            assert [c["path"] for c in answer["conflicts"]] == ["a"], (where, answer)
            assert world.status(tree).startswith("UU a\n"), (where, world.status(tree))
            assert git(tree, "rev-parse", "MERGE_HEAD").decode().strip() == before, where
            for name, text in (("other", f"{world.turn}\n"), ("made/" + task, "new\n")):
                with open(os.path.join(tree, name)) as file:
                    assert file.read() == text, (where, name)
            with open(os.path.join(tree, "a"), "w") as file:
                file.write(f"by {task}\n2\n3\n4\n5\n6\n")
            answer = connection.call("task.merge", taskId=task)
            assert answer["ok"], (where, answer)
            check_merged(world, task, where)
            world.check_sound(where)
            world.next()
            if over:
                assert step > 20, step
                return
        raise AssertionError("a merge runs git too often")
    finally:
        world.done()


def killed_in_a_removal(how, discard):
    """What is removed is removed whole at the next call, or by itself; the branch's commit is there whatever happens."""
    world = MergeWorld()
    try:
        for step in steps(how, 120):
            where = f"{'discard' if discard else 'prune'} {how} {step}"
            connection = world.start()
            task = world.work(connection)
            if not discard:
                assert connection.call("task.merge", taskId=task)["ok"]
            before = world.head()
            tree = os.path.join(world.folder, ".weft", "worktrees", task)
            world.arm(step, how)
            survives(connection, lambda: connection.call("task.discard", taskId=task) if discard
                     else connection.call("worktree.prune"))
            connection, over = world.again(step, how)
            if discard and os.path.exists(tree):
                with open(os.path.join(tree, "made", task)) as file:
                    assert file.read() == "new\n", where
                connection.call("task.discard", taskId=task)
            else:
                connection.call("worktree.prune")
            wait_until("nothing is left", lambda: not os.path.exists(tree + ".state"))
            assert not os.path.exists(tree), where
            assert len(worktrees(world)) == 1, (where, worktrees(world))
            assert git(world.folder, "branch", "--list", "weft/*") == b"", where
            assert world.head() == before and world.status() == " M crlf\n", (where, world.status())
            world.check_sound(where)
            removed = [e for e in world.hub.events() if e["type"] in ("worktree.discarded", "worktree.removed")
                       and e["data"]["worktree"] == task]
            assert removed, where
            session = connection.call("session.get", sessionId=task.replace("task", "session"))["session"]
            assert "worktree" not in session, (where, session)
            files = connection.call("task.changes", taskId=task)["files"]
            assert "a" in [file["path"] for file in files], where
            world.next()
            if over:
                assert step > 8, step
                return
        raise AssertionError("a removal runs git too often")
    finally:
        world.done()


def merge_killed_before_git():
    killed_in_a_merge("before", "merge")


def squash_killed_behind_git():
    killed_in_a_merge("behind", "squash")


def conflicts_killed_before_git():
    killed_with_conflicts("before")


def conflicts_killed_behind_git():
    killed_with_conflicts("behind")


def discard_killed_behind_git():
    killed_in_a_removal("behind", True)


def prune_killed_before_git():
    killed_in_a_removal("before", False)


if __name__ == "__main__":
    main([merge_killed_before_git, squash_killed_behind_git, conflicts_killed_before_git, conflicts_killed_behind_git,
          discard_killed_behind_git, prune_killed_before_git])
