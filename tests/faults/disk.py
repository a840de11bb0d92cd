#!/usr/bin/python3
"""F3 and F5 on the real program: a disk that takes no more, and one that gives back something else than it was given."""
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, WEFT, Hub, Refused, main, wait_until

PAUSED = {"tasks": {"paused": True, "max_queue": 100000}}


def limit_files(hub, size):
    """From now on no file of the hub grows beyond this: writes fail as on a full disk."""
    resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def fill(hub, connection):
    """Submit until it is refused. What was acknowledged."""
    acknowledged = []
    while True:
        try:
            acknowledged.append(connection.call("task.submit", prompt="x" * 2000)["taskId"])
        except Refused as error:
            assert error.code == 507 and error.reason == "storageFailed", error
            return acknowledged


def full_disk_is_an_error_and_passes():
    with Hub(PAUSED) as hub:
        connection = hub.start().connect()
        first = connection.call("task.submit", prompt="before")["taskId"]
        sizes = [os.path.getsize(os.path.join(hub.home, f)) for f in os.listdir(hub.home) if f.startswith("weft.db")]
        limit_files(hub, max(sizes) + 20000)
        acknowledged = fill(hub, connection)
        # Everything that needs no disk goes on.
        assert connection.call("ping")["pong"]
        assert connection.call("task.get", taskId=first)["prompt"] == "before"
        assert connection.call("daemon.status")["health"] == "degraded"
        assert connection.call("task.stats")["total"] == 1 + len(acknowledged)
        limit_files(hub, resource.RLIM_INFINITY)

        def again():
            try:
                return connection.call("task.submit", prompt="after")["taskId"]
            except Refused:
                return None

        after = wait_until("it works again, without a restart", again)
        assert connection.call("daemon.status")["health"] == "healthy"
        hub.kill()
        connection = hub.start().connect()
        for task in [first, *acknowledged, after]:
            connection.call("task.get", taskId=task)


def spoil(path, how):
    with open(path, "r+b") as file:
        data = file.read()
        how(file, data)


def flip(file, data):
    file.seek(len(data) // 2)
    file.write(bytes(b ^ 0x40 for b in data[len(data) // 2:len(data) // 2 + 512]))


def truncate(file, data):
    file.truncate(len(data) * 2 // 3)


def damaged(how, config):
    """A hub that stopped cleanly, and whose database was then spoilt."""
    hub = Hub(config)
    connection = hub.start().connect()
    for i in range(300):
        connection.call("task.submit", prompt=f"{i} " + "y" * 500)
    epoch = connection.call("event.subscribe")["epoch"]
    assert hub.stop() == 0
    spoil(os.path.join(hub.home, "weft.db"), how)
    return hub, epoch


def damage_is_refused_in_words():
    for how in flip, truncate:
        hub, _ = damaged(how, PAUSED)
        with hub:
            before = sorted(os.listdir(hub.home))
            run = subprocess.run([WEFT, "serve"], cwd=hub.folder, env=hub.env, capture_output=True, text=True,
                                 timeout=PATIENCE)
            assert run.returncode == 1, run
            assert "weft.db" in run.stderr and "damage" in run.stderr, run.stderr
            assert "weft doctor" in run.stderr, run.stderr
            gone = [name for name in before if name not in os.listdir(hub.home)]
            assert not gone, f"deleted: {gone}"


def damage_is_put_aside_when_told_to():
    hub, epoch = damaged(flip, dict(PAUSED, store={"on_damage": "quarantine"}))
    with hub:
        connection = hub.start().connect()
        assert connection.call("event.subscribe")["epoch"] != epoch
        answer = connection.call("event.subscribe", after=5, epoch=epoch)
        assert answer["resumed"] is False and answer["reason"] == "epochChanged", answer
        kept = [name for name in os.listdir(hub.home) if name.startswith("weft.db.damaged")]
        assert kept, os.listdir(hub.home)


main([full_disk_is_an_error_and_passes, damage_is_refused_in_words, damage_is_put_aside_when_told_to])
