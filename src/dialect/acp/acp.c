/* ACP, version 1, as an agent: what an editor needs to work with the hub's agents. */
#include "acp.h"

#include <string.h>

#include "reply.h"
#include "schemas.h"
#include "transport.h"

/* clang-format off */
#define S_MODES S_OF( \
    S_IS("currentModeId", S_STRING) "," \
    S_IS("availableModes", S_LIST(S_OBJECT)), \
    "\"currentModeId\",\"availableModes\"")

#define S_OPENED \
    S_IS("modes", S_MODES) "," \
    S_IS("configOptions", S_LIST(S_OBJECT)) "," \
    S_IS("_meta", S_OBJECT)

#define S_INITIALIZED S_OF( \
    S_IS("protocolVersion", S_INTEGER) "," \
    S_IS("agentCapabilities", S_OBJECT) "," \
    S_IS("authMethods", S_LIST(S_OBJECT)) "," \
    S_IS("agentInfo", S_OBJECT), \
    "\"protocolVersion\",\"agentCapabilities\",\"authMethods\",\"agentInfo\"")

/* The second of two is what is answered in the older form. */
#define S_NEW_SESSION S_EITHER( \
    S_OF(S_IS("sessionId", S_STRING) "," S_OPENED, "\"sessionId\""), \
    S_OF(S_IS("session_id", S_STRING), "\"session_id\""))

#define S_LISTED_AS(id, updated, cursor) S_OF( \
    S_IS("sessions", S_LIST(S_OF( \
        S_IS(id, S_STRING) "," \
        S_IS("cwd", S_STRING) "," \
        S_IS("title", S_TEXT_OR_NULL) "," \
        S_IS(updated, S_TIME) "," \
        S_IS("_meta", S_OBJECT), \
        "\"" id "\",\"cwd\",\"" updated "\""))) "," \
    S_IS(cursor, S_STRING), \
    "\"sessions\"")
#define S_LISTED S_EITHER( \
    S_LISTED_AS("sessionId", "updatedAt", "nextCursor"), \
    S_LISTED_AS("session_id", "updated_at", "next_cursor"))

#define S_STOPPED S_EITHER( \
    S_OF( \
        S_IS("stopReason", "{\"enum\":[\"end_turn\",\"max_tokens\",\"max_turn_requests\",\"refusal\",\"cancelled\"]}"), \
        "\"stopReason\""), \
    S_OF(S_IS("ok", S_TRUE), "\"ok\""))
/* clang-format on */

#define NO_SESSION                                                                                                          \
    { ACP_NOT_FOUND, "Session not found", "sessionNotFound" }
#define NEEDS_EXEC                                                                                                          \
    { 403, "To name another folder or MCP servers the scope exec is needed", "forbidden" }
#define TOO_MANY                                                                                                            \
    { 429, "This connection follows too many sessions", "tooManySubscriptions" }

static const weft_error_row params_errors[] = {WEFT_ERROR_PARAMS, {0}};
static const weft_error_row new_errors[] = {WEFT_ERROR_PARAMS, NEEDS_EXEC, WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row open_errors[] = {WEFT_ERROR_PARAMS, NO_SESSION, NEEDS_EXEC, TOO_MANY, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row end_errors[] = {
    WEFT_ERROR_PARAMS,   WEFT_ERROR_AGENT,   NO_SESSION, {409, "The session is being closed or deleted", "sessionClosing"},
    WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row set_errors[] = {
    WEFT_ERROR_PARAMS,   NO_SESSION,         {WEFT_INTERNAL_ERROR, "The agent did not answer", "agentFailed"},
    WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row prompt_errors[] = {
    WEFT_ERROR_PARAMS,
    NO_SESSION,
    {ACP_NOT_FOUND, "The session is closed", "sessionClosed"},
    {ACP_LOGIN_REQUIRED, "The agent is not logged in", "authRequired"},
    {WEFT_INTERNAL_ERROR, "The agent failed", "agentFailed"},
    {409, "The idempotency key was used before, for a task with other params", "idempotencyKeyReused"},
    {413, "The prompt is too long", "tooLarge"},
    {429, "Too many prompts are waiting", "rateLimited"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};

static const weft_method methods[] = {
    {.name = "initialize",
     .handler = weft__acp_on_initialize,
     .params = weft__acp_initialize_params,
     .help = "the first call: versions and capabilities",
     .scope = WEFT_READ,
     .result = S_INITIALIZED,
     .errors = params_errors,
     .flags = WEFT_DECIDES},
    {.name = "authenticate",
     .handler = weft__acp_on_authenticate,
     .params = weft__acp_authenticate_params,
     .help = "log in; the hub has no ways to, because the connection has shown who it is",
     .scope = WEFT_READ,
     .result = S_OBJECT,
     .errors = params_errors},
    {.name = "_weft/hello",
     .handler = weft__acp_on_hello,
     .params = weft__acp_hello_params,
     .help = "speak ACP from now on, and which agent the sessions are for that this connection makes",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("agent", S_STRING), ""),
     .errors = params_errors,
     .flags = WEFT_DECIDES},
    {.name = "session/new",
     .handler = weft__acp_on_new,
     .params = weft__acp_new_params,
     .help = "make a session and open it at its agent",
     .scope = WEFT_WORK,
     .result = S_NEW_SESSION,
     .errors = new_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "session/load",
     .handler = weft__acp_on_load,
     .params = weft__acp_load_params,
     .help = "follow a session: what was said in it comes first, as session/update, then what happens",
     .scope = WEFT_READ,
     .result = S_OF(S_OPENED, ""),
     .errors = open_errors},
    {.name = "session/resume",
     .handler = weft__acp_on_resume,
     .params = weft__acp_resume_params,
     .help = "follow a session from now on, or from a position in _meta",
     .scope = WEFT_READ,
     .result = S_OF(S_OPENED, ""),
     .errors = open_errors},
    {.name = "session/list",
     .handler = weft__acp_on_list,
     .params = weft__acp_list_params,
     .help = "sessions, the newest first",
     .scope = WEFT_READ,
     .result = S_LISTED,
     .errors = params_errors},
    {.name = "session/close",
     .handler = weft__acp_on_close,
     .params = weft__acp_session_params,
     .help = "end a session's work; it can be loaded again",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = end_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "session/delete",
     .handler = weft__acp_on_delete,
     .params = weft__acp_session_params,
     .help = "end a session and forget it",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = end_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "session/set_mode",
     .handler = weft__acp_on_set_mode,
     .params = weft__acp_set_mode_params,
     .help = "choose one of a session's modes",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = set_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "session/set_config_option",
     .handler = weft__acp_on_set_option,
     .params = weft__acp_set_option_params,
     .help = "set one of a session's options; all of them come back",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("configOptions", S_LIST(S_OBJECT)), "\"configOptions\""),
     .errors = set_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "session/prompt",
     .handler = weft__acp_on_prompt,
     .params = weft__acp_prompt_params,
     .help = "say something in a session; answered when the turn has ended",
     .scope = WEFT_WORK,
     .result = S_STOPPED,
     .errors = prompt_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "session/cancel",
     .handler = weft__acp_on_cancel,
     .params = weft__acp_cancel_params,
     .help = "end a session's turn, and what this connection has queued behind it",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = end_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {0},
};

static bool is_acp_endpoint(const weft_scheme *scheme, const char *path) {
    return (scheme->flags & WEFT_UPGRADES) && strcmp(path, "/acp") == 0;
}

const weft_dialect weft__acp = {.name = "acp",
                                .methods = methods,
                                .endpoint = is_acp_endpoint,
                                .claims = weft__acp_claims,
                                .render = weft__acp_render,
                                .variants = weft__acp_variants,
                                .style = WEFT_STYLE_ACP,
                                .no_batch = true};
