/* The two WebSocket framings: one for each side. Decoding is in websocket_in.c, encoding in websocket_out.c. */
#include "websocket.h"

#include <errno.h>

#define MIN_WINDOW 9 /* zlib cannot make a raw stream with 8 */
#define MAX_WINDOW 15

static int ws_init(weft_ws *ws, const weft_framing_opts *opts, bool client) {
    if (opts->deflate && (!opts->zip || opts->deflate < MIN_WINDOW || opts->deflate > MAX_WINDOW))
        return -EINVAL;
    ws->alloc = opts->alloc;
    ws->zip = opts->zip;
    ws->window = opts->deflate;
    ws->client = client;
    ws->masks.key = opts->seed;
    return 0;
}

static int init_server(void *state, const weft_framing_opts *opts) {
    return ws_init(state, opts, false);
}

static int init_client(void *state, const weft_framing_opts *opts) {
    return ws_init(state, opts, true);
}

static void ws_done(void *state) {
    weft_ws *ws = state;
    weft__buf_done(&ws->message, ws->alloc);
}

bool weft__ws_code_valid(int code) {
    /* Those of the protocol and its registry that may be sent, those for libraries, those for programs. */
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

const weft_framing weft_websocket = {
    .name = "websocket",
    .state_size = sizeof(weft_ws),
    .flags = WEFT_FRAMING_MULTI,
    .init = init_server,
    .done = ws_done,
    .decode = weft__ws_decode,
    .begin = weft__ws_begin,
    .end = weft__ws_end,
    .control = weft__ws_control,
};

const weft_framing weft_websocket_client = {
    .name = "websocket-client",
    .state_size = sizeof(weft_ws),
    .flags = WEFT_FRAMING_MULTI,
    .init = init_client,
    .done = ws_done,
    .decode = weft__ws_decode,
    .begin = weft__ws_begin,
    .end = weft__ws_end,
    .control = weft__ws_control,
};
