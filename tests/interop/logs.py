#!/usr/bin/python3
"""The hub's log, line by line as a program reads it: {timestamp, level, message, data: {method, id, duration_ms, status}}, in the file and the form
that the configuration names, whatever callers send."""
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "faults"))
from hub import PATIENCE, WEFT, Hub, Refused, main, wait_until

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")


def lines(hub, name="hub.log"):
    """Every line, parsed: nothing else is in the file."""
    with open(os.path.join(hub.folder, name)) as file:
        found = [json.loads(line) for line in file.read().splitlines()]
    for one in found:
        assert list(one)[:3] == ["timestamp", "level", "message"] and set(one) <= {"timestamp", "level", "message", "data"}, one
        assert STAMP.fullmatch(one["timestamp"]) and one["level"] in LEVELS and isinstance(one["message"], str), one
    return found


def requests(hub, name="hub.log"):
    return [one["data"] for one in lines(hub, name) if one["message"].startswith("RPC ")]


def every_request_is_a_line():
    with Hub({"log": {"file": "hub.log", "requests": True}}) as hub:
        hub.start()
        connection = hub.connect()
        connection.send({"jsonrpc": "2.0", "id": "task_001", "method": "ping"})
        assert connection.receive()["id"] == "task_001"
        connection.send({"jsonrpc": "2.0", "id": 7.5, "method": "task.get", "params": {"taskId": "none"}})
        connection.receive()
        connection.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "ping"}])
        connection.receive()
        connection.call("task.submit", prompt="say hello")
        found = requests(hub)
        for data in found:
            assert list(data) == ["method", "id", "duration_ms", "status"], data
            assert isinstance(data["duration_ms"], (int, float)) and data["duration_ms"] >= 0, data
        told = [(one["method"], one["id"], one["status"]) for one in found]
        for wanted in ("ping", "task_001", "success"), ("task.get", 7.5, "error"), ("ping", 1, "success"), ("ping", None, "success"):
            assert wanted in told, (wanted, told)
        assert told[-1][0] == "task.submit" and told[-1][2] == "success", told
        assert [one["message"] for one in lines(hub) if one.get("data", {}).get("id", 0) is None] == ["RPC Notification"]


def callers_cannot_write_lines():
    """Names and ids of strangers stay within their strings, and are not long."""
    odd = ['a"b', "line\nbreak", '\\"}\n{"timestamp":"x"}', "\u202eleft", "x" * 200, "x" * 5000, "\x1b[2J", ""]
    with Hub({"log": {"file": "hub.log", "requests": True}}) as hub:
        hub.start()
        connection = hub.connect()
        for name in odd:
            for message in {"id": name, "method": "ping"}, {"id": 1, "method": name}:
                connection.send({"jsonrpc": "2.0", **message})
                connection.receive()
        found = requests(hub)
        assert len(found) == 2 * len(odd) - 2, len(found)  # an id that is so long, and no name at all, are no requests
        with open(os.path.join(hub.folder, "hub.log"), "rb") as file:
            text = file.read()
        assert b"\x1b" not in text and max(map(len, text.splitlines())) < 2000


def nothing_of_params_or_answers():
    with Hub({"log": {"file": "hub.log", "level": "debug", "requests": True}}) as hub:
        hub.start()
        connection = hub.connect()
        connection.call("echo", text="a-secret-of-mine")
        connection.call("task.submit", prompt="say a-secret-of-mine")
        try:
            connection.call("task.get", taskId="a-secret-of-mine")
        except Refused:
            pass
        assert len(requests(hub)) == 3
        with open(os.path.join(hub.folder, "hub.log")) as file:
            assert "secret" not in file.read()


def only_where_asked_for():
    with Hub({"log": {"file": "hub.log"}}) as hub:
        hub.start()
        hub.connect().call("ping")
        hub.stop()
        found = lines(hub)
        assert found and not requests(hub), found
        assert os.stat(os.path.join(hub.folder, "hub.log")).st_mode & 0o777 == 0o600


def the_level_counts():
    with Hub({"log": {"file": "hub.log", "level": "error", "requests": True}}) as hub:
        hub.start()
        hub.connect().call("ping")
        hub.stop()
        assert lines(hub) == []


def words_for_people():
    """In the time of the place, as a person reads it; the JSON form is in UTC whatever the place is."""
    with Hub({"log": {"file": "hub.log", "format": "text", "requests": True}}, env={"TZ": "Somewhere-05:30"}) as hub:
        hub.start()
        connection = hub.connect()
        connection.send({"jsonrpc": "2.0", "id": "two words", "method": "ping"})
        connection.receive()
        with open(os.path.join(hub.folder, "hub.log")) as file:
            last = file.read().splitlines()[-1]
        said = datetime.fromisoformat(last.split()[0])
        assert last.split()[0].endswith("+05:30") and abs((datetime.now(timezone.utc) - said).total_seconds()) < 3600, last
        assert re.fullmatch(STAMP.pattern[:-1] + r'\+05:30 INFO  RPC Request method=ping id="two words" duration_ms=[\d.]+ status=success', last), last


def on_standard_error():
    """In the foreground, for a container: every line is JSON, once, and standard output is as it was."""
    with Hub({"log": {"format": "json", "requests": True}}) as hub:
        hub.start()
        hub.connect().call("ping")
        hub.stop()
        said = [json.loads(line) for line in hub.said().splitlines() if line.startswith("{")]
        assert [one["data"]["method"] for one in said if "data" in one] == ["ping"], hub.said()
        assert not os.path.exists(os.path.join(hub.home, "daemon.log"))
    with Hub({"log": {"requests": True}}) as hub:
        hub.start()
        hub.connect().call("ping")
        assert "INFO  RPC Request method=ping" in hub.said(), hub.said()


def it_is_the_log_that_is_shown():
    """weft logs finds it, also when nothing runs; and a file that is a link to another is not written."""
    with Hub({"log": {"file": "hub.log", "requests": True}}) as hub:
        hub.start()
        hub.connect().call("ping")
        hub.stop()
        done = subprocess.run([WEFT, "logs", "-n", "all"], cwd=hub.folder, env=hub.env, capture_output=True, text=True, timeout=PATIENCE)
        assert '"method":"ping"' in done.stdout, done
        os.remove(os.path.join(hub.folder, "hub.log"))
        os.symlink("elsewhere", os.path.join(hub.folder, "hub.log"))
        done = subprocess.run([WEFT, "serve"], cwd=hub.folder, env=hub.env, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode and "hub.log" in done.stderr and not os.path.exists(os.path.join(hub.folder, "elsewhere")), done


def it_does_not_grow_without_end():
    with Hub({"log": {"file": "hub.log", "requests": True}}) as hub:
        with open(os.open(os.path.join(hub.folder, "hub.log"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("\n" * (10 << 20))
        hub.start()
        hub.connect().call("ping")
        wait_until("it begins anew", lambda: os.path.exists(os.path.join(hub.folder, "hub.log.1")))
        assert [one["method"] for one in requests(hub)] == ["ping"]


main([every_request_is_a_line, callers_cannot_write_lines, nothing_of_params_or_answers, only_where_asked_for, the_level_counts, words_for_people,
      on_standard_error, it_is_the_log_that_is_shown, it_does_not_grow_without_end])
