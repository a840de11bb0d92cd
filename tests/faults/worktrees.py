#!/usr/bin/python3
"""kill -9 at every step of making a worktree, which is before and after every program of git that the hub runs for it. The
user's repository is as it was but for one new branch, the project's files are not touched, and the next start makes the
worktree whole: the task, which is queued again, works in it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from changes import World, git, steps, survives
from hub import main

# A task that is queued again may have done it already.
EDIT = ("import os; open('a', 'w').write('1\\n2\\n3\\nby the task\\n'); os.makedirs('made', exist_ok=True);"
        "open('made/new', 'w').write('new\\n'); os.path.exists('gone') and os.remove('gone'); os.chmod('run', 0o755)")
CHANGED = {"a", "made/new", "gone", "run"}


def worktrees(world):
    listed = git(world.folder, "worktree", "list", "--porcelain").decode().split("\n\n")
    return [entry for entry in listed if entry.strip()]


def newest(connection):
    tasks = connection.call("task.list")
    tasks = tasks.get("tasks", tasks) if isinstance(tasks, dict) else tasks
    return tasks[0]["id"] if tasks else None


def check_worktree(world, connection, task, step):
    about = connection.call("task.about", taskIds=[task])["tasks"][0]
    branches = git(world.folder, "branch", "--list", "weft/*", "--format=%(refname:short)").decode().split()
    assert branches == [about["branch"]], (step, branches, about)
    entries = worktrees(world)
    assert len(entries) == 2, (step, entries)
    assert "prunable" not in entries[1] and "locked" not in entries[1], (step, entries)
    assert about["worktree"] in entries[1], (step, entries, about)
    changes = connection.call("task.changes", taskId=task)
    assert {file["path"] for file in changes["files"]} == CHANGED, (step, changes)
    git(about["worktree"], "fsck", "--strict")


def forget_worktrees(world):
    for entry in worktrees(world)[1:]:
        git(world.folder, "worktree", "remove", "--force", "--force", entry.split("\n")[0].split(" ", 1)[1])
    for branch in git(world.folder, "branch", "--list", "weft/*", "--format=%(refname:short)").decode().split():
        git(world.folder, "branch", "-q", "-D", branch)


def killed(how):
    world = World(agents={"edits": {"driver": "cli", "command": [sys.executable, "-c", EDIT]}}, tasks={"on_restart": "requeue"})
    try:
        for step in steps(how, 80):
            connection = world.start()
            last = newest(connection)
            world.arm(step, how)
            task = survives(connection, lambda: connection.call("task.submit", prompt="go", isolation="worktree")["taskId"])
            if task:
                survives(connection, lambda: world.ended(connection, task))
            over = world.reached() < step
            world.hub.stop_now()
            world.arm(0, "never")
            connection = world.start()
            task = newest(connection)
            assert task and task != last, (how, step)
            found = world.ended(connection, task)
            assert found["state"] == "completed", (how, step, found)
            assert world.tree() == world.before, (how, step)
            check_worktree(world, connection, task, f"{how} {step}")
            world.check_repository(f"{how} {step}")
            world.hub.stop()
            forget_worktrees(world)
            if over:
                assert step > 12, step
                return
        raise AssertionError("a worktree runs git too often")
    finally:
        world.done()


def killed_before_git():
    killed("before")


def killed_behind_git():
    killed("behind")


if __name__ == "__main__":
    main([killed_before_git, killed_behind_git])
