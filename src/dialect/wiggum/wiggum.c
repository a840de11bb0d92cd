/* Wiggum's table of methods. A connection speaks it at the endpoint /wiggum, or after wiggum/hello; the methods work on
 * every connection. */
#include "wiggum.h"

#include <string.h>

#include "reply.h"
#include "schemas.h"
#include "transport.h"

/* clang-format off */
#define S_DIAGNOSTIC S_OF( \
    S_IS("file", S_STRING) "," \
    S_IS("line", S_COUNT) "," \
    S_IS("column", S_COUNT) "," \
    S_IS("severity", "{\"enum\":[\"error\",\"warning\",\"info\"]}") "," \
    S_IS("message", S_STRING) "," \
    S_IS("code", S_STRING), \
    "\"severity\",\"message\"")

#define S_BUILT S_OF( \
    S_IS("buildId", S_STRING) "," \
    S_IS("kind", S_STRING) "," \
    S_IS("ok", S_TRUE) "," \
    S_IS("durationMs", S_COUNT) "," \
    S_IS("warnings", S_COUNT) "," \
    S_IS("diagnostics", S_LIST(S_DIAGNOSTIC)) "," \
    S_IS("output", S_STRING), \
    "\"buildId\",\"kind\",\"ok\",\"durationMs\",\"warnings\",\"diagnostics\",\"output\"")

#define S_LAST_BUILD S_OF( \
    S_IS("kind", S_STRING) "," \
    S_IS("configured", S_BOOL) "," \
    S_IS("state", "{\"enum\":[\"none\",\"running\",\"ok\",\"failed\"]}") "," \
    S_IS("buildId", S_STRING) "," \
    S_IS("by", S_STRING) "," \
    S_IS("startedAt", S_TIME_OR_NULL) "," \
    S_IS("endedAt", S_TIME_OR_NULL) "," \
    S_IS("durationMs", S_COUNT) "," \
    S_IS("exitCode", S_INTEGER) "," \
    S_IS("why", S_STRING) "," \
    S_IS("errors", S_COUNT) "," \
    S_IS("warnings", S_COUNT) "," \
    S_IS("diagnostics", S_LIST(S_DIAGNOSTIC)) "," \
    S_IS("truncated", S_BOOL) "," \
    S_IS("output", S_STRING), \
    "\"kind\",\"configured\",\"state\"")

#define S_GATED_MEMBERS \
    S_IS("taskId", S_STRING) "," \
    S_IS("state", "{\"enum\":[\"running\",\"completed\",\"failed\",\"cancelled\"]}") "," \
    S_IS("stopping", S_TRUE) "," \
    S_IS("prompt", S_STRING) "," \
    S_IS("agent", S_STRING) "," \
    S_IS("gates", S_LIST(S_STRING)) "," \
    S_IS("iteration", S_COUNT) "," \
    S_IS("maxIterations", S_COUNT) "," \
    S_IS("phase", "{\"enum\":[\"agent\",\"gates\"]}") "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("createdBy", S_STRING) "," \
    S_IS("createdAt", S_TIME_OR_NULL) "," \
    S_IS("endedAt", S_TIME_OR_NULL) "," \
    S_IS("reason", S_STRING) "," \
    S_IS("error", S_STRING) "," \
    S_IS("failedGate", S_STRING) "," \
    S_IS("seen", S_TRUE)
#define S_GATED_REQUIRED \
    "\"taskId\",\"state\",\"prompt\",\"gates\",\"iteration\",\"maxIterations\",\"createdAt\",\"endedAt\""
#define S_WHOLE_GATED S_OF( \
    S_GATED_MEMBERS "," \
    S_IS("iterations", S_LIST(S_OF( \
        S_IS("iteration", S_COUNT) "," \
        S_IS("taskId", S_STRING) "," \
        S_IS("passed", S_LIST(S_STRING)) "," \
        S_IS("failed", S_LIST(S_STRING)), \
        "\"iteration\",\"passed\",\"failed\""))) "," \
    S_IS("results", S_LIST(S_OF( \
        S_IS("gate", S_STRING) "," \
        S_IS("passed", "{\"type\":[\"boolean\",\"null\"]}") "," \
        S_IS("iteration", S_COUNT) "," \
        S_IS("exitCode", S_INTEGER) "," \
        S_IS("durationMs", S_COUNT) "," \
        S_IS("why", S_STRING) "," \
        S_IS("findings", S_LIST(S_DIAGNOSTIC)) "," \
        S_IS("output", S_STRING), \
        "\"gate\",\"passed\""))), \
    S_GATED_REQUIRED ",\"iterations\",\"results\"")

#define S_FETCHED S_OF( \
    S_IS("status", S_COUNT) "," \
    S_IS("headers", "{\"type\":\"object\",\"additionalProperties\":" S_STRING "}") "," \
    S_IS("body", S_STRING) "," \
    S_IS("encoding", "{\"const\":\"base64\"}"), \
    "\"status\",\"headers\",\"body\",\"encoding\"")
/* clang-format on */

#define NO_GATED                                                                                                            \
    { 404, "There is no such gated task", "gatedNotFound" }
#define TOO_MANY(what)                                                                                                      \
    { 429, what, "rateLimited" }
#define OVERFLOW                                                                                                            \
    {                                                                                                                       \
        WIGGUM_CONTEXT_OVERFLOW, "The prompt is longer than the agent's context_limit, or its context is full",             \
            "contextOverflow"                                                                                               \
    }
#define BAD_URL                                                                                                             \
    { WIGGUM_NAVIGATION_FAILED, "The URL is none, or of another origin", "navigationFailed" }

static const weft_error_row no_errors[] = {WEFT_ERROR_PARAMS, {0}};
static const weft_error_row build_errors[] = {{WIGGUM_BUILD_FAILED, "The build failed", "buildFailed"},
                                              {404, "No build is configured", "buildNotConfigured"},
                                              TOO_MANY("Too many wait for this build"),
                                              WEFT_ERROR_STOPPING,
                                              WEFT_ERROR_STORAGE,
                                              {0}};
static const weft_error_row send_errors[] = {
    WEFT_ERROR_PARAMS,
    {WEFT_INVALID_PARAMS, "The program of a gate is not there", "gateUnavailable"},
    WEFT_ERROR_AGENT,
    OVERFLOW,
    TOO_MANY("Too many gated tasks run"),
    {409, "The idempotency key was used before, for a task with other params", "idempotencyKeyReused"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0}};
static const weft_error_row cancel_errors[] = {WEFT_ERROR_PARAMS,   WEFT_ERROR_AGENT,   NO_GATED,
                                               WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row await_errors[] = {
    WEFT_ERROR_PARAMS,
    NO_GATED,
    {WIGGUM_GATE_FAILED, "A gate has not passed", "gateFailed"},
    {WIGGUM_PERMISSION_DENIED, "A permission was denied", "permissionDenied"},
    {WIGGUM_TASK_CANCELLED, "The task was cancelled", "taskCancelled"},
    OVERFLOW,
    {WEFT_INTERNAL_ERROR, "The agent failed; data.reason says how, as a task has it", "taskFailed"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row get_errors[] = {WEFT_ERROR_PARAMS, NO_GATED, {0}};
static const weft_error_row fetch_errors[] = {WEFT_ERROR_PARAMS,
                                              BAD_URL,
                                              {WIGGUM_PREVIEW_LOAD_FAILED, "There is no index.html", "previewLoadFailed"},
                                              TOO_MANY("Too many files are being read"),
                                              {0}};
static const weft_error_row navigate_errors[] = {WEFT_ERROR_PARAMS, BAD_URL, WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row page_errors[] = {
    WEFT_ERROR_PARAMS, TOO_MANY("The pages say too much"), WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};

int weft__wiggum_hello(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_OBJ({"dialect", weft_str("wiggum")}));
}

static const weft_method methods[] = {
    {.name = "wiggum/hello",
     .handler = weft__wiggum_hello,
     .params = weft__no_params,
     .help = "be told builds, gated tasks and the preview on this connection, and be asked what agents want to know",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("dialect", S_STRING), "\"dialect\""),
     .errors = no_errors,
     .flags = WEFT_DECIDES},
    {.name = "build",
     .handler = weft__wiggum_build,
     .params = weft__no_params,
     .help = "build the project by build.command; whoever asks while it runs gets the same result",
     .scope = WEFT_WORK,
     .result = S_BUILT,
     .errors = build_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "buildBackend",
     .handler = weft__wiggum_build_backend,
     .params = weft__no_params,
     .help = "the same for its backend, by build.backend",
     .scope = WEFT_WORK,
     .result = S_BUILT,
     .errors = build_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "build.last",
     .handler = weft__wiggum_last,
     .params = weft__wiggum_last_params,
     .help = "what came of the last build, or that it runs",
     .scope = WEFT_READ,
     .result = S_LAST_BUILD,
     .errors = no_errors},
    {.name = "sendTask",
     .handler = weft__wiggum_send,
     .params = weft__wiggum_send_params,
     .help = "let an agent work until gates pass: prompt, gates, and again with what they found",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("taskId", S_STRING), "\"taskId\""),
     .errors = send_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "cancelTask",
     .handler = weft__wiggum_cancel,
     .params = weft__wiggum_id_params,
     .help = "end a gated task; answered when all of it has ended",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("taskId", S_STRING) "," S_IS("cancelled", S_BOOL) "," S_IS("state", S_STRING),
                    "\"taskId\",\"cancelled\",\"state\""),
     .errors = cancel_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "awaitTask",
     .handler = weft__wiggum_await,
     .params = weft__wiggum_id_params,
     .help = "answered when a gated task has ended: with its result, or with the error that ended it",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("taskId", S_STRING) "," S_IS("state", S_STRING) "," S_IS("iterations",
                                                                                  S_COUNT) "," S_IS("sessionId", S_STRING),
                    "\"taskId\",\"state\",\"iterations\""),
     .errors = await_errors},
    {.name = "gated.get",
     .handler = weft__wiggum_get,
     .params = weft__wiggum_id_params,
     .help = "one gated task, with its iterations and what its gates said",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("task", S_WHOLE_GATED), "\"task\""),
     .errors = get_errors},
    {.name = "gated.list",
     .handler = weft__wiggum_list,
     .params = weft__wiggum_list_params,
     .help = "gated tasks, the newest first, and the names of the gates that are configured",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("tasks", S_LIST(S_OF(S_GATED_MEMBERS, S_GATED_REQUIRED))) "," S_IS("gates", S_LIST(S_STRING)),
                    "\"tasks\",\"gates\""),
     .errors = no_errors},
    {.name = "fetch",
     .handler = weft__wiggum_fetch,
     .params = weft__wiggum_fetch_params,
     .help = "a file of the preview, as a browser would get it",
     .scope = WEFT_READ,
     .result = S_FETCHED,
     .errors = fetch_errors},
    {.name = "navigate",
     .handler = weft__wiggum_navigate,
     .params = weft__wiggum_url_params,
     .help = "let the preview's pages go to a path",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("url", S_STRING), "\"url\""),
     .errors = navigate_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "refresh",
     .handler = weft__wiggum_refresh,
     .params = weft__no_params,
     .help = "let the preview's pages load anew",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = page_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "console",
     .handler = weft__wiggum_console,
     .params = weft__wiggum_console_params,
     .help = "a page of the preview logged something: kept, and told to the others",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = page_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "updateNavigationState",
     .handler = weft__wiggum_state,
     .params = weft__wiggum_state_params,
     .help = "a page of the preview has navigated",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = page_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "error",
     .handler = weft__wiggum_error,
     .params = weft__wiggum_error_params,
     .help = "something went wrong in a page of the preview",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = page_errors,
     .flags = WEFT_ROW_CHANGES},
    {0},
};

static bool is_wiggum_endpoint(const weft_scheme *scheme, const char *path) {
    return (scheme->flags & WEFT_UPGRADES) && strcmp(path, "/wiggum") == 0;
}

const weft_dialect weft__wiggum = {
    .name = "wiggum", .methods = methods, .endpoint = is_wiggum_endpoint, .render = weft__wiggum_render};
