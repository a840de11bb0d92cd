/* The file of hubs: read whole, replaced as a whole. */
#include "hubs_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "buf.h"
#include "failure.h"
#include "private_file.h"
#include "trust.h"
#include "write.h"

#define MAX_FILE (256 * 1024)

bool weft__hubs_is_name(const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t len = strlen(name);
    return len > 0 && len <= WEFT_HUBS_NAME && strspn(name, allowed) == len;
}

static weft_exit hubs_path(const weft_app *app, char ret[PATH_MAX]) {
    int r = weft__trust_path(ret);
    char *slash = r < 0 ? NULL : strrchr(ret, '/');
    if (!slash || slash - ret > PATH_MAX - 16)
        return weft__fail(app, WEFT_FAILED, NULL, "there is no place for it: neither XDG_STATE_HOME nor HOME is set");
    memcpy(slash + 1, "hubs.json", sizeof "hubs.json");
    return WEFT_DONE;
}

static bool copy_text(const weft_json *from, const char *name, char *to, size_t size) {
    const char *text = weft_get_str(from, name, "");
    return (size_t) snprintf(to, size, "%s", text) < size;
}

static bool parse_hubs(const char *text, size_t len, weft_hub_rows *ret) {
    WEFT_AUTO(weft_doc) doc = NULL;
    if (weft_doc_parse(text, len, NULL, &doc) < 0 || weft_get_int(weft_doc_root(doc), "version", 0) != 1)
        return false;
    weft_json hubs = weft_get(weft_doc_root(doc), "hubs");
    for (weft_iter it = weft_iterate(&hubs); weft_next(&it); ret->count++) {
        weft_hub_row *row = &ret->rows[ret->count];
        if (ret->count == WEFT_HUBS_MAX || !copy_text(&it.value, "name", row->name, sizeof row->name) ||
            !copy_text(&it.value, "url", row->url, sizeof row->url) ||
            !copy_text(&it.value, "tokenFile", row->token_file, sizeof row->token_file) ||
            !copy_text(&it.value, "caFile", row->cacert, sizeof row->cacert) || !weft__hubs_is_name(row->name))
            return false;
    }
    return true;
}

weft_exit weft__hubs_load(const weft_app *app, weft_hub_rows *ret) {
    char path[PATH_MAX];
    ret->count = 0;
    weft_exit status = hubs_path(app, path);
    char *text = status ? NULL : weft__alloc(NULL, MAX_FILE);
    if (!text)
        return status ? status : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    int r = weft__private_read(path, text, MAX_FILE);
    if (r < 0 && r != -ENOENT)
        status = weft__fail(app, WEFT_FAILED, NULL, "%s: %s", path, weft__private_why(r));
    else if (r >= 0 && !parse_hubs(text, (size_t) r, ret))
        status = weft__fail(app, WEFT_FAILED, "Move it away to begin anew.", "%s: this file was not written by Weft", path);
    weft__free(NULL, text);
    return status;
}

weft_exit weft__hubs_save(const weft_app *app, const weft_hub_rows *rows) {
    char path[PATH_MAX], why[WEFT_TRUST_WHY] = "";
    static const char begin[] = "{\"version\":1,\"hubs\":[";
    weft_buf out = {0};
    weft_exit status = hubs_path(app, path);
    int lock = status ? -1 : weft__trust_lock(why); /* it makes the folder too */
    int r = weft__buf_put(&out, NULL, begin, sizeof begin - 1);
    if (status)
        return status;
    for (size_t i = 0; r >= 0 && i < rows->count; i++) {
        const weft_hub_row *row = &rows->rows[i];
        weft_val value = WEFT_OBJ({"name", weft_str(row->name)}, {"url", weft_str(row->url)},
                                  {"tokenFile", *row->token_file ? weft_str(row->token_file) : weft_none()},
                                  {"caFile", *row->cacert ? weft_str(row->cacert) : weft_none()});
        r = i ? weft__buf_put(&out, NULL, ",\n", 2) : 0;
        if (r >= 0)
            r = weft__write_val(&out, NULL, &value);
    }
    if (r >= 0)
        r = weft__buf_put(&out, NULL, "]}\n", 3);
    if (r >= 0)
        r = lock < 0 ? lock : weft__private_replace(path, weft__buf_head(&out), weft__buf_len(&out));
    if (lock >= 0)
        weft__trust_unlock(lock);
    weft__buf_done(&out, NULL);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s: %s", path, *why ? why : weft_strerror(r)) : WEFT_DONE;
}

weft_hub_row *weft__hubs_find(weft_hub_rows *rows, const char *name) {
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->rows[i].name, name) == 0)
            return &rows->rows[i];
    return NULL;
}

void weft__hubs_reach(const weft_hub_row *row, weft_reach *reach) {
    if (*row->token_file && !reach->token_file)
        reach->token_file = row->token_file;
    if (*row->cacert && !reach->cacert)
        reach->cacert = row->cacert;
}
