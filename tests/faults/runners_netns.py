#!/usr/bin/python3
"""A runner in a network namespace of its own: packets are late, some are lost, and for a while none arrive. Needs root."""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub import SOAK, Skipped, main, wait_until
from runners import TEXT, World, check_whole, middle

HERE, THERE = "10.251.77.1", "10.251.77.2"
# As long as people who wait for a test can bear; "make soak" makes it a minute and more.
PARTITION_S = 4 * SOAK


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


class Link:
    """Two ends; the far one is alone in a namespace."""

    def __init__(self):
        self.name = "weft%d" % (os.getpid() % 100000)
        self.near, self.far = self.name + "a", self.name + "b"
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
            raise Skipped("needs root, ip and tc")
        if run("ip", "netns", "add", self.name, check=False).returncode != 0:
            raise Skipped("no network namespaces here")
        made = run("ip", "link", "add", self.near, "type", "veth", "peer", "name", self.far, "netns", self.name, check=False)
        if made.returncode != 0:
            self.done()
            raise Skipped("no veth here: " + made.stderr.strip())
        if run("ip", "-n", self.name, "link", "show", check=False).returncode != 0:  # as in a chroot, which cannot mount
            self.done()
            raise Skipped("nothing can be run in a network namespace here")
        run("ip", "addr", "add", HERE + "/30", "dev", self.near)
        run("ip", "link", "set", self.near, "up")
        for command in (("addr", "add", THERE + "/30", "dev", self.far), ("link", "set", self.far, "up"),
                        ("link", "set", "lo", "up")):
            run("ip", "-n", self.name, *command)
        self.how = None

    def be(self, *how):
        """As netem has it: delay 20ms, loss 3%."""
        verb = "add" if self.how is None else "change"
        made = run("tc", "qdisc", verb, "dev", self.near, "root", "netem", *how, check=False)
        if made.returncode != 0:
            raise Skipped("no netem here: " + made.stderr.strip())
        run("tc", "-n", self.name, "qdisc", verb, "dev", self.far, "root", "netem", *how)
        self.how = how

    def cut(self):
        """Neither end hears of it: packets are dropped, connections stay."""
        run("ip", "-n", self.name, "link", "set", self.far, "down")

    def heal(self):
        run("ip", "-n", self.name, "link", "set", self.far, "up")

    def done(self):
        run("ip", "netns", "del", self.name, check=False)
        run("ip", "link", "del", self.near, check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done()


def world_behind(link):
    return World(address=HERE, prefix=("ip", "netns", "exec", link.name))


def delay_and_loss():
    with Link() as link:
        link.be("delay", "20ms", "5ms", "loss", "3%")
        with world_behind(link) as world:
            world.runner.make("go")
            for _ in range(3):
                check_whole(world, world.submit(runner="box"))


def partition():
    with Link() as link:
        with world_behind(link) as world:
            task = world.submit(runner="box")
            middle(world, world.runner)
            link.cut()
            world.runner.make("go")
            wait_until("it ends while nothing arrives", lambda: world.runner.has("ended"))
            time.sleep(PARTITION_S)
            assert world.task(task)["state"] == "running" and world.said(task) != TEXT
            link.heal()
            check_whole(world, task)


if __name__ == "__main__":
    main([delay_and_loss, partition])
