/* Sessions with an ACP agent, several in one process, and their turns, one at a time in each.
 *
 *   session   ──process ready──▶ opening ──answered──▶ open       weft__acp_session_open(), on_opened()
 *             ──refused──▶ neither, until the next turn           has_result(), refuse_opening_again()
 *   turn      IDLE ──prompt──▶ WAITING ──session open──▶ PROMPTING ──answered, process gone──▶ IDLE   weft__acp_tell_end()
 */
#include <errno.h>
#include <string.h>

#include "acp_private.h"
#include "sum.h"

/* Agents log in, start MCP servers and replay their history before they answer. */
#define OPEN_MS 120000
/* Nobody waits for the answer to session/close. */
#define CLOSE_MS 10000

/* ---- memory ---- */

void weft__acp_session_hold(weft_driver_session *session) {
    session->holds++;
}

void weft__acp_session_release(weft_driver_session *session) {
    weft_driver_process *process = session->process;
    const weft_alloc *alloc = process->alloc;
    if (--session->holds)
        return;
    weft__acp_end_clear(session);
    weft__free(alloc, session->folder);
    weft__free(alloc, session->servers);
    weft__free(alloc, session->settings);
    weft__free(alloc, session->id);
    weft__free(alloc, session->prompt);
    weft__free(alloc, session->login);
    weft__free(alloc, session->elicitation);
    weft__free(alloc, session);
    weft__acp_release(process);
}

/* Nothing of it is called any more. */
static void forget_session(weft_driver_session *session) {
    session->closed = true;
    session->turn = WEFT_ACP_IDLE;
    weft__acp_requests_drop(session->process, session);
    weft__timer_stop(session->process->loop, &session->timer);
    weft__later_cancel(&session->later);
    weft__list_remove(&session->link);
    weft__acp_session_release(session);
}

/* ---- the end of a turn ---- */

void weft__acp_tell_end(weft_driver_session *session) {
    weft_driver_process *process = session->process;
    weft__acp_session_hold(session);
    weft__timer_stop(process->loop, &session->timer);
    weft__later_cancel(&session->later);
    weft__acp_asks_cancel(session);
    if (!process->paused)
        weft__acp_stderr_drain(process); /* it was written before the turn ended */
    if (!session->closed && session->turn != WEFT_ACP_IDLE) {
        session->turn = WEFT_ACP_IDLE;
        session->cancelling = false;
        session->prompt = weft__free(process->alloc, session->prompt);
        session->host->on_turn_end(session->ctx, weft__acp_complete_end(session));
    }
    weft__acp_session_release(session);
}

static void on_turn_later(weft_later *later) {
    weft__acp_tell_end(WEFT_CONTAINER(later, weft_driver_session, later));
}

/* The agent had its time to end the turn. */
static void on_turn_due(weft_timer *timer) {
    weft__acp_stop_for(WEFT_CONTAINER(timer, weft_driver_session, timer), false);
}

void weft__acp_sessions_finish(weft_driver_process *process) {
    weft_link *link = process->sessions.next;
    while (!process->freed && link != &process->sessions) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        link = link->next;
        if (session->turn == WEFT_ACP_IDLE)
            continue;
        weft__acp_decide_gone(session);
        weft__acp_tell_end(session);
        link = process->sessions.next; /* the callback may have closed any of them; those that are told of are idle */
    }
}

/* Does another session than this have a turn? */
static bool is_turn_elsewhere(const weft_driver_process *process, const weft_driver_session *but) {
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next) {
        const weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        if (session != but && session->turn != WEFT_ACP_IDLE)
            return true;
    }
    return false;
}

/* ---- answers ---- */

/* A call that got no result: false. A lost connection is not the end: how the process ends says more (see on_state). */
static bool has_result(weft_driver_session *session, int r, const weft_answer *answer, const char *method) {
    weft_driver_process *process = session->process;
    if (session->closed || process->state >= WEFT_ACP_LEAVING || r == -ECONNRESET || r == -ENOTCONN || r == -ECANCELED)
        return false;
    if (r >= 0 && answer->result)
        return weft__acp_check(process, method, answer->result);
    if (r >= 0) {
        weft__acp_decide_error(session, method, answer->error);
        weft__acp_tell_end(session);
    } else if (r == -ETIMEDOUT)
        weft__acp_fail(process, true, "did not answer in time: ", method);
    else
        weft__acp_fail(process, true, "gave no valid answer to ", method);
    return false;
}

/* ---- the prompt ---- */

static void on_prompted(weft_driver_session *session, int r, const weft_answer *answer) {
    if (session->turn != WEFT_ACP_PROMPTING || !has_result(session, r, answer, "session/prompt"))
        return;
    weft_json usage = weft_get(answer->result, "usage");
    weft__acp_decide_stop(session, weft_get_str(answer->result, "stopReason", ""));
    if (weft_typeof(&usage) == WEFT_OBJECT && session->host->on_usage)
        session->host->on_usage(session->ctx, &usage);
    if (!session->closed)
        weft__acp_tell_end(session);
}

static int send_prompt(weft_driver_session *session) {
    session->turn = WEFT_ACP_PROMPTING;
    weft_val text = WEFT_OBJ({"type", weft_str("text")}, {"text", weft_str(session->prompt)});
    const weft_trace *trace = &session->trace;
    weft_val meta = WEFT_OBJ({"traceparent", weft_str(trace->traceparent)},
                             {"tracestate", weft_str_or_none(*trace->tracestate ? trace->tracestate : NULL)});
    weft_val params = WEFT_OBJ({"sessionId", weft_str(session->id)}, {"prompt", weft_arr(&text, 1)},
                               {"_meta", *trace->traceparent ? meta : weft_none()});
    int r = weft__acp_call(session, "session/prompt", params, on_prompted, -1);
    session->prompt = weft__free(session->process->alloc, session->prompt);
    return r;
}

/* ---- opening ---- */

/* It is open, and that was all that was wanted. */
static void end_bare_opening(weft_driver_session *session) {
    weft__acp_decide(session, false, NULL, "it is ok");
    weft__acp_tell_end(session);
}

void weft__acp_go_on(weft_driver_session *session) {
    if (session->closed || !session->open || session->sets || session->turn != WEFT_ACP_WAITING || session->decided)
        return;
    if (session->only_open)
        end_bare_opening(session);
    else
        send_prompt(session);
}

/* What was chosen for it is set before anybody hears that it is open, and before its prompt. */
static void tell_open(weft_driver_session *session, const weft_json *result) {
    const weft_driver_process *process = session->process;
    weft__acp_session_hold(session);
    session->open = true;
    session->must_exist = false;
    session->sets++; /* nothing goes on before all of this was said */
    weft__acp_state_read(session, result);
    session->host->on_session(session->ctx,
                              &(weft_session_info){
                                  .agent_session = process->can_load || process->can_resume ? session->id : NULL,
                                  .renewed = session->renewed,
                              });
    if (!session->closed)
        weft__acp_state_tell(session, result);
    bool refused = !session->closed && weft__acp_settings_apply(session) < 0;
    session->sets--;
    if (refused && !session->closed)
        weft__acp_tell_end(session);
    else
        weft__acp_go_on(session);
    weft__acp_session_release(session);
}

static weft_driver_session *find_open(const weft_driver_process *process, const char *id) {
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        if ((session->open || session->opening) && session->id && strcmp(id, session->id) == 0)
            return session;
    }
    return NULL;
}

/* Some agents have one name for all their sessions, and so one session. An earlier one that has no turn is opened again with
 * its next; what comes cannot be told apart while it has one. */
static bool is_name_free(const weft_driver_process *process, const char *id) {
    weft_driver_session *other = find_open(process, id);
    if (!other)
        return true;
    other->open = other->turn != WEFT_ACP_IDLE;
    return !other->open && !other->opening;
}

static void on_opened(weft_driver_session *session, int r, const weft_answer *answer) {
    weft_driver_process *process = session->process;
    session->opening = false;
    if (r >= 0 && answer->error && weft__acp_login_ask(session, answer->error))
        return;
    if (!has_result(session, r, answer, "session/new"))
        return;
    const char *id = weft_get_str(answer->result, "sessionId", "");
    if (*id && !is_name_free(process, id)) {
        weft__acp_decide(session, true, "protocolError", "%s gave two sessions the same name", process->agent->name);
        weft__acp_tell_end(session);
        return;
    }
    session->id = *id ? weft__strndup(process->alloc, id, strlen(id)) : NULL;
    if (session->id)
        tell_open(session, answer->result);
    else
        weft__acp_fail(process, false, "did not name the session that it opened", "");
}

static const char *folder_of(const weft_driver_session *session) {
    return session->folder ? session->folder : session->process->folder;
}

static bool can_use_server(const weft_driver_process *process, const weft_json *server) {
    const char *type = weft_get_str(server, "type", "stdio");
    return strcmp(type, "http") == 0 ? process->can_http : strcmp(type, "sse") == 0 ? process->can_sse : true;
}

/* An agent is not told of MCP servers that it did not say it can reach. What is left is not longer than what was there. */
static int drop_unusable_servers(weft_driver_session *session) {
    weft_doc *doc;
    size_t len = 0;
    if (!session->servers)
        return 0;
    int r = weft_doc_parse(session->servers, session->servers_len, session->process->alloc, &doc);
    if (r < 0)
        return r;
    session->servers[len++] = '[';
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); weft_next(&it);) {
        if (!can_use_server(session->process, &it.value))
            continue;
        if (len > 1)
            session->servers[len++] = ',';
        memcpy(session->servers + len, it.value.text, it.value.len);
        len += it.value.len;
    }
    session->servers[len++] = ']';
    session->servers_len = len;
    weft_doc_free(doc);
    return 0;
}

static weft_val servers_of(const weft_driver_session *session) {
    return session->servers ? weft_raw(session->servers, session->servers_len) : weft_arr(NULL, 0);
}

static int call_session_new(weft_driver_session *session) {
    session->id = weft__free(session->process->alloc, session->id);
    session->opening = true;
    return weft__acp_call(session, "session/new",
                          WEFT_OBJ({"cwd", weft_str(folder_of(session))}, {"mcpServers", servers_of(session)}), on_opened,
                          OPEN_MS);
}

/* It does not know the session any more, or cannot go on with it. Whoever asked is better served by a new one, and is told.
 */
static void open_new_instead(weft_driver_session *session) {
    static const char text[] = "weft: the agent could not go on with its earlier session; this is a new one\n";
    weft__acp_session_hold(session);
    session->renewed = true;
    session->host->on_output(session->ctx, WEFT_RUN_STDERR, (weft_bytes){text, sizeof text - 1});
    if (!session->closed && session->process->state == WEFT_ACP_READY)
        call_session_new(session);
    weft__acp_session_release(session);
}

/* It is this one or none. */
static void refuse_opening_again(weft_driver_session *session, const weft_error *error) {
    const char *name = session->process->agent->name;
    if (error)
        weft__acp_decide(session, false, "sessionNotFound", "%s could not go on with this session: %s", name,
                         error->message);
    else
        weft__acp_decide(session, false, "cannotResume", "%s cannot go on with a session that it had before", name);
}

static void on_opened_again(weft_driver_session *session, int r, const weft_answer *answer) {
    session->replaying = session->opening = false;
    bool refused = r >= 0 && answer->error && answer->error->code != WEFT_ACP_AUTH_REQUIRED;
    if (refused && session->must_exist && !session->closed) {
        refuse_opening_again(session, answer->error);
        weft__acp_tell_end(session);
    } else if (refused && !session->closed && session->process->state == WEFT_ACP_READY)
        open_new_instead(session);
    else if (r >= 0 && answer->error && weft__acp_login_ask(session, answer->error))
        return;
    else if (has_result(session, r, answer, "session/load"))
        tell_open(session, answer->result);
}

/* Resuming is preferred, unless history is wanted: it replays nothing. */
static int call_load_or_resume(weft_driver_session *session) {
    const weft_driver_process *process = session->process;
    bool loads = process->can_load && (session->replay || !process->can_resume);
    session->opening = true;
    session->replaying = !(loads && session->replay);
    return weft__acp_call(session, loads ? "session/load" : "session/resume",
                          WEFT_OBJ({"sessionId", weft_str(session->id)}, {"cwd", weft_str(folder_of(session))},
                                   {"mcpServers", servers_of(session)}),
                          on_opened_again, OPEN_MS);
}

int weft__acp_session_open(weft_driver_session *session) {
    const weft_driver_process *process = session->process;
    if (process->state != WEFT_ACP_READY || session->opening || session->open)
        return 0;
    bool can = process->can_load || process->can_resume;
    if (session->id && !can && session->must_exist) {
        refuse_opening_again(session, NULL);
        weft__later(process->loop, &session->later);
        return 0;
    }
    int r = drop_unusable_servers(session);
    if (r < 0)
        return r;
    return session->id && can ? call_load_or_resume(session) : call_session_new(session);
}

void weft__acp_sessions_open(weft_driver_process *process) {
    weft_link *link = process->sessions.next, *next;
    for (; process->state == WEFT_ACP_READY && link != &process->sessions; link = next) {
        next = link->next;
        weft__acp_session_open(WEFT_CONTAINER(link, weft_driver_session, link));
    }
}

/* An agent may speak of a session before it has answered with its name, and some leave the name out. */
weft_driver_session *weft__acp_session_of(const weft_driver_process *process, const weft_json *params) {
    const char *id = weft_get_str(params, "sessionId", NULL);
    weft_driver_session *named = id ? find_open(process, id) : NULL, *unnamed = NULL;
    for (weft_link *link = process->sessions.next; !named && link != &process->sessions; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        if ((!id || !session->id) && (session->opening || session->open))
            unnamed = session;
    }
    return named ? named : unnamed;
}

/* ---- cancelling ---- */

bool weft__acp_cancel_politely(weft_driver_session *session) {
    weft_driver_process *process = session->process;
    bool first = !session->cancelling;
    session->cancelling = true;
    if (session->decided && process->state < WEFT_ACP_LEAVING)
        return false;
    if (session->turn == WEFT_ACP_WAITING && is_turn_elsewhere(process, session) && process->state < WEFT_ACP_LEAVING) {
        weft__acp_decide_cancelled(session);
        if (session->call && process->peer) /* what it waits for is not wanted any more */
            weft_cancel(process->peer, session->call);
        weft__later(process->loop, &session->later);
        return false;
    }
    if (session->turn != WEFT_ACP_PROMPTING || !process->peer)
        return true;
    if (!first)
        return false;
    weft_notify(process->peer, "session/cancel", WEFT_OBJ({"sessionId", weft_str(session->id)}));
    weft__acp_asks_cancel(session);
    weft__timer_set(process->loop, &session->timer,
                    weft__add_ms(weft__loop_fresh_now(process->loop), weft__acp_turn_grace(process)));
    return false;
}

/* ---- the driver's functions ---- */

static int copy_session_spec(weft_driver_session *session, const weft_session_spec *spec) {
    const weft_alloc *alloc = session->process->alloc;
    const weft_json *settings = spec->settings;
    session->replay = spec->replay;
    session->must_exist = spec->must_exist;
    if (settings && !(session->settings = weft__strndup(alloc, settings->text, settings->len)))
        return -ENOMEM;
    if (spec->folder && !(session->folder = weft__strndup(alloc, spec->folder, strlen(spec->folder))))
        return -ENOMEM;
    if (spec->agent_session && !(session->id = weft__strndup(alloc, spec->agent_session, strlen(spec->agent_session))))
        return -ENOMEM;
    session->servers_len = spec->mcp_servers ? spec->mcp_servers->len : 0;
    if (spec->mcp_servers && !(session->servers = weft__strndup(alloc, spec->mcp_servers->text, session->servers_len)))
        return -ENOMEM;
    return 0;
}

int weft__acp_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host, void *ctx,
                      weft_driver_session **ret) {
    if (process->state >= WEFT_ACP_LEAVING || process->gone)
        return -EPIPE;
    weft_driver_session *session = weft__zalloc(process->alloc, sizeof *session);
    if (!session)
        return -ENOMEM;
    session->process = process;
    session->host = host;
    session->ctx = ctx;
    session->holds = 1;
    weft__acp_hold(process);
    weft__list_init(&session->asks);
    weft__timer_init(&session->timer, on_turn_due);
    weft__later_init(&session->later, on_turn_later);
    weft__list_push(&process->sessions, &session->link);
    int r = copy_session_spec(session, spec);
    if (r >= 0)
        r = weft__acp_session_open(session);
    if (r < 0) {
        forget_session(session);
        return r;
    }
    *ret = session;
    return 0;
}

/* It is open already. What is being set now comes first. */
static int begin_at_once(weft_driver_session *session) {
    if (session->only_open) {
        weft__acp_decide(session, false, NULL, "it is ok");
        weft__later(session->process->loop, &session->later);
    }
    return session->only_open || session->sets ? 0 : send_prompt(session);
}

int weft__acp_prompt(weft_driver_session *session, const weft_turn_spec *spec) {
    weft_driver_process *process = session->process;
    if (process->state >= WEFT_ACP_LEAVING || process->gone)
        return -EPIPE;
    if (session->turn != WEFT_ACP_IDLE)
        return -EBUSY;
    session->prompt = spec->prompt ? weft__strndup(process->alloc, spec->prompt, strlen(spec->prompt)) : NULL;
    if (spec->prompt && !session->prompt)
        return -ENOMEM;
    snprintf(session->trace.traceparent, sizeof session->trace.traceparent, "%s",
             spec->traceparent ? spec->traceparent : "");
    snprintf(session->trace.tracestate, sizeof session->trace.tracestate, "%s", spec->tracestate ? spec->tracestate : "");
    weft__acp_end_clear(session);
    session->logins = 0;
    session->only_open = !spec->prompt;
    session->turn = WEFT_ACP_WAITING;
    int r = session->open ? begin_at_once(session) : weft__acp_session_open(session);
    if (r < 0) {
        session->prompt = weft__free(process->alloc, session->prompt);
        session->turn = WEFT_ACP_IDLE;
    }
    return r < 0 ? r : 0;
}

static void ignore_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer, (void) r, (void) answer, (void) ctx;
}

/* The agent is told where it has words for that. */
weft_driver_session *weft__acp_close(weft_driver_session *session) {
    if (!session)
        return NULL;
    weft_driver_process *process = session->process;
    weft_val params = WEFT_OBJ({"sessionId", weft_str(session->id ? session->id : "")});
    weft__acp_asks_cancel(session);
    if (process->peer && session->turn == WEFT_ACP_PROMPTING)
        weft_notify(process->peer, "session/cancel", params);
    if (process->peer && session->open && process->can_close)
        weft_call_start(process->peer, "session/close", params,
                        &(weft_call_opts){.on_answer = ignore_answer, .timeout_ms = CLOSE_MS}, NULL);
    forget_session(session);
    return NULL;
}

void weft__acp_sessions_drop(weft_driver_process *process) {
    while (!weft__list_empty(&process->sessions)) {
        weft_driver_session *session = WEFT_CONTAINER(process->sessions.next, weft_driver_session, link);
        weft__acp_asks_cancel(session);
        forget_session(session);
    }
}
