/* The hub's own methods: agents, sessions, tasks, questions and the events themselves. */
#include "hub_methods.h"

#include "git_refusal.h"
#include "metrics.h"
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

#define S_BEFORE S_OF(S_IS("epoch", S_STRING) "," S_IS("head", S_COUNT), "\"epoch\",\"head\"")
#define S_LEASE_STATE "{\"enum\":[\"held\",\"done\",\"over\",\"gone\"]}"
#define S_LEASE S_OF( \
    S_IS("lease", S_COUNT) "," \
    S_IS("taskId", S_STRING) "," \
    S_IS("state", S_LEASE_STATE) "," \
    S_IS("at", S_COUNT), \
    "\"lease\",\"taskId\",\"state\",\"at\"")
#define S_RUNNER S_OF( \
    S_IS("name", S_STRING) "," \
    S_IS("connected", S_BOOL) "," \
    S_IS("hasProject", S_BOOL) "," \
    S_IS("agents", S_LIST(S_STRING)) "," \
    S_IS("labels", S_LIST(S_STRING)) "," \
    S_IS("folders", S_LIST(S_STRING)) "," \
    S_IS("slots", S_COUNT) "," \
    S_IS("running", S_COUNT) "," \
    S_IS("since", S_TIME), \
    "\"name\",\"connected\",\"hasProject\",\"agents\",\"labels\",\"folders\",\"slots\",\"running\",\"since\"")

#define S_SESSION S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("agent", S_STRING) "," \
    S_IS("createdAt", S_TIME) "," \
    S_IS("updatedAt", S_TIME) "," \
    S_IS("taskId", S_TEXT_OR_NULL) "," \
    S_IS("busy", S_BOOL) "," \
    S_IS("tasks", S_COUNT) "," \
    S_IS("prompt", S_STRING) "," \
    S_IS("title", S_TEXT_OR_NULL) "," \
    S_IS("folder", S_STRING) "," \
    S_IS("closed", S_BOOL) "," \
    S_IS("branch", S_STRING), \
    "\"id\",\"agent\",\"createdAt\",\"updatedAt\",\"taskId\",\"busy\",\"tasks\"")

#define S_WHOLE_SESSION S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("agent", S_STRING) "," \
    S_IS("createdAt", S_TIME) "," \
    S_IS("updatedAt", S_TIME) "," \
    S_IS("taskId", S_TEXT_OR_NULL) "," \
    S_IS("busy", S_BOOL) "," \
    S_IS("tasks", S_COUNT) "," \
    S_IS("title", S_TEXT_OR_NULL) "," \
    S_IS("folder", S_STRING) "," \
    S_IS("closed", S_BOOL) "," \
    S_IS("turn", S_TEXT_OR_NULL) "," \
    S_IS("turns", S_COUNT) "," \
    S_IS("agentSessionId", S_TEXT_OR_NULL) "," \
    S_IS("settings", S_OBJECT) "," \
    S_IS("mcpServers", S_LIST(S_STRING)) "," \
    S_IS("modes", S_OBJECT) "," \
    S_IS("mode", S_STRING) "," \
    S_IS("models", S_OBJECT) "," \
    S_IS("options", S_LIST(S_OBJECT)) "," \
    S_IS("commands", S_LIST(S_OBJECT)) "," \
    S_IS("isolation", S_STRING) "," \
    S_IS("branch", S_STRING) "," \
    S_IS("worktree", S_STRING), \
    "\"id\",\"agent\",\"createdAt\",\"updatedAt\",\"taskId\",\"busy\",\"tasks\",\"folder\",\"closed\",\"turn\"," \
    "\"turns\",\"agentSessionId\",\"settings\",\"mcpServers\"")
#define S_ONE_SESSION S_OF(S_IS("session", S_WHOLE_SESSION), "\"session\"")

#define S_ENDED(flag) S_OF( \
    S_IS(flag, S_TRUE) "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("agentError", S_STRING), \
    "\"" flag "\",\"sessionId\"")

#define S_OWN_SESSION S_OF( \
    S_IS("agentSessionId", S_STRING) "," \
    S_IS("sessionId", S_TEXT_OR_NULL) "," \
    S_IS("folder", S_STRING) "," \
    S_IS("title", S_STRING) "," \
    S_IS("updatedAt", S_STRING), \
    "\"agentSessionId\",\"sessionId\"")

#define S_ANSWER S_OF( \
    S_IS("option", S_TEXT_OR_NULL) "," \
    S_IS("by", S_TEXT_OR_NULL) "," \
    S_IS("text", S_STRING) "," \
    S_IS("content", S_OBJECT) "," \
    S_IS("approvalId", S_STRING), \
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
    S_IS("waits", S_STRING) "," \
    S_IS("stopReason", S_STRING) "," \
    S_IS("usage", S_OBJECT) "," \
    S_IS("changes", S_OBJECT) "," \
    S_IS("branch", S_STRING) "," \
    S_IS("worktree", S_STRING) "," \
    S_IS("beside", S_LIST(S_STRING)), \
    "\"id\",\"agent\",\"sessionId\",\"attempt\",\"retries\",\"timeoutMs\",\"reason\"")

#define S_MONEY S_OF(S_IS("amount", "{\"type\":\"number\",\"minimum\":0}") "," S_IS("currency", S_STRING), "\"amount\",\"currency\"")
#define S_MONEY_OR_NULL "{\"anyOf\":[" S_MONEY ",{\"type\":\"null\"}]}"
#define S_SPENT S_OF( \
    S_IS("turns", S_COUNT) "," \
    S_IS("tokens", "{\"type\":[\"object\",\"null\"]}") "," \
    S_IS("tokensUnknown", S_COUNT) "," \
    S_IS("cost", S_LIST(S_MONEY)) "," \
    S_IS("costUnknown", S_COUNT), \
    "\"turns\",\"tokens\",\"tokensUnknown\",\"cost\",\"costUnknown\"")
#define S_COST S_OF( \
    S_IS("taskId", S_STRING) "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("spent", S_SPENT) "," \
    S_IS("since", S_STRING) "," \
    S_IS("days", S_LIST(S_OF(S_IS("day", S_STRING) "," S_IS("agent", S_STRING) "," S_IS("spent", S_SPENT), \
                             "\"day\",\"agent\",\"spent\""))) "," \
    S_IS("agents", S_LIST(S_OF(S_IS("agent", S_STRING) "," S_IS("spent", S_SPENT), "\"agent\",\"spent\""))) "," \
    S_IS("total", S_SPENT) "," \
    S_IS("today", S_SPENT) "," \
    S_IS("limits", S_OF(S_IS("task", S_MONEY_OR_NULL) "," S_IS("day", S_MONEY_OR_NULL) "," \
                        S_IS("taskTokens", S_COUNT_OR_NULL) "," S_IS("dayTokens", S_COUNT_OR_NULL), \
                        "\"task\",\"day\",\"taskTokens\",\"dayTokens\"")), \
    "")
#define S_CHANGED_FILE S_OF( \
    S_IS("path", S_STRING) "," \
    S_IS("change", S_STRING) "," \
    S_IS("from", S_STRING) "," \
    S_IS("oldMode", S_STRING) "," \
    S_IS("newMode", S_STRING) "," \
    S_IS("additions", S_COUNT) "," \
    S_IS("deletions", S_COUNT) "," \
    S_IS("binary", S_TRUE) "," \
    S_IS("submodule", S_TRUE) "," \
    S_IS("tooLarge", S_TRUE) "," \
    S_IS("size", S_COUNT) "," \
    S_IS("shared", S_TRUE), \
    "\"path\",\"change\"")
#define S_CHANGES S_OF( \
    S_IS("taskId", S_STRING) "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("files", S_LIST(S_CHANGED_FILE)) "," \
    S_IS("total", S_COUNT) "," \
    S_IS("added", S_COUNT) "," \
    S_IS("modified", S_COUNT) "," \
    S_IS("deleted", S_COUNT) "," \
    S_IS("renamed", S_COUNT) "," \
    S_IS("additions", S_COUNT) "," \
    S_IS("deletions", S_COUNT) "," \
    S_IS("truncated", S_BOOL) "," \
    S_IS("running", S_BOOL) "," \
    S_IS("shared", S_COUNT) "," \
    S_IS("others", S_LIST(S_STRING)) "," \
    S_IS("late", S_TRUE) "," \
    S_IS("undone", S_TRUE), \
    "\"files\",\"total\",\"added\",\"modified\",\"deleted\",\"renamed\",\"additions\",\"deletions\"," \
    "\"truncated\",\"running\"")
#define S_DIFF S_OF( \
    S_IS("taskId", S_STRING) "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("diff", S_STRING) "," \
    S_IS("truncated", S_BOOL) "," \
    S_IS("next", S_COUNT), \
    "\"diff\",\"truncated\"")
#define S_CONFLICT S_OF(S_IS("path", S_STRING) "," S_IS("reason", S_STRING), "\"path\",\"reason\"")
#define S_UNDONE S_OF( \
    S_IS("taskId", S_STRING) "," \
    S_IS("ok", S_BOOL) "," \
    S_IS("files", S_COUNT) "," \
    S_IS("conflicts", S_LIST(S_CONFLICT)) "," \
    S_IS("conflictCount", S_COUNT) "," \
    S_IS("where", "{\"enum\":[\"project\",\"worktree\"]}"), \
    "\"taskId\",\"ok\",\"files\",\"conflicts\",\"conflictCount\"")
#define S_MERGED S_OF( \
    S_IS("taskId", S_STRING) "," \
    S_IS("ok", S_BOOL) "," \
    S_IS("worktree", S_STRING) "," \
    S_IS("branch", S_STRING) "," \
    S_IS("strategy", "{\"enum\":[\"merge\",\"squash\",\"rebase\"]}") "," \
    S_IS("into", S_STRING) "," \
    S_IS("commit", S_STRING) "," \
    S_IS("files", S_COUNT) "," \
    S_IS("committed", S_TRUE) "," \
    S_IS("left", S_COUNT) "," \
    S_IS("conflicts", S_LIST(S_CONFLICT)) "," \
    S_IS("conflictCount", S_COUNT) "," \
    S_IS("where", "{\"enum\":[\"project\",\"worktree\"]}"), \
    "\"taskId\",\"ok\",\"branch\",\"strategy\",\"files\",\"conflicts\",\"conflictCount\"")
#define S_DISCARDED S_OF( \
    S_IS("taskId", S_STRING) "," \
    S_IS("worktree", S_STRING) "," \
    S_IS("branch", S_STRING) "," \
    S_IS("commit", S_STRING), \
    "\"taskId\",\"worktree\",\"branch\"")
#define S_WORKTREE S_OF( \
    S_IS("name", S_STRING) "," \
    S_IS("path", S_STRING) "," \
    S_IS("branch", S_STRING) "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("taskId", S_STRING) "," \
    S_IS("state", "{\"enum\":[\"busy\",\"conflicts\",\"work\",\"free\",\"locked\",\"gone\",\"making\"]}") "," \
    S_IS("changed", S_COUNT) "," \
    S_IS("unknown", S_COUNT) "," \
    S_IS("commits", S_COUNT) "," \
    S_IS("bytes", S_COUNT) "," \
    S_IS("files", S_COUNT) "," \
    S_IS("removed", S_BOOL) "," \
    S_IS("why", S_STRING), \
    "\"name\",\"path\",\"branch\",\"state\",\"changed\",\"unknown\",\"commits\",\"bytes\",\"files\"")
#define S_WORKTREES S_OF(S_IS("worktrees", S_LIST(S_WORKTREE)), "\"worktrees\"")

#define S_TERMINAL S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("taskId", S_STRING) "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("command", S_STRING) "," \
    S_IS("running", S_BOOL) "," \
    S_IS("cols", S_COUNT) "," \
    S_IS("rows", S_COUNT) "," \
    S_IS("exitCode", S_COUNT) "," \
    S_IS("signal", S_COUNT), \
    "\"id\",\"taskId\",\"sessionId\",\"command\",\"running\",\"cols\",\"rows\"")
#define S_TERMINALS S_OF(S_IS("terminals", S_LIST(S_TERMINAL)), "\"terminals\"")
#define S_ONE_TERMINAL S_OF( \
    S_IS("terminal", S_TERMINAL) "," \
    S_IS("output", S_STRING) "," \
    S_IS("truncated", S_BOOL), \
    "\"terminal\",\"output\",\"truncated\"")

#define S_AGENTS S_OF( \
    S_IS("default", S_TEXT_OR_NULL) "," \
    S_IS("configured", S_STRING) "," \
    S_IS("agents", S_LIST(S_AGENT)), \
    "\"default\",\"agents\"")
#define S_SESSIONS S_OF(S_IS("sessions", S_LIST(S_SESSION)) "," S_IS("total", S_COUNT), "\"sessions\",\"total\"")

#define S_ANSWERED S_OF( \
    S_IS("answered", S_TRUE) "," \
    S_IS("questionId", S_STRING) "," \
    S_IS("option", S_TEXT_OR_NULL) "," \
    S_IS("approvalId", S_STRING), \
    "\"answered\",\"questionId\",\"option\"")

#define S_APPROVAL S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("agent", S_STRING) "," \
    S_IS("scope", "{\"enum\":[\"session\",\"project\"]}") "," \
    S_IS("sessionId", S_STRING) "," \
    S_IS("toolKind", S_STRING) "," \
    S_IS("title", S_STRING) "," \
    S_IS("command", S_LIST(S_STRING)) "," \
    S_IS("path", S_STRING) "," \
    S_IS("by", S_STRING) "," \
    S_IS("at", S_TIME) "," \
    S_IS("questionId", S_STRING), \
    "\"id\",\"agent\",\"scope\",\"sessionId\",\"toolKind\",\"by\",\"at\",\"questionId\"")

#define S_GIT_DONE S_OF(S_IS("ok", S_TRUE) "," S_IS("commit", S_STRING), "\"ok\"")

#define S_NUMBER_OR_NULL "{\"type\":[\"number\",\"null\"]}"
#define S_METRIC S_OF( \
    S_IS("name", S_STRING) "," \
    S_IS("type", "{\"enum\":[\"counter\",\"gauge\",\"histogram\"]}") "," \
    S_IS("help", S_STRING) "," \
    S_IS("samples", S_LIST(S_OF( \
        S_IS("labels", "{\"type\":\"object\",\"additionalProperties\":" S_STRING "}") "," \
        S_IS("value", "{\"type\":\"number\"}") "," \
        S_IS("count", S_COUNT) "," \
        S_IS("sum", "{\"type\":\"number\"}") "," \
        S_IS("p50", S_NUMBER_OR_NULL) "," \
        S_IS("p95", S_NUMBER_OR_NULL) "," \
        S_IS("p99", S_NUMBER_OR_NULL) "," \
        S_IS("buckets", S_LIST(S_LIST(S_NUMBER_OR_NULL))), \
        "\"labels\""))), \
    "\"name\",\"type\",\"help\",\"samples\"")
#define S_METRICS S_OF(S_IS("timestamp", S_TIME) "," S_IS("metrics", S_LIST(S_METRIC)), "\"timestamp\",\"metrics\"")

#define S_SUBSCRIBED S_OF( \
    S_IS("resumed", S_BOOL) "," \
    S_IS("epoch", S_STRING) "," \
    S_IS("head", S_COUNT) "," \
    S_IS("reason", "{\"enum\":[\"epochChanged\",\"trimmed\",\"futureSeq\"]}"), \
    "\"resumed\",\"epoch\",\"head\"")
#define S_PLAN_COUNTS S_OF( \
    S_IS("waiting", S_COUNT) "," \
    S_IS("queued", S_COUNT) "," \
    S_IS("running", S_COUNT) "," \
    S_IS("completed", S_COUNT) "," \
    S_IS("failed", S_COUNT) "," \
    S_IS("cancelled", S_COUNT) "," \
    S_IS("skipped", S_COUNT), \
    "\"waiting\",\"queued\",\"running\",\"completed\",\"failed\",\"cancelled\",\"skipped\"")
#define S_PLAN_MEMBERS \
    S_IS("id", S_STRING) "," \
    S_IS("state", "{\"enum\":[\"created\",\"running\",\"completed\",\"failed\",\"cancelled\"]}") "," \
    S_IS("stopping", S_STRING) "," \
    S_IS("request", S_STRING) "," \
    S_IS("createdBy", S_STRING) "," \
    S_IS("createdAt", S_TIME) "," \
    S_IS("startedAt", S_TIME_OR_NULL) "," \
    S_IS("endedAt", S_TIME_OR_NULL) "," \
    S_IS("timeLimitMs", S_COUNT_OR_NULL) "," \
    S_IS("taskCount", S_COUNT) "," \
    S_IS("counts", S_PLAN_COUNTS)
#define S_PLAN_REQUIRED \
    "\"id\",\"state\",\"request\",\"createdAt\",\"startedAt\",\"endedAt\",\"timeLimitMs\",\"taskCount\",\"counts\""
#define S_PLAN_TASK S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("type", S_STRING) "," \
    S_IS("description", S_STRING) "," \
    S_IS("dependencies", S_LIST(S_STRING)) "," \
    S_IS("priority", S_COUNT) "," \
    S_IS("state", S_STRING) "," \
    S_IS("taskId", S_TEXT_OR_NULL) "," \
    S_IS("reason", S_STRING) "," \
    S_IS("error", S_STRING) "," \
    S_IS("startedAt", S_TIME_OR_NULL) "," \
    S_IS("endedAt", S_TIME_OR_NULL), \
    "\"id\",\"type\",\"description\",\"dependencies\",\"priority\",\"state\",\"taskId\",\"startedAt\",\"endedAt\"")
#define S_PLANS S_OF(S_IS("plans", S_LIST(S_OF(S_PLAN_MEMBERS, S_PLAN_REQUIRED))), "\"plans\"")
#define S_WHOLE_PLAN S_OF( \
    S_PLAN_MEMBERS "," \
    S_IS("explanation", S_STRING) "," \
    S_IS("estimatedSeconds", S_COUNT) "," \
    S_IS("tasks", S_LIST(S_PLAN_TASK)), \
    S_PLAN_REQUIRED ",\"tasks\"")
/* clang-format on */

#define ERRORS_OF_WRITING WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE
#define ERROR_SESSION                                                                                                       \
    { 404, "There is no such session", "sessionNotFound" }
#define ERROR_CLOSED                                                                                                        \
    { 409, "The session is closed, or about to be", "sessionClosed" }
#define ERROR_BY_AGENT                                                                                                      \
    {501, "The agent cannot do this", "agentCannot"}, {502, "The agent refused", "agentRefused"},                           \
        {502, "The agent has ended", "agentEnded"}, {503, "Too many agents are being asked", "agentsBusy"}, {               \
        504, "The agent did not answer in time", "agentTimedOut"                                                            \
    }
#define ERRORS_OF_SESSION WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, ERROR_SESSION, ERROR_CLOSED
/* clang-format off */
static const weft_error_row revoke_errors[] = {
    WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT,
    {404, "There is no such standing answer", "approvalNotFound"},
    ERRORS_OF_WRITING, {0}};
static const weft_error_row cost_errors[] = {
    WEFT_ERROR_PARAMS, {404, "There is no such task", "taskNotFound"}, ERROR_SESSION, {0}};
#define ERROR_NOT_FOLLOWING                                                                                                 \
    { 409, "This connection has not said what it has", "notFollowing" }
static const weft_error_row follow_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    {409, "This journal, or this connection, cannot be followed", "cannotFollow"},
    {429, "Too many standbys follow already", "tooManyStandbys"},
    WEFT_ERROR_STOPPING,
    {0},
};
static const weft_error_row journal_page_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    ERROR_NOT_FOLLOWING,
    {409, "There is no such position in this journal", "futureSeq"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row journal_changes_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    ERROR_NOT_FOLLOWING,
    {409, "Changes after this number are not kept any more", "changesGone"},
    {0},
};
static const weft_error_row piece_errors[] = {
    WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, ERROR_NOT_FOLLOWING, {409, "There is no such piece", "noPiece"}, {0}};
static const weft_error_row hello_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    {WEFT_INVALID_REQUEST, "Nothing can be asked of this connection", "cannotListen"},
    {409, "Another machine is connected as this runner", "runnerConnected"},
    {429, "Too many runners are known already", "tooManyRunners"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row deliver_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    {409, "This connection has not said which runner it is", "notARunner"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row use_errors[] = {WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, ERRORS_OF_WRITING, {0}};
static const weft_error_row list_errors[] = {WEFT_ERROR_PARAMS, {0}};
static const weft_error_row get_errors[] = {WEFT_ERROR_PARAMS, ERROR_SESSION, {0}};
static const weft_error_row create_errors[] = {
    WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT,
    {403, "The caller may not name folders and programs", "forbidden"},
    {404, "The agent does not know this session", "agentSessionNotFound"},
    {409, "Another session goes on with this one of the agent's", "agentSessionTaken"},
    ERROR_BY_AGENT, ERRORS_OF_WRITING, {0}};
static const weft_error_row session_errors[] = {ERRORS_OF_SESSION, ERROR_BY_AGENT, ERRORS_OF_WRITING, {0}};
static const weft_error_row open_errors[] = {
    ERRORS_OF_SESSION,
    {409, "The session has a task already", "sessionBusy"},
    ERROR_BY_AGENT, WEFT_ERROR_STOPPING, {0}};
static const weft_error_row resume_errors[] = {
    ERRORS_OF_SESSION,
    {409, "The session is open already", "sessionOpen"},
    ERRORS_OF_WRITING, {0}};
static const weft_error_row prompt_errors[] = {
    WEFT_ERROR_PARAMS, ERROR_SESSION, ERROR_CLOSED,
    {409, "The session's agent is no longer configured", "agentNotConfigured"},
    {409, "The idempotency key was used before, for a task with other params", "idempotencyKeyReused"},
    {429, "The session has too many tasks", "sessionQueueFull"},
    {429, "The queue is full", "queueFull"},
    ERRORS_OF_WRITING, {0}};
static const weft_error_row own_errors[] = {WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, ERROR_BY_AGENT, WEFT_ERROR_STOPPING, {0}};
static const weft_error_row answer_errors[] = {
    WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT,
    {404, "Question not found", "questionNotFound"},
    {409, "The question is answered already, or over", "questionResolved"},
    ERRORS_OF_WRITING, {0}};
/* clang-format on */
#define ERROR_TERMINAL                                                                                                      \
    { 404, "There is no such terminal, or it is gone", "terminalNotFound" }
static const weft_error_row terminal_errors[] = {WEFT_ERROR_PARAMS, ERROR_TERMINAL, {0}};
static const weft_error_row type_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    ERROR_TERMINAL,
    {409, "The program in it has ended", "terminalEnded"},
    {429, "The program in it does not read what was typed before", "terminalBusy"},
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
static const weft_error_row git_errors[] = {WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, WEFT_ERRORS_GIT, WEFT_ERROR_STOPPING, {0}};
#define ERRORS_CHANGES                                                                                                      \
    {404, "There is no such task", "taskNotFound"}, {404, "There is no such session", "sessionNotFound"},                   \
        {409, "No snapshot was taken", "changesUnknown"},                                                                   \
        {409, "The machine that it worked on does not know of it any more", "changesElsewhere"},                            \
        {503, "The machine that it worked on is away", "runnerAway"}, {410, "The snapshots are gone", "changesGone"},       \
        {429, "Too many operations are running", "changesBusy"}, {500, "git failed", "changesFailed"},                      \
        {501, "Changes are not kept here", "changesNotKept"}, {504, "It took too long", "changesTimedOut"},                 \
        WEFT_ERROR_STOPPING
static const weft_error_row changes_errors[] = {WEFT_ERROR_PARAMS, ERRORS_CHANGES, {0}};
static const weft_error_row undo_errors[] = {WEFT_ERROR_PARAMS,
                                             WEFT_ERROR_AGENT,
                                             {409, "The task has not ended", "taskNotEnded"},
                                             {409, "It is undone already, or was not", "alreadyUndone"},
                                             {409, "Others worked at the same time too often", "changesShared"},
                                             WEFT_ERROR_STORAGE,
                                             ERRORS_CHANGES,
                                             {0}};
#define ERROR_WORKTREE                                                                                                      \
    {409, "The task did not work in a worktree, or that is gone", "noWorktree"},                                            \
        {409, "Its session has something to do", "worktreeBusy"}, {409, "All of it is in the project", "alreadyMerged"}, {  \
        409, "git or the repository refuses", "worktreeRefused"                                                             \
    }
static const weft_error_row merge_errors[] = {WEFT_ERROR_PARAMS,  WEFT_ERROR_AGENT, ERROR_WORKTREE,
                                              WEFT_ERROR_STORAGE, ERRORS_CHANGES,   {0}};
static const weft_error_row worktree_errors[] = {WEFT_ERROR_PARAMS, ERRORS_CHANGES, {0}};
static const weft_error_row prune_errors[] = {WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, ERRORS_CHANGES, {0}};
static const weft_error_row comment_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    {409, "The task's agent is no longer configured", "agentNotConfigured"},
    {409, "The idempotency key was used before, for a task with other params", "idempotencyKeyReused"},
    {413, "What the comments become is longer than a prompt may be", "tooLarge"},
    {429, "The session has too many tasks", "sessionQueueFull"},
    {429, "The queue is full", "queueFull"},
    WEFT_ERROR_STORAGE,
    ERRORS_CHANGES,
    {0},
};
static const weft_error_row retry_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    {404, "There is no such task", "taskNotFound"},
    {409, "The task has not ended", "taskNotEnded"},
    {409, "The task belongs to a plan", "taskOfRole"},
    {409, "The machine that it ran on is not known now", "noRunner"},
    {409, "The task's agent is no longer configured", "agentNotConfigured"},
    {409, "The task's session is closed or deleted", "sessionClosed"},
    {409, "The idempotency key was used before, for a task with other params", "idempotencyKeyReused"},
    {429, "The session has too many tasks", "sessionQueueFull"},
    {429, "The queue is full", "queueFull"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row no_errors[] = {{0}};
#define ERROR_PLAN                                                                                                          \
    { 404, "There is no such plan", "planNotFound" }
static const weft_error_row plan_errors[] = {WEFT_ERROR_PARAMS, ERROR_PLAN, {0}};
static const weft_error_row plan_cancel_errors[] = {WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT,
                                                    ERROR_PLAN,        {409, "The plan has ended already", "planEnded"},
                                                    ERRORS_OF_WRITING, {0}};

static const weft_method methods[] = {
    {.name = "agent.list",
     .handler = weft__hub_agents,
     .params = weft__no_params,
     .help = "the agents that are configured, and whether they are installed",
     .scope = WEFT_READ,
     .result = S_AGENTS,
     .errors = no_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "agent.use",
     .handler = weft__hub_use,
     .params = weft__hub_use_params,
     .help = "choose the agent for tasks that name none",
     .scope = WEFT_ADMIN,
     .result = S_OF(S_IS("default", S_TEXT_OR_NULL), "\"default\""),
     .errors = use_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "agent.sessions",
     .handler = weft__hub_agent_sessions,
     .params = weft__hub_own_params,
     .help = "the sessions that an agent knows of, also those that began elsewhere",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("sessions", S_LIST(S_OWN_SESSION)) "," S_IS("nextCursor", S_STRING), "\"sessions\""),
     .errors = own_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "agent.logout",
     .handler = weft__hub_agent_logout,
     .params = weft__hub_logout_params,
     .help = "log out at an agent, if it supports that",
     .scope = WEFT_ADMIN,
     .result = S_OF(S_IS("loggedOut", S_TRUE) "," S_IS("agent", S_STRING), "\"loggedOut\",\"agent\""),
     .errors = own_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "session.list",
     .handler = weft__hub_sessions,
     .params = weft__hub_sessions_params,
     .help = "sessions with agents, the newest first",
     .scope = WEFT_READ,
     .result = S_SESSIONS,
     .errors = list_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "session.get",
     .handler = weft__hub_session_get,
     .params = weft__hub_session_params,
     .help = "one session: its settings, what its agent offers, what runs in it",
     .scope = WEFT_READ,
     .result = S_ONE_SESSION,
     .errors = get_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "session.create",
     .handler = weft__hub_session_create,
     .params = weft__hub_create_params,
     .help = "begin a session, or continue one that the agent has",
     .scope = WEFT_WORK,
     .result = S_ONE_SESSION,
     .errors = create_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "session.prompt",
     .handler = weft__hub_session_prompt,
     .params = weft__hub_prompt_params,
     .help = "submit a task to a session; it runs after those that wait there",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("taskId", S_STRING) "," S_IS("sessionId", S_STRING) "," S_IS("state", S_STRING),
                    "\"taskId\",\"sessionId\",\"state\""),
     .errors = prompt_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_ROW_STRICT},
    {.name = "session.open",
     .handler = weft__hub_session_open,
     .params = weft__hub_session_params,
     .help = "start the agent of a session now, so that its settings are known",
     .scope = WEFT_WORK,
     .result = S_ONE_SESSION,
     .errors = open_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "session.set",
     .handler = weft__hub_session_set,
     .params = weft__hub_set_params,
     .help = "set a session's mode, model, an option or its title",
     .scope = WEFT_WORK,
     .result = S_ONE_SESSION,
     .errors = session_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "session.close",
     .handler = weft__hub_session_close,
     .params = weft__hub_session_params,
     .help = "end a session's tasks and stop its agent; it can be resumed",
     .scope = WEFT_WORK,
     .result = S_ENDED("closed"),
     .errors = session_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "session.resume",
     .handler = weft__hub_session_resume,
     .params = weft__hub_session_params,
     .help = "open a closed session again",
     .scope = WEFT_WORK,
     .result = S_ONE_SESSION,
     .errors = resume_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "session.delete",
     .handler = weft__hub_session_delete,
     .params = weft__hub_session_params,
     .help = "close a session and delete it, the agent's own copy too",
     .scope = WEFT_WORK,
     .result = S_ENDED("deleted"),
     .errors = session_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "plan.list",
     .handler = weft__hub_plans,
     .params = weft__hub_plans_params,
     .help = "plans, the newest first, with their progress",
     .scope = WEFT_READ,
     .result = S_PLANS,
     .errors = list_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "plan.get",
     .handler = weft__hub_plan_get,
     .params = weft__hub_plan_params,
     .help = "one plan, with its tasks",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("plan", S_WHOLE_PLAN), "\"plan\""),
     .errors = plan_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "plan.cancel",
     .handler = weft__hub_plan_cancel,
     .params = weft__hub_plan_params,
     .help = "end a plan: its tasks that run are cancelled, the others are skipped",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("planId", S_STRING) "," S_IS("state", S_STRING), "\"planId\",\"state\""),
     .errors = plan_cancel_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "git.stage",
     .handler = weft__hub_git_stage,
     .params = weft__hub_git_paths_params,
     .help = "put files into the next commit, as they are now",
     .scope = WEFT_WORK,
     .result = S_GIT_DONE,
     .errors = git_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "git.unstage",
     .handler = weft__hub_git_unstage,
     .params = weft__hub_git_paths_params,
     .help = "take files out of the next commit",
     .scope = WEFT_WORK,
     .result = S_GIT_DONE,
     .errors = git_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "git.discard",
     .handler = weft__hub_git_discard,
     .params = weft__hub_git_discard_params,
     .help = "undo changes of files that are not staged, or delete files that git does not know",
     .scope = WEFT_WORK,
     .result = S_GIT_DONE,
     .errors = git_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "git.commit",
     .handler = weft__hub_git_commit,
     .params = weft__hub_git_commit_params,
     .help = "commit what is staged, with the user's own configuration and hooks",
     .scope = WEFT_WORK,
     .result = S_GIT_DONE,
     .errors = git_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "task.about",
     .handler = weft__hub_about,
     .params = weft__hub_about_params,
     .help = "who does these tasks, in which session, and why they failed",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("tasks", S_LIST(S_ABOUT)), "\"tasks\""),
     .errors = list_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "task.retry",
     .handler = weft__hub_retry,
     .params = weft__hub_retry_params,
     .help = "submit the prompt of a task that has ended again, as it was submitted",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("taskId", S_STRING) "," S_IS("sessionId", S_STRING) "," S_IS("state", S_STRING),
                    "\"taskId\",\"sessionId\",\"state\""),
     .errors = retry_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    /* hub_methods_runner.c */
    {.name = "runner.hello",
     .handler = weft__hub_runner_hello,
     .params = weft__hub_hello_params,
     .help = "be a runner of this hub with this connection: its tasks are requests of the hub's, until the end",
     .scope = WEFT_RUNNER,
     .result = S_OF(S_IS("runner", S_STRING) "," S_IS("epoch", S_STRING) "," S_IS("leaseMs", S_COUNT) "," S_IS(
                        "maxBytes", S_COUNT) "," S_IS("leases", S_LIST(S_LEASE)),
                    "\"runner\",\"epoch\",\"leaseMs\",\"leases\""),
     .errors = hello_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "runner.deliver",
     .handler = weft__hub_runner_deliver,
     .params = weft__hub_deliver_params,
     .help = "from a runner: what happened in a task; what was told before is passed over",
     .scope = WEFT_RUNNER,
     .result = S_OF(S_IS("state", S_LEASE_STATE), "\"state\""),
     .errors = deliver_errors,
     /* Only a connection that has said hello may, and agents may not do that. To ask again would be to read all of /proc for
      * each message. One that says more than we can store is not read from meanwhile. */
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_UNCOUNTED},
    {.name = "runner.list",
     .handler = weft__hub_runners,
     .params = weft__no_params,
     .help = "the other machines that run tasks of this hub: what they offer, and how busy they are",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("runners", S_LIST(S_RUNNER)), "\"runners\""),
     .errors = list_errors},
    /* hub_methods_journal.c */
    {.name = "journal.follow",
     .handler = weft__hub_journal_follow,
     .params = weft__hub_journal_follow_params,
     .help = "from a standby: follow the journal with this connection. resumed: journal.changes goes on after that number",
     .scope = WEFT_STANDBY,
     .result = S_OF(S_IS("epoch", S_STRING) "," S_IS("log", S_STRING) "," S_IS("last", S_COUNT) "," S_IS(
                        "head", S_COUNT) "," S_IS("resumed", S_BOOL) "," S_IS("before", S_BEFORE),
                    "\"epoch\",\"log\",\"last\",\"head\",\"resumed\""),
     .errors = follow_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "journal.page",
     .handler = weft__hub_journal_page,
     .params = weft__hub_journal_page_params,
     .help = "from a standby: what the journal holds, as it is kept. size: it is too large for one answer, journal.piece",
     .scope = WEFT_STANDBY,
     .result = S_OF(S_IS("rows", S_LIST("{}")) "," S_IS("last", S_COUNT) "," S_IS("more", S_BOOL) "," S_IS(
                        "head", S_COUNT) "," S_IS("trimmed", S_COUNT) "," S_IS("size", S_COUNT),
                    ""),
     .errors = journal_page_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "journal.changes",
     .handler = weft__hub_journal_changes,
     .params = weft__hub_journal_changes_params,
     .help = "from a standby: what happened after this change, in order. current: the last one there is",
     .scope = WEFT_STANDBY,
     .result = S_OF(
         S_IS("changes", S_LIST("{}")) "," S_IS("current", S_COUNT) "," S_IS("head", S_COUNT) "," S_IS("size", S_COUNT), ""),
     .errors = journal_changes_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "journal.piece",
     .handler = weft__hub_journal_piece,
     .params = weft__hub_journal_piece_params,
     .help = "from a standby: a part of the text of an answer that was too large",
     .scope = WEFT_STANDBY,
     .result = S_OF(S_IS("text", S_STRING), "\"text\""),
     .errors = piece_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "cost.get",
     .handler = weft__hub_cost,
     .params = weft__hub_cost_params,
     .help = "what turns have cost, by day and agent, or of one task or session; and the limits of it",
     .scope = WEFT_READ,
     .result = S_COST,
     .errors = cost_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "task.changes",
     .handler = weft__hub_changes,
     .params = weft__hub_changes_params,
     .help = "which files a task or a session changed, up to now if it runs",
     .scope = WEFT_READ,
     .result = S_CHANGES,
     .errors = changes_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "task.diff",
     .handler = weft__hub_diff,
     .params = weft__hub_diff_params,
     .help = "what a task or a session changed, line by line, in pages",
     .scope = WEFT_READ,
     .result = S_DIFF,
     .errors = changes_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "task.undo",
     .handler = weft__hub_undo,
     .params = weft__hub_undo_params,
     .help = "put back what a task changed: all of it, or nothing where somebody has changed it since",
     .scope = WEFT_WORK,
     .result = S_UNDONE,
     .errors = undo_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "task.merge",
     .handler = weft__hub_merge,
     .params = weft__hub_merge_params,
     .help = "bring what a task did in its worktree into the project; conflicts are left in the worktree",
     .scope = WEFT_WORK,
     .result = S_MERGED,
     .errors = merge_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "task.discard",
     .handler = weft__hub_discard_worktree,
     .params = weft__hub_discard_worktree_params,
     .help = "throw away the worktree of a task and its branch",
     .scope = WEFT_WORK,
     .result = S_DISCARDED,
     .errors = merge_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "worktree.list",
     .handler = weft__hub_worktrees,
     .params = weft__no_params,
     .help = "the worktrees of tasks: whose they are, how large, and what they hold that is nowhere else",
     .scope = WEFT_READ,
     .result = S_WORKTREES,
     .errors = worktree_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "worktree.prune",
     .handler = weft__hub_prune,
     .params = weft__hub_prune_params,
     .help = "remove worktrees that nobody uses and that hold nothing that is nowhere else",
     .scope = WEFT_WORK,
     .result = S_WORKTREES,
     .errors = prune_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "task.comment",
     .handler = weft__hub_comment,
     .params = weft__hub_comment_params,
     .help = "comments on lines of a task's diff: they become the next prompt of its session",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("taskId", S_STRING) "," S_IS("sessionId", S_STRING) "," S_IS("state", S_STRING),
                    "\"taskId\",\"sessionId\",\"state\""),
     .errors = comment_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "question.list",
     .handler = weft__hub_questions,
     .params = weft__hub_questions_params,
     .help = "questions that wait for a person, the oldest first",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("questions", S_LIST(S_QUESTION)), "\"questions\""),
     .errors = list_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "question.answer",
     .handler = weft__hub_answer,
     .params = weft__hub_answer_params,
     .help = "answer a question; the first valid answer wins",
     .scope = WEFT_WORK,
     .result = S_ANSWERED,
     .errors = answer_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "approval.list",
     .handler = weft__hub_approvals,
     .params = weft__no_params,
     .help = "standing answers, the oldest first",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("approvals", S_LIST(S_APPROVAL)), "\"approvals\""),
     .errors = no_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "approval.revoke",
     .handler = weft__hub_revoke,
     .params = weft__hub_revoke_params,
     .help = "revoke a standing answer",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("revoked", S_TRUE) "," S_IS("approvalId", S_STRING), "\"revoked\",\"approvalId\""),
     .errors = revoke_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "terminal.list",
     .handler = weft__hub_terminals,
     .params = weft__hub_terminals_params,
     .help = "the terminals that agents have open",
     .scope = WEFT_READ,
     .result = S_TERMINALS,
     .errors = list_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "terminal.get",
     .handler = weft__hub_terminal_get,
     .params = weft__hub_terminal_get_params,
     .help = "a terminal, and the end of what it has printed",
     .scope = WEFT_READ,
     .result = S_ONE_TERMINAL,
     .errors = terminal_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "terminal.write",
     .handler = weft__hub_terminal_write,
     .params = weft__hub_terminal_write_params,
     .help = "type into a terminal, as its program's user would",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("written", S_TRUE), "\"written\""),
     .errors = type_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "terminal.resize",
     .handler = weft__hub_terminal_resize,
     .params = weft__hub_terminal_resize_params,
     .help = "give a terminal another size",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("resized", S_TRUE), "\"resized\""),
     .errors = type_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "event.subscribe",
     .handler = weft__hub_subscribe,
     .params = weft__hub_subscribe_params,
     .help = "get every event as a notification \"event\", from a position or from now on; several side by side, by id",
     .scope = WEFT_READ,
     .result = S_SUBSCRIBED,
     .errors = subscribe_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "event.unsubscribe",
     .handler = weft__hub_unsubscribe,
     .params = weft__hub_unsubscribe_params,
     .help = "end a subscription",
     .scope = WEFT_READ,
     .result = S_OBJECT,
     .errors = unsubscribe_errors,
     .flags = WEFT_ROW_STRICT},
    {.name = "metrics.get",
     .handler = weft__hub_metrics_get,
     .params = weft__hub_metrics_params,
     .help = "figures about the hub: requests, tasks, agents, the store, the process",
     .scope = WEFT_METRICS,
     .result = S_METRICS,
     .errors = list_errors,
     .flags = WEFT_ROW_STRICT | WEFT_EARLY},
    {0},
};

const weft_dialect weft__hub_methods = {.name = "weft", .methods = methods};
