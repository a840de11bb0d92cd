/* What a daemon answers before it has anything else to do. */
#include "clock.h"
#include "serve.h"

static int ping(weft_req *req, const weft_json *params, void *ctx) {
    char now[WEFT_CLOCK_TEXT];
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_OBJ({"pong", weft_bool(true)}, {"timestamp", weft_str(weft__clock_text(now))}));
}

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static const weft_param none[] = {{0}};

const weft_method weft__serve_methods[] = {
    {.name = "ping",
     .handler = ping,
     .params = none,
     .help = "answer that the daemon is there, and what time it has",
     .result = "{\"type\":\"object\",\"properties\":{\"pong\":{\"const\":true},\"timestamp\":{\"type\":\"string\","
               "\"format\":\"date-time\"}},\"required\":[\"pong\",\"timestamp\"]}"},
    {.name = "echo", .handler = echo, .help = "answer the params as they came"},
    {0},
};
