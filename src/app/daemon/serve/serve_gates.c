/* Making the gates of the configuration. They stay as they are until the daemon starts again: what a signature was used for
 * must not be forgotten by reading a file. */
#include "serve_gates.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "failure.h"
#include "gate_rules.h"
#include "key_file.h"
#include "token_file.h"

/* Ours and the hub's own. */
#define MAX_GATES 16

struct weft_serve_gates {
    weft_signatures *signatures; /* NULL: there are no keys */
    weft_gate_rules *rules;
    size_t max_body_planner;
    const weft_gate *list[MAX_GATES + 1];
};

/* ---- keys ---- */

typedef struct key_list {
    weft_sign_key keys[WEFT_MAX_TEXTS + 1];
    char scopes[WEFT_MAX_TEXTS][WEFT_TOKEN_SCOPES];
    size_t count;
} key_list;

static weft_exit add_key(const weft_app *app, const weft_iter *it, key_list *list) {
    char *secret = NULL;
    if (list->count == WEFT_MAX_TEXTS)
        return weft__fail(app, WEFT_USAGE, NULL, "keys: there are more than %d", WEFT_MAX_TEXTS);
    const char *name = weft_str_of(&it->name, NULL), *scopes = weft_get_str(&it->value, "scopes", "read work");
    weft_exit status = weft__key_read(app, weft_get_str(&it->value, "file", ""), &secret);
    if (status)
        return status;
    if (!name || weft__token_scopes(scopes, list->scopes[list->count]) < 0) {
        weft__key_free(secret);
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    }
    weft_json unnamed = weft_get(&it->value, "unnamed");
    list->keys[list->count] = (weft_sign_key){.id = name,
                                              .secret = secret,
                                              .len = strlen(secret),
                                              .scopes = list->scopes[list->count],
                                              .unnamed = weft_bool_of(&unnamed, false)};
    list->count++;
    return WEFT_DONE;
}

static weft_exit explain_keys(const weft_app *app, int r) {
    if (r == -EEXIST)
        return weft__fail(app, WEFT_USAGE,
                          "A signature does not say which key it is for, so each key needs a secret of its own.",
                          "keys: two of them have the same secret, or are both \"unnamed\"");
    return weft__fail(app, WEFT_FAILED, NULL, "keys: %s", weft_strerror(r));
}

static weft_exit open_signatures(const weft_app *app, const weft_serve_settings *how, weft_serve_gates *self) {
    key_list *list = weft__zalloc(NULL, sizeof *list);
    weft_exit status = list ? WEFT_DONE : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    for (weft_iter it = weft_iterate(&how->key_rows); status == WEFT_DONE && weft_next(&it);)
        status = add_key(app, &it, list);
    if (status == WEFT_DONE && !list->count && weft__gate_rules_sign(self->rules))
        status = weft__fail(app, WEFT_USAGE, "Name one in \"keys\", or take \"require\" out of \"gates\".",
                            "gates: signatures are required, and there is no key that could make one");
    weft_signatures_opts opts = {
        .keys = list ? list->keys : NULL, .required = weft__gate_rules_required, .ctx = self->rules};
    int r = status == WEFT_DONE && list->count ? weft_signatures_new(&opts, &self->signatures) : 0;
    for (size_t i = 0; list && i < list->count; i++)
        weft__key_free((char *) (uintptr_t) list->keys[i].secret);
    weft__free(NULL, list);
    return r < 0 ? explain_keys(app, r) : status;
}

/* ---- outside ---- */

weft_exit weft__serve_gates_open(const weft_app *app, const weft_serve_settings *how, weft_serve_gates **ret) {
    weft_serve_gates *self = weft__zalloc(NULL, sizeof *self);
    int r = self ? weft__gate_rules_new(&(weft_gate_rules_opts){.rows = &how->gate_rows}, &self->rules) : -ENOMEM;
    if (r < 0) {
        weft__free(NULL, self);
        return weft__fail(app, WEFT_FAILED, NULL, "gates: %s", weft_strerror(r));
    }
    self->max_body_planner = how->max_body_planner;
    weft_exit status = open_signatures(app, how, self);
    if (status)
        weft__serve_gates_free(self);
    else
        *ret = self;
    return status;
}

weft_serve_gates *weft__serve_gates_free(weft_serve_gates *self) {
    if (!self)
        return NULL;
    weft_signatures_free(self->signatures);
    weft__gate_rules_free(self->rules);
    return weft__free(NULL, self);
}

const weft_gate *const *weft__serve_gates_list(weft_serve_gates *self, const weft_gate *const *others) {
    size_t count = 0;
    if (self->signatures)
        self->list[count++] = weft_signatures_gate(self->signatures);
    if (weft__gate_rules_count(self->rules))
        self->list[count++] = weft__gate_rules_gate(self->rules);
    for (; others && *others; others++) {
        assert(count < MAX_GATES);
        self->list[count++] = *others;
    }
    self->list[count] = NULL;
    return self->list;
}

void weft__serve_gates_counts(const weft_serve_gates *self, weft_gate_counts *ret) {
    weft_signature_stats signatures = self->signatures ? weft_signatures_stats(self->signatures) : (weft_signature_stats){0};
    weft_gate_rules_stats rules = weft__gate_rules_stats(self->rules);
    *ret = (weft_gate_counts){.good_signatures = signatures.accepted,
                              .bad_signatures = signatures.refused,
                              .rates = rules.rates,
                              .sizes = rules.sizes,
                              .methods = rules.methods};
}

static void warn_unknown(void *ctx, size_t index, const char *member, const char *pattern) {
    weft__warn(ctx, "weft serve: gates[%zu].%s: there is no method like \"%.100s\"", index, member, pattern);
}

void weft__serve_gates_warn(const weft_serve_gates *self, const weft_app *app, weft_service *service) {
    weft__gate_rules_unknown(self->rules, service, warn_unknown, (void *) (uintptr_t) app);
}

int weft__serve_gates_path(weft_serve_gates *self, const weft_identity *who, const char *method, int64_t *ret_wait_ms) {
    return weft__gate_rules_path(self->rules, who, method, ret_wait_ms);
}

void weft__serve_gates_limit(const weft_serve_gates *self, const char *url, weft_listen_opts *opts) {
    opts->max_body = weft__gate_rules_max_body(self->rules, url, NULL);
    opts->dialect_max_body = weft__gate_rules_max_body(self->rules, url, opts->dialect);
    if (!opts->dialect_max_body && strcmp(opts->dialect, "planner") == 0)
        opts->dialect_max_body = self->max_body_planner;
}
