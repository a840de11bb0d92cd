/* Writing a message again without its secrets. */
#include "redact.h"

#include <string.h>
#include <strings.h>

#include "write.h"

static const char *const secrets[] = {
    "token",       "auth",         "authorization", "password", "secret",  "api_key",    "apiKey",     "access_token",
    "accessToken", "refreshToken", "cookie",        "env",      "headers", "privateKey", "passphrase", NULL};
/* A link with one of these logs somebody in. */
static const char *const links[] = {"login?code=", "pair?code=", "?token=", "&token=", NULL};

static bool is_secret(const weft_json *name) {
    const char *text = weft_str_of(name, "");
    for (const char *const *secret = secrets; *secret; secret++)
        if (strcasecmp(text, *secret) == 0)
            return true;
    return false;
}

/* Calls that show a token, which may also be given by position. */
static bool is_secret_call(const weft_json *message) {
    const char *method = weft_get_str(message, "method", "");
    return strcmp(method, "weft.auth") == 0 || strcmp(method, "tinyvex/auth.setToken") == 0;
}

/* An error's code and a file's are numbers, and not secret. */
static bool is_member_secret(const weft_json *object, const weft_iter *it) {
    weft_type type = weft_typeof(&it->value);
    if (is_secret(&it->name))
        return type != WEFT_NUMBER && type != WEFT_NULL;
    return strcmp(weft_str_of(&it->name, ""), "params") == 0 && is_secret_call(object);
}

static bool is_secret_link(const weft_json *value) {
    for (const char *const *link = links; *link; link++)
        if (memmem(value->text, value->len, *link, strlen(*link)))
            return true;
    return false;
}

static int put_hidden(weft_buf *out, const weft_alloc *alloc) {
    return weft__write_raw(out, alloc, "\"***\"", 5);
}

/* Recursion ends at the depth that the text was validated to. */
int weft__redact(weft_buf *out, const weft_alloc *alloc, const weft_json *value) {
    weft_type type = weft_typeof(value);
    if (type == WEFT_STRING && is_secret_link(value))
        return put_hidden(out, alloc);
    if (type != WEFT_OBJECT && type != WEFT_ARRAY)
        return weft__write_raw(out, alloc, value->text, value->len);
    const char *separator = type == WEFT_OBJECT ? "{" : "[";
    int r = 0;
    for (weft_iter it = weft_iterate(value); r >= 0 && weft_next(&it); separator = ",") {
        r = weft__write_raw(out, alloc, separator, 1);
        if (r >= 0 && type == WEFT_OBJECT)
            r = weft__write_raw(out, alloc, it.name.text, it.name.len);
        if (r >= 0 && type == WEFT_OBJECT)
            r = weft__write_raw(out, alloc, ":", 1);
        if (r >= 0 && type == WEFT_OBJECT && is_member_secret(value, &it))
            r = put_hidden(out, alloc);
        else if (r >= 0)
            r = weft__redact(out, alloc, &it.value);
    }
    if (r >= 0 && *separator != ',')
        r = weft__write_raw(out, alloc, separator, 1);
    return r < 0 ? r : weft__write_raw(out, alloc, type == WEFT_OBJECT ? "}" : "]", 1);
}
