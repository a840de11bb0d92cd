/* How a turn of an ACP agent ended. What the agent said about its turn counts first; when it said nothing, how its process
 * ended does. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "acp_private.h"

/* A sentence, perhaps with a path in it. An agent's own message is cut to fit. */
#define SENTENCE WEFT_ACP_SENTENCE

/* How to log in, with a path in it. */
#define LOGIN 4352

/* Bytes of a stop reason. */
#define LONGEST_STOP 64

static void decide_text(weft_driver_session *session, bool retryable, const char *reason, const char *format, va_list args) {
    char sentence[SENTENCE];
    if (session->decided)
        return;
    session->decided = true;
    session->end.ok = !reason;
    session->end.retryable = retryable;
    session->end.reason = reason;
    if (!reason)
        return;
    int n = vsnprintf(sentence, sizeof sentence, format, args);
    size_t len = n < 0 ? 0 : (size_t) n < sizeof sentence ? (size_t) n : sizeof sentence - 1;
    session->error = weft__strndup(session->process->alloc, sentence, len);
}

void weft__acp_decide(weft_driver_session *session, bool retryable, const char *reason, const char *format, ...) {
    va_list args;
    va_start(args, format);
    decide_text(session, retryable, reason, format, args);
    va_end(args);
}

void weft__acp_decide_all(weft_driver_process *process, bool retryable, const char *reason, const char *format, ...) {
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        va_list args;
        va_start(args, format);
        if (session->turn != WEFT_ACP_IDLE)
            decide_text(session, retryable, reason, format, args);
        va_end(args);
    }
}

void weft__acp_decide_cancelled(weft_driver_session *session) {
    weft__acp_decide(session, false, "cancelled", "it was cancelled");
}

/* A word as ACP has them, if perhaps one of a later version; anything else is not worth keeping. */
static bool is_stop_reason(const char *text) {
    size_t len = strlen(text);
    return len > 0 && len <= LONGEST_STOP && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == len;
}

void weft__acp_decide_stop(weft_driver_session *session, const char *stop_reason) {
    if (session->decided)
        return;
    if (is_stop_reason(stop_reason))
        session->stop_reason = weft__strndup(session->process->alloc, stop_reason, strlen(stop_reason));
    session->end.stop_reason = session->stop_reason;
    /* A turn that reached one of the agent's limits did what it could, and whoever asked sees why it stopped. */
    if (strcmp(stop_reason, "refusal") == 0)
        weft__acp_decide(session, false, "refused", "%s refused to do this", session->process->agent->name);
    else if (strcmp(stop_reason, "cancelled") == 0 && session->cancelling)
        weft__acp_decide_cancelled(session);
    else if (strcmp(stop_reason, "cancelled") == 0)
        weft__acp_decide(session, false, "cancelled", "%s ended its turn as cancelled, which nobody asked for",
                         session->process->agent->name);
    else
        weft__acp_decide(session, false, NULL, "it is ok");
}

/* Agents put what happened into data, and a phrase into message. */
static const char *detail_of(const weft_error *error) {
    const char *detail = weft_str_of(&error->data, "");
    detail = weft_get_str(&error->data, "message", detail);
    detail = weft_get_str(&error->data, "details", detail);
    return strcmp(detail, error->message) == 0 ? "" : detail;
}

/* The folder of its program, with the slash; "" when it is found by name. */
static int bin_of(const weft_agent *agent) {
    const char *slash = agent->argv && agent->argv[0] ? strrchr(agent->argv[0], '/') : NULL;
    return slash ? (int) (slash + 1 - agent->argv[0]) : 0;
}

/* What the preset says; else what the agent offers; else what most agents need. */
static const char *say_login(const weft_driver_session *session, char ret[LOGIN]) {
    const char *login = session->process->agent->login, *bin = login ? strstr(login, "{bin}") : NULL;
    if (bin)
        snprintf(ret, LOGIN, "%.*s%.*s%s", (int) (bin - login), login, bin_of(session->process->agent),
                 session->process->agent->argv ? session->process->agent->argv[0] : "", bin + 5);
    else if (login)
        snprintf(ret, LOGIN, "%s", login);
    else if (weft__buf_len(&session->process->auth))
        snprintf(ret, LOGIN, "It offers: %.*s. Start it once in a terminal and log in there.",
                 (int) weft__buf_len(&session->process->auth), weft__buf_head(&session->process->auth));
    else
        snprintf(ret, LOGIN, "Start it once in a terminal and log in there.");
    return ret;
}

void weft__acp_say_login(const weft_driver_session *session, const weft_error *error, char ret[WEFT_ACP_SENTENCE]) {
    const char *detail = detail_of(error);
    char how[LOGIN];
    snprintf(ret, WEFT_ACP_SENTENCE, "%s is not logged in (%.300s%s%.200s). %s", session->process->agent->name,
             error->message, *detail ? ": " : "", detail, say_login(session, how));
}

void weft__acp_decide_error(weft_driver_session *session, const char *method, const weft_error *error) {
    const char *name = session->process->agent->name, *detail = detail_of(error);
    const char *colon = *detail ? ": " : "";
    char sentence[SENTENCE];
    if (error->code == WEFT_ACP_AUTH_REQUIRED) {
        weft__acp_say_login(session, error, sentence);
        weft__acp_decide(session, false, "authRequired", "%s", sentence);
    } else
        weft__acp_decide(session, error->code == WEFT_INTERNAL_ERROR, "agentError",
                         "%s answered %s with an error: %s%s%s (%d)", name, method, error->message, colon, detail,
                         error->code);
}

/* ---- how the process ended ---- */

static void decide_spawn(weft_driver_session *session, const weft_process_end *end) {
    const char *advice = session->process->agent->advice;
    if (end->error == -ENOENT && !end->folder)
        weft__acp_decide(session, false, "spawnFailed", "the program of %s is not installed%s%s",
                         session->process->agent->name, advice ? ". " : "", advice ? advice : "");
    else
        weft__acp_decide(session, false, "spawnFailed", "%s could not be started%s%s: %s", session->process->agent->name,
                         end->folder ? " in " : "", end->folder ? session->process->folder : "", strerror(-end->error));
}

static void decide_crash(weft_driver_session *session, const weft_process_end *end) {
    const char *name = session->process->agent->name;
    if (session->process->deaf && (end->signal == SIGTERM || end->signal == SIGKILL))
        weft__acp_decide(session, true, "protocolError", "%s closed its standard output in the middle of a turn", name);
    else if (end->signal)
        weft__acp_decide(session, true, "signalled", "%s was ended by signal %d (%s)", name, end->signal,
                         strsignal(end->signal));
    else
        weft__acp_decide(session, true, "exited", "%s exited with status %d before its turn was over", name, end->exit_code);
}

/* ---- telling ---- */

static bool wants_tail(const weft_driver_session *session) {
    static const char *const reasons[] = {"exited", "signalled", "protocolError", "agentError"};
    for (size_t i = 0; session->end.reason && i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(session->end.reason, reasons[i]) == 0)
            return true;
    return false;
}

/* What it wrote to its standard error last, below the sentence. */
static void add_tail(weft_driver_session *session) {
    weft_bytes tail = weft__acp_stderr_tail(session->process);
    size_t len = session->error ? strlen(session->error) : 0;
    char *text = tail.len && len ? weft__alloc(session->process->alloc, len + 1 + tail.len + 1) : NULL;
    if (!text)
        return;
    memcpy(text, session->error, len);
    text[len] = '\n';
    memcpy(text + len + 1, tail.data, tail.len);
    text[len + 1 + tail.len] = '\0';
    weft__free(session->process->alloc, session->error);
    session->error = text;
}

void weft__acp_decide_gone(weft_driver_session *session) {
    const weft_driver_process *process = session->process;
    const weft_process_end *end = &process->process_end;
    /* The first of these that says something is right; it may be known already. */
    if (end->error < 0)
        decide_spawn(session, end);
    if (session->cancelling)
        weft__acp_decide_cancelled(session);
    decide_crash(session, end);
    session->end.gone = true;
    session->end.exit_code = end->error < 0 ? -1 : end->exit_code;
    session->end.signal = process->stopped ? 0 : end->signal; /* ours is no news */
}

const weft_turn_end *weft__acp_complete_end(weft_driver_session *session) {
    if (wants_tail(session))
        add_tail(session);
    session->end.error = session->end.reason && !session->error ? "out of memory" : session->error;
    return &session->end;
}

void weft__acp_end_clear(weft_driver_session *session) {
    const weft_alloc *alloc = session->process->alloc;
    session->error = weft__free(alloc, session->error);
    session->stop_reason = weft__free(alloc, session->stop_reason);
    session->end = (weft_turn_end){.exit_code = -1};
    session->decided = false;
}
