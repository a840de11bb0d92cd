#!/usr/bin/python3
"""The agents that come with Weft come from the user's machine, never from the project: a project full of traps (programs in its own
folders of PATH, node_modules, .npmrc, the variables of "npm run") neither runs nor is asked. Installing one goes through the
real npm, from a registry of our own."""
import base64
import hashlib
import http.server
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import WEFT, Hub, Skipped, main, wait_until

TRAP = "#!/bin/sh\ntouch \"$TRAPPED\"\nexit 1\n"
# Says where it is, what PATH it has, and whether node's configuration is the project's.
AGENT = r"""#!/usr/bin/env node
const out = m => process.stdout.write(JSON.stringify({jsonrpc: "2.0", ...m}) + "\n");
require("readline").createInterface({input: process.stdin}).on("line", line => {
    const m = JSON.parse(line), result = {initialize: {protocolVersion: 1}, "session/new": {sessionId: "s"}}[m.method];
    if (result) return out({id: m.id, result});
    const text = JSON.stringify({program: __filename, path: process.env.PATH, cwd: process.cwd()});
    out({method: "session/update", params: {sessionId: "s", update: {sessionUpdate: "agent_message_chunk",
        content: {type: "text", text}}}});
    out({id: m.id, result: {stopReason: "end_turn"}});
});
"""


def package(name, version):
    """A package as npm packs them, with a script that must not run."""
    about = {"name": name, "version": version, "bin": {"gemini": "gemini.js"},
             "scripts": {"install": "touch \"$TRAPPED\"", "postinstall": "touch \"$TRAPPED\""}}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for path, text in (("package/package.json", json.dumps(about)), ("package/gemini.js", AGENT)):
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    return about, data.getvalue()


class Registry(http.server.ThreadingHTTPServer):
    """Has every package of every version that is asked for, as long as it is gemini's."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Registry.Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.asked = []
        preset = [a for a in json.loads(subprocess.run([WEFT, "agents", "--json"], cwd="/", capture_output=True, text=True,
                                                       check=True).stdout)["agents"] if a["name"] == "gemini"][0]
        self.name, self.version = preset["package"].rsplit("@", 1)
        self.about, self.tar = package(self.name, self.version)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            of = self.server
            of.asked.append(self.path)
            if self.path.endswith(".tgz"):
                body = of.tar
            elif self.path.lower().replace("%2f", "/") == "/" + of.name:
                sha = "sha512-" + base64.b64encode(hashlib.sha512(of.tar).digest()).decode()
                version = dict(of.about, dist={"tarball": of.url + "gemini.tgz", "integrity": sha})
                body = json.dumps({"name": of.name, "dist-tags": {"latest": of.version}, "versions": {of.version: version}}).encode()
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


class World:
    """A user's home, and a project full of traps."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="weft-presets-")
        self.home, self.trapped = os.path.join(self.root, "home"), os.path.join(self.root, "trapped")
        os.mkdir(self.home, 0o700)
        self.registry = Registry()
        self.write(os.path.join(self.home, ".npmrc"), f"registry={self.registry.url}\ncache={self.root}/cache\n")
        self.hub = Hub(env=dict(HOME=self.home, XDG_DATA_HOME="", TRAPPED=self.trapped))
        project = self.hub.folder
        for folder in ("bin", "node_modules/.bin", "."):
            for name in ("gemini", "npm", "npx", "node", "claude-agent-acp"):
                self.write(os.path.join(project, folder, name), TRAP)
        self.write(os.path.join(project, ".npmrc"), "registry=http://127.0.0.1:9/\nprefix=.\nignore-scripts=false\n")
        self.write(os.path.join(project, "package.json"), "{}")
        os.symlink(os.path.join(project, "bin"), os.path.join(self.root, "link"))
        elsewhere = os.path.join(self.root, "elsewhere", "node_modules", ".bin")
        self.write(os.path.join(elsewhere, "gemini"), TRAP)
        # What "npm run" in this project sets, and a PATH that leads into it in every way.
        self.hub.env.update(npm_lifecycle_event="x", npm_config_registry="http://127.0.0.1:9/", npm_config_ignore_scripts="false",
                            npm_config_prefix=project, INIT_CWD=project,
                            PATH=":".join([f"{project}/bin", f"{project}/node_modules/.bin", f"{self.root}/link", elsewhere, "", ".",
                                           "bin", os.environ["PATH"]]))

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def weft(self, *args):
        return subprocess.run([WEFT, *args], cwd=self.hub.folder, env=self.hub.env, capture_output=True, text=True,
                              timeout=120, stdin=subprocess.DEVNULL)

    def gemini(self):
        return [a for a in json.loads(self.weft("agents", "--json").stdout)["agents"] if a["name"] == "gemini"][0]

    def run_task(self):
        connection = self.hub.start().connect()
        task = connection.call("task.submit", prompt="hi", agent="gemini")["taskId"]
        return wait_until("it ends", lambda: (lambda t: t if t["state"] in ("completed", "failed") else None)(
            connection.call("task.get", taskId=task)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hub.__exit__(None, None, None)
        self.registry.shutdown()
        self.registry.server_close()
        shutil.rmtree(self.root, ignore_errors=True)


def what_is_not_installed_is_not_taken_from_the_project():
    with World() as world:
        assert not world.gemini()["found"], world.gemini()
        done = world.run_task()
        assert done["state"] == "failed" and "gemini is not installed" in done["error"], done
        assert "weft agents install gemini" in done["error"] and "@google/gemini-cli@" in done["error"], done
        assert not os.path.exists(world.trapped) and not world.registry.asked, "something of the project ran, or npm did"


def nothing_is_downloaded_unasked():
    with World() as world:
        done = world.weft("agents", "install", "gemini")
        assert done.returncode == 2 and "downloads @google/gemini-cli@" in done.stderr and "--yes" in done.stderr, done
        assert not world.registry.asked
        done = world.weft("agents", "install", "kimi", "--yes")
        assert done.returncode == 1 and "Install kimi" in done.stderr, done
        done = world.weft("agents", "install", "nobody", "--yes")
        assert done.returncode == 5, done


def it_is_installed_by_npm_and_runs_from_there():
    if not shutil.which("npm"):
        raise Skipped("there is no npm")
    with World() as world:
        for again in (False, True):
            done = world.weft("agents", "install", "gemini", "--yes", "--json")
            assert done.returncode == 0, done
            path = json.loads(done.stdout)["path"]
            assert path.startswith(world.home + "/.local/share/weft/agents/gemini/"), (again, path)
        assert world.gemini()["found"] and world.gemini()["path"] == path
        assert world.gemini()["version"] == world.registry.version, world.gemini()
        assert os.listdir(world.home + "/.local/share/weft/agents") == ["gemini"], "nothing else is left"
        done = world.run_task()
        assert done["state"] == "completed", done["error"]
        said = json.loads(done["output"])
        assert said["program"].startswith(os.path.realpath(world.home)), said
        assert said["cwd"] == os.path.realpath(world.hub.folder), said
        assert not any(world.hub.folder in part or "node_modules" in part or not part.startswith("/")
                       for part in said["path"].split(":")), said["path"]
        assert not os.path.exists(world.trapped), "a trap was sprung"
        # Somebody else may write to it: it is not ours any more.
        os.chmod(world.home + "/.local/share/weft/agents/gemini", 0o777)
        assert not world.gemini()["found"]


def a_failed_install_changes_nothing():
    if not shutil.which("npm"):
        raise Skipped("there is no npm")
    with World() as world:
        world.write(os.path.join(world.home, ".npmrc"), f"registry={world.registry.url}none/\ncache={world.root}/cache\nfetch-retries=0\n")
        done = world.weft("agents", "install", "gemini", "--yes")
        assert done.returncode == 1 and "npm could not install @google/gemini-cli@" in done.stderr, done
        assert os.listdir(world.home + "/.local/share/weft/agents") == []


def a_path_outside_is_found():
    with World() as world:
        own = os.path.join(world.root, "own")
        world.write(os.path.join(own, "gemini"), AGENT)
        world.hub.env["PATH"] += ":" + own
        assert world.gemini()["path"] == own + "/gemini", world.gemini()
        # A configured entry of this name with a bare command is looked for in the same way.
        world.hub.configure({"agents": {"gemini": {"driver": "cli", "command": ["gemini", "x"]}}})
        assert world.gemini()["path"] == own + "/gemini", world.gemini()


main([what_is_not_installed_is_not_taken_from_the_project, nothing_is_downloaded_unasked, it_is_installed_by_npm_and_runs_from_there,
      a_failed_install_changes_nothing, a_path_outside_is_found])
