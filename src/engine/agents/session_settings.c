/* Settings of a session, see session_settings.h. */
#include "session_settings.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "buf.h"
#include "write.h"

/* A string that is not empty and could be one of C's. */
static int check_word(const weft_json *value) {
    weft_bytes text;
    int r = weft_bytes_of(value, &text);
    return r == -ENOMEM ? r : r < 0 || !text.len || memchr(text.data, '\0', text.len) ? -EINVAL : 0;
}

int weft__setting_check(const weft_session_setting *setting) {
    bool is_option = setting->name && strcmp(setting->name, "option") == 0;
    if (!setting->name || (!is_option && strcmp(setting->name, "mode") != 0 && strcmp(setting->name, "model") != 0))
        return -EINVAL;
    if (is_option ? !setting->option || !*setting->option : setting->option != NULL)
        return -EINVAL;
    return is_option && weft_typeof(&setting->value) == WEFT_BOOL ? 0 : check_word(&setting->value);
}

static int check_and_tell(const weft_session_setting *setting, int (*each)(void *ctx, const weft_session_setting *setting),
                          void *ctx) {
    int r = weft__setting_check(setting);
    return r < 0 ? r : each(ctx, setting);
}

static int each_option(const weft_json *options, int (*each)(void *ctx, const weft_session_setting *setting), void *ctx) {
    int r = 0;
    for (weft_iter it = weft_iterate(options); r >= 0 && weft_next(&it);) {
        weft_session_setting one = {"option", weft_str_of(&it.name, NULL), it.value};
        r = check_word(&it.name);
        if (r >= 0 && !one.option)
            r = -ENOMEM;
        if (r >= 0)
            r = check_and_tell(&one, each, ctx);
    }
    return r;
}

int weft__settings_each(const weft_json *settings, int (*each)(void *ctx, const weft_session_setting *setting), void *ctx) {
    static const char *const names[] = {"model", "mode"};
    weft_json options = weft_get(settings, "options");
    int r = weft_typeof(settings) == WEFT_OBJECT ? 0 : -EINVAL;
    if (options.text && weft_typeof(&options) != WEFT_OBJECT)
        r = -EINVAL;
    for (size_t i = 0; r >= 0 && i < 2; i++) {
        weft_session_setting one = {names[i], NULL, weft_get(settings, names[i])};
        if (one.value.text)
            r = check_and_tell(&one, each, ctx);
    }
    return r < 0 ? r : each_option(&options, each, ctx);
}

/* ---- putting ---- */

struct put {
    const weft_session_setting *instead;
    const weft_alloc *alloc;
    weft_buf words, options; /* members of the object, and of its options */
};

static int put_member(weft_buf *out, const weft_alloc *alloc, const char *name, const weft_json *value) {
    weft_val copy = weft_copy(value);
    int r = weft__buf_len(out) ? weft__buf_put(out, alloc, ",", 1) : 0;
    if (r >= 0)
        r = weft__write_str(out, alloc, name, strlen(name));
    if (r >= 0)
        r = weft__buf_put(out, alloc, ":", 1);
    return r < 0 ? r : weft__write_val(out, alloc, &copy);
}

static int put_setting(struct put *put, const weft_session_setting *setting) {
    bool option = setting->option != NULL;
    return put_member(option ? &put->options : &put->words, put->alloc, option ? setting->option : setting->name,
                      &setting->value);
}

static bool is_same(const weft_session_setting *a, const weft_session_setting *b) {
    return strcmp(a->name, b->name) == 0 && (!a->option || strcmp(a->option, b->option) == 0);
}

static int put_old_setting(void *ctx, const weft_session_setting *setting) {
    struct put *put = ctx;
    return is_same(setting, put->instead) ? 0 : put_setting(put, setting);
}

static int put_all_settings(struct put *put, const char *old) {
    weft_doc *doc = NULL;
    int r = old ? weft_doc_parse(old, strlen(old), put->alloc, &doc) : 0;
    if (r >= 0 && doc)
        r = weft__settings_each(weft_doc_root(doc), put_old_setting, put);
    weft_doc_free(doc);
    return r < 0 ? r : put_setting(put, put->instead);
}

/* {words,"options":{options}} */
static int join_parts(struct put *put, char **ret) {
    weft_buf out = {0};
    size_t words = weft__buf_len(&put->words), options = weft__buf_len(&put->options);
    int r = weft__buf_put(&out, put->alloc, "{", 1);
    if (r >= 0 && words)
        r = weft__buf_put(&out, put->alloc, weft__buf_head(&put->words), words);
    if (r >= 0 && options)
        r = weft__buf_put(&out, put->alloc, words ? ",\"options\":{" : "\"options\":{", words ? 12 : 11);
    if (r >= 0 && options)
        r = weft__buf_put(&out, put->alloc, weft__buf_head(&put->options), options);
    if (r >= 0)
        r = weft__buf_put(&out, put->alloc, "}}", options ? 2 : 1);
    if (r >= 0 && weft__buf_len(&out) > WEFT_SETTINGS_BYTES)
        r = -EMSGSIZE;
    char *text = r < 0 ? NULL : weft__strndup(put->alloc, weft__buf_head(&out), weft__buf_len(&out));
    weft__buf_done(&out, put->alloc);
    if (r >= 0 && !text)
        return -ENOMEM;
    if (r >= 0)
        *ret = text;
    return r < 0 ? r : 0;
}

int weft__settings_put(const char *old, const weft_session_setting *setting, const weft_alloc *alloc, char **ret) {
    struct put put = {.instead = setting, .alloc = alloc};
    int r = weft__setting_check(setting);
    if (r >= 0)
        r = put_all_settings(&put, old);
    if (r >= 0)
        r = join_parts(&put, ret);
    weft__buf_done(&put.words, alloc);
    weft__buf_done(&put.options, alloc);
    return r;
}
