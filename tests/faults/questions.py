#!/usr/bin/python3
"""F14 on the real program: a question belongs to nobody's socket. Any client answers, exactly one wins, everybody hears of it; it
is listed again after a reconnect, and after a restart if its task is queued again; an answer given then is not lost."""
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import Hub, Refused, main, wait_until


def ask(hub, prompt="edit something"):
    connection = hub.connect()
    task = connection.call("task.submit", prompt=prompt)["taskId"]
    questions = wait_until("it asks", lambda: connection.call("question.list")["questions"])
    assert len(questions) == 1 and questions[0]["taskId"] == task and questions[0]["state"] == "open", questions
    return connection, task, questions[0]["id"]


def state(connection, task):
    return connection.call("task.get", taskId=task)["state"]


def stop(hub):
    """As weft stop --force does: nothing is waited for that waits for a person."""
    hub.connect().call("daemon.stop", force=True)
    hub.process.wait()
    hub.process = None


def the_first_answer_wins():
    with Hub() as hub:
        connection, task, question = ask(hub.start())
        watcher = hub.connect()
        watcher.call("event.subscribe", types=["question.answered"])
        wins, losses, start = [], [], threading.Barrier(16)

        def answer(option):
            own = hub.connect()
            start.wait()
            try:
                wins.append(own.call("question.answer", questionId=question, option=option)["option"])
            except Refused as error:
                assert error.code == 409 and error.reason == "questionResolved", error
                losses.append(option)

        threads = [threading.Thread(target=answer, args=(["allow", "deny"][i % 2],)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(wins) == 1 and len(losses) == 15, (wins, losses)
        assert watcher.notification("event")["data"]["option"] == wins[0]
        wait_until("the task ends", lambda: state(connection, task) == "completed")
        assert os.path.exists(os.path.join(hub.folder, "weft-demo.txt")) == wins[0].startswith("allow")
        try:
            connection.call("question.answer", questionId=question, option="allow")
            raise AssertionError("answered twice")
        except Refused as error:
            assert error.code == 409, error


def bad_answers_change_nothing():
    with Hub() as hub:
        connection, _, question = ask(hub.start())
        for params, code in (({"questionId": "question-9999", "option": "allow"}, 404),
                             ({"questionId": question, "option": "perhaps"}, -32602), ({"questionId": question}, -32602)):
            try:
                connection.call("question.answer", **params)
                raise AssertionError(params)
            except Refused as error:
                assert error.code == code, error
        assert connection.call("question.list")["questions"][0]["state"] == "open"


def it_ends_with_its_task():
    for end in (Hub.kill, stop):
        with Hub() as hub:
            _, task, question = ask(hub.start())
            end(hub)
            connection = hub.start().connect()
            assert state(connection, task) == "failed"
            assert connection.call("question.list")["questions"] == []
            listed = connection.call("question.list", all=True)["questions"]
            assert [q["id"] for q in listed] == [question] and listed[0]["state"] == "withdrawn", listed


def it_is_listed_again_after_a_restart():
    for end, then in ((Hub.kill, "requeue"), (stop, "requeue"), (Hub.kill, "resume"), (stop, "resume")):
        with Hub({"tasks": {"on_restart": then}}) as hub:
            _, task, question = ask(hub.start())
            end(hub)
            connection = hub.start().connect()
            listed = connection.call("question.list")["questions"]
            assert [q["id"] for q in listed] == [question] and listed[0]["state"] == "open", listed
            assert state(connection, task) in ("queued", "running")


def it_is_answered_once_over_restarts():
    with Hub({"tasks": {"on_restart": "requeue"}}) as hub:
        _, task, question = ask(hub.start())
        hub.kill()
        connection = hub.start().connect()
        assert connection.call("question.answer", questionId=question, option="allow")["answered"]
        try:
            connection.call("question.answer", questionId=question, option="deny")
            raise AssertionError("answered twice")
        except Refused as error:
            assert error.code == 409, error
        wait_until("the task ends", lambda: state(connection, task) == "completed")
        hub.kill()
        assert hub.start().connect().call("question.list")["questions"] == []


def an_answer_after_the_restart_reaches_the_task_that_is_queued_again():
    for end, then in ((Hub.kill, "requeue"), (stop, "requeue"), (Hub.kill, "resume"), (stop, "resume")):
        with Hub({"tasks": {"on_restart": then}}) as hub:
            _, task, question = ask(hub.start())
            end(hub)
            connection = hub.start().connect()
            connection.call("question.answer", questionId=question, option="allow")
            wait_until("the task ends", lambda: state(connection, task) == "completed")
            assert os.path.exists(os.path.join(hub.folder, "weft-demo.txt"))
            assert len(connection.call("question.list", all=True)["questions"]) == 1, "it was asked twice"


def a_timeout_is_no_denial():
    with Hub({"questions": {"timeout_ms": 300}}) as hub:
        connection, task, question = ask(hub.start())
        wait_until("the task ends", lambda: state(connection, task) not in ("queued", "running"))
        listed = connection.call("question.list", all=True)["questions"]
        assert listed[0]["state"] == "expired" and not listed[0].get("answer"), listed
        assert not os.path.exists(os.path.join(hub.folder, "weft-demo.txt"))


def cancelling_withdraws_it():
    with Hub() as hub:
        connection, task, _ = ask(hub.start())
        assert connection.call("task.cancel", taskId=task)["cancelled"]
        assert connection.call("question.list")["questions"] == []
        assert connection.call("question.list", all=True)["questions"][0]["state"] == "withdrawn"


main([the_first_answer_wins, bad_answers_change_nothing, it_ends_with_its_task, it_is_listed_again_after_a_restart,
      it_is_answered_once_over_restarts,
      an_answer_after_the_restart_reaches_the_task_that_is_queued_again, a_timeout_is_no_denial, cancelling_withdraws_it])
