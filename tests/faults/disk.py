#!/usr/bin/python3
"""F3, F5 and F16 on the real program: a disk that takes no more, one that gives back something else than it was given, and
files that somebody deletes, empties or replaces, before a start or under a running daemon."""
import contextlib
import http.client
import json
import os
import resource
import sqlite3
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


# ---- files that are gone ----

def path_of(hub, suffix):
    return os.path.join(hub.home, "weft.db" + suffix)


def remove(suffix):
    return lambda hub: os.unlink(path_of(hub, suffix))


def empty(suffix):
    return lambda hub: os.truncate(path_of(hub, suffix), 0)


def flip_header(hub):
    spoil(path_of(hub, "-wal"), lambda file, data: (file.seek(17), file.write(bytes([data[17] ^ 1]))))


def run_weft(hub, *args):
    return subprocess.run([WEFT, *args], cwd=hub.folder, env=hub.env, capture_output=True, text=True, timeout=PATIENCE)


def files_of(hub):
    """What is in each file of the journal. Those that SQLite makes when it looks say nothing: the shared memory, an empty log."""
    found = {}
    for name in sorted(os.listdir(hub.home)):
        if name.startswith("weft.db") and not name.endswith("-shm"):
            with open(os.path.join(hub.home, name), "rb") as file:
                found[name] = file.read()
    return {name: data for name, data in found.items() if data or not name.endswith("-wal")}


def killed_early():
    """A hub that was killed before its log was first copied back, which it is after half a second without work."""
    for _ in range(50):
        hub = Hub(PAUSED)
        connection = hub.start().connect()
        for i in range(5):
            connection.call("task.submit", prompt=f"task {i}")
        hub.kill()
        if os.path.getsize(path_of(hub, "")) == 4096:
            return hub
        hub.done()
    raise AssertionError("never killed early enough")


def what_is_gone_is_missed():
    """Before the first checkpoint everything is in the log, and SQLite takes what is left for a new database."""
    for how in remove(""), empty(""), remove("-wal"), empty("-wal"), flip_header:
        with killed_early() as hub:
            how(hub)
            before = files_of(hub)
            run = run_weft(hub, "serve")
            assert run.returncode == 1 and "weft.db" in run.stderr and "damage" in run.stderr, run
            assert files_of(hub) == before, "something was changed"
            run = run_weft(hub, "doctor")
            assert run.returncode != 0 and "journal" in run.stdout, run
            assert files_of(hub) == before, "the doctor changed something"


def readyz(hub):
    with open(os.path.join(hub.home, "endpoint.json")) as file:
        host = json.load(file)["http"].split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=PATIENCE)
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def refused(connection):
    try:
        connection.call("task.submit", prompt="after")
    except Refused as error:
        assert error.code == 507 and error.reason == "storageFailed" and "files" in str(error), error
        return True
    return False


def nothing_can_be_changed(connection, session):
    """Each says why in the same words: not that a session is closed, or a value another one."""
    mutation = lambda name, **args: ("tinyvex/mutation", {"requestId": name, "name": name, "args": args})
    for method, params in (
        mutation("doc.put", collection="notes", key="k", value=1),
        mutation("thread.create"),
        mutation("thread.rename", threadId=session, title="x"),
        mutation("thread.archive", threadId=session),
        mutation("thread.delete", threadId=session),
        mutation("message.post", threadId=session, text="x"),
        ("tinyvex/action", {"requestId": "a", "name": "agent.prompt", "args": {"text": "x", "threadId": session}}),
        ("tinyvex/history.setSessionTitle", {"session_id": session, "title": "x"}),
        ("tinyvex/history.deleteSession", {"session_id": session}),
        ("session.set", {"sessionId": session, "name": "title", "value": "x"}),
        ("session.close", {"sessionId": session}),
        ("session.delete", {"sessionId": session}),
        ("session.create", {}),
        ("chat.send", {"message": "x"}),
        ("automation.disable", {}),
        ("agent/run", {"prompt": "x"}),
    ):
        try:
            answer = connection.call(method, **params)
        except Refused as error:
            assert error.code == 507 and error.reason == "storageFailed", (method, params, error)
            continue
        raise AssertionError((method, params, answer))


def say_they_are_gone(hub, connection):
    status, body = readyz(hub)
    assert status == 503 and body["status"] == "storageFailed" and "deleted" in body["error"], body
    status = connection.call("daemon.status")
    assert status["health"] == "degraded" and "deleted" in status["subsystems"]["store"]["error"], status
    assert "deleted" in run_weft(hub, "status").stdout
    doctor = run_weft(hub, "doctor")
    assert doctor.returncode != 0 and "deleted" in doctor.stdout, doctor


def nothing_is_acknowledged_into_nothing():
    for how in remove(""), remove("-wal"), empty(""), empty("-wal"), remove("-mark"):
        with Hub(PAUSED) as hub:
            connection = hub.start().connect()
            tasks = [connection.call("task.submit", prompt=f"task {i}")["taskId"] for i in range(5)]
            assert readyz(hub) == (200, {"status": "ready"})
            how(hub)
            say_they_are_gone(hub, connection)
            assert refused(connection)
            nothing_can_be_changed(connection, connection.call("session.list")["sessions"][-1]["id"])
            assert connection.call("task.get", taskId=tasks[0])["prompt"] == "task 0"
            say_they_are_gone(hub, connection)
            connection.close()
            hub.stop()
            try:
                connection = hub.start().connect()
                for task in tasks:
                    connection.call("task.get", taskId=task)
            except AssertionError:
                assert "damage" in hub.said(), hub.said()


def what_is_put_back_goes_on():
    with Hub(PAUSED) as hub:
        connection = hub.start().connect()
        connection.call("task.submit", prompt="before")
        os.rename(path_of(hub, ""), path_of(hub, ".away"))
        assert refused(connection) and readyz(hub)[0] == 503
        os.rename(path_of(hub, ".away"), path_of(hub, ""))
        # Nobody submits anything: the hub finds out by itself.
        wait_until("it is ready again", lambda: readyz(hub)[0] == 200)
        connection.call("task.submit", prompt="after")
        assert [e for e in hub.events() if e["type"] == "hub.recovered"]


def a_log_emptied_by_sqlite_does_no_harm():
    """What `sqlite3 weft.db 'PRAGMA wal_checkpoint(TRUNCATE)'` does, and tools that make backups."""
    def emptied(hub):
        with contextlib.closing(sqlite3.connect(path_of(hub, ""))) as stranger:
            busy, pages, _ = stranger.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return busy == 0 and pages == 0 and os.path.getsize(path_of(hub, "-wal")) == 0

    with Hub(PAUSED) as hub:
        connection = hub.start().connect()
        tasks = []
        for asks in False, True, False:
            tasks.append(connection.call("task.submit", prompt=f"task {len(tasks)}")["taskId"])
            wait_until("the log is empty", lambda: emptied(hub))
            if asks:
                wait_until("it is ready", lambda: readyz(hub)[0] == 200)
            tasks.append(connection.call("task.submit", prompt=f"task {len(tasks)}")["taskId"])
            assert readyz(hub)[0] == 200
        hub.kill()
        connection = hub.start().connect()
        for task in tasks:
            connection.call("task.get", taskId=task)
        wait_until("the log is empty", lambda: emptied(hub))
        assert hub.stop() == 0
        assert not os.path.exists(path_of(hub, "-wal")), "it did not stop cleanly"


def setting_aside_keeps_everything():
    with Hub(dict(PAUSED, store={"on_damage": "quarantine"})) as hub:
        epochs = set()
        for turn in 1, 2, 3:
            connection = hub.start().connect()
            connection.call("task.submit", prompt=f"run {turn}")
            epochs.add(connection.call("event.subscribe")["epoch"])
            hub.kill()
            with open(path_of(hub, "-mark"), "rb") as file:
                mark = file.read()
            os.unlink(path_of(hub, ""))
            hub.start()
            assert f".damaged-{turn}" in hub.said(), hub.said()
            with open(path_of(hub, f".damaged-{turn}-mark"), "rb") as file:
                assert file.read() == mark
            assert os.path.exists(path_of(hub, f".damaged-{turn}-wal"))
            assert hub.connect().call("task.stats")["total"] == 0
        assert len(epochs) == 3


def read_only_is_said():
    """A folder that is mounted read-only. Only root can mount, and not everywhere."""
    with Hub(PAUSED) as hub:
        connection = hub.start().connect()
        connection.call("task.submit", prompt="before")
        assert hub.stop() == 0
        mounts = [["mount", "--bind", hub.home, hub.home], ["mount", "-o", "remount,bind,ro", hub.home]]
        if os.geteuid() != 0 or any(subprocess.run(m, capture_output=True).returncode for m in mounts):
            subprocess.run(["umount", hub.home], capture_output=True)
            print("  a read-only mount cannot be made here")
            return
        try:
            run = run_weft(hub, "serve")
            assert run.returncode != 0 and "ead-only" in run.stderr, run
        finally:
            subprocess.run(["umount", hub.home], check=True)
        connection = hub.start().connect()
        assert connection.call("task.stats")["total"] == 1


main([full_disk_is_an_error_and_passes, damage_is_refused_in_words, damage_is_put_aside_when_told_to,
      what_is_gone_is_missed, nothing_is_acknowledged_into_nothing, what_is_put_back_goes_on,
      a_log_emptied_by_sqlite_does_no_harm, setting_aside_keeps_everything, read_only_is_said])
