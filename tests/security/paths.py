#!/usr/bin/python3
"""Nobody reads beyond the project: paths that lead out of it, links, and links that come between the look and the opening."""
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import Doors, main

SECRET = "this-was-not-for-you"


def project(folder):
    """Files of the project, secrets beside it and inside of what is closed, and every kind of link to them."""
    outside = folder + "-outside"
    os.makedirs(outside)
    for path in (f"{outside}/secret", f"{folder}/.weft/secret"):
        with open(path, "w") as file:
            file.write(SECRET)
    os.chmod(f"{folder}/.weft/secret", 0o600)
    os.makedirs(f"{folder}/sub/deep")
    for path in ("a.txt", "sub/b.txt", "sub/deep/secret"):
        with open(f"{folder}/{path}", "w") as file:
            file.write("for everybody\n")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    with open(f"{folder}/.git/secret", "w") as file:
        file.write(SECRET)
    links = {"to-file": f"{outside}/secret", "to-folder": outside, "relative": f"../{os.path.basename(outside)}/secret", "to-root": "/",
             "to-proc": "/proc/self/root", "to-weft": ".weft", "to-git": ".git", "to-token": ".weft/token", "sub/up": "../..",
             "loop": "loop", "to-own": "a.txt"}
    for name, target in links.items():
        os.symlink(target, f"{folder}/{name}")
    os.mkfifo(f"{folder}/pipe")


def paths_of(folder):
    outside = folder + "-outside"
    name = os.path.basename(outside)
    return [f"{outside}/secret", f"../{name}/secret", f"sub/../../{name}/secret", f"./../{name}/secret", f"sub/deep/../../../{name}/secret",
            f"{folder}/../{name}/secret", "to-file", "to-folder/secret", "relative", f"to-root{outside}/secret", f"to-proc{outside}/secret",
            f"sub/up/{name}/secret", "to-weft/secret", "to-git/secret", ".weft/secret", ".weft/token", ".git/secret", "./.git/secret",
            "sub/../.git/secret", ".//.weft//secret", ".WEFT/secret", "to-token", "loop", "pipe", "/etc/passwd", "/proc/self/environ",
            f"file://{outside}/secret", f"~/../{outside}/secret", f"..%2f{name}%2fsecret", f"..\\{name}\\secret", f"a.txt\0/../../{name}/secret",
            "to-folder", "..", "/", "", "." * 5000, "a/" * 3000 + "x"]


def secrets(doors):
    with open(os.path.join(doors.hub.home, "token")) as file:
        return [SECRET, file.read().strip(), "root:x:0:0"]


def ask_in_every_way(doors, path):
    """Whatever the hub says when this path is named, all of it."""
    said = []
    for method, name in ("file/get", "path"), ("file/list", "path"), ("git/diff", "path"), ("git/diff", "file"):
        said.append(json.dumps(doors.rpc(method, {name: path})))
    quoted = urllib.parse.quote(path, safe="")
    if len(quoted) < 4000:
        for target in f"/api/file?path={quoted}", f"/api/files/list?path={quoted}", f"/api/git/diff?path={quoted}":
            said.append(doors.ask("GET", target, [doors.bearer(), "Connection: close"]).body().decode())
    return "\n".join(said)


def paths_that_lead_out():
    with Doors(project=project) as doors:
        try:
            hidden = secrets(doors)
            for path in paths_of(doors.hub.folder):
                said = ask_in_every_way(doors, path)
                for secret in hidden:
                    assert secret not in said, f"{path[:200]!r} shows it: {said}"
                assert '"name":"passwd"' not in said.replace(" ", "") and '"secret"' not in said, f"{path[:200]!r} lists it: {said}"
            assert "for everybody" in ask_in_every_way(doors, "a.txt") and "for everybody" in ask_in_every_way(doors, "to-own")
            assert "deep" in ask_in_every_way(doors, "sub")
        finally:
            shutil.rmtree(doors.hub.folder + "-outside")


def links_that_come_in_between():
    """A folder of the project is exchanged for a link to another one, as fast as it goes, while it is read."""
    with Doors(project=project) as doors:
        outside = doors.hub.folder + "-outside"
        over = threading.Event()

        def exchange():
            os.makedirs(f"{doors.hub.folder}/turn")
            with open(f"{doors.hub.folder}/turn/secret", "w") as file:
                file.write("for everybody\n")
            while not over.is_set():
                os.rename(f"{doors.hub.folder}/turn", f"{doors.hub.folder}/aside")
                os.symlink(outside, f"{doors.hub.folder}/turn")
                os.unlink(f"{doors.hub.folder}/turn")
                os.rename(f"{doors.hub.folder}/aside", f"{doors.hub.folder}/turn")

        thread = threading.Thread(target=exchange)
        thread.start()
        try:
            read = 0
            for _ in range(1500):
                said = doors.rpc("file/get", {"path": "turn/secret"})
                assert SECRET not in json.dumps(said), said
                listed = doors.rpc("file/list", {"path": "turn"})
                read += "for everybody" in json.dumps(said)
                assert "root" not in json.dumps(listed.get("result", {}))
            assert read, "the file was never read, so nothing was proved"
        finally:
            over.set()
            thread.join()
            shutil.rmtree(outside)


def contexts_of_tasks():
    """No task and no plan names a file elsewhere to an agent, not by a link either, nor something that is an option."""
    with Doors(project=project) as doors:
        outside = doors.hub.folder + "-outside"
        try:
            for path in (f"{outside}/secret", "../x", "sub/../a.txt", "to-file", "to-folder/secret", "relative", "to-root/etc/passwd", "sub/up/x",
                         "to-weft/secret", ".weft/token", ".git/secret", "/etc/passwd", "loop", "", "-rf", "./-rf", "a\x1b[2J"):
                context = {"files": ["a.txt", path]}
                said = doors.rpc("execute_task", {"task_type": "testing", "prompt": "echo no", "context": context})
                assert said["error"]["code"] == -32602 and said["error"]["data"]["path"] == "/context/files/1", f"{path!r}: {said}"
                said = doors.rpc("run_plan", {"plan": {"tasks": [{"id": "a", "type": "testing", "description": "echo no", "context": context}]}})
                assert said["error"]["code"] == -32602, f"{path!r} in a plan: {said}"
            said = doors.rpc("execute_task", {"task_type": "testing", "prompt": "echo yes",
                                              "context": {"files": ["a.txt", "./sub/b.txt", "to-own", "new/file.c", f"{doors.hub.folder}/a.txt"]}})
            assert said["result"]["status"] == "success", said
        finally:
            shutil.rmtree(outside)


main([paths_that_lead_out, links_that_come_in_between, contexts_of_tasks])
