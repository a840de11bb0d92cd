/* AIWG's daemon: its methods, their errors and what they answer. */
#include "aiwg.h"

#include <string.h>

#include "reply.h"
#include "schemas.h"
#include "transport.h"

/* clang-format off */
#define S_STATE "{\"enum\":[\"queued\",\"running\",\"completed\",\"failed\",\"cancelled\"]}"

#define S_TASK S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("prompt", S_STRING) "," \
    S_IS("agent", S_TEXT_OR_NULL) "," \
    S_IS("priority", S_INTEGER) "," \
    S_IS("state", S_STATE) "," \
    S_IS("createdAt", S_TIME) "," \
    S_IS("startedAt", S_TIME_OR_NULL) "," \
    S_IS("completedAt", S_TIME_OR_NULL) "," \
    S_IS("pid", S_PID_OR_NULL) "," \
    S_IS("result", S_TEXT_OR_NULL) "," \
    S_IS("error", S_TEXT_OR_NULL) "," \
    S_IS("output", S_STRING) "," \
    S_IS("metadata", S_OBJECT) "," \
    S_IS("outputTruncated", S_TRUE) "," \
    S_IS("stopReason", S_STRING) "," \
    S_IS("usage", S_OBJECT), \
    "\"id\",\"prompt\",\"agent\",\"priority\",\"state\",\"createdAt\",\"startedAt\",\"completedAt\",\"pid\",\"result\",\"error\"," \
    "\"output\",\"metadata\"")

#define S_AUTOMATION S_OF( \
    S_IS("enabled", S_BOOL) "," \
    S_IS("ruleCount", S_COUNT) "," \
    S_IS("configured", S_BOOL) "," \
    S_IS("rules", S_LIST(S_OBJECT)) "," \
    S_IS("recentExecutions", S_LIST(S_OBJECT)), \
    "\"enabled\",\"ruleCount\",\"rules\",\"recentExecutions\"")

#define S_RUNNING S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("prompt", S_STRING) "," \
    S_IS("agent", S_TEXT_OR_NULL) "," \
    S_IS("startedAt", S_TIME_OR_NULL) "," \
    S_IS("pid", S_PID_OR_NULL), \
    "\"id\",\"prompt\",\"agent\",\"startedAt\",\"pid\"")

#define S_WAITING S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("prompt", S_STRING) "," \
    S_IS("agent", S_TEXT_OR_NULL) "," \
    S_IS("priority", S_INTEGER), \
    "\"id\",\"prompt\",\"agent\",\"priority\"")

#define S_TASKS S_OF( \
    S_IS("running", S_LIST(S_RUNNING)) "," \
    S_IS("queued", S_LIST(S_WAITING)), \
    "\"running\",\"queued\"")

#define S_SUPERVISOR S_OF( \
    S_IS("running", S_COUNT) "," \
    S_IS("queued", S_COUNT) "," \
    S_IS("maxConcurrency", S_COUNT) "," \
    S_IS("tasks", S_TASKS), \
    "\"running\",\"queued\",\"maxConcurrency\",\"tasks\"")

#define S_WATCHER S_OF( \
    S_IS("enabled", S_BOOL) "," \
    S_IS("paths", "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"array\"}]}") "," \
    S_IS("events_received", S_COUNT) "," \
    S_IS("polling", S_TRUE) "," \
    S_IS("error", S_STRING), \
    "\"enabled\"")

#define S_SCHEDULER S_OF( \
    S_IS("enabled", S_BOOL) "," \
    S_IS("jobs", S_COUNT) "," \
    S_IS("last_fires", S_OBJECT) "," \
    S_IS("error", S_STRING), \
    "\"enabled\"")

#define S_SUBSYSTEMS S_OF( \
    S_IS("ipc", S_OF(S_IS("clients", S_COUNT), "\"clients\"")) "," \
    S_IS("supervisor", S_SUPERVISOR) "," \
    S_IS("automation", S_AUTOMATION) "," \
    S_IS("file_watcher", S_WATCHER) "," \
    S_IS("scheduler", S_SCHEDULER) "," \
    S_IS("messaging", S_OF(S_IS("enabled", S_BOOL), "\"enabled\"")) "," \
    S_IS("store", S_OF(S_IS("error", S_STRING) "," S_IS("skipped_events", S_COUNT), "")), \
    "\"ipc\",\"supervisor\",\"automation\",\"file_watcher\",\"scheduler\",\"messaging\"")

#define S_STATUS S_OF( \
    S_IS("pid", S_COUNT) "," \
    S_IS("uptime_seconds", S_COUNT) "," \
    S_IS("started_at", S_TIME) "," \
    S_IS("health", "{\"enum\":[\"healthy\",\"degraded\"]}") "," \
    S_IS("subsystems", S_SUBSYSTEMS) "," \
    S_IS("weft", S_OBJECT), \
    "\"pid\",\"uptime_seconds\",\"started_at\",\"health\",\"subsystems\"")

#define S_STATS S_OF( \
    S_IS("total", S_COUNT) "," \
    S_IS("queued", S_COUNT) "," \
    S_IS("running", S_COUNT) "," \
    S_IS("completed", S_COUNT) "," \
    S_IS("failed", S_COUNT) "," \
    S_IS("cancelled", S_COUNT), \
    "\"total\",\"queued\",\"running\",\"completed\",\"failed\",\"cancelled\"")

#define S_LOOP_STATUS "{\"enum\":[\"running\",\"queued\",\"permanently-failed\"]}"
#define S_LOOP S_OF( \
    S_IS("loopId", S_STRING) "," \
    S_IS("pid", S_PID_OR_NULL) "," \
    S_IS("status", S_LOOP_STATUS) "," \
    S_IS("startedAt", S_TIME) "," \
    S_IS("elapsed", S_COUNT) "," \
    S_IS("taskId", S_TEXT_OR_NULL) "," \
    S_IS("position", S_COUNT) "," \
    S_IS("priority", S_INTEGER) "," \
    S_IS("enqueuedAt", S_TIME), \
    "\"loopId\",\"status\"")

#define S_KILLED S_OF( \
    S_IS("killed", S_BOOL) "," S_IS("loopId", S_STRING) "," S_IS("signal", S_STRING), \
    "\"killed\",\"loopId\",\"signal\"")

#define S_RESOURCES S_OF( \
    S_IS("cpu", S_OBJECT) "," \
    S_IS("memory", S_OBJECT) "," \
    S_IS("loadAvg", S_OBJECT) "," \
    S_IS("queueDepth", S_COUNT) "," \
    S_IS("uptime", S_COUNT), \
    "\"cpu\",\"memory\",\"loadAvg\",\"queueDepth\",\"uptime\"")

#define S_CIRCUIT S_OF( \
    S_IS("state", "{\"enum\":[\"closed\",\"open\",\"half-open\"]}") "," \
    S_IS("consecutiveFailures", S_COUNT) "," \
    S_IS("lastFailureAt", S_TIME_OR_NULL) "," \
    S_IS("cooldownRemainingMs", S_COUNT), \
    "\"state\",\"consecutiveFailures\",\"lastFailureAt\",\"cooldownRemainingMs\"")

#define S_QUEUE S_OF( \
    S_IS("depth", S_COUNT) "," \
    S_IS("maxDepth", S_COUNT) "," \
    S_IS("oldest", S_TIME_OR_NULL) "," \
    S_IS("priorityDistribution", S_OBJECT) "," \
    S_IS("estimatedWaitMs", "{\"type\":\"null\"}"), \
    "\"depth\",\"maxDepth\",\"oldest\",\"priorityDistribution\",\"estimatedWaitMs\"")

#define S_ENDED_LOOP S_OF( \
    S_IS("loopId", S_STRING) "," \
    S_IS("taskId", S_STRING) "," \
    S_IS("outcome", S_STRING) "," \
    S_IS("error", S_STRING) "," \
    S_IS("reason", S_TEXT_OR_NULL) "," \
    S_IS("completedAt", S_TIME), \
    "\"loopId\",\"outcome\",\"completedAt\"")

#define S_JOB_RUN S_OF( \
    S_IS("jobId", S_STRING) "," \
    S_IS("action", S_STRING) "," \
    S_IS("lastRun", S_TIME) "," \
    S_IS("runCount", S_COUNT), \
    "\"jobId\",\"action\",\"lastRun\",\"runCount\"")

#define S_SCHEDULE S_OF( \
    S_IS("started", S_BOOL) "," \
    S_IS("registeredActions", S_LIST(S_STRING)) "," \
    S_IS("jobHistory", S_LIST(S_JOB_RUN)), \
    "\"started\",\"registeredActions\",\"jobHistory\"")

#define S_ROOMS S_OF( \
    S_IS("totalRooms", S_COUNT) "," \
    S_IS("totalBindings", S_COUNT) "," \
    S_IS("platforms", S_OBJECT), \
    "\"totalRooms\",\"totalBindings\",\"platforms\"")

#define S_BUDGET S_OF( \
    S_IS("dailyLimit", "{\"type\":\"number\"}") "," \
    S_IS("spent", "{\"type\":\"number\"}") "," \
    S_IS("remaining", "{\"anyOf\":[{\"type\":\"number\"},{\"type\":\"string\"}]}") "," \
    S_IS("percentUsed", "{\"type\":\"number\"}") "," \
    S_IS("currency", S_STRING), \
    "\"dailyLimit\",\"spent\",\"remaining\",\"percentUsed\",\"currency\"")

#define S_SWITCHED S_OF(S_IS("enabled", S_BOOL) "," S_IS("success", S_BOOL), "\"enabled\",\"success\"")
#define S_SUBMITTED S_OF(S_IS("taskId", S_STRING) "," S_IS("state", S_STATE), "\"taskId\",\"state\"")
#define S_PONG S_OF(S_IS("pong", S_TRUE) "," S_IS("timestamp", S_TIME), "\"pong\",\"timestamp\"")
/* clang-format on */

#define NOT_FOUND                                                                                                           \
    { AIWG_TASK_NOT_FOUND, "Task not found", "taskNotFound" }
#define UNAVAILABLE                                                                                                         \
    { AIWG_UNAVAILABLE, "Automation is not available", "subsystemUnavailable" }

static const weft_error_row submit_errors[] = {
    WEFT_ERROR_PARAMS,
    {AIWG_QUEUE_FULL, "Queue full", "queueFull"},
    {WEFT_INVALID_PARAMS, "No machine of this name or label is known", "noRunner"},
    {409, "The session has a task already", "sessionBusy"},
    {409, "The idempotency key was used before, for a task with other params", "idempotencyKeyReused"},
    {413, "The prompt is too long", "tooLarge"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row cancel_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    NOT_FOUND,
    {AIWG_TASK_NOT_CANCELLABLE, "Task cannot be cancelled", "taskNotCancellable"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row list_errors[] = {WEFT_ERROR_PARAMS, {0}};
static const weft_error_row stop_errors[] = {WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, {0}};
static const weft_error_row get_errors[] = {WEFT_ERROR_PARAMS, NOT_FOUND, WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row automation_errors[] = {UNAVAILABLE, {0}};
static const weft_error_row switch_errors[] = {WEFT_ERROR_PARAMS,   WEFT_ERROR_AGENT,   UNAVAILABLE,
                                               WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row no_errors[] = {{0}};
#define NO_SUPERVISOR                                                                                                       \
    { AIWG_UNAVAILABLE, "The supervisor is not running", "subsystemUnavailable" }
static const weft_error_row ops_errors[] = {WEFT_ERROR_PARAMS, NO_SUPERVISOR, {0}};
static const weft_error_row kill_errors[] = {WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, NO_SUPERVISOR, {0}};

static const weft_method methods[] = {
    {.name = "ping",
     .handler = weft__aiwg_ping,
     .params = NULL, /* anything goes: the original's clients send what they like */
     .help = "check that the daemon is there; answers with its time",
     .scope = WEFT_READ,
     .result = S_PONG,
     .errors = no_errors,
     .flags = WEFT_EARLY},
    {.name = "daemon.status",
     .handler = weft__aiwg_status,
     .params = weft__no_params,
     .help = "the state of the daemon: its process, how long it runs, who is connected, what it works on",
     .scope = WEFT_READ,
     .result = S_STATUS,
     .errors = no_errors,
     .flags = WEFT_EARLY},
    {.name = "daemon.stop",
     .handler = weft__aiwg_stop,
     .params = weft__aiwg_stop_params,
     .help = "stop the daemon, after what runs has ended or at once",
     .scope = WEFT_ADMIN,
     .result = S_OF(S_IS("stopping", S_TRUE), "\"stopping\""),
     .errors = stop_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE | WEFT_EARLY},
    {.name = "task.submit",
     .handler = weft__aiwg_submit,
     .params = weft__aiwg_submit_params,
     .help = "queue work for an agent",
     .scope = WEFT_WORK,
     .result = S_SUBMITTED,
     .errors = submit_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_EARLY},
    {.name = "task.cancel",
     .handler = weft__aiwg_cancel,
     .params = weft__aiwg_id_params,
     .help = "end a task that waits or runs; answered when it has ended",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("cancelled", S_TRUE), "\"cancelled\""),
     .errors = cancel_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "task.list",
     .handler = weft__aiwg_list,
     .params = weft__aiwg_list_params,
     .help = "tasks, the newest first, each with the end of its output",
     .scope = WEFT_READ,
     .result = S_LIST(S_TASK),
     .errors = list_errors},
    {.name = "task.get",
     .handler = weft__aiwg_get,
     .params = weft__aiwg_id_params,
     .help = "one task with all its output that is kept",
     .scope = WEFT_READ,
     .result = S_TASK,
     .errors = get_errors,
     .flags = WEFT_ROW_SOON},
    {.name = "task.stats",
     .handler = weft__aiwg_stats,
     .params = weft__no_params,
     .help = "how many tasks there are, by state",
     .scope = WEFT_READ,
     .result = S_STATS,
     .errors = no_errors,
     .flags = WEFT_EARLY},
    {.name = "automation.status",
     .handler = weft__aiwg_automation_status,
     .params = weft__no_params,
     .help = "the rules and what they did last",
     .scope = WEFT_READ,
     .result = S_AUTOMATION,
     .errors = automation_errors},
    {.name = "automation.enable",
     .handler = weft__aiwg_enable,
     .params = weft__aiwg_rule_params,
     .help = "switch automation, or one rule, on",
     .scope = WEFT_ADMIN,
     .result = S_SWITCHED,
     .errors = switch_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_FOR_PEOPLE},
    {.name = "automation.disable",
     .handler = weft__aiwg_disable,
     .params = weft__aiwg_rule_params,
     .help = "switch automation, or one rule, off",
     .scope = WEFT_ADMIN,
     .result = S_SWITCHED,
     .errors = switch_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_FOR_PEOPLE},
    {.name = "chat.send",
     .handler = weft__aiwg_chat,
     .params = weft__aiwg_chat_params,
     .defaults = &weft__aiwg_chat_defaults,
     .help = "say something to the default agent: a task of its own",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("taskId", S_STRING), "\"taskId\""),
     .errors = submit_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON},
    {.name = "daemon.process.list",
     .handler = weft__aiwg_processes,
     .params = weft__aiwg_processes_params,
     .help = "AIWG's loops: those that run, wait, or failed for good",
     .scope = WEFT_READ,
     .result = S_LIST(S_LOOP),
     .errors = ops_errors,
     .flags = WEFT_EARLY},
    {.name = "daemon.process.kill",
     .handler = weft__aiwg_kill,
     .params = weft__aiwg_kill_params,
     .help = "send a signal to the processes of a loop",
     .scope = WEFT_WORK,
     .result = S_KILLED,
     .errors = kill_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE | WEFT_EARLY},
    {.name = "daemon.resource.snapshot",
     .handler = weft__aiwg_resources,
     .params = weft__no_params,
     .help = "processors, memory and load of the machine",
     .scope = WEFT_READ,
     .result = S_RESOURCES,
     .errors = ops_errors,
     .flags = WEFT_EARLY},
    {.name = "daemon.circuit.status",
     .handler = weft__aiwg_circuit_status,
     .params = weft__no_params,
     .help = "whether loops are held back after failures",
     .scope = WEFT_READ,
     .result = S_CIRCUIT,
     .errors = ops_errors,
     .flags = WEFT_EARLY},
    {.name = "daemon.queue.inspect",
     .handler = weft__aiwg_queue,
     .params = weft__no_params,
     .help = "how many loops wait, and since when",
     .scope = WEFT_READ,
     .result = S_QUEUE,
     .errors = ops_errors,
     .flags = WEFT_EARLY},
    {.name = "daemon.loop.history",
     .handler = weft__aiwg_history,
     .params = weft__aiwg_history_params,
     .defaults = &weft__aiwg_history_defaults,
     .help = "loops that have ended, the newest first",
     .scope = WEFT_READ,
     .result = S_LIST(S_ENDED_LOOP),
     .errors = ops_errors,
     .flags = WEFT_EARLY},
    {.name = "daemon.budget.remaining",
     .handler = weft__aiwg_budget,
     .params = weft__no_params,
     .help = "what may still be spent today",
     .scope = WEFT_READ,
     .result = S_BUDGET,
     .errors = ops_errors,
     .flags = WEFT_EARLY},
    {.name = "schedule.status",
     .handler = weft__aiwg_schedule,
     .params = weft__no_params,
     .help = "the actions that jobs of AIWG's can have, and when they were started",
     .scope = WEFT_READ,
     .result = S_SCHEDULE,
     .errors = ops_errors,
     .flags = WEFT_EARLY},
    {.name = "rooms.list",
     .handler = weft__aiwg_rooms,
     .params = weft__no_params,
     .help = "AIWG's chat rooms: there are none here",
     .scope = WEFT_READ,
     .result = S_ROOMS,
     .errors = no_errors,
     .flags = WEFT_EARLY},
    {.name = "autonomous.status",
     .handler = weft__aiwg_autonomous,
     .params = weft__no_params,
     .help = "AIWG's autonomous mode: it is off, since there is none here",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("enabled", S_BOOL), "\"enabled\""),
     .errors = no_errors,
     .flags = WEFT_EARLY},
    {0},
};

/* Its own home is the Unix socket; other byte streams and single requests carry the same, and so do WebSockets at /aiwg. */
static bool is_aiwg_endpoint(const weft_scheme *scheme, const char *path) {
    return !(scheme->flags & WEFT_UPGRADES) || strcmp(path, "/aiwg") == 0;
}

const weft_dialect weft__aiwg = {
    .name = "aiwg", .methods = methods, .endpoint = is_aiwg_endpoint, .render = weft__aiwg_render};
