#!/usr/bin/python3
"""weft top: what it shows is what happened, in 80 columns, while the hub is killed and started again."""
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "security"))
from door import PATIENCE, WEFT, Doors, Hub, Refused, main, wait_until


def top(hub, *options, **more):
    return subprocess.run([WEFT, "top", *options], cwd=hub.folder, env=hub.env, capture_output=True, text=True, timeout=PATIENCE, **more)


def use(hub):
    connection = hub.connect()
    task = connection.call("task.submit", prompt="say hello")["taskId"]
    wait_until("it has ended", lambda: connection.call("task.get", taskId=task)["completedAt"])
    for _ in range(50):
        connection.call("ping")
    try:
        connection.call("made_up_by_a_stranger")
    except Refused:
        pass
    return connection


def once_for_people():
    with Hub() as hub:
        hub.start()
        connection = use(hub)
        done = top(hub, "--once")
        assert done.returncode == 0 and not done.stderr, done
        lines = done.stdout.splitlines()
        assert all(len(line) <= 80 for line in lines), lines
        assert "\033" not in done.stdout
        rows = {line.split()[0]: line.split()[1:] for line in lines[lines.index(next(line for line in lines if "METHOD" in line)) + 1:]}
        assert rows["ping"][-1] == "50" and rows["unknown"][-1] == "1" and float(rows["unknown"][1]) > 0, rows
        rates = [float(row[0]) for row in rows.values()]
        assert rates == sorted(rates, reverse=True) and "made_up" not in done.stdout, rows
        for label in ("requests", "clients", "tasks", "store", "process"):
            assert any(line.startswith(label) for line in lines), label
        connection.close()


def once_for_programs():
    with Hub() as hub:
        hub.start()
        connection = use(hub)
        said = json.loads(top(hub, "--once", "--json").stdout)
        methods = {one["method"]: one for one in said["methods"]}
        assert methods["ping"]["total"] == 50 and methods["ping"]["p50Ms"] <= methods["ping"]["p95Ms"] <= methods["ping"]["p99Ms"], methods
        assert methods["unknown"]["errorsPerSecond"] > 0
        assert said["tasks"]["running"] == 0 and said["tasks"]["wait"]["p50Ms"] is not None, said
        assert said["clients"] == {"unix": 2}, said["clients"]
        assert said["store"]["sync"]["p99Ms"] > 0 and said["store"]["appendsTogether"] >= 1, said["store"]
        assert said["process"]["memoryBytes"] > 1 << 20
        connection.close()


class Live:
    """weft top --json, line by line."""

    def __init__(self, hub):
        self.process = subprocess.Popen([WEFT, "top", "--json", "--interval", "20ms"], cwd=hub.folder, env=hub.env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def line(self):
        return json.loads(self.process.stdout.readline())

    def until(self, what, condition):
        """Every line that comes is right, until one meets the condition."""
        seen = {}
        wait_until(what, lambda: (seen.update(self.line()), condition(seen))[1])
        return seen

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


def live_over_a_kill():
    """The hub dies and comes back with counters that begin anew: no rate is negative, and it goes on by itself."""
    with Hub() as hub:
        hub.start()
        use(hub).close()
        live = Live(hub)
        first = live.line()
        assert abs(first["seconds"] - first["uptimeSeconds"]) < 0.01, first
        second = live.line()
        assert second["seconds"] < second["uptimeSeconds"], second
        hub.kill()
        hub.start()
        after = live.until("the new one is seen", lambda one: one["uptimeSeconds"] < first["uptimeSeconds"] or "ping" not in
                           {method["method"] for method in one["methods"]})
        assert after["requests"]["perSecond"] >= 0 and all(one["perSecond"] >= 0 for one in after["methods"]), after
        connection = hub.connect()
        for _ in range(20):
            connection.call("ping")
        live.until("what it does is seen", lambda one: any(m["method"] == "ping" and m["total"] == 20 for m in one["methods"]))
        live.until("and that it is over", lambda one: all(m["perSecond"] == 0 for m in one["methods"] if m["method"] == "ping"))
        assert live.end() == 0


def on_a_terminal():
    """It draws on the other screen, within its rows, and gives the first one back."""
    with Hub() as hub:
        hub.start()
        connection = use(hub)
        leader, follower = os.openpty()
        subprocess.run(["stty", "rows", "10", "cols", "80"], stdin=follower, check=True)
        process = subprocess.Popen([WEFT, "top", "-i", "20ms"], cwd=hub.folder, env={**hub.env, "TERM": "xterm", "NO_COLOR": "1"},
                                   stdin=subprocess.DEVNULL, stdout=follower, stderr=follower)
        os.close(follower)
        shown = b""
        while shown.count(b"\033[H") < 4:
            shown += os.read(leader, 65536)
        hub.kill()
        while b"not connected" not in shown:
            shown += os.read(leader, 65536)
        process.send_signal(signal.SIGINT)
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        assert process.wait(PATIENCE) == 0
        os.close(leader)
        text = shown.decode()
        assert text.startswith("\033[?1049h") and text.rstrip().endswith("\033[?1049l"), text[-200:]
        assert "\033[?7l" in text.split("\033[H")[0] and "\033[?7h" in text.split("\033[H")[-1], "a narrow terminal cuts lines"
        for screen in text.split("\033[H")[2:-1]:
            lines = [re.sub(r"\033\[[0-9?]*[a-zA-Z]", "", line) for line in screen.replace("\r", "").split("\n")]
            assert len(lines) <= 10 and all(len(line) <= 80 for line in lines), lines
        connection.close()


def who_may_not():
    with Doors() as doors:
        token = os.path.join(doors.hub.folder, "reader.txt")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(doors.give("reader", "read"))
        url = next(url for url in doors.urls if url.startswith("tcp://"))
        done = top(doors.hub, url, "--token-file", token)
        assert done.returncode and "metrics" in done.stderr, done
        with open(token, "w") as file:
            file.write(doors.give("figures", "metrics"))
        for scheme in ("tcp://", "ws://", "http://"):
            url = next(url for url in doors.urls if url.startswith(scheme))
            done = top(doors.hub, url, "--token-file", token, "--once")
            assert done.returncode == 0 and "METHOD" in done.stdout, done
        # as every verb that is about a hub: --url, with a URL or a name
        subprocess.run([WEFT, "hubs", "add", "work", url, "--token-file", token], cwd=doors.hub.folder, env=doors.hub.env, check=True)
        for words in (("--url", url, "--token-file", token), ("--url", "work"), ("-u", "work")):
            done = top(doors.hub, *words, "--once")
            assert done.returncode == 0 and "METHOD" in done.stdout, done
        done = top(doors.hub, "--url", "work", url)
        assert done.returncode == 2 and "--url" in done.stderr, done
        done = top(doors.hub, "--url", "nobody")
        assert done.returncode == 2 and "weft hubs" in done.stderr, done
    with Hub() as hub:
        done = top(hub, "--once")
        assert done.returncode == 3 and "weft start" in done.stderr, done


main([once_for_people, once_for_programs, live_over_a_kill, on_a_terminal, who_may_not])
