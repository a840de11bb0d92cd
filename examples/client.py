#!/usr/bin/env python3
"""client.py FILE PROMPT: submit a task to the hub of this folder, show what its agent says, allow what it asks. FILE keeps the
position: after a kill -9 of this program or of the hub, run it again with the same FILE and it goes on where it was."""
import json, pathlib, socket, sys, time, uuid

file, prompt = pathlib.Path(sys.argv[1]), sys.argv[2]
state = json.loads(file.read_text()) if file.exists() else {"key": str(uuid.uuid4()), "task": None, "after": 0, "epoch": None}

def save(**changes):
    state.update(changes)
    new = pathlib.Path(f"{file}.new")
    new.write_text(json.dumps(state))
    new.replace(file)

def talk(hub):
    messages, events = map(json.loads, hub.makefile(encoding="utf-8")), []
    def call(method, **params):
        hub.sendall(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n")
        for message in messages:
            if message.get("id") == method:
                if "error" in message and message["error"]["code"] != 409:  # 409: somebody has answered already
                    sys.exit(message["error"]["message"])
                return message.get("result")
            events.append(message)
        raise ConnectionError
    def deal_with(type, data):
        if type == "session.output":
            print(data["text"], end="", flush=True)
        elif type == "session.update" and data["update"]["sessionUpdate"] == "agent_message_chunk":
            print(data["update"]["content"].get("text", ""), end="", flush=True)
        elif type == "question.asked":
            call("question.answer", questionId=data["questionId"], option="allow")
        elif type in ("task.completed", "task.failed", "task.cancelled"):
            sys.exit(type != "task.completed")
    save(task=state["task"] or call("task.submit", prompt=prompt, _meta={"weft/idempotencyKey": state["key"]})["taskId"])
    here = call("event.subscribe", taskId=state["task"], after=state["after"], epoch=state["epoch"])
    save(epoch=here["epoch"])
    if not here["resumed"]:  # events are missing: follow from here, and read the state
        save(after=here["head"])
        call("event.subscribe", taskId=state["task"], after=here["head"])
        deal_with("task." + call("task.get", taskId=state["task"])["state"], {})
    for question in call("question.list")["questions"]:  # an answer may have been lost with the hub
        if question["taskId"] == state["task"]:
            deal_with("question.asked", {"questionId": question["id"]})
    while message := events.pop(0) if events else next(messages, None):
        if message.get("method") == "event":
            deal_with(message["params"]["type"], message["params"]["data"])
            save(after=message["params"]["gseq"])

save()
while True:
    try:
        with socket.socket(socket.AF_UNIX) as hub:
            hub.connect(".weft/daemon.sock")
            talk(hub)
    except OSError:
        time.sleep(0.5)  # the hub is restarting
