/* The file of tokens: read whole, changed under the lock of the trust record, written beside and moved into place. */
#include "token_file.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "alloc.h"
#include "buf.h"
#include "private_file.h"
#include "write.h"

/* WEFT_TOKENS_MAX rows of about 300 bytes. */
#define MAX_FILE (256 * 1024)

/* ---- names and scopes ---- */

static bool is_scope(const char *text, size_t len) {
    static const char *const names[] = {"read", "work", "admin", "metrics", "exec", "runner", "standby"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == len && memcmp(text, names[i], len) == 0)
            return true;
    return false;
}

int weft__token_scopes(const char *text, char ret[WEFT_TOKEN_SCOPES]) {
    char scopes[WEFT_TOKEN_SCOPES];
    size_t used = 0;
    for (size_t len; *(text += strspn(text, ", ")); text += len) {
        len = strcspn(text, ", ");
        if (!is_scope(text, len) || used + len + 2 > sizeof scopes)
            return -EINVAL;
        used += (size_t) snprintf(scopes + used, sizeof scopes - used, "%s%.*s", used ? " " : "", (int) len, text);
    }
    if (!used)
        return -EINVAL;
    memcpy(ret, scopes, used + 1);
    return 0;
}

bool weft__token_is_name(const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = strlen(name);
    return len > 0 && len <= WEFT_TOKEN_NAME && strspn(name, allowed) == len && strcmp(name, "token") != 0;
}

/* ---- where ---- */

static int explain_tokens(int r, const char *path, const char *what, char ret_why[WEFT_TRUST_WHY]) {
    snprintf(ret_why, WEFT_TRUST_WHY, "%.300s, where the tokens are kept: %s", path, what ? what : weft_strerror(r));
    return r;
}

int weft__state_path(const weft_layout *layout, const char *kind, const char *ext, char ret[PATH_MAX],
                     char ret_why[WEFT_TRUST_WHY]) {
    char id[WEFT_TRUST_ID], digest[WEFT_TRUST_DIGEST], record[PATH_MAX];
    int r = weft__trust_id(layout->home, id);
    if (r < 0)
        return explain_tokens(r, layout->home, NULL, ret_why);
    r = weft__trust_path(record);
    if (r < 0)
        return explain_tokens(r, "your state folder", "neither XDG_STATE_HOME nor HOME is set", ret_why);
    weft__trust_digest(id, strlen(id), digest);
    char *slash = strrchr(record, '/');
    int n = snprintf(ret, PATH_MAX, "%.*s/%s-%.32s.%s", (int) (slash - record), record, kind, digest, ext);
    return n >= PATH_MAX - 8 ? explain_tokens(-ENAMETOOLONG, record, NULL, ret_why) : 0;
}

static int tokens_path(const weft_layout *layout, char ret[PATH_MAX], char ret_why[WEFT_TRUST_WHY]) {
    return weft__state_path(layout, "tokens", "json", ret, ret_why);
}

/* ---- reading ---- */

static int digest_hex_value(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_digest(const char *text, unsigned char ret[32]) {
    if (strlen(text) != 64)
        return false;
    for (size_t i = 0; i < 32; i++) {
        int high = digest_hex_value(text[2 * i]), low = digest_hex_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (unsigned char) (high * 16 + low);
    }
    return true;
}

/* A row that cannot be understood is not passed over: the next change would drop it for good. */
static bool read_row(const weft_json *from, weft_token_row *ret) {
    const char *name = weft_get_str(from, "name", "");
    *ret = (weft_token_row){.created_at = weft_get_int(from, "createdAt", 0),
                            .expires_at = weft_get_int(from, "expiresAt", 0),
                            .device = weft_get_bool(from, "device", false)};
    if (!weft__token_is_name(name) || weft__token_scopes(weft_get_str(from, "scopes", ""), ret->scopes) < 0)
        return false;
    snprintf(ret->name, sizeof ret->name, "%s", name);
    return ret->created_at >= 0 && ret->expires_at >= 0 && read_digest(weft_get_str(from, "sha256", ""), ret->digest);
}

static int parse_tokens(const char *text, size_t len, weft_token_list *ret) {
    WEFT_AUTO(weft_doc) doc = NULL;
    int r = weft_doc_parse(text, len, NULL, &doc);
    if (r < 0)
        return r;
    weft_json tokens = weft_get(weft_doc_root(doc), "tokens");
    if (weft_get_int(weft_doc_root(doc), "version", 0) != 1)
        return -EBADMSG;
    for (weft_iter it = weft_iterate(&tokens); weft_next(&it); ret->count++)
        if (ret->count == WEFT_TOKENS_MAX || !read_row(&it.value, &ret->rows[ret->count]))
            return -EBADMSG;
    return 0;
}

static int load_tokens(const char *path, weft_token_list *ret, char ret_why[WEFT_TRUST_WHY]) {
    char *text = weft__alloc(NULL, MAX_FILE);
    ret->count = 0;
    if (!text)
        return explain_tokens(-ENOMEM, path, NULL, ret_why);
    int r = weft__private_read(path, text, MAX_FILE);
    if (r == -ENOENT)
        r = 0;
    else if (r < 0)
        explain_tokens(r, path, weft__private_why(r), ret_why);
    else if ((r = parse_tokens(text, (size_t) r, ret)) < 0)
        explain_tokens(r, path,
                       r == -EBADMSG ? "this is not what Weft wrote; if you move it away, its tokens are gone" : NULL,
                       ret_why);
    if (r < 0)
        ret->count = 0;
    weft__free(NULL, text);
    return r < 0 ? r : 0;
}

int weft__tokens_load(const weft_layout *layout, weft_token_list *ret, char ret_why[WEFT_TRUST_WHY]) {
    char path[PATH_MAX];
    ret->count = 0;
    int r = tokens_path(layout, path, ret_why);
    return r == -ENOENT ? 0 : r < 0 ? r : load_tokens(path, ret, ret_why);
}

/* ---- writing ---- */

static int write_row(weft_buf *out, const weft_token_row *row) {
    char digest[65];
    for (size_t i = 0; i < sizeof row->digest; i++)
        snprintf(digest + 2 * i, 3, "%02x", row->digest[i]);
    weft_val value = WEFT_OBJ({"name", weft_str(row->name)}, {"scopes", weft_str(row->scopes)}, {"sha256", weft_str(digest)},
                              {"createdAt", weft_int(row->created_at)}, {"expiresAt", weft_int(row->expires_at)},
                              {"device", row->device ? weft_bool(true) : weft_none()});
    return weft__write_val(out, NULL, &value);
}

static int write_tokens(weft_buf *out, const weft_token_list *list) {
    static const char begin[] = "{\"version\":1,\"tokens\":[\n", end[] = "\n]}\n";
    int r = weft__buf_put(out, NULL, begin, strlen(begin));
    for (size_t i = 0; r >= 0 && i < list->count; i++) {
        r = i ? weft__buf_put(out, NULL, ",\n", 2) : 0;
        if (r >= 0)
            r = write_row(out, &list->rows[i]);
    }
    return r < 0 ? r : weft__buf_put(out, NULL, end, strlen(end));
}

static int replace_tokens(const char *path, const weft_token_list *list) {
    weft_buf text = {0};
    int r = write_tokens(&text, list);
    if (r >= 0)
        r = weft__private_replace(path, weft__buf_head(&text), weft__buf_len(&text));
    weft__buf_done(&text, NULL);
    return r;
}

/* ---- changing ---- */

static weft_token_row *find_token_row(weft_token_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->rows[i].name, name) == 0)
            return &list->rows[i];
    return NULL;
}

/* change(): 1 the list has changed, 0 it has not, <0 with a sentence. The lock is held around it. */
static int change_tokens(const weft_layout *layout, int (*change)(weft_token_list *list, void *ctx, char *ret_why),
                         void *ctx, char ret_why[WEFT_TRUST_WHY]) {
    char path[PATH_MAX];
    weft_token_list *list = weft__zalloc(NULL, sizeof *list);
    int lock = list ? weft__trust_lock(ret_why) : explain_tokens(-ENOMEM, "memory", NULL, ret_why);
    int r = lock < 0 ? lock : tokens_path(layout, path, ret_why);
    if (r >= 0)
        r = load_tokens(path, list, ret_why);
    if (r >= 0)
        r = change(list, ctx, ret_why);
    int written = r > 0 ? replace_tokens(path, list) : 0;
    if (written < 0)
        r = explain_tokens(written, path, NULL, ret_why);
    if (lock >= 0)
        weft__trust_unlock(lock);
    weft__free(NULL, list);
    return r;
}

static int make_secret(char ret[WEFT_TOKEN_SECRET]) {
    unsigned char bytes[32];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return 0;
}

static int64_t now_s(void) {
    return (int64_t) time(NULL);
}

/* Expired ones make room, and their names can be given again. */
static void drop_expired(weft_token_list *list) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!list->rows[i].expires_at || list->rows[i].expires_at > now_s())
            list->rows[kept++] = list->rows[i];
    list->count = kept;
}

static int add_token_row(weft_token_list *list, void *ctx, char *ret_why) {
    const weft_token_row *row = ctx;
    drop_expired(list);
    if (find_token_row(list, row->name)) {
        snprintf(ret_why, WEFT_TRUST_WHY, "there is a token %s already", row->name);
        return -EEXIST;
    }
    if (list->count == WEFT_TOKENS_MAX) {
        snprintf(ret_why, WEFT_TRUST_WHY, "there are %d tokens, and no more are possible", WEFT_TOKENS_MAX);
        return -ENOSPC;
    }
    list->rows[list->count++] = *row;
    return 1;
}

int weft__tokens_add(const weft_layout *layout, weft_token_row *row, char ret_secret[WEFT_TOKEN_SECRET],
                     char ret_why[WEFT_TRUST_WHY]) {
    int r = make_secret(ret_secret);
    if (r < 0)
        return explain_tokens(r, "random bytes", NULL, ret_why);
    SHA256((const unsigned char *) ret_secret, strlen(ret_secret), row->digest);
    row->created_at = now_s();
    r = change_tokens(layout, add_token_row, row, ret_why);
    return r < 0 ? r : 0;
}

static int remove_row(weft_token_list *list, void *ctx, char *ret_why) {
    (void) ret_why;
    weft_token_row *row = find_token_row(list, ctx);
    if (!row)
        return 0;
    *row = list->rows[--list->count];
    return 1;
}

int weft__tokens_remove(const weft_layout *layout, const char *name, char ret_why[WEFT_TRUST_WHY]) {
    char copy[WEFT_TOKEN_NAME + 1];
    if (!weft__token_is_name(name))
        return 0;
    snprintf(copy, sizeof copy, "%s", name);
    return change_tokens(layout, remove_row, copy, ret_why);
}
