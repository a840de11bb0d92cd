#!/usr/bin/python3
"""A binding through the shared library, with nothing but ctypes: a server whose handlers are Python functions, a client that calls
and hears notifications, a thread that posts. What another language needs is in the headers: structs whose sizes do not change."""
import ctypes as c
import json
import os
import sys
import threading

passed = failed = 0


def check(what, is_, want):
    global passed, failed
    if is_ == want:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {what}\n  is   {is_!r}\n  want {want!r}")


path = os.path.join(os.environ["BUILD"], "libweft.so")
if not os.path.exists(path):
    print("skip binding: there is no shared library\n0 passed, 0 failed, 1 skipped")
    sys.exit(0)
weft = c.CDLL(path)


class Json(c.Structure):
    _fields_ = [("text", c.c_void_p), ("len", c.c_size_t), ("doc", c.c_void_p)]


class Val(c.Structure):
    _fields_ = [("kind", c.c_uint), ("len", c.c_uint32), ("text", c.c_char_p)]


HANDLER = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Json), c.c_void_p)
NOTIFIED = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.POINTER(Json), c.c_void_p)
RUN = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)


class Method(c.Structure):
    _fields_ = [("name", c.c_char_p), ("handler", HANDLER), ("params", c.c_void_p), ("help", c.c_char_p), ("scope", c.c_char_p),
                ("result", c.c_char_p), ("errors", c.c_void_p), ("flags", c.c_uint), ("ctx", c.c_void_p), ("defaults", c.c_void_p),
                ("timeout_ms", c.c_int64), ("params_schema", c.c_char_p), ("forms", c.c_void_p), ("description", c.c_char_p),
                ("examples", c.c_void_p), ("room", c.c_uint64 * 6)]


class Limits(c.Structure):
    _fields_ = [("values", c.c_size_t * 9), ("times", c.c_int64 * 5), ("room", c.c_uint64 * 8)]


class ServiceOpts(c.Structure):
    _fields_ = [("methods", c.POINTER(Method)), ("ctx", c.c_void_p), ("title", c.c_char_p), ("version", c.c_char_p),
                ("description", c.c_char_p), ("notifications", c.c_void_p), ("limits", Limits), ("rest", c.c_uint64 * 24)]


class Errand(c.Structure):
    _fields_ = [("run", RUN), ("ctx", c.c_void_p), ("next", c.c_void_p), ("waiting", c.c_int), ("room", c.c_uint64 * 2)]


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("message", c.c_char_p), ("data", Json)]


class Answer(c.Structure):
    _fields_ = [("result", c.POINTER(Json)), ("error", c.POINTER(Error)), ("ours", c.c_uint64 * 20)]


ANSWERED = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.POINTER(Answer), c.c_void_p)


class CallOpts(c.Structure):
    _fields_ = [("on_answer", ANSWERED), ("rest", c.c_uint64 * 20)]


weft.weft_strerror.restype = c.c_char_p
weft.weft_version.restype = c.c_char_p
for name in ("weft_reply", "weft_notify", "weft_call_start"):
    getattr(weft, name).restype = c.c_int
weft.weft_reply.argtypes = [c.c_void_p, Val]
weft.weft_fail.argtypes = [c.c_void_p, c.c_int, c.c_char_p, Val]
weft.weft_req_peer.argtypes = [c.c_void_p]
weft.weft_req_peer.restype = c.c_void_p
weft.weft_notify.argtypes = [c.c_void_p, c.c_char_p, Val]
weft.weft_call_start.argtypes = [c.c_void_p, c.c_char_p, Val, c.POINTER(CallOpts), c.c_void_p]
weft.weft_loop_post.argtypes = [c.c_void_p, c.POINTER(Errand)]
for name in ("weft_loop_run", "weft_loop_stop", "weft_loop_free", "weft_server_free", "weft_peer_free", "weft_service_unref"):
    getattr(weft, name).argtypes = [c.c_void_p]

kept = []  # what the library borrows must not be collected


def val(value):
    text = json.dumps(value).encode()
    kept.append(text)
    return Val(7, len(text), text)  # WEFT_VAL_RAW


def read(value):
    at = value.contents if hasattr(value, "contents") else value
    return json.loads(c.string_at(at.text, at.len)) if at.text else None


def made(function, *args):
    out = c.c_void_p()
    r = function(*args, c.byref(out))
    assert r >= 0, weft.weft_strerror(r)
    return out


@HANDLER
def add(req, params, ctx):
    numbers = read(params)
    weft.weft_notify(weft.weft_req_peer(req), b"adding", val({"count": len(numbers)}))
    return weft.weft_reply(req, val(sum(numbers)))


later = []


@HANDLER
def slow(req, params, ctx):
    """Answered by a thread, through the loop."""
    @RUN
    def answer(loop, ctx):
        weft.weft_reply(req, val("done"))
        later.append(weft.weft_reply(req, val("again")))
    errand = Errand(run=answer)
    kept.extend([answer, errand])
    threading.Thread(target=lambda: weft.weft_loop_post(loop, c.byref(errand))).start()
    return 0


@HANDLER
def refuse(req, params, ctx):
    return weft.weft_fail(req, 7, b"no", val({"why": "because"}))


check("version", weft.weft_version().count(b"."), 2)
loop = made(weft.weft_loop_new, None)
rows = (Method * 4)(Method(name=b"add", handler=add), Method(name=b"slow", handler=slow), Method(name=b"refuse", handler=refuse), Method())
opts = ServiceOpts(methods=rows, title=b"From Python")
service = made(weft.weft_service_new, c.byref(opts))
server_opts = (c.c_uint64 * 64)()
server_opts[0] = service.value
server = made(weft.weft_server_new, loop, c.byref(server_opts))
check("listen", weft.weft_server_listen(server, b"mem:python", None), 0)

heard = []


@NOTIFIED
def on_notification(peer, method, params, data):
    heard.append((method, read(params)))


# Where a member is, the list in tests/abi says, which does not change.
where = {}
for line in open(os.path.join(os.environ["SOURCE"], "tests/abi/structs.txt")):
    name, number = line.split()
    if not line.startswith(" "):
        where[name] = {"": int(number)}
        last = where[name]
    else:
        last[name] = int(number)
check("a row is as large as its description here", c.sizeof(Method), where["weft_method"][""])
check("options", c.sizeof(ServiceOpts) >= where["weft_service_opts"][""], True)
connect_opts = (c.c_char * where["weft_connect_opts"][""])()
c.memmove(c.addressof(connect_opts) + where["weft_connect_opts"]["on_notification"],
          c.byref(c.cast(on_notification, c.c_void_p)), 8)
peer = c.c_void_p()
check("connect", weft.weft_connect_on(loop, b"mem:python", c.byref(connect_opts), c.byref(peer), None), 0)

answers = []


def call(method, params):
    @ANSWERED
    def on_answer(peer, r, answer, ctx):
        error = answer.contents.error if r == 0 else None
        if r < 0:
            answers.append(r)
        elif error:
            answers.append((error.contents.code, error.contents.message, read(error.contents.data)))
        else:
            answers.append(read(answer.contents.result))
        if len(answers) == 3:
            weft.weft_loop_stop(loop)
    opts = CallOpts(on_answer=on_answer)
    kept.extend([on_answer, opts])
    check(method, weft.weft_call_start(peer, method.encode(), val(params), c.byref(opts), None), 0)


call("add", [1, 2, 39])
call("refuse", {})
call("slow", {})
weft.weft_loop_run(loop)
check("answers", sorted(answers, key=str), sorted([42, (7, b"no", {"why": "because"}), "done"], key=str))
check("notification", heard, [(b"adding", {"count": 3})])
check("a second answer", [weft.weft_strerror(r) for r in later] and later[0] < 0, True)
check("a scalar is not sent", weft.weft_notify(peer, b"n", val(1)) < 0, True)
weft.weft_loop_free(loop)  # in the wrong order: it goes with the last
weft.weft_peer_free(peer)
weft.weft_server_free(server)
weft.weft_service_unref(service)
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed != 0)
