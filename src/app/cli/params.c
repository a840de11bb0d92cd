/* Params from the command line.
 *
 *     name=value    a JSON number, true, false, null, object or array is itself; anything else is a string
 *     name:=json    must be JSON
 *     name==text    always a string
 *
 * or one argument alone: '{...}', '[...]', @file, - */
#include "params.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "failure.h"
#include "hub_call.h"
#include "read_all.h"
#include "write.h"

/* No peer takes a larger message. */
#define MAX_INPUT (64 * 1024 * 1024)

/* ---- one text ---- */

static weft_exit parse_params(const weft_app *app, const char *where, const char *text, size_t len, weft_doc **ret) {
    weft_doc *doc;
    int r = weft_doc_parse(text, len, NULL, &doc);
    if (r < 0)
        return weft__fail(app, WEFT_USAGE, "Params are an object '{\"name\":1}' or an array '[1,2]'.", "%s: %s", where,
                          r == -EBADMSG ? "this is not JSON" : weft_strerror(r));
    weft_type type = weft_typeof(weft_doc_root(doc));
    if (type != WEFT_OBJECT && type != WEFT_ARRAY) {
        weft_doc_free(doc);
        return weft__fail(app, WEFT_USAGE, "Put a single value into an array: '[1]'.",
                          "%s: params are an object or an array", where);
    }
    *ret = doc;
    return WEFT_DONE;
}

static weft_exit parse_stream(const weft_app *app, const char *where, int fd, weft_doc **ret) {
    weft_buf text = {0};
    int r = weft__read_text(fd, MAX_INPUT, NULL, &text);
    weft_exit status = r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s: %s", where, weft_strerror(r))
                             : parse_params(app, where, weft__buf_head(&text), weft__buf_len(&text), ret);
    weft__buf_done(&text, NULL);
    return status;
}

static weft_exit parse_file(const weft_app *app, const char *path, weft_doc **ret) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return weft__fail(app, WEFT_USAGE, NULL, "%s: %s", path, weft_strerror(-errno));
    weft_exit status = parse_stream(app, path, fd, ret);
    close(fd);
    return status;
}

/* ---- pairs ---- */

/* Strings in quotes stay what was typed: name='"x"' is rare, and name="x" has lost its quotes to the shell already. */
static bool is_plain_json(const char *text, size_t len) {
    weft_doc *doc;
    if (!len || *text == '"' || weft_doc_parse(text, len, NULL, &doc) < 0)
        return false;
    weft_doc_free(doc);
    return true;
}

static bool is_json_text(const char *text, size_t len) {
    weft_doc *doc;
    if (weft_doc_parse(text, len, NULL, &doc) < 0)
        return false;
    weft_doc_free(doc);
    return true;
}

static int put_pair(weft_buf *out, const char *name, size_t name_len, const char *value, bool raw) {
    int r = weft__write_str(out, NULL, name, name_len);
    if (r >= 0)
        r = weft__write_raw(out, NULL, ":", 1);
    if (r >= 0 && raw)
        r = weft__write_raw(out, NULL, value, strlen(value));
    else if (r >= 0)
        r = weft__write_str(out, NULL, value, strlen(value));
    return r;
}

static weft_exit add_pair(const weft_app *app, const char *arg, weft_buf *out) {
    const char *equals = strchr(arg, '=');
    if (!equals || equals == arg || strncmp(arg, ":=", 2) == 0)
        return weft__fail(
            app, WEFT_USAGE,
            "Positional params are one array: '[42,23]'. Text in a name=value pair needs quotes for the shell.",
            "\"%s\" is not name=value, nor '{...}', '[...]', @file or -", arg);
    bool force_json = equals[-1] == ':';
    bool force_text = !force_json && equals[1] == '=';
    const char *value = equals + 1 + force_text;
    size_t name_len = (size_t) (equals - arg) - force_json;
    if (force_json && !is_json_text(value, strlen(value)))
        return weft__fail(app, WEFT_USAGE, NULL, "\"%s\": what follows := is not JSON", arg);
    int r = weft__buf_len(out) > 1 ? weft__write_raw(out, NULL, ",", 1) : 0;
    if (r >= 0)
        r = put_pair(out, arg, name_len, value, force_json || (!force_text && is_plain_json(value, strlen(value))));
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

static weft_exit parse_pairs(const weft_app *app, char **args, weft_doc **ret) {
    weft_buf text = {0};
    weft_exit status = weft__write_raw(&text, NULL, "{", 1) < 0 ? WEFT_FAILED : WEFT_DONE;
    for (; *args && status == WEFT_DONE; args++)
        status = add_pair(app, *args, &text);
    if (status == WEFT_DONE && weft__write_raw(&text, NULL, "}", 1) < 0)
        status = weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    if (status == WEFT_DONE)
        status = parse_params(app, "params", weft__buf_head(&text), weft__buf_len(&text), ret);
    weft__buf_done(&text, NULL);
    return status;
}

/* One argument that is all of the params. */
static bool is_whole_params(const char *arg) {
    return arg && (*arg == '{' || *arg == '[' || *arg == '@' || strcmp(arg, "-") == 0);
}

weft_exit weft__params_read(const weft_app *app, char **args, weft_doc **ret) {
    const char *first = *args;
    *ret = NULL;
    if (!first)
        return WEFT_DONE;
    if (!is_whole_params(first))
        return parse_pairs(app, args, ret);
    if (args[1])
        return weft__misused(app, "\"%s\" is already all of the params; \"%s\" cannot be added", first, args[1]);
    if (*first == '@')
        return parse_file(app, first + 1, ret);
    if (*first == '-')
        return parse_stream(app, "standard input", STDIN_FILENO, ret);
    return parse_params(app, "params", first, strlen(first), ret);
}

weft_val weft__params_val(const weft_doc *doc) {
    return doc ? weft_copy(weft_doc_root(doc)) : weft_none();
}

/* Params are read before anything is connected: a mistake in them costs nobody a connection. */
weft_exit weft__params_run(weft_app *app,
                           weft_exit (*say)(weft_connection *connection, weft_app *app, const weft_doc *params)) {
    weft_connection connection = {0};
    WEFT_AUTO(weft_doc) params = NULL;
    bool has_url = app->arg_count && weft__is_url(app->args[0]), for_relay = false;
    if (app->arg_count < (has_url ? 2 : 1))
        return weft__misused(app, has_url ? "which method?" : "a method is missing");
    char **typed = app->args + has_url + 1;
    weft_exit status = weft__params_read(app, typed, &params);
    if (status == WEFT_DONE && !has_url && !is_whole_params(*typed))
        status = weft__params_check(app, app->args[0], params, &for_relay);
    if (status == WEFT_DONE)
        status = weft__connection_open(app, &connection);
    if (status == WEFT_DONE && for_relay)
        status = weft__hub_call_check_relay(&connection, "hub=");
    if (status == WEFT_DONE)
        status = say(&connection, app, params);
    weft__connection_done(&connection);
    return status;
}
