/* Whether a value is what its key wants, and saying so with its place. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "failure.h"
#include "transport.h"
#include "url.h"

#define MAX_SENTENCE 512

void weft__config_say(const weft_checking *checking, const weft_json *at, bool error, const char *format, ...) {
    char text[MAX_SENTENCE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    weft_place place = {0};
    if (checking->file && at)
        place = weft__config_file_place(checking->file, at);
    checking->to->say(checking->to->ctx, &(weft_remark){error, checking->where, place, text});
}

void weft__warn_about(const weft_app *app, const weft_remark *remark) {
    const char *kind = remark->error ? "" : "warning: ";
    if (remark->place.line)
        weft__warn(app, "%s:%zu:%zu: %s%s", remark->where, remark->place.line, remark->place.column, kind, remark->text);
    else
        weft__warn(app, "%s: %s%s", remark->where, kind, remark->text);
}

static int refuse_value(const weft_checking *checking, const weft_key *key, const weft_json *value) {
    char wants[WEFT_KEY_TEXT];
    weft__key_wants(key, wants);
    weft__config_say(checking, value, true, "%s must be %s", key->path, wants);
    return -EBADMSG;
}

/* A string that C can hold, and that says something. */
static int check_text_value(const weft_checking *checking, const weft_key *key, const weft_json *value, const char **ret) {
    weft_bytes bytes;
    if (weft_typeof(value) != WEFT_STRING) {
        if (key->kind == WEFT_KEY_text || key->kind == WEFT_KEY_money)
            return refuse_value(checking, key, value);
        weft__config_say(checking, value, true, "%s must have only strings", key->path);
        return -EBADMSG;
    }
    int r = weft_bytes_of(value, &bytes);
    if (r < 0)
        return r;
    if (bytes.len == 0 || memchr(bytes.data, '\0', bytes.len)) {
        weft__config_say(checking, value, true, "%s in %s", bytes.len ? "a NUL" : "an empty string", key->path);
        return -EBADMSG;
    }
    *ret = weft_str_of(value, NULL);
    return *ret ? 0 : -ENOMEM;
}

static int check_url_value(const weft_checking *checking, const weft_json *value, const char *text) {
    weft_url url;
    const char *why;
    int r = weft__transport_parse(NULL, text, checking->alloc, &url, &why);
    if (r == -EINVAL) {
        weft__config_say(checking, value, true, "%s: %s", text, why);
        return -EBADMSG;
    }
    if (r >= 0)
        weft__url_done(&url, checking->alloc);
    return r;
}

static int check_list(const weft_checking *checking, const weft_key *key, const weft_json *value) {
    size_t count = 0;
    int result = 0;
    if (weft_typeof(value) != WEFT_ARRAY)
        return refuse_value(checking, key, value);
    for (weft_iter it = weft_iterate(value); weft_next(&it); count++) {
        const char *text;
        int r = check_text_value(checking, key, &it.value, &text);
        if (r >= 0 && key->kind == WEFT_KEY_urls)
            r = check_url_value(checking, &it.value, text);
        if (r == -ENOMEM)
            return r;
        result = r < 0 ? r : result;
    }
    if (count <= WEFT_MAX_TEXTS)
        return result;
    weft__config_say(checking, value, true, "%s has more than %d items", key->path, WEFT_MAX_TEXTS);
    return -EBADMSG;
}

static bool is_in_range(const weft_key *key, const weft_json *value) {
    int64_t number = weft_int_of(value, INT64_MIN);
    return weft_typeof(value) == WEFT_NUMBER && number >= key->min && number <= key->max;
}

int weft__config_check(const weft_checking *checking, const weft_key *key, const weft_json *value) {
    const char *text;
    int r;
    switch (key->kind) {
    case WEFT_KEY_text:
        r = check_text_value(checking, key, value, &text);
        if (r >= 0 && key->refuse && key->refuse(text)) {
            weft__config_say(checking, value, true, "%s: %s", key->path, key->refuse(text));
            return -EBADMSG;
        }
        return r >= 0 && weft__choice(&key->choices, 0).len && !weft__is_choice(&key->choices, text)
                   ? refuse_value(checking, key, value)
                   : r;
    case WEFT_KEY_money:
        r = check_text_value(checking, key, value, &text);
        return r >= 0 && !weft__money_parse(text, &(weft_money){0}) ? refuse_value(checking, key, value) : r;
    case WEFT_KEY_flag:
        return weft_typeof(value) == WEFT_BOOL ? 0 : refuse_value(checking, key, value);
    case WEFT_KEY_number:
    case WEFT_KEY_size:
        return is_in_range(key, value) ? 0 : refuse_value(checking, key, value);
    case WEFT_KEY_named:
    case WEFT_KEY_list:
        return weft__config_check_shape(checking, key, value);
    case WEFT_KEY_argvs:
        return weft__config_check_argvs(checking, key, value);
    default:
        return check_list(checking, key, value);
    }
}
