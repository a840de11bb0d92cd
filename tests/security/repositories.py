#!/usr/bin/python3
"""A repository with a configuration that means harm runs nothing when the hub looks at it: fsmonitor, textconv, filters, external diffs,
hooks, pagers, aliases, included configuration, alternates. Each is also tried with plain git, which does run it where git runs such things.
tests/unit/git_hostile.c tries many more at the engine."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import Doors, main, wait_until

ENV = dict(os.environ, GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b", GIT_CONFIG_GLOBAL="/dev/null",
           GIT_CONFIG_NOSYSTEM="1")


def git(folder, *arguments, check=True):
    return subprocess.run(["git", *arguments], cwd=folder, env=ENV, check=check, capture_output=True, stdin=subprocess.DEVNULL)


class Trap:
    """A program that leaves a mark when it runs."""

    def __init__(self, folder):
        self.folder, self.mark, self.program = folder, f"{folder}/.git/it-ran", f"{folder}/.git/evil"
        with open(self.program, "w") as file:
            file.write(f"#!/bin/sh\nprintf x >> '{self.mark}'\ncat\n")
        os.chmod(self.program, 0o755)

    def sprung(self):
        ran = os.path.exists(self.mark)
        if ran:
            os.unlink(self.mark)
        return ran

    def set(self, key, value=None):
        git(self.folder, "config", key, value or self.program)

    def put(self, path, text, mode=0o644):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)


def fsmonitor(trap):
    trap.set("core.fsmonitor")


def textconv(trap):
    trap.put(".gitattributes", "*.x diff=evil\n")
    trap.set("diff.evil.textconv")


def external_diff(trap):
    trap.set("diff.external")


def diff_driver(trap):
    trap.put(".gitattributes", "*.x diff=evil\n")
    trap.set("diff.evil.command")


def clean_filter(trap):
    trap.put(".gitattributes", "*.x filter=evil\n")
    trap.set("filter.evil.clean")
    trap.set("filter.evil.smudge")


def process_filter(trap):
    trap.put(".git/info/attributes", "*.x filter=evil\n")
    trap.set("filter.evil.process")


def hooks(trap):
    for hook in ("post-index-change", "post-checkout", "pre-commit", "fsmonitor-watchman", "reference-transaction"):
        trap.put(f".git/hooks/{hook}", f"#!/bin/sh\nprintf x >> '{trap.mark}'\n", 0o755)


def hooks_elsewhere(trap):
    trap.put("mine/post-index-change", f"#!/bin/sh\nprintf x >> '{trap.mark}'\n", 0o755)
    trap.set("core.hooksPath", "mine")


def included_configuration(trap):
    trap.put(".git/more", f"[core]\n\tfsmonitor = {trap.program}\n\tpager = {trap.program}\n")
    trap.set("include.path", "more")


def included_by_condition(trap):
    trap.put(".git/more", f"[core]\n\tfsmonitor = {trap.program}\n")
    trap.set(f"includeIf.gitdir:{trap.folder}/.path", "more")


def pagers(trap):
    for key in ("core.pager", "pager.status", "pager.diff", "pager.log", "core.editor", "sequence.editor", "core.askPass", "core.sshCommand",
                "gpg.program", "credential.helper", "uploadpack.packObjectsHook"):
        trap.set(key)


def aliases(trap):
    for name in ("status", "diff", "log", "for-each-ref", "config", "rev-parse"):
        trap.set(f"alias.{name}", f"!{trap.program}")


def alternates(trap):
    trap.put(".git/objects/info/alternates", "/proc/self/root\n../../../../../../etc\n-o\n")
    trap.set("core.alternateRefsCommand")


def project_with(sets, traps):
    def project(folder):
        git(folder, "init", "-q", ".")
        trap = Trap(folder)
        trap.put("a.x", "one\n")
        trap.put("b", "b\n")
        git(folder, "add", "a.x", "b")
        git(folder, "commit", "-qm", "first")
        sets(trap)
        traps.append(trap)
    return project


# What plain git runs by itself when its output is not a terminal.
RUNS = (fsmonitor, textconv, external_diff, diff_driver, clean_filter, process_filter, hooks, hooks_elsewhere, included_configuration,
        included_by_condition)


def change(trap, text):
    """Of the same size, with another time: git has to read it."""
    trap.put("a.x", text)
    os.utime(os.path.join(trap.folder, "a.x"), (1000, 1000))
    os.utime(os.path.join(trap.folder, "b"), (1000, 1000))


def nothing_runs(sets):
    traps = []
    with Doors(project=project_with(sets, traps)) as doors:
        trap = traps[0]
        trap.sprung()
        change(trap, "two\n")
        watcher = doors.hub.connect()
        watcher.call("initialize", clientInfo={"name": "phone", "version": "1"}, protocolVersion="1.0", capabilities={})
        status = doors.rpc("git/status")
        assert "a.x" in json.dumps(status), status
        for params in {"path": "a.x"}, {}, {"path": "a.x", "staged": True}:
            doors.rpc("git/diff", params)
        assert "two" in json.dumps(doors.rpc("git/diff", {"path": "a.x"}))
        doors.ask("GET", "/api/git/status", [doors.bearer(), "Connection: close"]).body()
        doors.rpc("status/get")
        trap.put("c.x", "new\n")
        wait_until("the new file is seen", lambda: "c.x" in json.dumps(doors.rpc("git/status")))
        assert not trap.sprung(), f"{sets.__name__}: it ran"
        if sets in RUNS:
            change(trap, "six\n")
            git(trap.folder, "status", check=False)
            git(trap.folder, "diff", check=False)
            assert trap.sprung(), f"{sets.__name__}: plain git does not run it either, so nothing was proved"


def named(sets):
    def test():
        nothing_runs(sets)
    test.__name__ = sets.__name__
    return test


main([named(sets) for sets in (*RUNS, pagers, aliases, alternates)])
