/* Terminals that agents have open now: who may read sees what they print, people type into them. They are gone with the turn
 * of their task; what they printed is in its session then. */
#include <errno.h>
#include <string.h>

#include "hub_methods.h"
#include "reply.h"
#include "terminal.h"
#include "write.h"

#define OUTPUT_DEFAULT 16384
#define LARGEST_SIDE 1000 /* columns or rows; larger than any screen */

/* ---- showing ---- */

static weft_val terminal_val(const weft_open_terminal *one, weft_member room[9]) {
    const weft_process_end *end = weft__terminal_end(one->terminal);
    weft_process_size size = weft__terminal_size(one->terminal);
    room[0] = (weft_member){"id", weft_str(one->id)};
    room[1] = (weft_member){"taskId", weft_str(one->task)};
    room[2] = (weft_member){"sessionId", weft_str(one->session)};
    room[3] = (weft_member){"command", weft_str(one->command)};
    room[4] = (weft_member){"running", weft_bool(!end)};
    room[5] = (weft_member){"cols", weft_int(size.cols)};
    room[6] = (weft_member){"rows", weft_int(size.rows)};
    room[7] = (weft_member){"exitCode", end && end->exit_code >= 0 ? weft_int(end->exit_code) : weft_none()};
    room[8] = (weft_member){"signal", end && end->signal ? weft_int(end->signal) : weft_none()};
    return weft_obj(room, 9);
}

struct terminals {
    const char *sessionId;
};
const weft_param weft__hub_terminals_params[] = {
    {"sessionId", WEFT_PARAM_str, offsetof(struct terminals, sessionId), WEFT_NULLABLE, "only those of this session"},
    WEFT_END(struct terminals),
};

static int write_terminals(weft_buf *out, const weft_hub *hub, const char *session) {
    weft_open_terminal one;
    weft_member room[9];
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    bool first = true;
    for (size_t n = 0; r >= 0 && weft__terminal_nth(hub->engine, n, &one); n++) {
        if (session && strcmp(session, one.session) != 0)
            continue;
        weft_val value = terminal_val(&one, room);
        r = first ? 0 : weft__buf_put(out, hub->alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = weft__write_val(out, hub->alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__hub_terminals(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct terminals *in = weft_req_params(req);
    weft_buf out = {0};
    (void) params;
    int r = write_terminals(&out, hub, in->sessionId);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"terminals", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* ---- one of them ---- */

struct one_terminal {
    const char *terminalId, *text;
    int64_t bytes, cols, rows;
};
#define WHICH                                                                                                               \
    {                                                                                                                       \
        "terminalId", WEFT_PARAM_str, offsetof(struct one_terminal, terminalId), WEFT_REQUIRED | WEFT_NONEMPTY,             \
            "which terminal"                                                                                                \
    }
const weft_param weft__hub_terminal_get_params[] = {
    WHICH,
    {"bytes", WEFT_PARAM_int, offsetof(struct one_terminal, bytes), WEFT_NULLABLE,
     "of the end of what it printed: 16384 when absent, at most 1048576"},
    WEFT_END(struct one_terminal),
};
const weft_param weft__hub_terminal_write_params[] = {
    WHICH,
    {"text", WEFT_PARAM_str, offsetof(struct one_terminal, text), WEFT_REQUIRED,
     "what to type: \"\\n\" is Enter, \"\\u0003\" is Ctrl-C"},
    WEFT_END(struct one_terminal),
};
const weft_param weft__hub_terminal_resize_params[] = {
    WHICH,
    {"cols", WEFT_PARAM_int, offsetof(struct one_terminal, cols), WEFT_REQUIRED, "columns, 1 to 1000"},
    {"rows", WEFT_PARAM_int, offsetof(struct one_terminal, rows), WEFT_REQUIRED, "rows, 1 to 1000"},
    WEFT_END(struct one_terminal),
};

static int refuse_terminal(weft_req *req, const char *id, int r) {
    if (r == -ENOENT)
        return weft__reply_error(req, 404, "terminalNotFound", "There is no such terminal, or it is gone: %s", id);
    if (r == -EPIPE)
        return weft__reply_error(req, 409, "terminalEnded", "The program in %s has ended", id);
    if (r == -ENOBUFS)
        return weft__reply_error(req, 429, "terminalBusy", "The program in %s does not read what was typed before", id);
    return r;
}

int weft__hub_terminal_get(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct one_terminal *in = weft_req_params(req);
    weft_open_terminal one;
    weft_member room[9];
    bool truncated;
    weft_json bytes = weft_get(params, "bytes");
    if (!weft__terminal_find(hub->engine, in->terminalId, &one))
        return refuse_terminal(req, in->terminalId, -ENOENT);
    if (in->bytes < 0 || (uint64_t) in->bytes > WEFT_TERMINAL_OUTPUT)
        return weft__reply_invalid(req, "/bytes", "bytes must be from 0 to %zu", WEFT_TERMINAL_OUTPUT);
    size_t max = weft_typeof(&bytes) == WEFT_NUMBER ? (size_t) in->bytes : OUTPUT_DEFAULT;
    weft_bytes text = weft__terminal_text(one.terminal, max, &truncated);
    return weft_reply(req, WEFT_OBJ({"terminal", terminal_val(&one, room)}, {"output", weft_strn(text.data, text.len)},
                                    {"truncated", weft_bool(truncated)}));
}

int weft__hub_terminal_write(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct one_terminal *in = weft_req_params(req);
    weft_open_terminal one;
    (void) params;
    int r = weft__terminal_find(hub->engine, in->terminalId, &one)
                ? weft__terminal_type(one.terminal, (weft_bytes){in->text, strlen(in->text)})
                : -ENOENT;
    return r < 0 ? refuse_terminal(req, in->terminalId, r) : weft_reply(req, WEFT_OBJ({"written", weft_bool(true)}));
}

int weft__hub_terminal_resize(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct one_terminal *in = weft_req_params(req);
    weft_process_size size = {.cols = (unsigned short) in->cols, .rows = (unsigned short) in->rows};
    weft_open_terminal one;
    (void) params;
    if (in->cols < 1 || in->cols > LARGEST_SIDE)
        return weft__reply_invalid(req, "/cols", "cols must be from 1 to %d", LARGEST_SIDE);
    if (in->rows < 1 || in->rows > LARGEST_SIDE)
        return weft__reply_invalid(req, "/rows", "rows must be from 1 to %d", LARGEST_SIDE);
    int r = weft__terminal_find(hub->engine, in->terminalId, &one) ? weft__terminal_resize(one.terminal, size) : -ENOENT;
    return r < 0 ? refuse_terminal(req, in->terminalId, r) : weft_reply(req, WEFT_OBJ({"resized", weft_bool(true)}));
}
