#!/usr/bin/python3
"""Debian's python3-websockets as client and as server, with and without compression. Closes with "N passed, N failed, N skipped"."""
import asyncio
import json
import os
import re
import subprocess
import sys
import traceback

try:
    import websockets
    from websockets.extensions import permessage_deflate
except ImportError:
    print("skip websockets.py: python3-websockets is not installed (tools/install.sh test)")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BUILD = os.environ.get("BUILD", "build")
PATIENCE = 120
MEGABYTE = 1 << 20
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def deflate(**settings):
    return [permessage_deflate.ClientPerMessageDeflateFactory(**settings)]


KINDS = {
    "plain": {"compression": None},
    "compressed": {"compression": "deflate"},
    "small windows": {"extensions": deflate(server_max_window_bits=9, client_max_window_bits=9)},
    "no context": {"extensions": deflate(server_no_context_takeover=True, client_no_context_takeover=True)},
}


def message(method, params=None, id=1):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params if params is not None else []})


async def ask(ws, method, params=None, id=1):
    await ws.send(message(method, params, id))
    return json.loads(await ws.recv())


async def each_kind(url, talk):
    for name, options in KINDS.items():
        try:
            async with websockets.connect(url, max_size=None, **options) as ws:
                await talk(ws)
        except Exception as error:
            raise AssertionError(f"{name}: {error!r}") from error


# ---- Weft serves ----


@test
async def serves_calls_and_errors(url):
    async def talk(ws):
        answer = await ask(ws, "echo", ["h\u00e9llo \U0001f600"], "an id")
        assert answer == {"jsonrpc": "2.0", "id": "an id", "result": ["h\u00e9llo \U0001f600"]}, answer
        assert (await ask(ws, "no.such"))["error"]["code"] == -32601
        await ws.send("{")
        assert json.loads(await ws.recv())["error"]["code"] == -32700

    await each_kind(url, talk)


@test
async def serves_a_megabyte_both_ways(url):
    async def talk(ws):
        assert (await ask(ws, "length", ["\u00e9" * (MEGABYTE // 4)]))["result"] == MEGABYTE // 2
        assert len((await ask(ws, "big", {"size": MEGABYTE}))["result"]) == MEGABYTE
        text = "".join(chr(32 + i * i % 90) for i in range(100000)).replace("\\", "/").replace('"', "'")
        assert (await ask(ws, "echo", [text]))["result"] == [text]

    await each_kind(url, talk)


@test
async def serves_binary_and_fragments(url):
    async def talk(ws):
        await ws.send(message("echo", [1]).encode())
        assert json.loads(await ws.recv())["result"] == [1]
        text = message("echo", ["\u00e9t\u00e9"])
        await ws.send(letter for letter in text)
        assert json.loads(await ws.recv())["result"] == ["\u00e9t\u00e9"]

    await each_kind(url, talk)


@test
async def serves_pings_and_closes(url):
    async with websockets.connect(url) as ws:
        await (await ws.ping(b"hello"))
        await ws.close(4000, "bye")
        assert ws.close_code == 4000, ws.close_code
    async with websockets.connect(url) as ws:
        assert (await ask(ws, "hang_up"))["result"] == "bye"
        await ws.wait_closed()
        assert (ws.close_code, ws.close_reason) == (4001, "as you wished"), (ws.close_code, ws.close_reason)


@test
async def serves_many_at_once(url):
    async def one(n):
        async with websockets.connect(url) as ws:
            for i in range(20):
                answer = await ask(ws, "echo", [n, i], i)
                assert answer["result"] == [n, i] and answer["id"] == i, answer

    await asyncio.gather(*(one(n) for n in range(20)))


# ---- Weft calls ----


async def answer_all(ws, *_):
    async for text in ws:
        request = json.loads(text)
        params = request.get("params")
        if request["method"] == "close":
            await ws.close(1011, "no more")
            return
        result = "x" * params["size"] if request["method"] == "big" else params
        reply = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})
        if request["method"] == "fragments":
            await ws.send(letter for letter in reply)
        else:
            await ws.send(reply.encode() if request["method"] == "binary" else reply)


async def weft(*args):
    child = await asyncio.create_subprocess_exec(
        f"{BUILD}/tests/interop_client", *args, stdout=subprocess.PIPE, limit=16 * MEGABYTE
    )
    out, _ = await asyncio.wait_for(child.communicate(), PATIENCE)
    return [json.loads(line) for line in out.splitlines()]


def server_deflate(**settings):
    return [permessage_deflate.ServerPerMessageDeflateFactory(**settings)]


@test
async def calls(_):
    kinds = {
        "plain": {"compression": None},
        "compressed": {"compression": "deflate"},
        "small windows": {"extensions": server_deflate(server_max_window_bits=9)},
        "no context": {"extensions": server_deflate(server_no_context_takeover=True, client_no_context_takeover=True)},
    }
    for name, options in kinds.items():
        async with websockets.serve(answer_all, "127.0.0.1", 0, max_size=None, **options) as server:
            target = "ws://127.0.0.1:%d/" % server.sockets[0].getsockname()[1]
            lines = await weft(target, "echo", '["h\u00e9"]', "big", '{"size":1048576}', "binary", "[1]", "fragments", '["\u00e9"]')
            results = [line.get("result") for line in lines]
            assert results == [["h\u00e9"], "x" * MEGABYTE, [1], ["\u00e9"]], (name, str(lines)[:300])
            assert "failed" in (await weft(target, "close"))[0], name


# ---- running ----


def start():
    child = subprocess.Popen([f"{BUILD}/tests/interop_server", "ws://127.0.0.1:0/ws"], stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        found = re.match(r"listening on (ws://.*)", line)
        if found:
            return child, found[1]
    raise RuntimeError("the server did not start")


def main():
    child, url = start()
    passed = failed = 0
    for run in TESTS:
        try:
            asyncio.run(asyncio.wait_for(run(url), PATIENCE))
            passed += 1
        except Exception:
            failed += 1
            print(f"FAIL {run.__name__}")
            print("  " + "\n  ".join(traceback.format_exc().splitlines()[-6:]))
    child.terminate()
    child.wait()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main())
