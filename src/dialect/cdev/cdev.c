/* cdev: the methods of its phones and browsers. docs/decisions/0065-cdev-whole.md */
#include "cdev.h"

#include <string.h>

#include "reply.h"
#include "schemas.h"
#include "transport.h"

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
    S_IS("agent_version", S_STRING) "," \
    S_IS("workspace_id", S_STRING) "," \
    S_IS("watcher_enabled", S_BOOL) "," \
    S_IS("git_enabled", S_BOOL), \
    "\"agent_state\",\"claude_state\",\"connected_clients\",\"repo_path\",\"repo_name\",\"uptime_seconds\",\"version\"," \
    "\"watcher_enabled\",\"git_enabled\"")

#define S_PEER S_OF(S_IS("name", S_STRING) "," S_IS("version", S_STRING), "\"name\",\"version\"")

#define S_PENDING S_OF( \
    S_IS("tool_use_id", S_STRING) "," \
    S_IS("tool_name", S_STRING) "," \
    S_IS("input", S_STRING) "," \
    S_IS("description", S_STRING) "," \
    S_IS("options", S_LIST(S_OBJECT)) "," \
    S_IS("session_id", S_STRING) "," \
    S_IS("timestamp", S_TIME), \
    "\"tool_use_id\",\"tool_name\",\"input\",\"description\",\"options\",\"timestamp\"")

#define S_INITIALIZED S_OF( \
    S_IS("protocolVersion", S_STRING) "," \
    S_IS("serverInfo", S_PEER) "," \
    S_IS("server_info", S_PEER) "," \
    S_IS("capabilities", S_OF( \
        S_IS("agents", S_LIST(S_STRING)) "," \
        S_IS("supportedAgents", S_LIST(S_STRING)) "," \
        S_IS("features", S_LIST(S_STRING)) "," \
        S_IS("agent", S_OBJECT) "," \
        S_IS("git", S_OBJECT) "," \
        S_IS("file", S_OBJECT) "," \
        S_IS("notifications", S_LIST(S_STRING)) "," \
        S_IS("timeouts", S_OBJECT), \
        "\"agents\",\"supportedAgents\",\"features\"")) "," \
    S_IS("workspace_id", S_STRING) "," \
    S_IS("pending", S_LIST(S_PENDING)), \
    "\"protocolVersion\",\"serverInfo\",\"server_info\",\"capabilities\",\"workspace_id\",\"pending\"")

#define S_CDEV_SESSION S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("session_id", S_STRING) "," \
    S_IS("agent_type", S_STRING) "," \
    S_IS("agent_session_id", S_STRING) "," \
    S_IS("summary", S_STRING) "," \
    S_IS("message_count", S_COUNT) "," \
    S_IS("created_at", S_TIME) "," \
    S_IS("updated_at", S_TIME) "," \
    S_IS("last_updated", S_TIME) "," \
    S_IS("status", S_CDEV_STATE), \
    "\"id\",\"session_id\",\"agent_type\",\"message_count\",\"created_at\",\"updated_at\",\"last_updated\",\"status\"")

#define S_CDEV_SESSIONS S_OF( \
    S_IS("sessions", S_LIST(S_CDEV_SESSION)) "," \
    S_IS("total", S_COUNT) "," \
    S_IS("current", S_STRING), \
    "\"sessions\",\"total\"")

#define S_WATCHING S_OF( \
    S_IS("status", "{\"const\":\"watching\"}") "," \
    S_IS("watching", S_TRUE) "," \
    S_IS("session_id", S_STRING) "," \
    S_IS("since_seq", S_COUNT) "," \
    S_IS("pending", S_LIST(S_PENDING)), \
    "\"status\",\"watching\",\"session_id\",\"since_seq\",\"pending\"")

#define S_MESSAGE S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("session_id", S_STRING) "," \
    S_IS("type", "{\"enum\":[\"user\",\"assistant\"]}") "," \
    S_IS("role", "{\"enum\":[\"user\",\"assistant\"]}") "," \
    S_IS("kind", "{\"enum\":[\"text\",\"thinking\",\"stdout\",\"stderr\",\"tool_use\",\"plan\"]}") "," \
    S_IS("content", S_STRING) "," \
    S_IS("tool_calls", S_LIST(S_OBJECT)) "," \
    S_IS("plan", S_LIST("{}")) "," \
    S_IS("task_id", S_STRING) "," \
    S_IS("timestamp", S_TIME) "," \
    S_IS("seq", S_COUNT) "," \
    S_IS("truncated", S_TRUE) "," \
    S_IS("message", S_OBJECT), \
    "\"id\",\"session_id\",\"type\",\"role\",\"kind\",\"content\",\"task_id\",\"timestamp\",\"message\"")

#define S_MESSAGES S_OF( \
    S_IS("session_id", S_STRING) "," \
    S_IS("messages", S_LIST(S_MESSAGE)) "," \
    S_IS("total", S_COUNT) "," \
    S_IS("count", S_COUNT) "," \
    S_IS("limit", S_COUNT) "," \
    S_IS("offset", S_COUNT) "," \
    S_IS("has_more", S_BOOL) "," \
    S_IS("hasMore", S_BOOL) "," \
    S_IS("last_seq", S_COUNT), \
    "\"session_id\",\"messages\",\"total\",\"count\",\"limit\",\"offset\",\"has_more\",\"hasMore\",\"last_seq\"")

#define S_PATHS S_LIST(S_STRING)

#define S_GIT_STATUS S_OF( \
    S_IS("branch", S_STRING) "," \
    S_IS("head", S_STRING) "," \
    S_IS("upstream", S_STRING) "," \
    S_IS("ahead", S_COUNT) "," \
    S_IS("behind", S_COUNT) "," \
    S_IS("staged", S_PATHS) "," \
    S_IS("unstaged", S_PATHS) "," \
    S_IS("untracked", S_PATHS) "," \
    S_IS("conflicted", S_PATHS) "," \
    S_IS("files", S_LIST(S_OF( \
        S_IS("path", S_STRING) "," S_IS("index", S_STRING) "," S_IS("worktree", S_STRING) "," S_IS("orig_path", S_STRING), \
        "\"path\",\"index\",\"worktree\""))) "," \
    S_IS("is_clean", S_BOOL) "," \
    S_IS("repo_name", S_STRING) "," \
    S_IS("repo_root", S_STRING) "," \
    S_IS("truncated", S_TRUE), \
    "\"staged\",\"unstaged\",\"untracked\",\"conflicted\",\"files\",\"is_clean\",\"repo_name\",\"repo_root\"")

#define S_GIT_DIFF S_OF( \
    S_IS("path", S_STRING) "," \
    S_IS("diff", S_STRING) "," \
    S_IS("is_staged", S_BOOL) "," \
    S_IS("is_new", S_BOOL) "," \
    S_IS("is_truncated", S_BOOL) "," \
    S_IS("additions", S_COUNT) "," \
    S_IS("deletions", S_COUNT), \
    "\"path\",\"diff\",\"is_staged\",\"is_new\",\"is_truncated\"")

#define S_FILE S_OF( \
    S_IS("path", S_STRING) "," \
    S_IS("content", S_STRING) "," \
    S_IS("encoding", "{\"enum\":[\"utf-8\",\"base64\"]}") "," \
    S_IS("size", S_COUNT) "," \
    S_IS("truncated", S_BOOL) "," \
    S_IS("modified", S_TIME), \
    "\"path\",\"content\",\"encoding\",\"size\",\"truncated\"")

#define S_FILE_LIST S_OF( \
    S_IS("path", S_STRING) "," \
    S_IS("entries", S_LIST(S_OF( \
        S_IS("name", S_STRING) "," \
        S_IS("type", "{\"enum\":[\"file\",\"directory\",\"link\",\"other\"]}") "," \
        S_IS("size", S_COUNT) "," \
        S_IS("modified", S_TIME), \
        "\"name\",\"type\""))) "," \
    S_IS("total_count", S_COUNT) "," \
    S_IS("truncated", S_BOOL), \
    "\"path\",\"entries\",\"total_count\",\"truncated\"")

#define S_ELEMENT S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("type", "{\"enum\":[\"user_input\",\"assistant_text\",\"thinking\",\"tool_call\",\"tool_result\",\"diff\",\"plan\"]}") "," \
    S_IS("timestamp", S_TIME) "," \
    S_IS("content", S_OBJECT), \
    "\"id\",\"type\",\"timestamp\",\"content\"")

#define S_ELEMENTS S_OF( \
    S_IS("session_id", S_STRING) "," \
    S_IS("elements", S_LIST(S_ELEMENT)) "," \
    S_IS("pagination", S_OF( \
        S_IS("total", S_COUNT) "," \
        S_IS("returned", S_COUNT) "," \
        S_IS("has_more_before", S_BOOL) "," \
        S_IS("has_more_after", S_BOOL) "," \
        S_IS("oldest_id", S_STRING) "," \
        S_IS("newest_id", S_STRING), \
        "\"total\",\"returned\",\"has_more_before\",\"has_more_after\"")) "," \
    S_IS("last_seq", S_COUNT), \
    "\"session_id\",\"elements\",\"pagination\",\"last_seq\"")
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
static const weft_error_row respond_errors[] = {
    WEFT_ERROR_PARAMS,
    WEFT_ERROR_AGENT,
    {CDEV_IDLE, "No agent waits for this answer", "agentIdle"},
    {409, "The question is answered already, or over", "questionResolved"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row session_errors[] = {WEFT_ERROR_PARAMS, NO_SESSION, {0}};
static const weft_error_row watch_errors[] = {
    WEFT_ERROR_PARAMS,
    NO_SESSION,
    {WEFT_INVALID_REQUEST, "Logs cannot be delivered here", "cannotListen"},
    {429, "The connection watches too many sessions", "tooManyWatches"},
    {0},
};
static const weft_error_row transcript_errors[] = {
    WEFT_ERROR_PARAMS,
    NO_SESSION,
    {429, "Too many transcripts are being read", "rateLimited"},
    {WEFT_CANCELLED, "It took too long", "deadlineExceeded"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
#define NO_FILE                                                                                                             \
    { CDEV_NO_FILE, "Requested file not found", "fileNotFound" }
#define TOO_MANY                                                                                                            \
    { 429, "Too many of these are waiting", "rateLimited" }
#define TOO_LONG                                                                                                            \
    { WEFT_CANCELLED, "It took too long", "deadlineExceeded" }
static const weft_error_row file_errors[] = {WEFT_ERROR_PARAMS, NO_FILE, TOO_MANY, TOO_LONG, WEFT_ERROR_STOPPING, {0}};
static const weft_error_row git_errors[] = {
    WEFT_ERROR_PARAMS,   NO_FILE, {CDEV_GIT_FAILED, "Git operation failed", "gitFailed"}, TOO_MANY, TOO_LONG,
    WEFT_ERROR_STOPPING, {0}};
static const weft_error_row params_errors[] = {WEFT_ERROR_PARAMS, {0}};
static const weft_error_row no_errors[] = {{0}};

static const weft_method methods[] = {
    {.name = "initialize",
     .handler = weft__cdev_initialize,
     .params = weft__cdev_initialize_params,
     .help = "introduce the client; the answer has versions and capabilities",
     .scope = WEFT_READ,
     .result = S_INITIALIZED,
     .errors = params_errors,
     .flags = WEFT_DECIDES},
    {.name = "initialized",
     .handler = weft__cdev_initialized,
     .params = weft__no_params,
     .help = "say that the answer to initialize has come",
     .scope = WEFT_READ,
     .result = "{\"type\":\"null\"}",
     .errors = no_errors},
    {.name = "shutdown",
     .handler = weft__cdev_shutdown,
     .params = weft__no_params,
     .help = "end this connection's part: it watches nothing any more; the daemon goes on",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("status", S_STRING) "," S_IS("success", S_TRUE), "\"status\",\"success\""),
     .errors = no_errors},
    {.name = "agent/run",
     .handler = weft__cdev_run,
     .params = weft__cdev_run_params,
     .help = "start an agent with a prompt; answered when its process is there",
     .scope = WEFT_WORK,
     .result = S_RUN,
     .errors = run_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "agent/stop",
     .handler = weft__cdev_stop,
     .params = weft__cdev_stop_params,
     .help = "stop an agent",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("status", "{\"const\":\"stopped\"}"), "\"status\""),
     .errors = stop_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "status/get",
     .handler = weft__cdev_status,
     .params = weft__no_params,
     .help = "what the agent does, who is connected, where the project lies",
     .scope = WEFT_READ,
     .result = S_CDEV_STATUS,
     .errors = no_errors,
     .timeout_ms = CDEV_READ_MS},
    {.name = "agent/respond",
     .handler = weft__cdev_respond,
     .params = weft__cdev_respond_params,
     .help = "answer what an agent asked; the first valid answer wins",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("status", "{\"const\":\"sent\"}") "," S_IS("tool_use_id", S_STRING), "\"status\",\"tool_use_id\""),
     .errors = respond_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_FOR_PEOPLE},
    {.name = "git/status",
     .handler = weft__cdev_git_status,
     .params = weft__no_params,
     .help = "the branch, and which files are staged, changed, new or in conflict",
     .scope = WEFT_READ,
     .result = S_GIT_STATUS,
     .errors = git_errors,
     .timeout_ms = CDEV_GIT_MS},
    {.name = "git/diff",
     .handler = weft__cdev_git_diff,
     .params = weft__cdev_git_diff_params,
     .help = "how a file was changed",
     .scope = WEFT_READ,
     .result = S_GIT_DIFF,
     .errors = git_errors,
     .timeout_ms = CDEV_GIT_MS},
    {.name = "file/get",
     .handler = weft__cdev_file_get,
     .params = weft__cdev_file_get_params,
     .help = "what is in a file of the project",
     .scope = WEFT_READ,
     .result = S_FILE,
     .errors = file_errors,
     .timeout_ms = CDEV_READ_MS},
    {.name = "file/list",
     .handler = weft__cdev_file_list,
     .params = weft__cdev_file_list_params,
     .help = "what is in a folder of the project",
     .scope = WEFT_READ,
     .result = S_FILE_LIST,
     .errors = file_errors,
     .timeout_ms = CDEV_READ_MS},
    {.name = "session/list",
     .handler = weft__cdev_sessions,
     .params = weft__cdev_sessions_params,
     .help = "sessions with agents, the newest first",
     .scope = WEFT_READ,
     .result = S_CDEV_SESSIONS,
     .errors = params_errors,
     .timeout_ms = CDEV_READ_MS},
    {.name = "session/get",
     .handler = weft__cdev_session_get,
     .params = weft__cdev_session_get_params,
     .help = "one of them",
     .scope = WEFT_READ,
     .result = S_CDEV_SESSION,
     .errors = session_errors,
     .timeout_ms = CDEV_READ_MS},
    {.name = "session/watch",
     .handler = weft__cdev_watch,
     .params = weft__cdev_watch_params,
     .help = "be told what the agent of a session says, from now on",
     .scope = WEFT_READ,
     .result = S_WATCHING,
     .errors = watch_errors},
    {.name = "session/unwatch",
     .handler = weft__cdev_unwatch,
     .params = weft__cdev_unwatch_params,
     .help = "end that",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("status", "{\"const\":\"unwatched\"}") "," S_IS("watching", "{\"const\":false}"),
                    "\"status\",\"watching\""),
     .errors = params_errors},
    {.name = "session/messages",
     .handler = weft__cdev_messages,
     .params = weft__cdev_messages_params,
     .help = "what was said in a session, a message each",
     .scope = WEFT_READ,
     .result = S_MESSAGES,
     .errors = transcript_errors,
     .timeout_ms = CDEV_READ_MS},
    {.name = "session/elements",
     .handler = weft__cdev_elements,
     .params = weft__cdev_elements_params,
     .help = "the same as a screen shows it: texts, tool calls, results, changes of files",
     .scope = WEFT_READ,
     .result = S_ELEMENTS,
     .errors = transcript_errors,
     .timeout_ms = CDEV_READ_MS},
    {0},
};

#define HEARTBEAT_MS 30000

/* Its server had one WebSocket. Where that lies is for whoever runs the hub to say. */
static bool is_cdev_endpoint(const weft_scheme *scheme, const char *path) {
    return (scheme->flags & WEFT_UPGRADES) && strcmp(path, "/acp") != 0 && strcmp(path, "/tinyvex") != 0 &&
           strcmp(path, "/wiggum") != 0;
}

const weft_dialect weft__cdev = {.name = "cdev",
                                 .methods = methods,
                                 .endpoint = is_cdev_endpoint,
                                 .claims = weft__cdev_claims,
                                 .render = weft__cdev_render,
                                 .variants = weft__cdev_variants,
                                 .beat_ms = HEARTBEAT_MS,
                                 .beat = weft__cdev_beat};
