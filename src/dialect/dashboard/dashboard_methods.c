/* The table of these methods. */
#include "dashboard_methods.h"

#include "git_refusal.h"
#include "reply.h"
#include "schemas.h"

/* clang-format off */
#define S_PAGE_TASK S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("prompt", S_STRING) "," \
    S_IS("agent", S_STRING) "," \
    S_IS("priority", S_INTEGER) "," \
    S_IS("state", S_STRING) "," \
    S_IS("createdAt", S_TIME_OR_NULL) "," \
    S_IS("startedAt", S_TIME_OR_NULL) "," \
    S_IS("completedAt", S_TIME_OR_NULL) "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("attempt", S_COUNT) "," \
    S_IS("retries", S_COUNT) "," \
    S_IS("reason", S_TEXT_OR_NULL) "," \
    S_IS("error", S_TEXT_OR_NULL) "," \
    S_IS("seen", S_BOOL) "," \
    S_IS("outputBytes", S_COUNT) "," \
    S_IS("usage", S_OBJECT) "," \
    S_IS("changes", S_OBJECT) "," \
    S_IS("branch", S_STRING), \
    "\"id\",\"prompt\",\"agent\",\"priority\",\"state\",\"createdAt\",\"startedAt\",\"completedAt\",\"sessionId\",\"attempt\",\"retries\"," \
    "\"reason\",\"error\",\"seen\"")

#define S_COMMIT S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("author", S_STRING) "," \
    S_IS("email", S_STRING) "," \
    S_IS("time", S_TIME_OR_NULL) "," \
    S_IS("subject", S_STRING) "," \
    S_IS("body", S_STRING), \
    "\"id\",\"author\",\"time\",\"subject\"")

#define S_CONNECTION S_OF( \
    S_IS("id", S_COUNT) "," \
    S_IS("name", S_STRING) "," \
    S_IS("transport", S_STRING) "," \
    S_IS("address", S_STRING) "," \
    S_IS("dialect", S_STRING) "," \
    S_IS("scopes", S_STRING) "," \
    S_IS("since", S_TIME_OR_NULL) "," \
    S_IS("subscriptions", S_COUNT) "," \
    S_IS("current", S_BOOL), \
    "\"id\",\"name\",\"transport\",\"scopes\",\"since\",\"subscriptions\"")
/* clang-format on */

static const weft_error_row page_errors[] = {WEFT_ERROR_PARAMS, {0}};
static const weft_error_row seen_errors[] = {
    WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row log_errors[] = {WEFT_ERROR_PARAMS, WEFT_ERRORS_GIT, WEFT_ERROR_STOPPING, {0}};
static const weft_error_row find_errors[] = {WEFT_ERROR_PARAMS,
                                             {404, "There is no such session", "sessionNotFound"},
                                             {429, "Too much is being read", "rateLimited"},
                                             WEFT_ERROR_STOPPING,
                                             WEFT_ERROR_STORAGE,
                                             {0}};
static const weft_error_row people_errors[] = {WEFT_ERROR_AGENT, {0}};
static const weft_error_row watch_errors[] = {WEFT_ERROR_PARAMS,
                                              WEFT_ERROR_AGENT,
                                              {429, "Too many others watch already", "tooManyWatchers"},
                                              {501, "The caller's connection cannot be told of messages", "notHere"},
                                              {0}};

static const weft_method methods[] = {
    {.name = "task.page",
     .handler = weft__dashboard_page,
     .params = weft__dashboard_page_params,
     .help = "a page of the list of tasks, the newest first, without their outputs",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("tasks", S_LIST(S_PAGE_TASK)) "," S_IS("total", S_COUNT) "," S_IS("more", S_BOOL),
                    "\"tasks\",\"total\",\"more\""),
     .errors = page_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "task.seen",
     .handler = weft__dashboard_seen,
     .params = weft__dashboard_seen_params,
     .help = "somebody has looked at how these tasks ended",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("seen", S_COUNT), "\"seen\""),
     .errors = seen_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "git.log",
     .handler = weft__dashboard_log,
     .params = weft__dashboard_log_params,
     .help = "the commits of the project, or of one file under all its names",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("commits", S_LIST(S_COMMIT)) "," S_IS("more", S_BOOL), "\"commits\",\"more\""),
     .errors = log_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "session.find",
     .handler = weft__dashboard_find,
     .params = weft__dashboard_find_params,
     .help = "where something was said in a session, the latest first; next of the answer is where to go on",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("hits", S_LIST(S_OF(S_IS("seq", S_COUNT) "," S_IS("ts", S_INTEGER) "," S_IS(
                                                 "type", S_STRING) "," S_IS("text", S_STRING),
                                             "\"seq\",\"ts\",\"text\""))) "," S_IS("next", S_COUNT),
                    "\"hits\""),
     .errors = find_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "connection.list",
     .handler = weft__dashboard_connections,
     .params = weft__no_params,
     .help = "the connected clients, since when, and by which token",
     .scope = WEFT_ADMIN,
     .result = S_OF(S_IS("connections", S_LIST(S_CONNECTION)) "," S_IS("total", S_COUNT), "\"connections\",\"total\""),
     .errors = people_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "traffic.watch",
     .handler = weft__dashboard_watch,
     .params = weft__dashboard_watch_params,
     .help = "be told of the messages of all other connections, as notifications \"traffic\"",
     .scope = WEFT_ADMIN,
     .result = S_OF(S_IS("watching", S_BOOL), "\"watching\""),
     .errors = watch_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "traffic.unwatch",
     .handler = weft__dashboard_unwatch,
     .params = weft__no_params,
     .help = "end that",
     .scope = WEFT_ADMIN,
     .result = S_OF(S_IS("watching", S_BOOL), "\"watching\""),
     .errors = people_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "health.history",
     .handler = weft__dashboard_health,
     .params = weft__no_params,
     .help = "the hub's figures of the last 15 minutes, every five seconds",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("intervalMs", S_COUNT) "," S_IS("startedAt", S_TIME_OR_NULL) "," S_IS("samples", S_LIST(S_OBJECT)),
                    "\"intervalMs\",\"samples\""),
     .errors = page_errors,
     .flags = WEFT_ROW_STRICT},
    {0},
};

const weft_dialect weft__dashboard_methods = {.name = "dashboard", .methods = methods};
