/* Logging requests: a gate that only hears how they ended. */
#include "request_log.h"

/* An id and a name that nobody has are the caller's own words: what is longer is cut, so that a line stays one. */
#define MAX_ID 128
#define MAX_NAME 128

static weft_val logged_id(const weft_gate_outcome *outcome, char text[64]) {
    if (!outcome->id.len)
        return weft_null();
    if (outcome->id.len <= MAX_ID)
        return weft_raw(outcome->id.data, outcome->id.len);
    snprintf(text, 64, "(an id of %zu bytes)", outcome->id.len);
    return weft_str(text);
}

static void log_request(void *ctx, const weft_gate_outcome *outcome) {
    char id[64];
    size_t len = outcome->name.len < MAX_NAME ? outcome->name.len : MAX_NAME;
    const char *status = outcome->lost ? "lost" : outcome->code ? "error" : "success";
    weft__log_put_data(ctx, WEFT_LOG_INFO, outcome->notification ? "RPC Notification" : "RPC Request",
                       WEFT_OBJ({"method", weft_strn(outcome->name.data, len)}, {"id", logged_id(outcome, id)},
                                {"duration_ms", weft_num((double) outcome->duration_us / 1e3)}, {"status", weft_str(status)},
                                {"trace_id", weft_str_or_none(*outcome->trace_id ? outcome->trace_id : NULL)}));
}

weft_gate weft__request_log(weft_log *log) {
    return (weft_gate){.name = "requests", .after = log_request, .ctx = log};
}
