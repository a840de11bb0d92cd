"""completion.py SHELL SCRIPT LINE: what a shell offers for the last word of a line when Tab is pressed, each on a line. bash and fish are
asked by a function of theirs; zsh has none, so it runs in a terminal and its matches are caught where they are added."""
import os
import pty
import re
import select
import subprocess
import sys
import time

shell, script, line = sys.argv[1:4]

BASH = """
. "$1"
set -f
COMP_LINE=$2 COMP_POINT=${#2}
read -ra COMP_WORDS <<<"$2"
case $2 in *' ') COMP_WORDS+=('') ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
set +f
_weft
printf '%s\\n' "${COMPREPLY[@]}"
"""

ZSH = """
PS1='ready> '; unset zle_bracketed_paste
autoload -Uz compinit && compinit -u -D
source %s
compadd() {
    [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]] && { builtin compadd "$@"; return; }
    local -a hits
    builtin compadd -O hits "$@"
    print -l -- hit:${^hits} >>%s
    builtin compadd "$@"
}
"""


def zsh():
    caught = script + ".caught"
    open(caught, "w").close()
    with open(script + ".rc", "w") as file:
        file.write(ZSH % (script, caught))
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", COLUMNS="200")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    steps = [(None, f"source {script}.rc\n"), ("ready> ", line + "\t"), (None, None)]
    seen, at, end = "", 0, time.monotonic() + 50
    os.write(fd, steps.pop(0)[1].encode())
    while time.monotonic() < end:
        if select.select([fd], [], [], 1.5)[0]:
            try:
                seen += os.read(fd, 65536).decode(errors="replace")
            except OSError:
                break
        elif len(steps) == 1:
            with open(caught) as file:
                if file.read() or time.monotonic() > end - 40:
                    break
        if len(steps) == 2 and steps[0][0] in seen[at:]:
            os.write(fd, steps.pop(0)[1].encode())
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    with open(caught) as file:
        return [hit[4:] for hit in file.read().splitlines() if hit.startswith("hit:") and hit[4:]]


if shell == "zsh":
    offered = zsh()
elif shell == "bash":
    offered = subprocess.run(["bash", "-c", BASH, "_", script, line], stdout=subprocess.PIPE, timeout=60).stdout.decode().split("\n")
else:
    text = f"source {script}; complete -C {re.escape(line)}"
    offered = subprocess.run(["fish", "--no-config", "-c", text], stdout=subprocess.PIPE, timeout=60).stdout.decode().split("\n")
    offered = [row.split("\t")[0] for row in offered]
print(*sorted({word.strip() for word in offered if word.strip()}), sep="\n")
