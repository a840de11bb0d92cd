#!/usr/bin/python3
"""F17: an agent does not approve itself. Whatever it does to reach the hub, it may read and submit, and nothing else; people on
the same sockets may do everything."""
import json
import os
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import WEFT, Hub, Refused, main, wait_until

# Called with how to reach the hub, a file to write the answers to, and the calls. Each way ends with a process that calls.
AGENT = r"""
import http.client, json, os, socket, subprocess, sys, time
how, home, out, calls = json.loads(sys.argv[1])
answers = []
def keep():
    with open(out + ".new", "w") as file: json.dump(answers, file)
    os.rename(out + ".new", out)
def connect():
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(os.path.join(home, "daemon.sock"))
    return sock
def talk(sock):
    file = sock.makefile("rwb")
    for i, (method, params) in enumerate(calls):
        file.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}).encode() + b"\n")
        file.flush()
        while True:
            line = file.readline()
            message = json.loads(line) if line else {"id": i, "error": {"code": 0, "message": "end of file"}}
            if message.get("id") == i: break
        answers.append(message)
    keep()
def web():
    with open(os.path.join(home, "endpoint.json")) as file:
        url = next(u for u in json.load(file)["urls"] if u.startswith("http:"))
    with open(os.path.join(home, "token")) as file: token = file.read().strip()
    host = url.split("/")[2]
    for i, (method, params) in enumerate(calls):
        connection = http.client.HTTPConnection(host)
        connection.request("POST", "/rpc", json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}),
                           {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        answers.append(json.loads(connection.getresponse().read()))
    keep()
def away(act):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            for _ in range(3000):
                if os.getppid() != first: break
                time.sleep(0.01)
            act()
        os._exit(0)
    time.sleep(600)
first = os.getpid()
def handed_on():
    '''The process that connected ends; its child has the socket.'''
    sock = connect()
    parent = os.getpid()
    if os.fork() != 0:
        os._exit(0)
    while os.getppid() == parent: time.sleep(0.01)
    talk(sock)
    os._exit(0)
if how == "direct": talk(connect())
elif how == "away": away(lambda: talk(connect()))
elif how == "web": web()
elif how == "web-away": away(web)
elif how == "handed-on":
    if os.fork() == 0: handed_on()
    time.sleep(600)
elif how == "nameless":
    subprocess.run([sys.executable, "-c", open("/proc/self/cmdline").read().split("\0")[2],
                    json.dumps(["away", home, out, calls])], env={})
elif how == "unguarded":  # the guard goes first, then the keeper; what is left becomes the daemon's own child
    guard = os.getppid()
    with open(f"/proc/{guard}/stat") as file: keeper = int(file.read().rsplit(")", 1)[1].split()[1])
    def bare():
        import signal
        sock = connect()
        os.kill(keeper, signal.SIGKILL); os.kill(guard, signal.SIGKILL)
        talk(sock)
    away(bare)
"""
RESERVED = [("question.answer", {"questionId": "question-0001", "option": "allow"}), ("task.cancel", {"taskId": "task-0001"}),
            ("approval.revoke", {"approvalId": "approval-0000"}), ("task.submit", {"prompt": "x", "permission": "all"}),
            ("agent.use", {"agent": "wild"}), ("automation.disable", {}), ("automation.enable", {}),
            ("agent/stop", {}), ("daemon.stop", {}), ("daemon.stop", {"force": True})]


def hub_with_agents():
    return Hub({"agents": {"wild": {"driver": "cli", "command": [sys.executable, "-c", AGENT, "{prompt}"]}},
                "tasks": {"max_running": 16}})


def call_as_agent(hub, connection, how, calls):
    out = os.path.join(hub.folder, "answers-" + how)
    connection.call("task.submit", prompt=json.dumps([how, hub.home, out, calls]), agent="wild")
    wait_until(f"the agent has called ({how})", lambda: os.path.exists(out))
    with open(out) as file:
        answers = json.load(file)
    os.unlink(out)
    return answers


def ask(hub):
    connection = hub.connect()
    task = connection.call("task.submit", prompt="edit something", agent="demo")["taskId"]
    question = wait_until("it asks", lambda: connection.call("question.list")["questions"])[0]
    return connection, task, question["id"]


def agents_are_refused():
    with hub_with_agents() as hub:
        connection, task, question = ask(hub.start())
        reserved = [(m, dict(p, questionId=question) if "questionId" in p else p) for m, p in RESERVED]
        for how in ("direct", "away", "nameless", "handed-on", "web", "web-away"):
            answers = call_as_agent(hub, connection, how, reserved)
            for (method, _), answer in zip(reserved, answers):
                error = answer.get("error") or {}
                assert (error.get("code"), (error.get("data") or {}).get("reason")) == (403, "agentMayNot"), (how, method, answer)
        assert connection.call("task.get", taskId=task)["state"] == "running"
        assert connection.call("question.list")["questions"][0]["state"] == "open"
        # a person is not
        assert connection.call("question.answer", questionId=question, option="allow")["answered"] is True
        wait_until("the task ends", lambda: connection.call("task.get", taskId=task)["state"] == "completed")
        assert hub.stop() == 0


def one_that_kills_its_guard_is_refused_too():
    """It may be killed before it is answered; it is not obeyed."""
    with hub_with_agents() as hub:
        connection, task, question = ask(hub.start())
        for i in range(20):
            out = os.path.join(hub.folder, "answers")
            calls = [("question.answer", {"questionId": question, "option": "allow"})]
            wild = connection.call("task.submit", prompt=json.dumps(["unguarded", hub.home, out, calls]), agent="wild")["taskId"]
            wait_until("it has ended", lambda: connection.call("task.get", taskId=wild)["state"] == "failed")
            assert connection.call("question.list")["questions"][0]["state"] == "open", i
        assert connection.call("task.get", taskId=task)["state"] == "running"


def agents_may_read_and_submit():
    with hub_with_agents() as hub:
        connection = hub.start().connect()
        calls = [("ping", {}), ("daemon.status", {}), ("task.list", {}), ("task.stats", {}), ("question.list", {}),
                 ("agent.list", {}), ("task.submit", {"prompt": "hello", "agent": "demo"}),
                 ("event.subscribe", {"types": ["task."]})]
        for how in ("direct", "away", "nameless", "web"):
            wanted = calls[:-1] if how == "web" else calls
            for (method, _), answer in zip(wanted, call_as_agent(hub, connection, how, wanted)):
                assert "result" in answer, (how, method, answer)


def the_command_line_works_for_agents():
    script = ("import subprocess, sys\n"
              "for args in (['status'], ['task', 'list'], ['answer', 'question-0001', 'allow']):\n"
              "    done = subprocess.run([sys.argv[1], *args], capture_output=True, text=True, cwd=sys.argv[2])\n"
              "    print(args[0], done.returncode, (done.stdout + done.stderr).replace(chr(10), ' '), flush=True)\n")
    with Hub() as hub:
        hub.configure({"agents": {"cli": {"driver": "cli", "command": [sys.executable, "-c", script, WEFT, hub.folder]}}})
        connection, _, _ = ask(hub.start())
        task = connection.call("task.submit", prompt="x", agent="cli")["taskId"]
        lines = wait_until("it has tried", lambda: (lambda t: "\nanswer " in t["output"] and t["output"])(
            connection.call("task.get", taskId=task))).splitlines()
        said = {line.split()[0]: line for line in lines}
        assert said["status"].startswith("status 0") and said["task"].startswith("task 0"), lines
        assert "not for agents" in said["answer"] and not said["answer"].startswith("answer 0"), lines


def people_on_the_network_are_not_refused():
    with hub_with_agents() as hub:
        connection, task, question = ask(hub.start())
        with open(os.path.join(hub.home, "endpoint.json")) as file:
            url = next(u for u in json.load(file)["urls"] if u.startswith("http:"))
        with open(os.path.join(hub.home, "token")) as file:
            token = file.read().strip()
        body = {"jsonrpc": "2.0", "id": 1, "method": "question.answer", "params": {"questionId": question, "option": "allow"}}
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Authorization": "Bearer " + token,
                                                                          "Content-Type": "application/json"})
        assert json.load(urllib.request.urlopen(request))["result"]["answered"] is True
        wait_until("the task ends", lambda: connection.call("task.get", taskId=task)["state"] == "completed")


main([agents_are_refused, one_that_kills_its_guard_is_refused_too, agents_may_read_and_submit,
      the_command_line_works_for_agents, people_on_the_network_are_not_refused])
