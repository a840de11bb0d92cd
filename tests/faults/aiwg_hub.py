"""An AIWG project with our daemon in the place of its own, and an agent whose command line is AIWG's."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from hub import Connection, PATIENCE, WEFT

CLAUDE = """#!/bin/sh
case $2 in
sleep*) exec $2 ;;
fail*) echo boom >&2; exit 1 ;;
*) echo "echo:$2 agent=$4" ;;
esac
"""


class Project:
    def __init__(self, config=None, env=None):
        self.folder = tempfile.mkdtemp(prefix="weft-aiwg-")
        self.bin = os.path.join(self.folder, "bin")
        self.talk = os.path.join(self.folder, "talk")
        self.process = None
        os.mkdir(self.bin)
        with open(os.path.join(self.bin, "claude"), "w") as file:
            file.write(CLAUDE)
        os.chmod(os.path.join(self.bin, "claude"), 0o755)
        self.project = os.path.join(self.folder, "project")
        os.makedirs(os.path.join(self.project, ".aiwg"))
        self.home = os.path.join(self.project, ".aiwg", "daemon")
        self.env = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}", XDG_STATE_HOME=os.path.join(self.folder, "state"),
                        **(env or {}))
        self.env.pop("WEFT_STORE_KIND", None)
        if config is not None:
            self.write(".aiwg/daemon.json", config if isinstance(config, str) else json.dumps(config))

    def path(self, name):
        return os.path.join(self.project, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def has(self, name):
        return os.path.lexists(self.path(name))

    def weft(self, *args):
        return subprocess.run([WEFT, *args], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE)

    def spawn(self, *args):
        with open(self.talk, "a") as talk:
            return subprocess.Popen([WEFT, "serve", "--aiwg", *args], cwd=self.project, env=self.env,
                                    stdin=subprocess.DEVNULL, stdout=talk, stderr=talk, start_new_session=True)

    def start(self, *args):
        self.process = self.spawn(*args)
        until = time.monotonic() + PATIENCE
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError("the daemon did not start:\n" + self.said())
            time.sleep(0.01)
        return self

    def is_ready(self):
        return "Daemon started successfully" in self.log() and self.pid_file() == self.process.pid

    def pid_file(self):
        try:
            return int(self.read(".aiwg/daemon.pid"))
        except (FileNotFoundError, ValueError):
            return 0

    def log(self):
        try:
            return self.read(".aiwg/daemon/daemon.log")
        except FileNotFoundError:
            return ""

    def said(self):
        with open(self.talk) as talk:
            return talk.read()[-4000:]

    def connect(self, timeout=PATIENCE):
        return Connection(os.path.join(self.home, "daemon.sock"), timeout)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.process = None
        return status

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def done(self):
        if self.process:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done()
