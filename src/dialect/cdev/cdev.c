/* cdev, as much of it as is needed to run and watch an agent: running and stopping an agent, its log and its status. */
#include "cdev.h"

#include <string.h>

#include "reply.h"
#include "schemas.h"

/* clang-format off */
#define S_CDEV_STATE "{\"enum\":[\"idle\",\"starting\",\"running\",\"stopping\"]}"

#define S_RUN S_OF( \
    S_IS("status", "{\"enum\":[\"started\",\"queued\"]}") "," \
    S_IS("session_id", S_STRING) "," \
    S_IS("agent_type", S_STRING) "," \
    S_IS("pid", S_COUNT) "," \
    S_IS("mode", "{\"enum\":[\"new\",\"continue\"]}"), \
    "\"status\",\"session_id\",\"agent_type\",\"mode\"")

#define S_CDEV_STATUS S_OF( \
    S_IS("session_id", S_STRING) "," \
    S_IS("agent_session_id", S_STRING) "," \
    S_IS("agent_state", S_CDEV_STATE) "," \
    S_IS("claude_state", S_CDEV_STATE) "," \
    S_IS("agent_type", S_STRING) "," \
    S_IS("connected_clients", S_COUNT) "," \
    S_IS("repo_path", S_STRING) "," \
    S_IS("repo_name", S_STRING) "," \
    S_IS("uptime_seconds", S_COUNT) "," \
    S_IS("version", S_STRING) "," \
    S_IS("watcher_enabled", S_BOOL) "," \
    S_IS("git_enabled", S_BOOL), \
    "\"agent_state\",\"claude_state\",\"connected_clients\",\"repo_path\",\"repo_name\",\"uptime_seconds\",\"version\"," \
    "\"watcher_enabled\",\"git_enabled\"")
/* clang-format on */

#define NO_SESSION                                                                                                          \
    { CDEV_NO_SESSION, "Session not found", "sessionNotFound" }

static const weft_error_row run_errors[] = {
    WEFT_ERROR_PARAMS,
    {CDEV_BUSY, "An agent is already running", "agentBusy"},
    {CDEV_FAILED, "Agent execution error", "agentFailed"},
    {CDEV_NO_AGENT, "Agent type not configured", "agentNotConfigured"},
    NO_SESSION,
    {409, "The idempotency key was used before, for a task with other params", "idempotencyKeyReused"},
    {413, "The prompt is too long", "tooLarge"},
    {429, "Too many tasks are waiting", "rateLimited"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row stop_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    {CDEV_IDLE, "No agent is currently running", "agentIdle"},
    NO_SESSION,
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row no_errors[] = {{0}};

static const weft_method methods[] = {
    {.name = "agent/run",
     .handler = weft__cdev_run,
     .params = weft__cdev_run_params,
     .help = "start an agent with a prompt; answered when its process is there",
     .scope = WEFT_WORK,
     .result = S_RUN,
     .errors = run_errors,
     .flags = WEFT_CHANGES},
    {.name = "agent/stop",
     .handler = weft__cdev_stop,
     .params = weft__cdev_stop_params,
     .help = "stop an agent",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("status", "{\"const\":\"stopped\"}"), "\"status\""),
     .errors = stop_errors,
     .flags = WEFT_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "status/get",
     .handler = weft__cdev_status,
     .params = weft__no_params,
     .help = "what the agent does, who is connected, where the project lies",
     .scope = WEFT_READ,
     .result = S_CDEV_STATUS,
     .errors = no_errors},
    {0},
};

/* Its server had one WebSocket. Where that lies is for whoever runs the hub to say. */
static bool is_cdev_endpoint(const char *scheme, const char *path) {
    return (strcmp(scheme, "ws") == 0 || strcmp(scheme, "wss") == 0) && strcmp(path, "/acp") != 0;
}

const weft_dialect weft__cdev = {.name = "cdev",
                                 .methods = methods,
                                 .endpoint = is_cdev_endpoint,
                                 .render = weft__cdev_render,
                                 .variants = weft__cdev_variants};
