#!/usr/bin/python3
"""validate_code with the real hub: what a caller sees, what is left when a caller or the hub goes away, and that a clone's
configuration names no program that runs."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import Hub, Refused, main, wait_until

def copies(hub):
    return os.listdir(os.path.join(hub.home, "checks"))


def pids(hub):
    with open(os.path.join(hub.folder, "pids")) as file:
        return [int(line) for line in file]


def slow_config(hub):
    return {"checkers": {"slow": ["sh", "-c", f"echo $$ >> {hub.folder}/pids; exec sleep 1000"]}}


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def what_a_caller_sees():
    with Hub() as hub:
        hub.start()
        caller = hub.connect()
        answer = caller.call("validate_code", code='{"a":\n [1,]}', language="JSON", rules=["no-console"])
        assert answer == {"valid": False, "issues": [{"rule": "syntax", "severity": "error", "line": 2, "column": 5,
                                                      "message": answer["issues"][0]["message"]}],
                          "checkers": ["weft"], "unsupported_rules": ["no-console"]}, answer
        answer = caller.call("validate_code", code="if true\n", language="sh")
        assert not answer["valid"] and answer["issues"][0]["line"] >= 1, answer
        assert hub.folder not in json.dumps(answer), answer
        for params, code, reason in (({"code": "x", "language": "cobol"}, -32001, "noChecker"),
                                     ({"code": "x"}, -32602, None), ({"code": 1, "language": "c"}, -32602, None),
                                     ({"code": "x", "language": "c", "rules": ["-fplugin=x"]}, -32602, None),
                                     ({"code": "x", "language": "c", "rules": [1]}, -32602, None),
                                     ({"code": "x", "language": "c", "rules": ["x"] * 65}, -32602, None),
                                     ({"code": "x" * (1 << 20) + "x", "language": "json"}, 413, "tooLarge")):
            try:
                caller.call("validate_code", **params)
                raise AssertionError(f"{str(params)[:80]} was taken")
            except Refused as refused:
                assert refused.code == code and (not reason or refused.reason == reason), (str(params)[:80], refused)
        assert copies(hub) == []


def who_goes_away_ends_the_checker():
    with Hub() as hub:
        hub.configure(slow_config(hub))
        hub.start()
        caller = hub.connect()
        caller.send({"jsonrpc": "2.0", "id": 1, "method": "validate_code", "params": {"code": "x", "language": "slow"}})
        wait_until("the checker runs", lambda: os.path.exists(os.path.join(hub.folder, "pids")) and pids(hub))
        caller.close()
        wait_until("nothing of it is left", lambda: all(is_gone(pid) for pid in pids(hub)) and copies(hub) == [])
        # The same when it is withdrawn.
        caller = hub.connect()
        caller.send({"jsonrpc": "2.0", "id": 2, "method": "validate_code", "params": {"code": "x", "language": "slow"}})
        wait_until("it runs again", lambda: len(pids(hub)) == 2)
        caller.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 2}})
        answer = caller.receive()
        assert answer["id"] == 2 and answer["error"]["code"] == -32800, answer
        wait_until("nothing of it is left", lambda: all(is_gone(pid) for pid in pids(hub)) and copies(hub) == [])


def a_killed_hub_leaves_nothing():
    with Hub() as hub:
        hub.configure(slow_config(hub))
        hub.start()
        caller = hub.connect()
        caller.send({"jsonrpc": "2.0", "id": 1, "method": "validate_code", "params": {"code": "x", "language": "slow"}})
        wait_until("the checker runs", lambda: os.path.exists(os.path.join(hub.folder, "pids")) and pids(hub))
        hub.kill()
        wait_until("the guard ends it", lambda: all(is_gone(pid) for pid in pids(hub)))
        assert len(copies(hub)) == 1
        hub.start()
        assert copies(hub) == [], "the next hub removes the copy"


def a_clones_checkers_do_not_run():
    with Hub() as hub:
        mark = os.path.join(hub.folder, "ran")
        hub.start()
        with open(os.path.join(hub.home, "config.json"), "w") as file:  # nobody trusts this one
            json.dump({"checkers": {"json": ["touch", mark], "evil": ["touch", mark]}}, file)
        hub.process.send_signal(signal.SIGHUP)
        caller = hub.connect()
        wait_until("the reload is noted", lambda: "config.json" in hub.said())
        assert caller.call("validate_code", code="1", language="json")["checkers"] == ["weft"]
        try:
            caller.call("validate_code", code="1", language="evil")
            raise AssertionError("an untrusted checker was taken")
        except Refused as refused:
            assert refused.reason == "noChecker", refused
        hub.kill()
        try:
            hub.start()
            raise RuntimeError("it starts with a file that nobody trusts")
        except AssertionError:
            assert "checkers:" in hub.said(), hub.said()
        assert not os.path.exists(mark), "a clone's checker ran"
        hub.trust()
        hub.start()
        hub.connect().call("validate_code", code="1", language="evil")
        assert os.path.exists(mark), "a trusted one runs"


def a_reload_changes_them():
    with Hub() as hub:
        hub.start()
        hub.configure({"checkers": {"mine": ["true"]}})
        hub.process.send_signal(signal.SIGHUP)
        caller = hub.connect()

        def knows():
            try:
                return caller.call("validate_code", code="x", language="mine")["valid"]
            except Refused:
                return False

        wait_until("the new configuration holds", knows)


main([what_a_caller_sees, who_goes_away_ends_the_checker, a_killed_hub_leaves_nothing, a_clones_checkers_do_not_run,
     a_reload_changes_them])
