/* build and buildBackend: run the configured command and answer with what came of it. A caller says that, never what runs.
 */
#include <errno.h>
#include <string.h>

#include "reply.h"
#include "wiggum.h"

struct last_params {
    const char *kind;
};
const weft_param weft__wiggum_last_params[] = {
    {"kind", WEFT_PARAM_str, offsetof(struct last_params, kind), WEFT_NULLABLE, "frontend (when absent) or backend"},
    WEFT_END(struct last_params),
};

static weft_val raw_list(const char *json) {
    return weft_raw(json, strlen(json));
}

static void on_built(void *ctx, int r, const weft_build *build) {
    weft_req *req = ctx;
    char id[WEFT_BUILD_ID];
    if (r < 0) {
        weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r);
        return;
    }
    weft__build_id(build, id);
    weft_val exit_code = build->exit_code >= 0 ? weft_int(build->exit_code) : weft_none();
    if (build->state == WEFT_BUILD_OK)
        weft__reply_val(req, WEFT_OBJ({"buildId", weft_str(id)}, {"kind", weft_str(weft__build_kinds[build->kind])},
                                      {"ok", weft_bool(true)}, {"durationMs", weft_int(build->duration_ms)},
                                      {"warnings", weft_uint(build->warnings)},
                                      {"diagnostics", raw_list(build->diagnostics)}, {"output", weft_str(build->output)}));
    else if (req)
        weft_fail(req, WIGGUM_BUILD_FAILED, *build->why ? build->why : "The build failed",
                  WEFT_OBJ({"reason", weft_str("buildFailed")}, {"buildId", weft_str(id)},
                           {"kind", weft_str(weft__build_kinds[build->kind])}, {"exitCode", exit_code},
                           {"durationMs", weft_int(build->duration_ms)}, {"errors", weft_uint(build->errors)},
                           {"warnings", weft_uint(build->warnings)}, {"diagnostics", raw_list(build->diagnostics)},
                           {"truncated", build->truncated ? weft_bool(true) : weft_none()},
                           {"output", weft_str(build->output)}));
}

static int start_build(weft_req *req, const weft_hub *hub, weft_build_kind kind) {
    char who[WEFT_WHO];
    const char *key = kind == WEFT_BUILD_FRONTEND ? "build.command" : "build.backend";
    int r = hub->builds ? weft__builds_start(hub->builds, kind, weft__who(weft_req_identity(req), who), on_built,
                                             weft__req_keep(req))
                        : -ENOENT;
    switch (r) {
    case 0:
        return 0;
    case -ENOENT:
        return weft__reply_error(req, 404, "buildNotConfigured", "No build is configured: set %s", key);
    case -EUSERS:
        return weft__reply_error(req, 429, "rateLimited", "Too many wait for this build");
    default:
        return weft__reply_failure(weft__req_keep(req), r);
    }
}

int weft__wiggum_build(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return start_build(req, ctx, WEFT_BUILD_FRONTEND);
}

int weft__wiggum_build_backend(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return start_build(req, ctx, WEFT_BUILD_BACKEND);
}

int weft__wiggum_last(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct last_params *in = weft_req_params(req);
    bool backend = in->kind && strcmp(in->kind, "backend") == 0;
    weft_build_kind kind = backend ? WEFT_BUILD_BACKEND : WEFT_BUILD_FRONTEND;
    char id[WEFT_BUILD_ID], started[WEFT_STAMP], ended[WEFT_STAMP];
    (void) params;
    if (in->kind && !backend && strcmp(in->kind, "frontend") != 0)
        return weft__reply_invalid(req, "/kind", "kind must be frontend or backend");
    const weft_build *is = hub->builds ? weft__builds_last(hub->builds, kind) : NULL;
    bool configured = hub->builds && weft__builds_configured(hub->builds, kind);
    if (!is)
        return weft__reply_val(weft__req_keep(req),
                               WEFT_OBJ({"kind", weft_str(weft__build_kinds[kind])}, {"configured", weft_bool(configured)},
                                        {"state", weft_str("none")}));
    return weft__reply_val(
        weft__req_keep(req),
        WEFT_OBJ({"kind", weft_str(weft__build_kinds[kind])}, {"configured", weft_bool(configured)},
                 {"state", weft_str(weft__build_states[is->state])}, {"buildId", weft_str(weft__build_id(is, id))},
                 {"by", *is->by ? weft_str(is->by) : weft_none()}, {"startedAt", weft__stamp_val(is->started_ms, started)},
                 {"endedAt", weft__stamp_val(is->ended_ms, ended)}, {"durationMs", weft_int(is->duration_ms)},
                 {"exitCode", is->exit_code >= 0 ? weft_int(is->exit_code) : weft_none()},
                 {"why", *is->why ? weft_str(is->why) : weft_none()}, {"errors", weft_uint(is->errors)},
                 {"warnings", weft_uint(is->warnings)}, {"diagnostics", raw_list(is->diagnostics)},
                 {"truncated", weft_bool(is->truncated)}, {"output", weft_str(is->output)}));
}
