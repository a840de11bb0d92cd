#!/usr/bin/env python3
"""client.py FILE PROMPT: submit a task to the hub of this folder, show what its agent says, allow what it asks. FILE keeps the
position: after a kill -9 of this program or of the hub, run it again with the same FILE and it goes on where it was."""
import json, os, socket, sys, time, uuid

path, prompt = sys.argv[1:3]
state = json.load(open(path)) if os.path.exists(path) else {"key": str(uuid.uuid4())}

def save(**changes):
    state.update(changes)
    with open(path + ".new", "w") as file:
        json.dump(state, file)
    os.replace(path + ".new", path)

def talk(hub):
    events = []
    def read():
        return json.loads(hub.readline() or '{"method": "closed"}')
    def call(method, **params):
        hub.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}) + "\n")
        hub.flush()
        while (message := read()).get("id") != method:
            if message["method"] == "closed":
                raise ConnectionError
            events.append(message)
        if message.get("error") and message["error"].get("data", {}).get("reason") != "questionResolved":
            sys.exit(message["error"]["message"])
        return message.get("result")
    def answer(question):
        call("question.answer", questionId=question, option="allow")
    def end(kind):
        if kind in ("task.completed", "task.failed", "task.cancelled"):
            sys.exit(kind != "task.completed")
    if "epoch" not in state:
        here = call("event.subscribe")
        save(epoch=here["epoch"], gseq=here["head"])
    if "task" not in state:
        save(task=call("task.submit", prompt=prompt, _meta={"weft/idempotencyKey": state["key"]})["taskId"])
    here = call("event.subscribe", after=state["gseq"], epoch=state["epoch"], taskId=state["task"], id="task")
    if not here["resumed"]:  # events are missing: from now on, and the state anew
        save(epoch=here["epoch"], gseq=here["head"])
        call("event.subscribe", after=here["head"], taskId=state["task"], id="task")
        end("task." + call("task.get", taskId=state["task"])["state"])
        for question in call("question.list")["questions"]:
            if question["taskId"] == state["task"]:
                answer(question["id"])
    while (message := events.pop(0) if events else read())["method"] != "closed":
        if message["method"] == "event" and message["params"].get("subscription") == "task":
            event, data = message["params"], message["params"]["data"]
            update = data.get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                print(update["content"].get("text", ""), end="", flush=True)
            elif event["type"] == "session.output":
                print(data["text"], end="", flush=True)
            elif event["type"] == "question.asked":
                answer(data["questionId"])
            save(gseq=event["gseq"])
            end(event["type"])

while True:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(".weft/daemon.sock")
            talk(connection.makefile("rw", encoding="utf-8"))
    except OSError:
        pass
    time.sleep(0.5)  # the hub is restarting
