/* How a run of an ACP agent ended. What the agent said about its turn counts first; when it said nothing, how its process
 * ended does. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "acp_run.h"

/* A sentence, perhaps with a path in it. An agent's own message is cut to fit. */
#define SENTENCE 6144

/* How to log in, with a path in it. */
#define LOGIN 4352

/* Bytes of a stop reason. */
#define LONGEST_STOP 64

/* ACP: the agent has to be logged in. */
#define AUTH_REQUIRED (-32000)

void weft__acp_decide(weft_run *run, bool retryable, const char *reason, const char *format, ...) {
    char sentence[SENTENCE];
    va_list args;
    if (run->decided)
        return;
    run->decided = true;
    run->end.ok = !reason;
    run->end.retryable = retryable;
    run->end.reason = reason;
    if (!reason)
        return;
    va_start(args, format);
    int n = vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t) n < sizeof sentence ? (size_t) n : sizeof sentence - 1;
    run->error = weft__strndup(run->alloc, sentence, len);
}

void weft__acp_decide_cancelled(weft_run *run) {
    weft__acp_decide(run, false, "cancelled", "it was cancelled");
}

/* A word as ACP has them, if perhaps one of a later version; anything else is not worth keeping. */
static bool is_stop_reason(const char *text) {
    size_t len = strlen(text);
    return len > 0 && len <= LONGEST_STOP && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == len;
}

void weft__acp_decide_stop(weft_run *run, const char *stop_reason) {
    if (run->decided)
        return;
    if (is_stop_reason(stop_reason))
        run->stop_reason = weft__strndup(run->alloc, stop_reason, strlen(stop_reason));
    run->end.stop_reason = run->stop_reason;
    /* A turn that reached one of the agent's limits did what it could, and whoever asked sees why it stopped. */
    if (strcmp(stop_reason, "refusal") == 0)
        weft__acp_decide(run, false, "refused", "%s refused to do this", run->agent->name);
    else if (strcmp(stop_reason, "cancelled") == 0 && run->cancelling)
        weft__acp_decide_cancelled(run);
    else if (strcmp(stop_reason, "cancelled") == 0)
        weft__acp_decide(run, false, "cancelled", "%s ended its turn as cancelled, which nobody asked for",
                         run->agent->name);
    else
        weft__acp_decide(run, false, NULL, "it is ok");
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
static const char *say_login(const weft_run *run, char ret[LOGIN]) {
    const char *login = run->agent->login, *bin = login ? strstr(login, "{bin}") : NULL;
    if (bin)
        snprintf(ret, LOGIN, "%.*s%.*s%s", (int) (bin - login), login, bin_of(run->agent),
                 run->agent->argv ? run->agent->argv[0] : "", bin + 5);
    else if (login)
        snprintf(ret, LOGIN, "%s", login);
    else if (weft__buf_len(&run->auth))
        snprintf(ret, LOGIN, "It offers: %.*s. Start it once in a terminal and log in there.",
                 (int) weft__buf_len(&run->auth), weft__buf_head(&run->auth));
    else
        snprintf(ret, LOGIN, "Start it once in a terminal and log in there.");
    return ret;
}

void weft__acp_decide_error(weft_run *run, const char *method, const weft_error *error) {
    const char *name = run->agent->name, *detail = detail_of(error);
    const char *colon = *detail ? ": " : "";
    char how[LOGIN];
    if (error->code == AUTH_REQUIRED)
        weft__acp_decide(run, false, "authRequired", "%s is not logged in (%.300s%s%.200s). %s", name, error->message, colon,
                         detail, say_login(run, how));
    else
        weft__acp_decide(run, error->code == WEFT_INTERNAL_ERROR, "agentError", "%s answered %s with an error: %s%s%s (%d)",
                         name, method, error->message, colon, detail, error->code);
}

/* ---- how the process ended ---- */

static void decide_spawn(weft_run *run, const weft_process_end *end) {
    const char *advice = run->agent->advice;
    if (end->error == -ENOENT && !end->folder)
        weft__acp_decide(run, false, "spawnFailed", "the program of %s is not installed%s%s", run->agent->name,
                         advice ? ". " : "", advice ? advice : "");
    else
        weft__acp_decide(run, false, "spawnFailed", "%s could not be started%s%s: %s", run->agent->name,
                         end->folder ? " in " : "", end->folder ? run->folder : "", strerror(-end->error));
}

static void decide_crash(weft_run *run, const weft_process_end *end) {
    const char *name = run->agent->name;
    if (run->deaf && (end->signal == SIGTERM || end->signal == SIGKILL))
        weft__acp_decide(run, true, "protocolError", "%s closed its standard output in the middle of a turn", name);
    else if (end->signal)
        weft__acp_decide(run, true, "signalled", "%s was ended by signal %d (%s)", name, end->signal,
                         strsignal(end->signal));
    else
        weft__acp_decide(run, true, "exited", "%s exited with status %d before its turn was over", name, end->exit_code);
}

/* ---- telling ---- */

static bool wants_tail(const weft_run *run) {
    static const char *const reasons[] = {"exited", "signalled", "protocolError", "agentError"};
    for (size_t i = 0; run->end.reason && i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(run->end.reason, reasons[i]) == 0)
            return true;
    return false;
}

/* What it wrote to its standard error last, below the sentence. */
static void add_tail(weft_run *run) {
    weft_bytes tail = weft__acp_stderr_tail(run);
    size_t len = run->error ? strlen(run->error) : 0;
    char *text = tail.len && len ? weft__alloc(run->alloc, len + 1 + tail.len + 1) : NULL;
    if (!text)
        return;
    memcpy(text, run->error, len);
    text[len] = '\n';
    memcpy(text + len + 1, tail.data, tail.len);
    text[len + 1 + tail.len] = '\0';
    weft__free(run->alloc, run->error);
    run->error = text;
}

void weft__acp_finish(weft_run *run, const weft_process_end *end) {
    /* The first of these that says something is right; it may be known already. */
    if (end->error < 0)
        decide_spawn(run, end);
    if (run->cancelling)
        weft__acp_decide_cancelled(run);
    decide_crash(run, end);
    if (wants_tail(run))
        add_tail(run);
    run->end.error = run->end.reason && !run->error ? "out of memory" : run->error;
    run->end.exit_code = end->error < 0 ? -1 : end->exit_code;
    run->end.signal = run->stopped ? 0 : end->signal; /* ours is no news */
    run->state = WEFT_ACP_OVER;
    run->host.on_end(run->ctx, &run->end);
}
