/* Talk, on standard error, and the exit statuses that go with it. Text of the other side goes through the screen's filter.
 */
#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "daemon_log.h"
#include "transport.h"
#include "wrap.h"

#define MAX_SENTENCE 1024

static void put_what(const weft_app *app, const char *what) {
    weft__ink(&app->err, WEFT_INK_BAD);
    int n = fprintf(app->err.file, "weft%s%s:", app->verb ? " " : "", app->verb ? app->verb->name : "");
    weft__plain(&app->err);
    fputc(' ', app->err.file);
    weft__put_sentence(&app->err, what, (size_t) n + 1);
    fputc('\n', app->err.file);
}

static void put_next(const weft_app *app, const char *next) {
    for (const char *end; next && *next; next = *end ? end + 1 : end) {
        end = strchrnul(next, '\n');
        char line[MAX_SENTENCE];
        snprintf(line, sizeof line, "  %.*s", (int) (end - next), next);
        weft__put_sentence(&app->err, line, 0);
        fputc('\n', app->err.file);
    }
}

weft_exit weft__fail(const weft_app *app, weft_exit status, const char *next, const char *format, ...) {
    char what[MAX_SENTENCE];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"error", WEFT_OBJ({"exit", weft_int(status)}, {"message", weft_str(what)})}));
    if (app->log)
        weft__log_put(app->log, WEFT_LOG_ERROR, what);
    if (app->log && weft__log_speaks(app->log))
        return status;
    put_what(app, what);
    put_next(app, next);
    return status;
}

/* The usage is ours, so nothing in it needs to be escaped; a long one is wrapped as in the help. */
static void put_usage(const weft_app *app) {
    char name[80], behind[WEFT_USAGE_TEXT], usage[WEFT_USAGE_TEXT + 128];
    snprintf(name, sizeof name, "%s%s%s", app->verb->name, app->subcommand ? " " : "",
             app->subcommand ? app->subcommand->name : "");
    weft__usage_text(app->verb, app->subcommand, behind);
    snprintf(usage, sizeof usage, "usage: weft %s [options] %s", name, behind);
    fputs("  ", app->err.file);
    weft__put_wrapped(app->err.file, usage, 2, 6);
    fprintf(app->err.file, "\n  weft %s -h shows examples.\n", name);
}

weft_exit weft__misused(const weft_app *app, const char *format, ...) {
    char what[MAX_SENTENCE];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    weft_exit status = weft__fail(app, WEFT_USAGE, app->verb ? NULL : "weft -h lists the verbs.", "%s", what);
    if (app->verb)
        put_usage(app);
    return status;
}

static void say_line(const weft_app *app, const char *level, const char *ink, const char *format, va_list args) {
    char line[MAX_SENTENCE];
    vsnprintf(line, sizeof line, format, args);
    if (app->log)
        weft__log_put(app->log, level, line);
    if (app->log && weft__log_speaks(app->log))
        return;
    weft__ink(&app->err, ink);
    weft__put_sentence(&app->err, line, 0);
    weft__plain(&app->err);
    fputc('\n', app->err.file);
}

void weft__say(const weft_app *app, const char *format, ...) {
    char line[MAX_SENTENCE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    weft__put_sentence(&app->err, line, 0);
    fputc('\n', app->err.file);
}

void weft__remark(const weft_app *app, const char *format, ...) {
    va_list args;
    if (!app->common.verbose)
        return;
    va_start(args, format);
    say_line(app, WEFT_LOG_DEBUG, WEFT_INK_DIM, format, args);
    va_end(args);
}

void weft__warn(const weft_app *app, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say_line(app, WEFT_LOG_WARN, WEFT_INK_WARN, format, args);
    va_end(args);
}

/* ---- our failures ---- */

static weft_exit exit_of(int r) {
    switch (-r) {
    case EINVAL:
        return WEFT_USAGE;
    case EACCES:
    case EPERM:
        return WEFT_UNAUTHORISED;
    case ETIMEDOUT:
        return WEFT_TOO_LATE;
    case EAGAIN:
    case EBUSY:
    case EADDRINUSE:
    case ENOBUFS:
        return WEFT_BUSY;
    case EOPNOTSUPP:
        return WEFT_NOT_FOUND;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case ENOTCONN:
    case ENOENT:
    case ENOTSOCK:
    case ENOTDIR:
    case EPIPE:
        return WEFT_UNREACHABLE;
    default:
        return WEFT_FAILED;
    }
}

static const char *next_after_exit(weft_exit status) {
    switch (status) {
    case WEFT_UNREACHABLE:
        return "Is it running, and is this where it listens? \"weft start\" starts a hub in a folder.";
    case WEFT_UNAUTHORISED:
        return "Show a token: --token-file FILE, or the environment variable WEFT_TOKEN. A hub keeps its own in "
               ".weft/token.";
    case WEFT_TOO_LATE:
        return "Wait longer with --timeout, for example --timeout 60s.";
    case WEFT_BUSY:
        return "Try again in a moment.";
    default:
        return NULL;
    }
}

weft_exit weft__fail_at(const weft_app *app, const char *url, int r, const char *trouble) {
    /* A path that a web server does not know is not a socket that is missing. */
    const weft_transport *transport = weft__transport_of(NULL, url);
    bool web = transport && transport->scheme.flags & WEFT_OVER_HTTP;
    weft_exit status = web && r == -ENOENT ? WEFT_NOT_FOUND : exit_of(r);
    const char *why = trouble && *trouble ? trouble : weft_strerror(r);
    /* Some sentences name the endpoint already. */
    bool named = strncmp(why, url, strlen(url)) == 0;
    return weft__fail(app, status, next_after_exit(status), "%s%s%s", named ? "" : url, named ? "" : ": ", why);
}

/* ---- their refusals ---- */

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_one_of(const char *text, const char *const *list) {
    for (; *list; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return false;
}

static bool is_signature_reason(const char *reason) {
    return strncmp(reason, "signature", 9) == 0 || strcmp(reason, "keyUnknown") == 0;
}

static weft_exit exit_of_error(const weft_error *error) {
    static const char *const busy[] = {"queueFull", "agentBusy", "sessionBusy", "rateLimited", "resourceUnavailable", NULL};
    const char *reason = weft_get_str(&error->data, "reason", "");
    if (error->code == WEFT_METHOD_NOT_FOUND)
        return WEFT_REFUSED;
    if (error->code == 401 || error->code == 403 || is_signature_reason(reason))
        return WEFT_UNAUTHORISED;
    if (error->code == 404 || ends_with(reason, "NotFound"))
        return WEFT_NOT_FOUND;
    if (error->code == 429 || error->code == 503 || is_one_of(reason, busy))
        return WEFT_BUSY;
    if (error->code == 408 || error->code == 504)
        return WEFT_TOO_LATE;
    return WEFT_REFUSED;
}

/* The whole error, for a program to read. */
static void put_error_json(const weft_app *app, weft_exit status, const weft_error *error) {
    weft_val data = error->data.text ? weft_copy(&error->data) : weft_none();
    weft__put_line(&app->out,
                   WEFT_OBJ({"error", WEFT_OBJ({"code", weft_int(error->code)}, {"message", weft_str(error->message)},
                                               {"data", data}, {"exit", weft_int(status)})}));
}

static void put_data(const weft_app *app, const weft_error *error) {
    if (!error->data.text)
        return;
    fputs("  data: ", app->err.file);
    weft__put_compact(&app->err, &error->data);
    fputc('\n', app->err.file);
}

/* A token helps whoever has shown none or too little; it does not change what the owner has not allowed, nor who is an
 * agent. */
static const char *next_after_refusal(weft_exit status, const weft_error *error) {
    static const char *const settled[] = {"gitUntrusted", "agentMayNot", "methodNotAllowed", NULL};
    if (is_signature_reason(weft_get_str(&error->data, "reason", "")))
        return "Sign the request with a key that the daemon has: --key-file FILE --key-id NAME.";
    bool tells = status == WEFT_UNAUTHORISED || status == WEFT_BUSY;
    return tells && !is_one_of(weft_get_str(&error->data, "reason", ""), settled) ? next_after_exit(status) : NULL;
}

weft_exit weft__fail_refused(const weft_app *app, const char *method, const weft_error *error, const char *next) {
    char what[MAX_SENTENCE];
    weft_exit status = exit_of_error(error);
    if (app->common.json)
        put_error_json(app, status, error);
    snprintf(what, sizeof what, "%s: %s (%d)", method, error->message, error->code);
    put_what(app, what);
    put_data(app, error);
    put_next(app, next ? next : next_after_refusal(status, error));
    return status;
}

/* The hub begins some of its messages with the name of their code. */
static const char *without_code_name(const char *message) {
    static const char prefix[] = "Invalid params: ";
    size_t n = strlen(prefix);
    return strncmp(message, prefix, n) == 0 && message[n] ? message + n : message;
}

weft_exit weft__fail_plainly(const weft_app *app, const char *method, const weft_error *error, const char *next) {
    if (app->common.verbose || error->code == WEFT_METHOD_NOT_FOUND)
        return weft__fail_refused(app, method, error, next);
    weft_exit status = exit_of_error(error);
    if (app->common.json)
        put_error_json(app, status, error);
    put_what(app, without_code_name(error->message));
    put_next(app, next ? next : next_after_refusal(status, error));
    return status;
}
