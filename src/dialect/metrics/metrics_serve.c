/* The figures on the wire: metrics.get, and GET /metrics. */
#include <string.h>

#include "metrics.h"
#include "path_gate.h"
#include "reply.h"

/* ---- metrics.get ---- */

struct metrics_query {
    const char *prefix;
};
const weft_param weft__hub_metrics_params[] = {
    {"prefix", WEFT_PARAM_str, offsetof(struct metrics_query, prefix), WEFT_NULLABLE, "only those whose names begin so"},
    WEFT_END(struct metrics_query),
};

int weft__hub_metrics_get(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct metrics_query *in = weft_req_params(req);
    weft_buf items = {0};
    char now[WEFT_STAMP];
    (void) params;
    int r = weft__buf_put(&items, hub->alloc, "[", 1);
    if (r >= 0)
        r = weft__metrics_write(hub, &weft__metrics_json, in->prefix ? in->prefix : "", &items);
    if (r >= 0)
        r = weft__buf_put(&items, hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"timestamp", weft_str(weft__stamp(weft__engine_now(hub->engine), now))},
                                     {"metrics", weft_raw(weft__buf_head(&items), weft__buf_len(&items))}));
    weft__buf_done(&items, hub->alloc);
    return r;
}

/* ---- /metrics ---- */

static void refuse_metrics(weft_http *http, int status, const char *text) {
    weft_http_answer(http, status, "application/json", (weft_bytes){text, strlen(text)});
}

static void on_metrics_route(weft_http *http, void *ctx) {
    const weft_hub *hub = ctx;
    weft_buf text = {0};
    if (!weft_has_scope(weft_http_identity(http), WEFT_METRICS)) {
        refuse_metrics(http, 403, "{\"error\":\"forbidden\",\"message\":\"This token may not read metrics\"}");
        return;
    }
    if (!weft__path_may(hub, http, "metrics.get"))
        return;
    if (weft__metrics_write(hub, &weft__metrics_prometheus, "", &text) < 0)
        refuse_metrics(http, 503, "{\"error\":\"outOfMemory\"}");
    else
        weft_http_answer_with(http, &(weft_http_answer_opts){.type = "text/plain; version=0.0.4; charset=utf-8",
                                                             .cache = "no-store",
                                                             .body = {weft__buf_head(&text), weft__buf_len(&text)}});
    weft__buf_done(&text, hub->alloc);
}

int weft__metrics_route(weft_hub *hub, weft_server *server) {
    return weft_server_route(server, "GET", "/metrics", on_metrics_route, hub);
}
