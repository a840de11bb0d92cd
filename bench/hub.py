"""The hub's part of bench/run: the real daemon with its store on the disk of the build folder, beside bare things that do the
same for nobody: an append with its fdatasync, a copy of the same bytes, a scan of the same file, a posix_spawn, an echo, an agent
on its pipes.

Each section yields its lines. What measures is in build/bench; here are only starts, clocks and ratios."""

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time

ROWS, TASKS, REPLAY = 1_000_000, 20_000, 10_000
STREAM_REPLAY = 400_000  # events a second
FAN_OUT = 800_000  # deliveries a second
STORM_S = 4
SUBSCRIBER_BYTES = 2048
PATIENCE = 60  # seconds for a hub to be ready or gone

# The targets.
SUBMIT_ONE = 0.8              # of an append with its own fdatasync
SUBMIT_MANY_CPU_NS = 20_000   # of the hub, for one of 64 clients' submissions
READY_CLEAN_MS = 30           # a million rows, after a clean stop
READY_KILLED_MS = 600         # and after kill -9
SUBMIT_MANY = 30_000          # a second, where the disk takes 100,000 in batches: the ratio of the two
SUBMIT_MANY_RAW = 100_000
MUTATE_MANY = 1.0             # of Redis, with as many clients
IDLE_MIB = 16
STATUS_REST = 1.0             # CPU of status/get over a WebSocket: a multiple of that by REST
WATCHERS, WATCHED_RATE = 1000, 1000
WATCH_P99 = 1.0               # of a line to one of them: a multiple of the bare sockets'
RELAYED, RELAYED_RATE = 10_000, 10
RELAYED_CPU = 1.25            # of the hub, for watchers on two relays: a multiple of that for two plain clients
ONE_HOP = 3  # of the CPU of a call that the hub answers itself
FIRST_UPDATE_MS = 10          # through the hub, more than from the agent itself
RUNNER = 0.7                  # tasks a second on a runner on the same machine, as a part of those at home: twice the journals
PROCESS_MS = 2.5              # from a task's submission until its process is told of, two syncs of the disk among it


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Hub:
    """weft serve in a folder of its own, below the build folder: what counts is that disk."""

    def __init__(self, bench, config=None, folder=None, args=()):
        self.bench, self.args = bench, args
        self.folder = folder or tempfile.mkdtemp(prefix="bench-hub-", dir=bench.build)
        self.home = os.path.join(self.folder, ".weft")
        self.port = free_port()
        self.unix = "unix:" + os.path.join(self.home, "daemon.sock")
        self.ws = f"ws://127.0.0.1:{self.port}/ws"
        self.acp = f"ws://127.0.0.1:{self.port}/acp"
        self.quiet = f"ws://127.0.0.1:{self.port}/tinyvex"  # who connects here is told nothing unasked
        self.rest = f"http://127.0.0.1:{self.port}"
        os.makedirs(self.home, 0o700, exist_ok=True)
        path = os.path.join(self.home, "config.json")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"listen": [self.ws, self.acp, self.quiet, self.rest + "/rpc"], "auth": "none", "rate_per_minute": 0,
                       "changes": {"enabled": False},  # what snapshots cost is in the section "git"
                       **(config or {})}, file)

    def trust(self):
        """What was put there is the user's own."""
        subprocess.run([os.path.join(self.bench.build, "weft"), "trust", "--yes"], cwd=self.folder, env=self.environment(),
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def environment(self):
        return {**os.environ, "XDG_CONFIG_HOME": os.path.join(self.folder, "none"),
                "XDG_STATE_HOME": os.path.join(self.folder, "state")}

    def __enter__(self):
        self.trust()
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        """Milliseconds until it has answered a ping."""
        begun = time.monotonic()
        self.process = subprocess.Popen([os.path.join(self.bench.build, "weft"), "serve", *self.args], cwd=self.folder, env=self.environment(),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > begun + PATIENCE:
                raise RuntimeError("weft serve did not start")
            time.sleep(0.0005)
        return (time.monotonic() - begun) * 1e3

    def answers(self):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(self.unix[len("unix:"):])
            s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"task.stats"}\n')
            return b'"result"' in s.recv(4096)
        return False

    def call(self, method, **params):
        with socket.socket(socket.AF_UNIX) as s, s.makefile("rw", encoding="utf-8") as file:
            s.settimeout(PATIENCE)
            s.connect(self.unix[len("unix:"):])
            file.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
            file.flush()
            for line in file:
                message = json.loads(line)
                if message.get("id") == 1:
                    return message["result"]
        raise RuntimeError(f"no answer to {method}")

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def measure(self, tool, *arguments, pid=True):
        argv = [self.bench.tool(tool), *(["-p", str(self.process.pid)] if pid else []), *map(str, arguments)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-300:])
        result = json.loads(done.stdout)
        self.bench.record(tool=tool, **result)
        return result


def memory(pid):
    """Resident and proportional size, in MiB."""
    found = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in ("Rss", "Pss"):
                found[name] = int(rest.split()[0]) / 1024
    return found["Rss"], found["Pss"]


def submit(bench):
    seconds = 1.5 if bench.quick else 7
    yield "Durable task.submit on the hub, each acknowledged after its fsync; raw: the same bytes, one fdatasync for all clients' worth"
    yield f"{'':28}{'raw/s':>10}{'submits/s':>11}{'ratio':>8}{'of 7 rounds':>16}{'p50 µs':>9}{'CPU ns':>9}  target"
    with Hub(bench, {"tasks": {"paused": True, "max_queue": 1000000}}) as hub:
        rows = (("1 client, Unix", 1, hub.unix, SUBMIT_ONE), ("64 clients, WebSocket", 64, hub.ws, SUBMIT_MANY / SUBMIT_MANY_RAW),
                ("64, each told of all", 64, hub.unix, None))
        hub.measure("submit", "-c", 8, "-t", seconds / 4, hub.ws, hub.folder)
        for title, clients, url, target in rows:
            r = hub.measure("submit", "-c", clients, "-t", seconds, url, hub.folder)
            spread = f"{r['ratio_low']:.2f}..{r['ratio_high']:.2f}"
            line = f"{title:28}{r['raw']:>10,}{r['rate']:>11,}{r['ratio']:>8.2f}{spread:>16}{r['p50_us']:>9,}{r['cpu_ns']:>9,}"
            line += f"  ≥ {target}  {bench.verdict(r['ratio'] >= target)}" if target else ""
            if url == hub.ws:
                line += f"; CPU ≤ {SUBMIT_MANY_CPU_NS:,}  {bench.verdict(r['cpu_ns'] <= SUBMIT_MANY_CPU_NS)}"
            yield line


def listens(path):
    """A socket has its name before anybody listens to it."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        return True
    return False


@contextlib.contextmanager
def redis(folder, port=0):
    """Redis on the same disk, syncing before it answers, and on this port if there is one: the URL of its socket; None where it
    is not installed."""
    program = shutil.which("redis-server")
    if not program:
        yield None
        return
    home = os.path.join(folder, "redis")
    os.mkdir(home)
    path = os.path.join(home, "s")
    process = subprocess.Popen([program, "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", path, "--dir", home,
                                "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while not listens(path):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("redis-server did not start")
            time.sleep(0.01)
        yield "unix:" + path
    finally:
        process.terminate()
        process.wait(PATIENCE)


def mutate(bench):
    seconds = 1.5 if bench.quick else 7
    with Hub(bench) as hub, redis(hub.folder) as anchor:
        beside = "Redis with appendfsync always" if anchor else "the same bytes, one fdatasync for all clients' worth (no redis-server here)"
        yield f"Durable tinyvex/mutation (doc.put of 256 bytes), each acknowledged after its fsync; beside {beside}"
        yield f"{'':28}{'beside/s':>10}{'changes/s':>11}{'ratio':>8}{'of 7 rounds':>16}{'p50 µs':>9}{'CPU ns':>9}  target"
        where = ["-r", anchor] if anchor else []
        hub.measure("mutate", "-c", 8, "-t", seconds / 4, *where, hub.unix, hub.folder)
        for title, clients, url in (("1 client, Unix", 1, hub.unix), ("64 clients, Unix", 64, hub.unix),
                                    ("64 clients, WebSocket", 64, hub.ws)):
            r = hub.measure("mutate", "-c", clients, "-t", seconds, *where, url, hub.folder)
            spread = f"{r['ratio_low']:.2f}..{r['ratio_high']:.2f}"
            line = f"{title:28}{r['raw']:>10,}{r['rate']:>11,}{r['ratio']:>8.2f}{spread:>16}{r['p50_us']:>9,}{r['cpu_ns']:>9,}"
            if anchor and clients > 1 and url == hub.unix:
                line += f"  ≥ {MUTATE_MANY}  {bench.verdict(r['ratio'] >= MUTATE_MANY)}"
            yield line


def read_file(path):
    """Milliseconds for a plain read of it, from the page cache as for everybody else."""
    begun = time.monotonic()
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
    return (time.monotonic() - begun) * 1e3


def check_database(path):
    begun = time.monotonic()
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        database.execute("pragma integrity_check").fetchall()
    return (time.monotonic() - begun) * 1e3


def select_rows(path, count):
    """Milliseconds in which SQLite alone reads the last rows."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        begun = time.monotonic()
        rows = database.execute("select * from event where gseq > (select max(gseq) from event) - ? order by gseq", (count,)).fetchall()
        assert len(rows) == count
        return (time.monotonic() - begun) * 1e3


def cold_starts(hub, path, repeats):
    """Best of several: after a clean stop, and after kill -9, each beside its anchor."""
    clean, read, killed, check = [], [], [], []
    for _ in range(repeats):
        hub.stop()
        read.append(read_file(path))
        clean.append(hub.start())
    for _ in range(max(1, repeats // 2)):
        hub.stop(signal.SIGKILL)
        killed.append(hub.start())
        hub.stop()
        check.append(check_database(path))
        hub.start()
    return min(clean), min(read), min(killed), min(check)


def within(bench, ms, target):
    """The targets are those of a million rows; with --quick there are fewer."""
    return "" if bench.quick else f"  ≤ {target} ms  {bench.verdict(ms <= target)}"


def journal(bench):
    rows, tasks = (200_000, 4_000) if bench.quick else (ROWS, TASKS)
    yield f"A journal of {rows:,} rows, {tasks:,} tasks of them"
    hub = Hub(bench, {"tasks": {"paused": True}})
    path = os.path.join(hub.home, "weft.db")
    subprocess.run([bench.tool("journal"), path, str(rows), str(tasks)], check=True, timeout=10 * PATIENCE)
    with hub:
        clean, read, killed, check = cold_starts(hub, path, 3 if bench.quick else 5)
        rss, pss = memory(hub.process.pid)
        yield f"{'ready after a clean stop':28}{clean:>9,.0f} ms{clean / read:>8.2f} × a plain read of the file ({read:,.0f} ms)" + \
              within(bench, clean, READY_CLEAN_MS)
        yield f"{'ready after kill -9':28}{killed:>9,.0f} ms{killed / check:>8.2f} × SQLite's integrity check alone ({check:,.0f} ms)" + \
              within(bench, killed, READY_KILLED_MS)
        yield f"{'memory when ready':28}{rss:>9.1f} MiB resident, {pss:.1f} MiB proportional"
        bench.record(summary="journal", rows=rows, clean_ms=clean, read_ms=read, killed_ms=killed, check_ms=check, rss_mib=rss, pss_mib=pss)
        r = hub.measure("replay", hub.unix, REPLAY)
        t = hub.measure("replay", "-t", hub.unix, REPLAY)
        hub.stop()
        select = min(select_rows(path, REPLAY) for _ in range(5))
        yield (f"{f'resume {REPLAY:,} events':28}{r['ms']:>9,.1f} ms ({r['best_ms']:.1f}..{r['worst_ms']:.1f}), {r['events_per_second']:,} events/s, "
               f"{r['cpu_ns']:,} CPU ns each; {r['ms'] / select:.1f} × the same rows selected by Python's SQLite ({select:.1f} ms), "
               f"{r['ms'] / r['bare_ms']:.0f} × a bare copy ({r['bare_ms']:.2f} ms)")
        yield (f"{'the same as a stream':28}{t['ms']:>9,.1f} ms, {t['events_per_second']:,} events/s, {t['cpu_ns']:,} CPU ns each"
               f"  ≥ {STREAM_REPLAY:,}  {bench.verdict(t['events_per_second'] >= STREAM_REPLAY)}")


def idle(bench):
    with Hub(bench) as hub:
        rss, pss = memory(hub.process.pid)
        bench.record(summary="idle hub", rss_mib=rss, pss_mib=pss)
        yield f"A fresh hub at rest: {rss:.1f} MiB resident, {pss:.1f} MiB proportional  ≤ {IDLE_MIB}  {bench.verdict(rss <= IDLE_MIB)}"


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def guard_memory(hub):
    task = hub.call("task.submit", prompt="60", agent="sleep")["taskId"]
    until = time.monotonic() + PATIENCE
    while not (pid := hub.call("task.get", taskId=task).get("pid")) and time.monotonic() < until:
        time.sleep(0.01)
    sizes = memory(parent(pid))
    hub.call("task.cancel", taskId=task)
    return sizes


def agents(bench):
    config = {"echo": {"driver": "cli", "command": ["/bin/echo", "{prompt}"]}, "sleep": {"driver": "cli", "command": ["/bin/sleep"]},
              "talk": {"driver": "cli", "command": [bench.tool("tell"), "talk", "{prompt}"]}}
    with Hub(bench, {"agents": config}) as hub:
        r = hub.measure("start", hub.unix, "echo", "/bin/echo", "hello", pid=False)
        rss, pss = guard_memory(hub)
        yield f"A task with /bin/echo: acknowledged {r['acknowledged_us'] / 1e3:.2f} ms, its process told of {r['runs_us'] / 1e3:.2f} ms, " \
              f"its first output told {r['says_us'] / 1e3:.2f} ms, its end told {r['ends_us'] / 1e3:.2f} ms after the submission"
        yield f"until its process is told of: {r['runs_us'] / 1e3:.2f} ms, {r['runs_us'] / r['spawn_says_us']:.1f} × posix_spawn until its first byte" \
              f"  ≤ {PROCESS_MS} ms  {bench.verdict(r['runs_us'] / 1e3 <= PROCESS_MS)}"
        yield f"posix_spawn: first byte {r['spawn_says_us'] / 1e3:.2f} ms ({r['says_us'] / r['spawn_says_us']:.1f} ×), " \
              f"end {r['spawn_ends_us'] / 1e3:.2f} ms ({r['ends_us'] / r['spawn_ends_us']:.1f} ×)"
        yield f"Its guard: {rss:.1f} MiB resident, {pss:.2f} MiB proportional"
        bench.record(summary="guard", rss_mib=rss, pss_mib=pss)
        yield ""
        yield "One task prints lines of 100 bytes, all subscribers get all of them; bare: the same messages to as many socket pairs"
        yield f"{'subscribers':28}{'lines/s':>12}{'events/s':>10}{'bytes each':>12}{'× bare time':>12}{'CPU ns/line':>12}"
        for name, url in (("WebSocket", hub.ws), ("Unix", hub.unix)):
            for count in (100, 1000):
                total = 200_000 if bench.quick else 2_000_000
                r = hub.measure("tell", "-c", count, "-n", total // count, url, hub.unix, "talk")
                yield (f"{f'{count} {name}':28}{r['lines_per_second']:>12,}{r['events_per_second']:>10,}{r['event_bytes']:>12,}"
                       f"{r['seconds'] / r['bare_seconds']:>12.1f}{r['cpu_ns_per_line']:>12.0f}")


def streams(bench):
    """Streams of tinyvex: told live to many, to many that come back at once, and what one costs in memory."""
    port = free_port()
    with Hub(bench) as hub, redis(hub.folder, port) as anchor:
        r = hub.measure("streams", "memory", "-c", 10000, hub.unix)
        yield f"A subscription: {r['shared_bytes']:,} bytes beside its connection  ≤ {SUBSCRIBER_BYTES:,}  " \
              f"{bench.verdict(r['shared_bytes'] <= SUBSCRIBER_BYTES)}; with a computation of its own {r['apart_bytes']:,}"
        yield ""
        yield "A client puts documents, all subscribers of a stream are told; bare: the same messages to as many socket pairs; Redis: as many " \
              "subscribers of a channel" + ("" if anchor else " (not measured: no redis-server here)")
        yield f"{'subscribers':28}{'deliveries/s':>14}{'bytes each':>12}{'× bare time':>12}{'CPU ns each':>12}{'Redis/s':>14}{'ratio':>8}"
        for name, url in (("WebSocket", hub.ws), ("Unix", hub.unix)):
            for count in (1, 1000):
                where = ["-r", f"tcp://127.0.0.1:{port}" if name == "WebSocket" else anchor] if anchor else []
                r = hub.measure("streams", "fan", "-c", count, "-n", 500 if bench.quick else 2000, *where, url, hub.unix)
                beside = f"{r['redis_per_second']:>14,}{r['deliveries_per_second'] / r['redis_per_second']:>8.2f}" if anchor else ""
                verdict = f"  ≥ {FAN_OUT:,}  {bench.verdict(r['deliveries_per_second'] >= FAN_OUT)}" if name == "WebSocket" and count > 1 else ""
                yield (f"{f'{count} {name}':28}{r['deliveries_per_second']:>14,}{r['bytes']:>12,}{r['seconds'] / r['bare_seconds']:>12.2f}"
                       f"{r['cpu_ns']:>12,}{beside}{verdict}")
        # What all of them miss together must fit into what the hub's connections may hold.
        count, missed = (1000, 100) if bench.quick else (9900, 20)
        r = hub.measure("streams", "storm", "-c", count, "-n", missed, hub.ws, hub.unix)
        yield f"{count:,} clients come back at once, each {missed} events behind: all caught up after {r['seconds']:.2f} s  ≤ {STORM_S} s  " \
              f"{bench.verdict(r['seconds'] <= STORM_S)}"


@contextlib.contextmanager
def bare_echo(bench):
    """Its URL and its process, for the length of a with block."""
    url = f"ws://127.0.0.1:{free_port()}"
    process = subprocess.Popen([bench.tool("bare_echo"), url], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", int(url.rsplit(":", 1)[1]))) == 0:
                    break
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("bare_echo did not start")
            time.sleep(0.01)
        yield url, process.pid
    finally:
        process.kill()
        process.wait()


def status(bench):
    """They take turns; the best of each, because noise only ever adds."""
    yield "How are you, 64 clients, one question at a time each: status/get over a WebSocket, REST, and the bare echo of as many bytes"
    yield f"{'':28}{'requests/s':>12}{'p50 µs':>10}{'p99 µs':>10}{'CPU ns/req':>12}{'× bare':>8}{'× REST':>8}  target"
    found = {"bare echo": [], "GET /api/status": [], "status/get, WebSocket": []}
    times = ("-t", bench.seconds, "-u", bench.warmup)
    with Hub(bench) as hub, bare_echo(bench) as (url, pid):
        size = hub.measure("status", *times, hub.ws)["answer_bytes"]
        for _ in range(bench.repeats):
            found["bare echo"].append(hub.measure("load", "-p", pid, "-c", 64, "-w", 1, "-s", size, *times, url, pid=False))
            found["GET /api/status"].append(hub.measure("status", *times, hub.rest + "/api/status"))
            found["status/get, WebSocket"].append(hub.measure("status", *times, hub.ws))
    best = {name: {key: (max if key == "rps" else min)(r[key] for r in rows) for key in ("rps", "p50_us", "p99_us", "cpu_ns")}
            for name, rows in found.items()}
    bench.record(summary="status", **{name.split()[0]: row for name, row in best.items()})
    for name, row in best.items():
        bare, rest = (row["cpu_ns"] / best[other]["cpu_ns"] for other in ("bare echo", "GET /api/status"))
        line = f"{name:28}{row['rps']:>12,.0f}{row['p50_us']:>10,.0f}{row['p99_us']:>10,.0f}{row['cpu_ns']:>12,.0f}{bare:>8.2f}{rest:>8.2f}"
        yield line + (f"  ≤ {STATUS_REST} × REST  {bench.verdict(rest <= STATUS_REST)}" if "WebSocket" in name else "")


def watchers(bench):
    config = {"talk": {"driver": "cli", "command": [bench.tool("watchers"), "talk", "{prompt}"]}}
    yield f"Phones watch one session (cdev, WebSocket) whose agent writes {WATCHED_RATE:,} lines a second; bare: the same bytes to as many socket pairs"
    yield f"{'watchers':28}{'p50 ms':>9}{'p99 ms':>9}{'bare p50':>10}{'bare p99':>10}{'×':>6}{'CPU share':>11}{'CPU ns/line':>12}{'MiB':>7}  target"
    with Hub(bench, {"agents": config}) as hub:
        for count in (100, WATCHERS):
            r = hub.measure("watchers", "-c", count, "-n", 1000 if bench.quick else 5000, "-r", WATCHED_RATE, hub.ws, hub.unix, "talk")
            ratio = r["p99_ms"] / r["bare_p99_ms"]
            line = (f"{count:<28}{r['p50_ms']:>9.2f}{r['p99_ms']:>9.2f}{r['bare_p50_ms']:>10.2f}{r['bare_p99_ms']:>10.2f}{ratio:>6.2f}"
                    f"{r['cpu_share']:>11.2f}{r['cpu_ns']:>12,.0f}{r['rss'] / 2**20:>7.1f}")
            yield line + (f"  ≤ {WATCH_P99} × bare  {bench.verdict(ratio <= WATCH_P99)}" if count == WATCHERS else "")


def relays(bench):
    """The lines are those of one agent at the hub; watchers on relays of it, beside plain clients of its own in the same run."""
    config = {"talk": {"driver": "cli", "command": [bench.tool("watchers"), "talk", "{prompt}"]}}
    lines = 100 if bench.quick else 400
    yield f"Phones watch one session of a hub whose agent writes {RELAYED_RATE} lines a second: on two relays of it, and at the hub itself"
    yield f"{'relays':34}{'hub CPU ms':>11}{'relays':>9}{'p50 ms':>9}{'p99 ms':>9}  target"
    with Hub(bench, {"agents": config}) as hub, Hub(bench, args=("--relay", hub.unix)) as one, \
            Hub(bench, args=("--relay", hub.unix)) as two:
        while not all(h["state"] == "following" for r in (one, two) for h in r.call("daemon.status")["weft"]["relay"]["hubs"]):
            time.sleep(0.01)
        spent = {}
        for title, count, urls in (("2 clients of the hub", 2, hub.ws), ("2 watchers, one on each relay", 2, f"{one.ws},{two.ws}"),
                                   (f"{RELAYED:,} watchers on two relays", RELAYED, f"{one.ws},{two.ws}")):
            before = [cpu_ms(r) for r in (one, two)]
            r = hub.measure("watchers", "-b", "-c", count, "-n", lines, "-r", RELAYED_RATE, urls, hub.unix, "talk")
            after = [cpu_ms(r) for r in (one, two)]
            spent[title] = r["cpu_ns"] * count * lines / 1e6
            ratio = spent[title] / spent["2 clients of the hub"]
            yield (f"{title:34}{spent[title]:>11.1f}{sum(after) - sum(before):>9.0f}{r['p50_ms']:>9.2f}{r['p99_ms']:>9.2f}" +
                   (f"  {ratio:.2f} × that of 2 clients, ≤ {RELAYED_CPU}  {bench.verdict(ratio <= RELAYED_CPU)}" if count > 2 else ""))


def cpu_ms(hub):
    with open(f"/proc/{hub.process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def acp(bench):
    yield "An ACP turn of the demo agent through the hub (/acp, WebSocket), beside the same agent on its pipes; medians"
    yield f"{'':28}{'first words':>13}{'direct':>9}{'more':>9}{'whole turn':>13}{'direct':>9}{'more':>9}  target"
    with Hub(bench, {"tasks": {"idle_ms": 60000}}) as hub:
        r = hub.measure("acp", hub.acp, hub.folder, os.path.join(bench.build, "weft"), "__demo", pid=False)
    for title, name in ("in a session that is open", ""), ("in a new session, process", "fresh_"):
        first, first_direct, end, end_direct = (r[key] / 1e3 for key in
                                                (f"{name}first_us", f"direct_{name}first_us", f"{name}end_us", f"direct_{name}end_us"))
        yield (f"{title:28}{first:>10.2f} ms{first_direct:>9.2f}{first - first_direct:>9.2f}{end:>10.2f} ms{end_direct:>9.2f}{end - end_direct:>9.2f}"
               f"  ≤ {FIRST_UPDATE_MS} ms more  {bench.verdict(first - first_direct <= FIRST_UPDATE_MS)}")


def planner(bench):
    yield "execute_task to an executor that registered, beside one call of the hub (echo) with the same params: the hub's CPU, one"
    yield "call at a time; medians. An echo is one message in and one out and stores nothing. An execution is two in and two out, a"
    yield "task of the queue, and two appends: before the executor is asked, and before its answer is passed on. A phone's"
    yield "connections (/ws) are told of each task besides, three messages each; the others of nothing."
    yield f"{'':28}{'CPU µs':>10}{'echo':>9}{'×':>8}{'time µs':>11}{'echo':>9}  target"
    for title, kind, phone in (("stored on the disk", "sqlite", False), ("kept in memory", "memory", False),
                               ("in memory, by /ws", "memory", True)):
        with Hub(bench, {"store": {"kind": kind}}) as hub:
            r = hub.measure("planner", hub.ws if phone else hub.quiet, hub.process.pid, pid=False)
        ratio = r["cpu_us"] / r["echo_cpu_us"]
        yield (f"{title:28}{r['cpu_us']:>10.1f}{r['echo_cpu_us']:>9.1f}{ratio:>8.1f}{r['wall_us']:>11,.0f}{r['echo_wall_us']:>9,.0f}"
               f"  ≤ {ONE_HOP} × echo  {bench.verdict(ratio <= ONE_HOP)}")


class Runner(Hub):
    """weft runner in a folder of its own."""

    def __init__(self, bench, hub, config):
        super().__init__(bench, config)
        self.hub = hub

    def start(self):
        self.process = subprocess.Popen([os.path.join(self.bench.build, "weft"), "runner", self.hub.ws, "--name", "box", "--slots", "8"],
                                        cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while not any(r["connected"] for r in self.hub.call("runner.list")["runners"]):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("weft runner did not start")
            time.sleep(0.005)


def run_tasks(hub, count, **where):
    """Seconds until so many tasks have ended, which are all submitted at once."""
    with socket.socket(socket.AF_UNIX) as s, s.makefile("rw", encoding="utf-8") as file:
        s.settimeout(PATIENCE)
        s.connect(hub.unix[len("unix:"):])
        file.write(json.dumps({"jsonrpc": "2.0", "id": "s", "method": "event.subscribe", "params": {"types": ["task.completed"]}}) + "\n")
        file.flush()
        file.readline()
        begun, ended = time.monotonic(), 0
        for i in range(count):
            file.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": "task.submit", "params": {"prompt": "x", **where}}) + "\n")
        file.flush()
        for line in file:
            message = json.loads(line)
            if "error" in message:
                raise RuntimeError(line)
            ended += message.get("method") == "event"
            if ended == count:
                return time.monotonic() - begun
    raise RuntimeError("the hub has gone")


def runner(bench):
    """Placing tasks on a runner beside running them at home, in turns."""
    config = {"agents": {"true": {"driver": "cli", "command": ["/bin/true"]}}, "default_agent": "true",
              "tasks": {"max_running": 8, "max_queue": 1000}}
    rounds, count = (3, 100) if bench.quick else (7, 400)
    yield f"Tasks of /bin/true on a runner on this machine, over a WebSocket, beside the same at home; medians of {rounds} rounds"
    yield f"{'':28}{'home':>10}{'runner':>10}{'ratio':>8}  target"
    with Hub(bench, config) as hub, Runner(bench, hub, config):
        for title, at_once, times in (("at once, tasks/s", count, 1), ("one after the other, ms", 1, 50)):
            found = []
            run_tasks(hub, at_once)
            run_tasks(hub, at_once, runner="box")
            for _ in range(rounds):
                home = sum(run_tasks(hub, at_once) for _ in range(times)) / times
                away = sum(run_tasks(hub, at_once, runner="box") for _ in range(times)) / times
                found.append((home, away, home / away))
            home, away, ratio = (sorted(values)[rounds // 2] for values in zip(*found))
            bench.record(summary="runner", at_once=at_once, home_s=home, runner_s=away, ratio=ratio)
            if at_once > 1:
                yield f"{title:28}{at_once / home:>10,.0f}{at_once / away:>10,.0f}{ratio:>8.2f}  ≥ {RUNNER}  {bench.verdict(ratio >= RUNNER)}"
            else:
                yield f"{title:28}{home * 1e3:>10.1f}{away * 1e3:>10.1f}{away / home:>8.1f}"


SECTIONS = {"submit": submit, "mutate": mutate, "streams": streams, "journal": journal, "idlehub": idle, "agents": agents, "status": status,
            "watchers": watchers, "relays": relays, "acp": acp, "planner": planner,
            "runner": runner}
