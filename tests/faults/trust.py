#!/usr/bin/env python3
"""The record of trust under kills and crowds: what Weft made itself is never refused, whenever it was killed."""
import os
import random
import subprocess
import time

from hub import PATIENCE, SOAK, WEFT, Hub, main

KILLS = 40 * SOAK
CROWD = 24


def begin(hub):
    with open(hub.talk, "a") as talk:
        return subprocess.Popen([WEFT, "serve"], cwd=hub.folder, env=hub.env, stdin=subprocess.DEVNULL, stdout=talk,
                                stderr=talk, start_new_session=True)


def fresh():
    """A hub in a folder without a .weft."""
    hub = Hub()
    os.unlink(os.path.join(hub.home, "config.json"))
    subprocess.run([WEFT, "trust", "--revoke"], cwd=hub.folder, env=hub.env, check=True, capture_output=True)
    os.rmdir(hub.home)
    return hub


def killed_while_it_starts():
    """From before the folder is made to after the journal is open; the first start and the later ones."""
    chance = random.Random(7)
    for _ in range(4):
        with fresh() as hub:
            for _kill in range(KILLS // 4):
                process = begin(hub)
                time.sleep(chance.uniform(0, 0.08))
                process.kill()
                process.wait()
            assert "weft trust" not in hub.said(), hub.said()
            hub.start()
            task = hub.connect().call("task.submit", prompt="echo still here")
            assert task["taskId"], task
            hub.stop()


def a_crowd_starts_at_once():
    """Of many that find no folder one makes it, and none of the others takes it for somebody else's."""
    with fresh() as hub:
        crowd = [subprocess.Popen([WEFT, "start"], cwd=hub.folder, env=hub.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(CROWD)]
        for process in crowd:
            _, said = process.communicate(timeout=4 * PATIENCE)
            assert process.returncode == 0, said
        subprocess.run([WEFT, "stop"], cwd=hub.folder, env=hub.env, check=True, capture_output=True)


def many_projects_share_a_record():
    """No entry is lost when projects begin at the same time."""
    hubs = [fresh() for _ in range(6)]
    state = hubs[0].env["XDG_STATE_HOME"]
    try:
        for hub in hubs:
            hub.env["XDG_STATE_HOME"] = state
        crowd = [subprocess.Popen([WEFT, "start"], cwd=hub.folder, env=hub.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for hub in hubs]
        for process in crowd:
            _, said = process.communicate(timeout=4 * PATIENCE)
            assert process.returncode == 0, said
        told = subprocess.run([WEFT, "trust", "--list"], env=hubs[0].env, capture_output=True, text=True, check=True).stdout
        for hub in hubs:
            assert os.path.realpath(hub.folder) in told, told
    finally:
        for hub in hubs:
            subprocess.run([WEFT, "stop", "--force"], cwd=hub.folder, env=hub.env, capture_output=True)
            if hub is not hubs[0]:
                hub.done()
        hubs[0].done()


if __name__ == "__main__":
    main([killed_while_it_starts, a_crowd_starts_at_once, many_projects_share_a_record])
