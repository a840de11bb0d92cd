/* Webhooks: where a rule sends what, with its holes filled. Secrets are not put in here: see secret.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "alloc.h"
#include "buf.h"
#include "field.h"
#include "rule_private.h"
#include "secret.h"
#include "template.h"
#include "transport.h"
#include "utf8.h"
#include "write.h"

/* ---- reading ---- */

static int check_secrets(weft_rule *rule, const char *text) {
    char why[WEFT_SECRET_WHY];
    size_t len;
    if (weft__secret_check(text, why) < 0)
        return weft__rule_wrong(rule, "%s", why);
    rule->secrets = rule->secrets || weft__secret_find(text, &len) != NULL;
    return 0;
}

static int read_method(weft_rule *rule) {
    static const char *const methods[] = {"POST", "PUT", "PATCH", "GET", "DELETE"};
    weft__rule_place(rule, "/action/method");
    int r = weft__rule_text(rule, &rule->action, "method", &rule->method);
    if (r < 0 || !rule->method)
        return r;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(rule->method, methods[i]) == 0)
            return 0;
    return weft__rule_wrong(rule, "a webhook's method is POST, PUT, PATCH, GET or DELETE, not \"%.20s\"", rule->method);
}

/* The connection says these itself. */
static bool is_own_header(const char *name) {
    static const char *const names[] = {
        "host", "content-length", "transfer-encoding", "connection", "accept", "upgrade", "expect", "te", "trailer"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

/* RFC 9110, section 5.6.2. */
static bool is_header_name(const char *name) {
    size_t len = strspn(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return len && !name[len] && !is_own_header(name);
}

static int read_header(weft_rule *rule, const weft_iter *it) {
    const char *name, *value;
    int r = weft__field_text(&it->name, &name);
    if (r == 0)
        r = weft__field_text(&it->value, &value);
    if (r < 0)
        return r;
    if (!name || !is_header_name(name))
        return weft__rule_wrong(rule, "a webhook cannot send the header \"%.60s\"", name ? name : "");
    return value ? check_secrets(rule, value) : weft__rule_wrong(rule, "the header %.60s must be a text", name);
}

static int read_headers(weft_rule *rule) {
    size_t count = 0;
    int r = 0;
    weft__rule_place(rule, "/action/headers");
    rule->headers = weft_get(&rule->action, "headers");
    if (rule->headers.text && weft_typeof(&rule->headers) != WEFT_OBJECT)
        return weft__rule_wrong(rule, "\"headers\" must be an object of texts");
    for (weft_iter it = weft_iterate(&rule->headers); r == 0 && weft_next(&it);) {
        r = read_header(rule, &it);
        if (r == 0 && ++count > WEFT_RULE_MAX_HEADERS)
            r = weft__rule_wrong(rule, "it has more than %d headers", WEFT_RULE_MAX_HEADERS);
    }
    return r;
}

/* The string that begins at this quote, with both; the text is JSON. */
static size_t string_len(const char *at) {
    size_t len = 1;
    while (at[len] != '"')
        len += at[len] == '\\' ? 2 : 1;
    return len + 1;
}

/* Every string of a JSON text, in its order, also names of members. stop: any other value than 0. */
typedef int on_string(void *ctx, const weft_json *string, weft_bytes before);
static int walk_strings(const weft_json *json, on_string *take, void *ctx) {
    const char *at = json->text, *end = at + json->len, *from = at;
    int r = 0;
    while (at < end && r == 0) {
        if (*at++ != '"')
            continue;
        weft_json string = {at - 1, string_len(at - 1), json->doc};
        r = take(ctx, &string, (weft_bytes){from, (size_t) (at - 1 - from)});
        from = at = string.text + string.len;
    }
    return r < 0 ? r : take(ctx, NULL, (weft_bytes){from, (size_t) (end - from)});
}

static int check_body_string(void *ctx, const weft_json *string, weft_bytes before) {
    const char *text;
    (void) before;
    if (!string)
        return 0;
    int r = weft__field_text(string, &text);
    return r < 0 ? r : text ? check_secrets(ctx, text) : weft__rule_wrong(ctx, "its body has a NUL");
}

static int read_body(weft_rule *rule) {
    weft__rule_place(rule, "/action/body");
    rule->body = weft_get(&rule->action, "body");
    weft_type type = weft_typeof(&rule->body);
    if (type == WEFT_ABSENT)
        return 0;
    if (type != WEFT_STRING && type != WEFT_OBJECT && type != WEFT_ARRAY)
        return weft__rule_wrong(rule, "\"body\" must be a text, an object or a list");
    return walk_strings(&rule->body, check_body_string, rule);
}

/* A name of a secret becomes a plain word, or at the beginning a plain address, to look at the rest. Owned. */
static char *without_secrets(const weft_rule *rule) {
    weft_buf out = {0};
    const char *at = rule->text, *name;
    size_t len;
    int r = 0;
    while (r == 0 && (name = weft__secret_find(at, &len))) {
        const char *word = name == rule->text ? "https://x" : "x";
        r = weft__buf_put(&out, rule->alloc, at, (size_t) (name - at));
        if (r == 0)
            r = weft__buf_put(&out, rule->alloc, word, strlen(word));
        at = name + len;
    }
    if (r == 0)
        r = weft__buf_put(&out, rule->alloc, at, strlen(at) + 1);
    char *copy = r == 0 ? weft__strndup(rule->alloc, weft__buf_head(&out), weft__buf_len(&out) - 1) : NULL;
    weft__buf_done(&out, rule->alloc);
    return copy;
}

/* Where it goes is the configuration's word alone: what fills a hole may come from anybody who can name a file. */
static int check_address(weft_rule *rule, const char *text) {
    const char *host = strstr(text, "://"), *hole = weft__template_hole(text), *why = "";
    const weft_json nothing = {"{}", 2, NULL};
    char *plain;
    weft_url url;
    host = host ? host + 3 : text;
    if (hole && hole < host + strcspn(host, "/?#"))
        return weft__rule_wrong(rule, "the host of a url cannot be filled in");
    int r = weft__template_fill(text, &nothing, WEFT_TEMPLATE_URL, WEFT_RULE_MAX_URL, rule->alloc, &plain);
    if (r < 0)
        return r == -EMSGSIZE ? weft__rule_wrong(rule, "the url is too long") : r;
    r = weft__transport_parse(NULL, plain, rule->alloc, &url, &why);
    weft__free(rule->alloc, plain);
    if (r < 0)
        return r == -EINVAL ? weft__rule_wrong(rule, "the url is not valid: %s", why) : r;
    bool http = weft__is_http(url.scheme);
    weft__url_done(&url, rule->alloc);
    return http ? 0 : weft__rule_wrong(rule, "a webhook's url begins with http:// or https://");
}

static int check_url(weft_rule *rule) {
    weft__rule_place(rule, "/action/url");
    int r = check_secrets(rule, rule->text);
    if (r < 0)
        return r;
    char *text = without_secrets(rule);
    r = text ? check_address(rule, text) : -ENOMEM;
    weft__free(rule->alloc, text);
    return r;
}

static int put_raw(const weft_rule *rule, weft_buf *out, const char *text, size_t len) {
    return weft__buf_put(out, rule->alloc, text, len);
}

static int put_hidden_headers(const weft_rule *rule, weft_buf *out) {
    int r = 0;
    for (weft_iter it = weft_iterate(&rule->headers); r == 0 && weft_next(&it);) {
        r = put_raw(rule, out, out->data[out->end - 1] == '{' ? "" : ",", out->data[out->end - 1] != '{');
        if (r == 0)
            r = put_raw(rule, out, it.name.text, it.name.len);
        if (r == 0)
            r = put_raw(rule, out, ":\"***\"", 6);
    }
    return r;
}

/* Keys of services are given as headers, and automation.status goes to everybody. */
static int hide_headers(weft_rule *rule) {
    weft_buf out = {0};
    int r = put_raw(rule, &out, "{\"headers\":{", 12);
    if (r == 0)
        r = put_hidden_headers(rule, &out);
    if (r == 0)
        r = put_raw(rule, &out, "}", 1);
    for (weft_iter it = weft_iterate(&rule->action); r == 0 && weft_next(&it);) {
        if (weft_name_is(&it, "headers"))
            continue;
        r = put_raw(rule, &out, ",", 1);
        if (r == 0)
            r = put_raw(rule, &out, it.name.text, it.name.len);
        if (r == 0)
            r = put_raw(rule, &out, ":", 1);
        if (r == 0)
            r = put_raw(rule, &out, it.value.text, it.value.len);
    }
    if (r == 0)
        r = put_raw(rule, &out, "}", 1);
    if (r == 0)
        r = weft_doc_parse(weft__buf_head(&out), weft__buf_len(&out), rule->alloc, &rule->hidden);
    weft__buf_done(&out, rule->alloc);
    return r;
}

int weft__rule_read_webhook(weft_rule *rule) {
    weft_json headers = weft_get(&rule->action, "headers");
    int r = weft_typeof(&headers) == WEFT_OBJECT ? 0 : 1;
    rule->headers = headers;
    if (r == 0 && (r = hide_headers(rule)) < 0) /* first, since a rule that is wrong is shown, too */
        return r;
    r = weft__rule_text(rule, &rule->action, "message", &rule->message);
    if (r == 0)
        r = check_url(rule);
    if (r == 0)
        r = read_method(rule);
    if (r == 0)
        r = read_headers(rule);
    return r == 0 ? read_body(rule) : r;
}

/* ---- rendering ---- */

typedef struct rendering {
    const weft_rule *rule;
    const weft_rule_event *event;
    weft_buf out; /* of the body, or of the headers */
} rendering;

static int fill_in(const rendering *self, const char *text, weft_template_use use, size_t max, char **ret) {
    const weft_rule *rule = self->rule;
    use = use == WEFT_TEMPLATE_TEXT && rule->aiwg ? WEFT_TEMPLATE_AIWG : use;
    return (rule->secrets ? weft__template_fill_guarded : weft__template_fill)(text, self->event->json, use, max,
                                                                               rule->alloc, ret);
}

static int put_string(rendering *self, const char *text, size_t len) {
    return weft__write_str(&self->out, self->rule->alloc, text, len);
}

static int render_body_string(void *ctx, const weft_json *string, weft_bytes before) {
    rendering *self = ctx;
    const char *text = NULL;
    char *filled;
    int r = weft__buf_put(&self->out, self->rule->alloc, before.data, before.len);
    if (r == 0 && string)
        r = weft__field_text(string, &text);
    if (r < 0 || !text)
        return r;
    r = fill_in(self, text, WEFT_TEMPLATE_TEXT, WEFT_RULE_MAX_TEXT, &filled);
    if (r < 0)
        return r;
    r = put_string(self, filled, strlen(filled));
    weft__free(self->rule->alloc, filled);
    return r == 0 && weft__buf_len(&self->out) > WEFT_RULE_MAX_PROMPT ? -EMSGSIZE : r;
}

/* Unless the configuration says otherwise: {ruleId, eventType, timestamp, payload, message?}. */
static int render_own_body(rendering *self) {
    weft_json payload = weft_get(self->event->json, "payload"), timestamp = weft_get(self->event->json, "timestamp");
    const weft_rule *rule = self->rule;
    char *message = NULL, *text;
    size_t len;
    weft_template_use use = rule->aiwg ? WEFT_TEMPLATE_AIWG : WEFT_TEMPLATE_TEXT;
    int r = !rule->message
                ? 0
                : weft__template_fill(rule->message, self->event->json, use, WEFT_RULE_MAX_TEXT, rule->alloc, &message);
    if (r < 0)
        return r;
    r = weft_to_text(WEFT_OBJ({"ruleId", weft_str(rule->id)}, {"eventType", weft_str(self->event->type)},
                              {"timestamp", weft_copy(&timestamp)}, {"payload", weft_copy(&payload)},
                              {"message", weft_str_or_none(message)}),
                     rule->alloc, &text, &len);
    weft__free(rule->alloc, message);
    if (r < 0)
        return r;
    /* No secret is meant here, whatever the event says. */
    for (size_t i = 0; r == 0 && i < len; i++)
        r = weft__buf_put(&self->out, rule->alloc, rule->secrets && text[i] == '$' ? "$$" : &text[i],
                          rule->secrets && text[i] == '$' ? 2 : 1);
    weft_text_free(text, rule->alloc);
    return r;
}

static int render_body(rendering *self) {
    const weft_rule *rule = self->rule;
    bool bare = rule->method && (strcmp(rule->method, "GET") == 0 || strcmp(rule->method, "DELETE") == 0);
    if (rule->body.text)
        return walk_strings(&rule->body, render_body_string, self);
    return bare ? 0 : render_own_body(self);
}

/* A line feed of an event's is no second header. */
static void make_one_line(char *value) {
    for (char *at = value; *at; at++)
        if ((unsigned char) *at < ' ' || *at == 0x7f)
            *at = ' ';
}

static int render_header(rendering *self, const weft_iter *it) {
    const weft_alloc *alloc = self->rule->alloc;
    const char *value;
    char *filled;
    int r = weft__field_text(&it->value, &value);
    if (r < 0 || !value)
        return r;
    r = fill_in(self, value, WEFT_TEMPLATE_TEXT, WEFT_RULE_MAX_TEXT, &filled);
    if (r < 0)
        return r;
    make_one_line(filled);
    size_t len = weft__utf8_fit(filled, strlen(filled), WEFT_RULE_MAX_HEADER);
    r = weft__buf_put(&self->out, alloc, it->name.text, it->name.len);
    if (r == 0)
        r = weft__buf_put(&self->out, alloc, ":", 1);
    if (r == 0)
        r = put_string(self, filled, len);
    weft__free(alloc, filled);
    return r;
}

static int render_headers(rendering *self) {
    const weft_alloc *alloc = self->rule->alloc;
    int r = weft__buf_put(&self->out, alloc, "{", 1);
    bool first = true;
    for (weft_iter it = weft_iterate(&self->rule->headers); r == 0 && weft_next(&it); first = false) {
        r = first ? 0 : weft__buf_put(&self->out, alloc, ",", 1);
        if (r == 0)
            r = render_header(self, &it);
    }
    return r < 0 ? r : weft__buf_put(&self->out, alloc, "}", 1);
}

static weft_val raw_or_none(const weft_buf *text) {
    return weft__buf_len(text) ? weft_raw(weft__buf_head(text), weft__buf_len(text)) : weft_none();
}

int weft__rule_render_webhook(const weft_rule *rule, const weft_rule_event *event, char **ret, size_t *ret_len) {
    rendering body = {.rule = rule, .event = event}, headers = body;
    char *url = NULL;
    int r = fill_in(&body, rule->text, WEFT_TEMPLATE_URL, WEFT_RULE_MAX_URL, &url);
    if (r == 0)
        r = render_body(&body);
    if (r == 0 && rule->headers.text)
        r = render_headers(&headers);
    if (r == 0)
        r = weft_to_text(WEFT_OBJ({"type", weft_str("webhook")}, {"url", weft_str(url)},
                                  {"method", weft_str_or_none(rule->method)}, {"headers", raw_or_none(&headers.out)},
                                  {"body", raw_or_none(&body.out)},
                                  {"secrets", rule->secrets ? weft_bool(true) : weft_none()}),
                         rule->alloc, ret, ret_len);
    weft__free(rule->alloc, url);
    weft__buf_done(&body.out, rule->alloc);
    weft__buf_done(&headers.out, rule->alloc);
    return r;
}
