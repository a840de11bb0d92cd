"""person.py STEPS COMMAND...: run a command at a terminal, wait for texts and type answers.

STEPS is "text=>answer;;text=>answer"; the answers know \\n, \\x03 and so on. What the command wrote comes out with carriage
returns and escape sequences left in. The exit status is the command's, 99 if a text never came."""

import os
import pty
import select
import sys
import time

LIMIT = 50


def waited(text):
    return text.encode().decode("unicode_escape").encode("latin-1") if "\\" in text else text.encode()


def main():
    steps = [step.split("=>", 1) for step in sys.argv[1].split(";;") if step]
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(sys.argv[2], sys.argv[2:])
    seen, at, end = b"", 0, time.monotonic() + LIMIT
    while time.monotonic() < end:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
        while steps and waited(steps[0][0]) in seen[at:]:
            wanted, answer = steps.pop(0)
            at = seen.index(waited(wanted), at) + len(waited(wanted))
            os.write(fd, answer.encode().decode("unicode_escape").encode())
    else:
        os.kill(pid, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.stdout.buffer.write(seen)
    if steps:
        print("\nnever came:", steps[0][0], file=sys.stderr)
    sys.exit(99 if steps else status if status >= 0 else 128 - status)


main()
