#!/usr/bin/python3
"""The files in packaging/: units are units, the compose file is YAML that fits together, scripts are scripts, and every option
that they write is one of the program."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

WEFT, SOURCE = os.environ["WEFT"], os.environ["SOURCE"]
passed = failed = skipped = 0


def check(name, good, why=""):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print("FAIL", name, why)


def path(name):
    return os.path.join(SOURCE, "packaging", name)


def read(name):
    with open(path(name), encoding="utf-8") as file:
        return file.read()


def check_command(where, words):
    """As it is typed: "weft", a verb, and options."""
    help_text = subprocess.run([WEFT, "help", words[1]], capture_output=True, text=True, timeout=60)
    help_text = help_text.stdout + subprocess.run([WEFT, "help", "connection"], capture_output=True, text=True, timeout=60).stdout
    for word in words[2:]:
        if word.startswith("--"):
            check(f"{where}: {word}", re.search(re.escape(word) + r"\b", help_text), "is no option of " + words[1])


for unit in ("weft-runner.service", "weft-standby.service", "weft@.service.in"):
    text = read(unit)
    line = re.search(r"^ExecStart=(.*)$", text, re.M).group(1).split()
    check_command(unit, ["weft", *line[1:]])
    if shutil.which("systemd-analyze") and not unit.endswith(".in"):
        with tempfile.TemporaryDirectory() as there:
            copy = os.path.join(there, unit)
            with open(copy, "w") as file:
                file.write(text.replace(line[0], WEFT))
            done = subprocess.run(["systemd-analyze", "--user", "verify", copy], capture_output=True, text=True, timeout=60,
                                  env={**os.environ, "XDG_RUNTIME_DIR": there})
            check(f"{unit} is one", done.returncode == 0, done.stderr)

for script in ("postgres-primary.sh", "postgres-standby.sh"):
    check(f"{script} is one", subprocess.run(["sh", "-n", path(script)], timeout=60).returncode == 0)
    check(f"{script} is executable", os.access(path(script), os.X_OK))

try:
    import yaml
except ImportError:
    yaml = None
    skipped += 1
    print("skip compose.yaml: there is no YAML for Python")
if yaml:
    compose = yaml.safe_load(read("compose.yaml"))
    services = compose["services"]
    check("it has the forms", {"hub", "runner", "standby", "db1", "db2", "hub-postgres"} <= set(services))
    for name, service in services.items():
        command = service.get("command") or service.get("entrypoint")
        check(f"{name} has an image and a command", service.get("image") and (command or name == "db1"))
        if command and "weft" in " ".join(command):
            words = command if command[0] == "weft" else re.search(r"exec (weft .*)", command[-1]).group(1).split()
            check_command(name, words)
        for other in service.get("depends_on", []):
            check(f"{name} needs {other}", other in services)
        for secret in service.get("secrets", []):
            check(f"{name} has the secret {secret}", secret in compose["secrets"])
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            check(f"{name} has {source}", os.path.exists(path(source)) if source.startswith(".") else source in compose["volumes"])
        for key in service.get("environment", {}):
            if key.startswith("WEFT_"):
                found = subprocess.run([WEFT, "config", "-h"], capture_output=True, text=True, timeout=60).stdout
                check(f"{name}: {key}", key in read("../docs/config.md"), found[:0])
    used = {v.split(":")[0] for s in services.values() for v in s.get("volumes", [])}
    check("no volume is left over", set(compose["volumes"]) <= used, set(compose["volumes"]) - used)
    check("what is built is there", os.path.exists(path(services["hub"]["build"]["dockerfile"].replace("packaging/", ""))))

print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed else 0)
