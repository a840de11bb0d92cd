#!/usr/bin/python3
"""The hub's figures, as monitoring reads them: the text passes promtool, and a real Prometheus scrapes it with a token and answers every query of
the dashboard."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "security"))
from door import PATIENCE, SOCKET, SOURCE, Doors, Refused, Skipped, WebSocket, free_port, main, wait_until

PARTS = ("_bucket", "_sum", "_count")


def read(doors, token=None):
    answer = doors.ask("GET", "/metrics", [doors.bearer(token), "Connection: close"])
    assert answer.status == 200, (answer.status, answer.body())
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8", answer.headers
    return answer.body().decode()


def samples(text):
    """{name and labels: value}"""
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}


def use(doors):
    """Something of everything: a task, errors, names that nobody has, a batch, a WebSocket."""
    task = doors.owner.call("task.submit", prompt="say hello")["taskId"]
    wait_until("it has ended", lambda: doors.owner.call("task.get", taskId=task)["completedAt"])
    for method in ('made_up{by="a stranger"}', "made.up\n# HELP x", "task.get"):
        try:
            doors.owner.call(method)
        except Refused:
            pass
    doors.owner.send([{"jsonrpc": "2.0", "id": "a", "method": "ping"}, {"jsonrpc": "2.0", "method": "ping"}])
    while doors.owner.receive() is None:
        pass
    doors.rpc("ping")
    return WebSocket(doors.ask("GET", "/ws", SOCKET + [doors.bearer()]))


def it_passes_promtool():
    if not shutil.which("promtool"):
        raise Skipped("needs promtool, of the package prometheus")
    with Doors() as doors:
        use(doors)
        done = subprocess.run(["promtool", "check", "metrics"], input=read(doors), text=True, capture_output=True, timeout=PATIENCE)
        assert done.returncode == 0 and not done.stderr.strip(), done.stderr


def it_counts():
    with Doors() as doors:
        before = samples(read(doors))
        socket = use(doors)
        after = samples(read(doors))

        def grew(name):
            return after.get(name, 0) - before.get(name, 0)

        assert grew('weft_rpc_request_duration_seconds_count{method="task.submit"}') == 1
        assert grew('weft_rpc_request_duration_seconds_count{method="unknown"}') == 2
        assert grew('weft_rpc_method_errors_total{method="task.get"}') == 1
        assert grew('weft_rpc_errors_total{code="-32601",reason="methodNotFound"}') == 2
        assert grew("weft_rpc_batches_total") == 1
        assert grew('weft_rpc_method_notifications_total{method="ping"}') == 1
        assert grew("weft_tasks_submitted_total") == 1
        assert grew('weft_tasks_ended_total{state="completed"}') == 1
        assert grew("weft_task_wait_seconds_count") == 1 and grew("weft_task_duration_seconds_count") == 1
        assert grew("weft_store_sync_seconds_count") > 0 and grew("weft_store_events_total") >= 3
        assert grew("weft_agent_processes_started_total") == 1
        assert grew("weft_loop_delay_seconds_count") > 0
        assert after['weft_connections{transport="ws"}'] == 1 and after['weft_connections{transport="unix"}'] == 1, after
        assert after["process_resident_memory_bytes"] > 1 << 20
        assert not any("made" in name or "stranger" in name for name in after)
        assert socket.call("ping")["pong"]


def histograms_add_up():
    """Buckets never fall, and the last one is the count."""
    with Doors() as doors:
        use(doors)
        found = samples(read(doors))
        for name, value in found.items():
            if "_bucket" not in name or 'le="+Inf"' not in name:
                continue
            labels = name.replace("_bucket", "_count").replace(',le="+Inf"', "").replace('{le="+Inf"}', "")
            assert found[labels] == value, name
        rising = {}
        for name, value in found.items():
            if "_bucket" in name:
                series = re.sub(r',?le="[^"]*"', "", name)
                assert value >= rising.get(series, 0), name
                rising[series] = value


def the_scope_is_needed():
    with Doors() as doors:
        reader, figures = doors.give("reader", "read work admin exec"), doors.give("figures", "metrics")
        assert doors.ask("GET", "/metrics").status == 401
        assert doors.ask("GET", "/metrics", [doors.bearer(reader)]).status == 403
        assert samples(read(doors, figures))
        assert doors.rpc("metrics.get", token=reader)["error"]["code"] == 403
        assert doors.rpc("metrics.get", token=figures)["result"]["metrics"]
        assert doors.rpc("task.stats", token=figures)["error"]["code"] == 403
        head = doors.ask("HEAD", "/metrics", [doors.bearer(figures), "Connection: close"])
        assert head.status == 200 and not head.body()
        assert doors.ask("POST", "/metrics", [doors.bearer(figures), "Connection: close"], "x").status in (404, 405)
    with Doors(auth="none") as doors:
        assert doors.ask("GET", "/metrics", ["Connection: close"]).status == 200
        assert doors.ask("GET", "/metrics", ["Connection: close"], host="evil.example").status in (403, 421)


def the_method_says_the_same():
    """In every dialect that a connection can speak."""
    with Doors() as doors:
        use(doors)
        text = read(doors)
        names = {line.split()[2]: line.split()[3] for line in text.splitlines() if line.startswith("# TYPE")}
        ways = [lambda **params: doors.owner.call("metrics.get", **params), lambda **params: doors.rpc("metrics.get", params)["result"]]
        for path in ("/ws", "/acp"):
            socket = WebSocket(doors.ask("GET", path, SOCKET + [doors.bearer()]))
            ways.append(lambda socket=socket, **params: socket.call("metrics.get", params))
        for way in ways:
            got = way()
            assert {one["name"]: one["type"] for one in got["metrics"]} == names, got
            few = way(prefix="weft_store_")["metrics"]
            assert few and all(one["name"].startswith("weft_store_") for one in few)
            assert way(prefix="nothing")["metrics"] == []
        for one in got["metrics"]:
            for sample in one["samples"]:
                if one["type"] == "histogram":
                    assert sum(count for _, count in sample["buckets"]) == sample["count"], one
                else:
                    assert isinstance(sample["value"], (int, float)), one


class Prometheus:
    """A real one that scrapes this hub every second, in a folder of its own."""

    def __init__(self, doors):
        if not shutil.which("prometheus"):
            raise Skipped("needs prometheus")
        self.folder = tempfile.mkdtemp(prefix="weft-prometheus-")
        self.port = free_port()
        with open(os.path.join(self.folder, "token"), "w") as file:
            file.write(doors.give("prometheus", "metrics"))
        with open(os.path.join(self.folder, "prometheus.yml"), "w") as file:
            json.dump({"global": {"scrape_interval": "1s"},
                       "scrape_configs": [{"job_name": "weft", "authorization": {"credentials_file": os.path.join(self.folder, "token")},
                                           "static_configs": [{"targets": [f"127.0.0.1:{doors.port('http')}"]}]}]}, file)
        self.process = subprocess.Popen(["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                                         f"--web.listen-address=127.0.0.1:{self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def get(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode()}") from error
        except OSError:
            return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


def queries():
    with open(os.path.join(SOURCE, "packaging", "grafana-weft.json")) as file:
        board = json.load(file)
    return [target["expr"].replace("$instance", ".*").replace("$__rate_interval", "10s") for panel in board["panels"] for target in panel["targets"]]


def prometheus_scrapes_it():
    with Doors() as doors, Prometheus(doors) as prometheus:
        use(doors)
        wait_until("it is scraped", lambda: (prometheus.get("query", query='up{job="weft"} == 1') or {}).get("result"))
        names = wait_until("a task is seen", lambda: (prometheus.get("query", query="weft_tasks_submitted_total == 1") or {})["result"]
                           and prometheus.get("label/__name__/values"))
        for query in queries():
            prometheus.get("query", query=query)
            for name in re.findall(r"\b(?:weft|process)_[a-z_]+", query):
                assert name in names, f"{name} in {query}"
        metadata = prometheus.get("targets/metadata", match_target='{job="weft"}')
        assert {one["metric"]: one["type"] for one in metadata}["weft_rpc_request_duration_seconds"] == "histogram"


main([it_passes_promtool, it_counts, histograms_add_up, the_scope_is_needed, the_method_says_the_same, prometheus_scrapes_it])
