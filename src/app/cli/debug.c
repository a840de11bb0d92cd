/* The message log. Members that hold secrets are logged by name only, wherever they are. */
#include "debug.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "buf.h"
#include "clock.h"
#include "write.h"

static const char *const secrets[] = {"token",        "auth",   "authorization", "password", "secret",  "api_key", "apiKey",
                                      "access_token", "cookie", "accessToken",   "env",      "headers", NULL};

bool weft__debug_wanted(void) {
    const char *ours = getenv("WEFT_DEBUG"), *theirs = getenv("AIWG_IPC_DEBUG");
    return (ours && strcmp(ours, "1") == 0) || (theirs && strcmp(theirs, "1") == 0);
}

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

static bool is_member_secret(const weft_json *object, const weft_json *name) {
    return is_secret(name) || (strcmp(weft_str_of(name, ""), "params") == 0 && is_secret_call(object));
}

/* Recursion ends at the depth that the text was validated to. */
static int put_redacted(weft_buf *out, const weft_json *value) {
    weft_type type = weft_typeof(value);
    if (type != WEFT_OBJECT && type != WEFT_ARRAY)
        return weft__write_raw(out, NULL, value->text, value->len);
    const char *separator = type == WEFT_OBJECT ? "{" : "[";
    int r = 0;
    for (weft_iter it = weft_iterate(value); r >= 0 && weft_next(&it); separator = ",") {
        r = weft__write_raw(out, NULL, separator, 1);
        if (r >= 0 && type == WEFT_OBJECT)
            r = weft__write_raw(out, NULL, it.name.text, it.name.len);
        if (r >= 0 && type == WEFT_OBJECT)
            r = weft__write_raw(out, NULL, ":", 1);
        if (r >= 0 && type == WEFT_OBJECT && is_member_secret(value, &it.name))
            r = weft__write_raw(out, NULL, "\"***\"", 5);
        else if (r >= 0)
            r = put_redacted(out, &it.value);
    }
    if (r >= 0 && *separator != ',')
        r = weft__write_raw(out, NULL, separator, 1);
    return r < 0 ? r : weft__write_raw(out, NULL, type == WEFT_OBJECT ? "}" : "]", 1);
}

static void put_debug_line(weft_peer *peer, bool outgoing, weft_val message) {
    char now[WEFT_STAMP];
    weft_screen screen = weft__screen(stderr);
    const weft_identity *who = weft_peer_identity(peer);
    screen.colour = false;
    screen.terminal = true; /* it may be read at one later */
    weft__put_line(&screen, WEFT_OBJ({"time", weft_str(weft__clock_text(now))}, {"way", weft_str(outgoing ? "out" : "in")},
                                     {"transport", weft_str(who->transport)}, {"address", weft_str(who->address)},
                                     {"message", message}));
}

void weft__debug_message(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    weft_doc *doc;
    weft_buf out = {0};
    (void) ctx;
    if (weft_doc_parse(text.data, text.len, NULL, &doc) < 0) {
        char note[64];
        snprintf(note, sizeof note, "(%zu bytes that are not JSON)", text.len);
        put_debug_line(peer, outgoing, weft_str(note));
        return;
    }
    if (put_redacted(&out, weft_doc_root(doc)) >= 0)
        put_debug_line(peer, outgoing, weft_raw(weft__buf_head(&out), weft__buf_len(&out)));
    weft__buf_done(&out, NULL);
    weft_doc_free(doc);
}

int weft__debug_service(weft_service **ret) {
    if (!weft__debug_wanted()) {
        *ret = NULL;
        return 0;
    }
    return weft_service_new(&(weft_service_opts){.on_message = weft__debug_message}, ret);
}
