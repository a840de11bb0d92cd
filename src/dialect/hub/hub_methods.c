/* The hub's own methods: agents, sessions, tasks, questions and the events themselves. */
#include "hub_methods.h"

#include "reply.h"
#include "schemas.h"

/* clang-format off */
#define S_AGENT S_OF( \
    S_IS("name", S_STRING) "," \
    S_IS("driver", S_STRING) "," \
    S_IS("command", S_LIST(S_STRING)) "," \
    S_IS("found", S_BOOL) "," \
    S_IS("path", S_STRING) "," \
    S_IS("version", S_STRING) "," \
    S_IS("isDefault", S_BOOL) "," \
    S_IS("preset", S_BOOL) "," \
    S_IS("about", S_STRING) "," \
    S_IS("advice", S_STRING) "," \
    S_IS("login", S_STRING) "," \
    S_IS("package", S_STRING), \
    "\"name\",\"driver\",\"command\",\"found\",\"isDefault\",\"preset\"")

#define S_SESSION S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("agent", S_STRING) "," \
    S_IS("createdAt", S_TIME) "," \
    S_IS("updatedAt", S_TIME) "," \
    S_IS("taskId", S_TEXT_OR_NULL) "," \
    S_IS("busy", S_BOOL) "," \
    S_IS("tasks", S_COUNT), \
    "\"id\",\"agent\",\"createdAt\",\"updatedAt\",\"taskId\",\"busy\",\"tasks\"")

#define S_ANSWER S_OF( \
    S_IS("option", S_TEXT_OR_NULL) "," \
    S_IS("by", S_TEXT_OR_NULL) "," \
    S_IS("text", S_STRING), \
    "\"option\",\"by\"")

#define S_QUESTION S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("taskId", S_TEXT_OR_NULL) "," \
    S_IS("sessionId", S_TEXT_OR_NULL) "," \
    S_IS("ruleId", S_TEXT_OR_NULL) "," \
    S_IS("kind", S_STRING) "," \
    S_IS("title", S_STRING) "," \
    S_IS("options", S_LIST(S_OBJECT)) "," \
    S_IS("detail", "{}") "," \
    S_IS("state", "{\"enum\":[\"open\",\"answered\",\"expired\",\"withdrawn\"]}") "," \
    S_IS("orphaned", S_BOOL) "," \
    S_IS("createdAt", S_TIME) "," \
    S_IS("expiresAt", S_TIME_OR_NULL) "," \
    S_IS("answer", S_ANSWER), \
    "\"id\",\"taskId\",\"sessionId\",\"ruleId\",\"kind\",\"title\",\"options\",\"detail\",\"state\",\"orphaned\",\"createdAt\"," \
    "\"expiresAt\"")

#define S_ABOUT S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("agent", S_STRING) "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("attempt", S_COUNT) "," \
    S_IS("retries", S_COUNT) "," \
    S_IS("timeoutMs", S_COUNT_OR_NULL) "," \
    S_IS("reason", S_TEXT_OR_NULL) "," \
    S_IS("stopReason", S_STRING), \
    "\"id\",\"agent\",\"sessionId\",\"attempt\",\"retries\",\"timeoutMs\",\"reason\"")

#define S_AGENTS S_OF( \
    S_IS("default", S_TEXT_OR_NULL) "," \
    S_IS("configured", S_STRING) "," \
    S_IS("agents", S_LIST(S_AGENT)), \
    "\"default\",\"agents\"")
#define S_SESSIONS S_OF(S_IS("sessions", S_LIST(S_SESSION)) "," S_IS("total", S_COUNT), "\"sessions\",\"total\"")

#define S_ANSWERED S_OF( \
    S_IS("answered", S_TRUE) "," \
    S_IS("questionId", S_STRING) "," \
    S_IS("option", S_TEXT_OR_NULL), \
    "\"answered\",\"questionId\",\"option\"")

#define S_SUBSCRIBED S_OF( \
    S_IS("resumed", S_BOOL) "," \
    S_IS("epoch", S_STRING) "," \
    S_IS("head", S_COUNT) "," \
    S_IS("reason", "{\"enum\":[\"epochChanged\",\"trimmed\",\"futureSeq\"]}"), \
    "\"resumed\",\"epoch\",\"head\"")
/* clang-format on */

static const weft_error_row use_errors[] = {
    WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row list_errors[] = {WEFT_ERROR_PARAMS, {0}};
static const weft_error_row answer_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    {404, "Question not found", "questionNotFound"},
    {409, "The question is answered already, or over", "questionResolved"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row subscribe_errors[] = {
    WEFT_ERROR_PARAMS,
    {WEFT_INVALID_REQUEST, "Events cannot be delivered here", "cannotListen"},
    {WEFT_CANCELLED, "Something else was subscribed meanwhile", "superseded"},
    {429, "The connection has too many subscriptions", "tooManySubscriptions"},
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row unsubscribe_errors[] = {
    WEFT_ERROR_PARAMS, {404, "There is no such subscription", "subscriptionNotFound"}, {0}};
static const weft_error_row no_errors[] = {{0}};

static const weft_method methods[] = {
    {.name = "agent.list",
     .handler = weft__hub_agents,
     .params = weft__no_params,
     .help = "the agents that are configured, and whether they are installed",
     .scope = WEFT_READ,
     .result = S_AGENTS,
     .errors = no_errors,
     .flags = WEFT_STRICT},
    {.name = "agent.use",
     .handler = weft__hub_use,
     .params = weft__hub_use_params,
     .help = "choose the agent for tasks that name none",
     .scope = WEFT_ADMIN,
     .result = S_OF(S_IS("default", S_TEXT_OR_NULL), "\"default\""),
     .errors = use_errors,
     .flags = WEFT_CHANGES | WEFT_SOON | WEFT_STRICT | WEFT_FOR_PEOPLE},
    {.name = "session.list",
     .handler = weft__hub_sessions,
     .params = weft__hub_sessions_params,
     .help = "conversations with agents, the newest first",
     .scope = WEFT_READ,
     .result = S_SESSIONS,
     .errors = list_errors,
     .flags = WEFT_STRICT},
    {.name = "task.about",
     .handler = weft__hub_about,
     .params = weft__hub_about_params,
     .help = "who does these tasks, in which session, and why they failed",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("tasks", S_LIST(S_ABOUT)), "\"tasks\""),
     .errors = list_errors,
     .flags = WEFT_STRICT},
    {.name = "question.list",
     .handler = weft__hub_questions,
     .params = weft__hub_questions_params,
     .help = "what waits for a person, the oldest first",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("questions", S_LIST(S_QUESTION)), "\"questions\""),
     .errors = list_errors,
     .flags = WEFT_STRICT},
    {.name = "question.answer",
     .handler = weft__hub_answer,
     .params = weft__hub_answer_params,
     .help = "answer a question; the first valid answer wins",
     .scope = WEFT_WORK,
     .result = S_ANSWERED,
     .errors = answer_errors,
     .flags = WEFT_CHANGES | WEFT_SOON | WEFT_STRICT | WEFT_FOR_PEOPLE},
    {.name = "event.subscribe",
     .handler = weft__hub_subscribe,
     .params = weft__hub_subscribe_params,
     .help = "get every event as a notification \"event\", from a position or from now on; several side by side, by id",
     .scope = WEFT_READ,
     .result = S_SUBSCRIBED,
     .errors = subscribe_errors,
     .flags = WEFT_STRICT},
    {.name = "event.unsubscribe",
     .handler = weft__hub_unsubscribe,
     .params = weft__hub_unsubscribe_params,
     .help = "no events of this subscription any more",
     .scope = WEFT_READ,
     .result = S_OBJECT,
     .errors = unsubscribe_errors,
     .flags = WEFT_STRICT},
    {0},
};

const weft_dialect weft__hub_methods = {.name = "weft", .methods = methods};
