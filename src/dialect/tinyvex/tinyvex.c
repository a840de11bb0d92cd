/* tinyvex: its methods, their errors and what they answer. A method is a row here and a handler in the file that is named
 * for what it is about. */
#include "tinyvex.h"

#include <string.h>

#include "reply.h"
#include "schemas.h"
#include "transport.h"

/* clang-format off */
#define S_NUMBER "{\"type\":\"number\"}"
#define S_OK S_OF(S_IS("ok", S_TRUE), "\"ok\"")

#define S_CONNECTED S_OF( \
    S_IS("serverVersion", S_STRING) "," \
    S_IS("nowTs", S_COUNT) "," \
    S_IS("features", S_OF(S_IS("chunks", S_BOOL) "," S_IS("maxChunkBytes", S_COUNT), "\"chunks\",\"maxChunkBytes\"")) "," \
    S_IS("sessionId", S_STRING), \
    "\"serverVersion\",\"nowTs\",\"features\",\"sessionId\"")
#define S_CHANGED S_OF(S_IS("requestId", S_STRING) "," S_IS("value", S_OBJECT), "\"requestId\",\"value\"")

#define S_SUBSCRIBED S_OF( \
    S_IS("accepted", S_TRUE) "," \
    S_IS("resumed", S_BOOL) "," \
    S_IS("startSeq", S_COUNT) "," \
    S_IS("journal", S_STRING) "," \
    S_IS("mode", "{\"enum\":[\"log\",\"state\"]}") "," \
    S_IS("reason", "{\"enum\":[\"epochChanged\",\"trimmed\",\"futureSeq\"]}"), \
    "\"accepted\",\"resumed\",\"startSeq\",\"journal\",\"mode\"")

#define S_ENTRY S_OF( \
    S_IS("session_id", S_STRING) "," \
    S_IS("update", S_OBJECT) "," \
    S_IS("_meta", S_OF(S_IS("seq", S_COUNT) "," S_IS("ts", S_COUNT), "\"seq\",\"ts\"")), \
    "\"session_id\",\"update\"")
#define S_RECENT S_OF( \
    S_IS("session_id", S_STRING) "," \
    S_IS("last_ts", S_COUNT) "," \
    S_IS("message_count", S_COUNT) "," \
    S_IS("title", S_TEXT_OR_NULL) "," \
    S_IS("archived", S_BOOL), \
    "\"session_id\",\"last_ts\",\"message_count\"")
/* clang-format on */

/* With tinyvex's name in data.code. */
#define ERROR_REJECTED                                                                                                      \
    { WEFT_INVALID_PARAMS, "Invalid params", "invalidParams", TVX_REJECTED }

static const weft_error_row params_errors[] = {WEFT_ERROR_PARAMS, {0}};
static const weft_error_row recent_errors[] = {ERROR_REJECTED, {0}};
static const weft_error_row token_errors[] = {WEFT_ERROR_PARAMS,
                                              {401, "Not authenticated", "unauthorized"},
                                              {429, "Too many wrong tokens", "tooManyWrongTokens"},
                                              {0}};

/* What a mutation or an action may answer; each of them has more in its own words. */
static const weft_error_row change_errors[] = {
    {WEFT_INVALID_PARAMS, "Invalid params", "invalidParams", TVX_MUTATION_FAILED},
    {WEFT_INVALID_PARAMS, "There is no such mutation or action", "unknownName"},
    {WEFT_INVALID_PARAMS, "The requestId was used for something else", "requestIdReused"},
    {WEFT_INVALID_PARAMS, "There is no such thread", "sessionNotFound"},
    {WEFT_INVALID_PARAMS, "There is no such agent", "agentNotConfigured"},
    {WEFT_INTERNAL_ERROR, "It was done before, and its answer is forgotten", "requestForgotten"},
    {WEFT_INTERNAL_ERROR, "It is not known whether it was done", "outcomeUnknown"},
    {WEFT_INTERNAL_ERROR, "The value has another version", "versionConflict"},
    {WEFT_INTERNAL_ERROR, "The thread is archived, or about to be", "sessionClosed"},
    {WEFT_INTERNAL_ERROR, "The agent did not do it", "agentRefused"},
    {403, "The caller may not do this", "forbidden"},
    WEFT_ERROR_AGENT,
    {413, "It is too large", "tooLarge"},
    {429, "Too many messages wait in the thread", "sessionQueueFull"},
    {429, "Too many tasks wait", "queueFull"},
    {503, "Too many agents are being asked", "agentsBusy"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {WEFT_INTERNAL_ERROR, "There is nothing to commit", "nothingToCommit"},
    {WEFT_INTERNAL_ERROR, "git refused", "gitRefused"},
    {WEFT_INTERNAL_ERROR, "The repository was not trusted on this machine", "gitUntrusted"},
    {WEFT_INTERNAL_ERROR, "There is no repository", "noRepository"},
    {WEFT_INTERNAL_ERROR, "Too many calls wait for git", "gitBusy"},
    {WEFT_INTERNAL_ERROR, "git took too long", "gitTimedOut"},
    {WEFT_INTERNAL_ERROR, "git failed", "gitFailed"},
    {501, "git is not served here", "gitNotServed"},
    {0},
};
static const weft_error_row subscribe_errors[] = {
    {WEFT_INVALID_PARAMS, "There is no such stream", "streamNotFound"},
    ERROR_REJECTED,
    {WEFT_INTERNAL_ERROR, "A connection may have 1024 subscriptions", "tooManySubscriptions"},
    {WEFT_INTERNAL_ERROR, "Too many streams are followed", "tooManyStreams"},
    {WEFT_INTERNAL_ERROR, "The value is too large", "tooLarge"},
    {WEFT_INTERNAL_ERROR, "The value takes too long to compute", "timeout"},
    {WEFT_INTERNAL_ERROR, "The events cannot be read", "storageFailed"},
    {WEFT_INVALID_REQUEST, "Nothing can be delivered here", "cannotListen"},
    {WEFT_CANCELLED, "Something else was subscribed meanwhile", "superseded"},
    {0},
};
static const weft_error_row unsubscribe_errors[] = {
    {WEFT_INVALID_PARAMS, "There is no such subscription", "subscriptionNotFound"}, ERROR_REJECTED, {0}};

#define ERROR_NO_SESSION                                                                                                    \
    { WEFT_INVALID_PARAMS, "There is no such session", "sessionNotFound" }
static const weft_error_row history_errors[] = {
    ERROR_REJECTED,      ERROR_NO_SESSION,   {429, "Too much is being read", "rateLimited"},
    WEFT_ERROR_STOPPING, WEFT_ERROR_STORAGE, {0}};
static const weft_error_row title_errors[] = {
    ERROR_REJECTED,
    ERROR_NO_SESSION,
    WEFT_ERROR_AGENT,
    {WEFT_INTERNAL_ERROR, "The session is being closed or deleted", "sessionClosed"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0}};
static const weft_error_row get_errors[] = {ERROR_REJECTED, ERROR_NO_SESSION, {0}};

static const weft_method methods[] = {
    {.name = "tinyvex/connect",
     .handler = weft__tinyvex_on_connect,
     .params = weft__tinyvex_connect_params,
     .help = "begin: the hub's version and time, and how long values are cut",
     .scope = WEFT_READ,
     .result = S_CONNECTED,
     .errors = params_errors,
     .flags = WEFT_DECIDES},
    {.name = "tinyvex/ping",
     .handler = weft__tinyvex_on_ping,
     .params = weft__tinyvex_ping_params,
     .help = "check that the hub is there; sent as a notification, tinyvex/pong answers it",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("t", S_NUMBER), ""),
     .errors = params_errors},
    {.name = "tinyvex/auth.setToken",
     .handler = weft__tinyvex_on_set_token,
     .params = weft__tinyvex_set_token_params,
     .help = "show a token on a connection that began without one; null: forget who this is",
     .result = S_OK,
     .errors = token_errors,
     .flags = WEFT_ROW_OPEN},
    {.name = "tinyvex/history.sessionUpdates",
     .handler = weft__tinyvex_on_updates,
     .params = weft__tinyvex_updates_params,
     .help = "what happened in a session, from a position or a time on",
     .scope = WEFT_READ,
     .result = S_LIST(S_ENTRY),
     .errors = history_errors},
    {.name = "tinyvex/history.sessionTimeline",
     .handler = weft__tinyvex_on_timeline,
     .params = weft__tinyvex_timeline_params,
     .help = "what happened in a session, its beginning or its end",
     .scope = WEFT_READ,
     .result = S_LIST(S_ENTRY),
     .errors = history_errors},
    {.name = "tinyvex/history.recentSessions",
     .handler = weft__tinyvex_on_recent,
     .params = weft__tinyvex_recent_params,
     .help = "the sessions that changed last",
     .scope = WEFT_READ,
     .result = S_LIST(S_RECENT),
     .errors = recent_errors},
    {.name = "tinyvex/history.getSessionTitle",
     .handler = weft__tinyvex_on_get_title,
     .params = weft__tinyvex_session_params,
     .help = "the title that somebody gave a session, else its agent's",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("title", S_TEXT_OR_NULL), "\"title\""),
     .errors = get_errors},
    {.name = "tinyvex/history.setSessionTitle",
     .handler = weft__tinyvex_on_set_title,
     .params = weft__tinyvex_title_params,
     .help = "give a session a title",
     .scope = WEFT_WORK,
     .result = S_OK,
     .errors = title_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_FOR_PEOPLE},
    {.name = "tinyvex/history.clearSessionTitle",
     .handler = weft__tinyvex_on_clear_title,
     .params = weft__tinyvex_session_params,
     .help = "remove a session's title; the agent's title is used again",
     .scope = WEFT_WORK,
     .result = S_OK,
     .errors = title_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_FOR_PEOPLE},
    {.name = "tinyvex/history.deleteSession",
     .handler = weft__tinyvex_on_delete_session,
     .params = weft__tinyvex_session_params,
     .help = "delete a session and everything that was said in it",
     .scope = WEFT_WORK,
     .result = S_OK,
     .errors = title_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "tinyvex/mutation",
     .handler = weft__tinyvex_on_mutation,
     .params = weft__tinyvex_change_params,
     .help = "change something, once for each requestId: thread.create, thread.rename, thread.archive, thread.delete, "
             "message.post, doc.put, doc.delete",
     .scope = WEFT_WORK,
     .result = S_CHANGED,
     .errors = change_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON},
    {.name = "tinyvex/action",
     .handler = weft__tinyvex_on_action,
     .params = weft__tinyvex_change_params,
     .help = "do something outside of the hub, at most once for each requestId: agent.prompt, git.commit",
     .scope = WEFT_WORK,
     .result = S_CHANGED,
     .errors = change_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "tinyvex/subscribe",
     .handler = weft__tinyvex_on_subscribe,
     .params = weft__tinyvex_subscribe_params,
     .help = "follow a stream, from a position or anew; its values come as tinyvex/data",
     .scope = WEFT_READ,
     .result = S_SUBSCRIBED,
     .errors = subscribe_errors},
    {.name = "tinyvex/unsubscribe",
     .handler = weft__tinyvex_on_unsubscribe,
     .params = weft__tinyvex_unsubscribe_params,
     .help = "end a subscription",
     .scope = WEFT_READ,
     .result = S_OK,
     .errors = unsubscribe_errors},
    {0},
};

static bool is_tinyvex_endpoint(const weft_scheme *scheme, const char *path) {
    return (scheme->flags & WEFT_UPGRADES) && strcmp(path, "/tinyvex") == 0;
}

static bool claims_connect(const weft_json *params) {
    (void) params;
    return true;
}

/* What happens in sessions is said in ACP's words: those of today, unless its initialize asks for the older ones. */
const weft_dialect weft__tinyvex = {.name = "tinyvex",
                                    .methods = methods,
                                    .endpoint = is_tinyvex_endpoint,
                                    .claims = claims_connect,
                                    .also = "acp",
                                    .joins = true};
