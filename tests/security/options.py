#!/usr/bin/python3
"""What a caller says is never an option of a program: prompts, names of agents, ids, paths and branches that begin with a dash."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door import WEFT, Doors, Refused, main, wait_until

SHOW = "import json, sys; print(json.dumps([sys.argv[1:], sys.stdin.read() if sys.argv[1] == 'stdin' else '']))"
DASHES = ["--help", "-h", "-rf", "--dangerously-skip-permissions", "--", "-", "--output=written", "-c core.pager=x", "-\n--x"]
AGENTS = {"agents": {
    "last": {"driver": "cli", "command": [sys.executable, "-c", SHOW, "last"], "persona": ["--agent", "{agent}"]},
    "placed": {"driver": "cli", "command": [sys.executable, "-c", SHOW, "placed", "-p", "{prompt}", "--more"]},
    "within": {"driver": "cli", "command": [sys.executable, "-c", SHOW, "within", "--prompt={prompt}"]},
    "stdin": {"driver": "cli", "command": [sys.executable, "-c", SHOW, "stdin"], "prompt": "stdin"},
}, "default_agent": "last"}


def said_by(doors, **params):
    task = doors.owner.call("task.submit", **params)["taskId"]
    ended = wait_until("it has ended", lambda: (lambda t: t["state"] in ("completed", "failed") and t)(doors.owner.call("task.get", taskId=task)))
    return json.loads(ended["output"]) if ended["state"] == "completed" else None


def prompts_are_arguments_and_not_options():
    with Doors(config=AGENTS) as doors:
        for prompt in DASHES:
            (name, argument), _ = said_by(doors, prompt=prompt, agent="last")
            assert name == "last" and argument.strip() == prompt.strip() and not argument.startswith("-"), (prompt, argument)
            arguments, _ = said_by(doors, prompt=prompt, agent="placed")
            assert len(arguments) == 4 and arguments[3] == "--more" and arguments[2].strip() == prompt.strip(), arguments
            assert not arguments[2].startswith("-"), arguments
            assert said_by(doors, prompt=prompt, agent="within")[0] == ["within", f"--prompt={prompt}"]
            assert said_by(doors, prompt=prompt, agent="stdin") == [["stdin"], prompt]


def a_prompt_is_no_template():
    """What a caller writes is not filled in again."""
    with Doors(config=AGENTS) as doors:
        for prompt in ("{prompt}{prompt}", "{agent}", "$HOME", "`id`", "$(id)", "a; id", "a\nid", "'\"", "%s%n", "*", "~"):
            assert said_by(doors, prompt=prompt, agent="last")[0] == ["last", prompt], prompt


def long_prompts_go_to_standard_input():
    with Doors(config=AGENTS) as doors:
        prompt = "-" + "x" * 200000
        arguments, _ = said_by(doors, prompt=prompt, agent="last")
        assert arguments == ["last"], len(arguments)


def names_of_agents():
    """A name that is not configured is given to an agent that has personas, unless it looks like an option."""
    with Doors(config=AGENTS) as doors:
        assert said_by(doors, prompt="x", agent="reviewer")[0] == ["last", "--agent", "reviewer", "x"]
        for name in ("--help", "-x", "--dangerously-skip-permissions"):
            try:
                assert said_by(doors, prompt="x", agent=name) is None, f"{name} was given to the program"
            except Refused:
                pass
        for name in ("../../bin/sh", "/bin/sh", "sh", "a/b"):
            try:
                said = said_by(doors, prompt="x", agent=name)
                assert said is None or said[0] == ["last", "--agent", name, "x"], f"{name}: {said}"
            except Refused:
                pass


def ids_and_paths_over_the_wire():
    """They are looked up, and nothing else."""
    def project(folder):
        subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
        for name in ("--help", "-p"):
            with open(f"{folder}/{name}", "w") as file:
                file.write("a file\n")

    with Doors(project=project) as doors:
        for dash in DASHES:
            for method, params in (("task.get", {"taskId": dash}), ("task.cancel", {"taskId": dash}), ("session.get", {"sessionId": dash}),
                                   ("session.prompt", {"sessionId": dash, "prompt": "x"}), ("question.answer", {"questionId": dash, "option": dash}),
                                   ("agent.use", {"agent": dash}), ("session/messages", {"sessionId": dash}), ("agent/stop", {"instanceId": dash})):
                answer = doors.rpc(method, params)
                assert "error" in answer, (method, dash, answer)
            diff = json.dumps(doors.rpc("git/diff", {"path": dash}))
            assert "usage:" not in diff and not os.path.exists(f"{doors.hub.folder}/written"), diff
        assert doors.rpc("file/get", {"path": "--help"})["result"]["content"] == "a file\n"
        assert "a file" in json.dumps(doors.rpc("git/diff", {"path": "-p"})), "a file with such a name has a diff"


def words_on_the_command_line():
    """Behind "--" everything is a word."""
    with Doors(config=AGENTS) as doors:
        def weft(*arguments):
            return subprocess.run([WEFT, *arguments], cwd=doors.hub.folder, env=doors.hub.env, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=60)
        for prompt in ("--help", "-h", "--version"):
            done = weft("task", "submit", "--wait", "--", prompt)
            assert done.returncode == 0 and json.loads(done.stdout)[0] == ["last", " " + prompt], (done.stdout, done.stderr)
        assert weft("task", "get", "--", "--help").returncode == 5
        assert weft("session", "show", "--", "-x").returncode == 5


main([prompts_are_arguments_and_not_options, a_prompt_is_no_template, long_prompts_go_to_standard_input, names_of_agents,
      ids_and_paths_over_the_wire, words_on_the_command_line])
