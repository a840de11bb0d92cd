#!/usr/bin/python3
"""A daemon is killed at any moment, also while it starts programs: the next start is not refused. What such a moment looks like
to the lock is made here too, as long as one likes."""
import ctypes
import fcntl
import os
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import PATIENCE, SOAK, WEFT, Hub, Skipped, main, wait_until

AGENTS = {"agents": {"echo": {"driver": "cli", "command": ["/bin/echo", "{prompt}"]}}, "default_agent": "echo",
          "tasks": {"max_running": 8}}
F_OFD_SETLK = 37
BUSY = 6
PTRACE_CONT, PTRACE_SEIZE, PTRACE_O_TRACEEXIT, WAIT_ALL = 7, 0x4206, 0x40, 0x40000000


def killed_while_it_spawns():
    with Hub(AGENTS) as hub:
        for i in range(60 * SOAK):
            connection = hub.start().connect()
            for n in range(8):
                connection.send({"jsonrpc": "2.0", "id": n, "method": "task.submit", "params": {"prompt": "x"}})
            time.sleep((i % 20) * 0.001)  # any moment of the first 20 ms
            hub.kill()
            connection.close()
        hub.start()


def hold_lock(hub, name):
    """A process that has the lock, and is not the one that the file names. Its end is in our hands."""
    path = os.path.join(hub.home, "daemon.lock")
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    os.pwrite(fd, f"{name:<20}\n".encode(), 0)
    return fd


def serve(hub, verb):
    return subprocess.Popen([WEFT, verb], cwd=hub.folder, env=hub.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, start_new_session=True)


def watches(pid):
    """It waits for the lock: it has an inotify instance with a watch."""
    try:
        names = os.listdir(f"/proc/{pid}/fdinfo")
        return any("inotify wd" in open(f"/proc/{pid}/fdinfo/{name}").read() for name in names)
    except OSError:
        return False


def a_dead_daemons_child_has_the_lock_for_a_moment(verb):
    def test():
        with Hub(AGENTS) as hub:
            dead = subprocess.Popen(["/bin/true"])
            dead.wait()
            fd = hold_lock(hub, dead.pid)
            started = serve(hub, verb)
            wait_until("it waits", lambda: watches(started.pid) or started.poll() is not None)
            os.close(fd)
            wait_until("a daemon is ready", lambda: os.path.exists(os.path.join(hub.home, "daemon.pid"))
                       or started.poll() not in (None, 0))
            assert started.poll() in (None, 0), started.communicate()[0].decode()
            subprocess.run([WEFT, "stop"], cwd=hub.folder, env=hub.env, check=True, capture_output=True)
            assert started.wait(PATIENCE) == 0

    test.__name__ = f"a dead daemon's child has the lock for a moment: weft {verb}"
    return test


def a_program_that_is_slow_to_begin_has_the_lock():
    """What a killed daemon was about to start has the lock as long as it has not become another program, and on a busy machine
    that takes longer than anybody would wait for a name."""
    with Hub(AGENTS) as hub:
        dead = subprocess.Popen(["/bin/true"])
        dead.wait()
        fd = hold_lock(hub, dead.pid)
        slow = subprocess.Popen([WEFT, "call", "--timeout", "600s", "exec:sleep 600", "x"], cwd=hub.folder, env=hub.env, pass_fds=[fd],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(fd)
        started = serve(hub, "serve")
        wait_until("it waits", lambda: watches(started.pid) or started.poll() is not None)
        try:
            started.wait(3)  # it would have given up by then
        except subprocess.TimeoutExpired:
            pass
        slow.kill()
        slow.wait()
        wait_until("a daemon is ready", lambda: os.path.exists(os.path.join(hub.home, "daemon.pid")) or started.poll() is not None)
        assert started.poll() is None, started.communicate()[0].decode()
        subprocess.run([WEFT, "stop"], cwd=hub.folder, env=hub.env, check=True, capture_output=True)
        assert started.wait(PATIENCE) == 0


def a_killed_daemon_takes_its_time():
    """kill returns before the process is gone: it still has its files, and the lock. A start right behind it waits for the end
    and is not told that a daemon runs. Here the process is held in its last moment."""
    with Hub(AGENTS) as hub:
        pid = hub.start().process.pid
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(PTRACE_SEIZE, pid, None, ctypes.c_void_p(PTRACE_O_TRACEEXIT)) < 0:
            raise Skipped(f"a process cannot be held here: {os.strerror(ctypes.get_errno())}")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, WAIT_ALL)
        started = serve(hub, "start")
        wait_until("it waits", lambda: watches(started.pid) or started.poll() is not None)
        assert started.poll() is None, started.communicate()[0].decode()
        assert libc.ptrace(PTRACE_CONT, pid, None, None) == 0
        said = started.communicate(timeout=PATIENCE)[0].decode()
        assert started.returncode == 0 and "started in" in said, said
        subprocess.run([WEFT, "stop"], cwd=hub.folder, env=hub.env, check=True, capture_output=True)


def somebody_unseen_has_the_lock():
    """It is refused in words that say so, not with a process number of 0."""
    with Hub(AGENTS) as hub:
        fd = hold_lock(hub, 0)
        started = serve(hub, "serve")
        said = started.communicate(timeout=PATIENCE)[0].decode()
        assert started.returncode == BUSY and "cannot be seen" in said and "pid 0" not in said, said
        os.close(fd)


main([killed_while_it_spawns, a_dead_daemons_child_has_the_lock_for_a_moment("serve"),
      a_dead_daemons_child_has_the_lock_for_a_moment("start"), a_program_that_is_slow_to_begin_has_the_lock,
      a_killed_daemon_takes_its_time, somebody_unseen_has_the_lock])
