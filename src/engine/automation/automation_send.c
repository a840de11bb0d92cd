/* Sending what a webhook's rule has rendered. Its secrets are put in on the way out: nothing in here is stored, shown or
 * noted but the names of those that are missing. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "alloc.h"
#include "automation_private.h"
#include "field.h"
#include "secret.h"

#define MAX_HEADERS (WEFT_RULE_MAX_HEADERS + 1)

typedef struct sending {
    const weft_alloc *alloc;
    bool secrets;
    char *url, *body;
    size_t url_len, body_len, count;
    weft_header headers[MAX_HEADERS];
    char *values[MAX_HEADERS];
    size_t value_lens[MAX_HEADERS];
    const char *type;
    char *why;
} sending;

/* Owned. */
static int complete(const sending *self, weft_bytes text, weft_secret_use use, size_t max, char **ret, size_t *ret_len) {
    if (self->secrets)
        return weft__secret_fill(text, use, max, self->alloc, ret, ret_len, self->why);
    *ret = weft__strndup(self->alloc, text.len ? text.data : "", text.len);
    *ret_len = text.len;
    return *ret ? 0 : -ENOMEM;
}

/* Its type goes with the body. */
static int take_header(sending *self, const weft_iter *it) {
    const char *name;
    weft_bytes value;
    int r = weft__field_text(&it->name, &name);
    if (r == 0)
        r = weft_bytes_of(&it->value, &value);
    if (r < 0 || !name || self->count + 1 >= MAX_HEADERS)
        return r < 0 ? r : -EINVAL;
    size_t i = self->count;
    r = complete(self, value, WEFT_SECRET_LINE, WEFT_RULE_MAX_HEADER + WEFT_SECRET_VALUE, &self->values[i],
                 &self->value_lens[i]);
    if (r < 0)
        return r;
    self->count++;
    if (strcasecmp(name, "content-type") == 0)
        self->type = self->values[i];
    self->headers[i] = (weft_header){name, self->values[i]};
    return 0;
}

static void leave_out_type(sending *self) {
    size_t kept = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->headers[i].value != self->type)
            self->headers[kept++] = self->headers[i];
    self->headers[kept] = (weft_header){0};
}

/* A text is sent as it is, everything else as JSON. */
static int take_body(sending *self, const weft_json *body) {
    weft_bytes text = {body->text, body->len};
    bool plain = weft_typeof(body) == WEFT_STRING;
    int r = plain ? weft_bytes_of(body, &text) : 0;
    if (r < 0 || !body->text)
        return r;
    self->type = plain ? "text/plain; charset=utf-8" : "application/json";
    return complete(self, text, plain ? WEFT_SECRET_TEXT : WEFT_SECRET_JSON, WEFT_WEBHOOK_BODY, &self->body,
                    &self->body_len);
}

static int take_action(sending *self, const weft_json *action) {
    weft_json url = weft_get(action, "url"), headers = weft_get(action, "headers"), body = weft_get(action, "body");
    weft_bytes text;
    int r = weft_bytes_of(&url, &text);
    if (r == 0)
        r = complete(self, text, WEFT_SECRET_LINE, WEFT_RULE_MAX_URL + WEFT_SECRET_VALUE, &self->url, &self->url_len);
    if (r == 0)
        r = take_body(self, &body);
    for (weft_iter it = weft_iterate(&headers); r == 0 && weft_next(&it);)
        r = take_header(self, &it);
    leave_out_type(self);
    return r;
}

static void forget(sending *self) {
    weft__secret_free(self->url, self->url_len, self->alloc);
    weft__secret_free(self->body, self->body_len, self->alloc);
    for (size_t i = 0; i < self->count; i++)
        weft__secret_free(self->values[i], self->value_lens[i], self->alloc);
}

int weft__automation_send(weft_automation *automation, const weft_json *action, weft_webhook_done *done, void *ctx,
                          char *why) {
    sending self = {.alloc = automation->alloc, .secrets = weft_get_bool(action, "secrets", false), .why = why};
    const char *method;
    weft_json of_method = weft_get(action, "method");
    int r = weft__field_text(&of_method, &method);
    if (r == 0)
        r = take_action(&self, action);
    if (r == 0) {
        weft_webhook what = {.url = self.url,
                             .method = method,
                             .type = self.body ? self.type : NULL,
                             .headers = self.headers,
                             .body = {self.body, self.body_len}};
        r = weft__webhook_send(automation->webhooks, &what, done, ctx);
    }
    forget(&self);
    return r;
}
