/* Rules are few and their patterns short: they are looked through one by one. */
#include "gate_rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "address.h"
#include "arena.h"
#include "error_row.h"
#include "glob.h"
#include "rates.h"

/* A rule's number and a client; longer names share with those that begin like them. */
#define CLIENT_SIZE 256
/* Methods in an error's text; longer names are cut. */
#define SENTENCE 320

typedef struct gate_rule {
    /* Which requests; NULL: any. */
    const char *listen, *dialect, *token;
    const char *scopes;
    const char *const *methods;
    /* What is asked of them. */
    const char *const *allow; /* NULL: all methods */
    int64_t rate_per_minute;  /* 0: any */
    size_t max_message;       /* 0: any */
    bool sign;
    size_t index; /* in the configuration */
} gate_rule;

struct weft_gate_rules {
    weft_alloc alloc_copy;
    const weft_alloc *alloc;
    weft_arena texts;
    gate_rule *rules;
    size_t count;
    weft_rates *rates;
    weft_gate gate;
    weft_gate_rules_stats stats;
    int64_t (*now_ms)(void *ctx);
    void *ctx;
};

static int64_t system_now_ms(void *ctx) {
    struct timespec now;
    (void) ctx;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- which requests ---- */

static bool is_like(const char *pattern, weft_bytes text) {
    return weft__glob_word((weft_bytes){pattern, strlen(pattern)}, text);
}

static bool is_text_like(const char *pattern, const char *text) {
    return is_like(pattern, (weft_bytes){text, strlen(text)});
}

static bool is_like_any(const char *const *patterns, weft_bytes text) {
    for (; *patterns; patterns++)
        if (is_like(*patterns, text))
            return true;
    return false;
}

static bool has_word(const char *words, const char *word, size_t len) {
    for (size_t n; *(words += strspn(words, " ")); words += n) {
        n = strcspn(words, " ");
        if (n == len && memcmp(words, word, len) == 0)
            return true;
    }
    return false;
}

/* Is each word of a among those of b? "*" is a word like any other here. */
static bool has_words_of(const char *a, const char *b) {
    for (size_t len; *(a += strspn(a, " ")); a += len) {
        len = strcspn(a, " ");
        if (!has_word(b, a, len))
            return false;
    }
    return true;
}

static bool has_just_scopes(const char *wanted, const char *scopes) {
    return has_words_of(wanted, scopes) && has_words_of(scopes, wanted);
}

/* The name of a method that exists is its row's, because a request can write it with escapes. */
static weft_bytes method_name(const weft_gate_request *request) {
    return request->method ? (weft_bytes){request->method->name, strlen(request->method->name)} : request->name;
}

/* Who has signed is the key, and still comes by the token that the connection was made with: a key does not lead around
 * what is asked of that one. */
static bool is_named(const char *token, const weft_gate_request *request) {
    const weft_peer *peer = request->req ? weft_req_peer(request->req) : NULL;
    return strcmp(token, request->identity->name) == 0 || (peer && strcmp(token, weft_peer_identity(peer)->name) == 0);
}

static bool holds_for(const gate_rule *rule, const weft_gate_request *request) {
    const weft_identity *who = request->identity;
    return (!rule->listen || is_text_like(rule->listen, who->endpoint)) &&
           (!rule->dialect || strcmp(rule->dialect, who->dialect) == 0) &&
           (!rule->token || is_named(rule->token, request)) &&
           (!rule->scopes || has_just_scopes(rule->scopes, who->scopes)) &&
           (!rule->methods || is_like_any(rule->methods, method_name(request)));
}

bool weft__gate_rules_required(void *ctx, const weft_gate_request *request) {
    const weft_gate_rules *self = ctx;
    for (size_t i = 0; i < self->count; i++)
        if (self->rules[i].sign && holds_for(&self->rules[i], request))
            return true;
    return false;
}

/* ---- refusing ---- */

static int refuse_by_rule(const weft_gate_request *request, int code, const char *reason, const char *message) {
    weft_refuse(request->req, code, message, reason);
    return -EACCES;
}

/* Who was refused is told what may be called, and by which rule, because somebody wrote it for them. */
static int refuse_method(const gate_rule *rule, const weft_gate_request *request) {
    char text[SENTENCE];
    weft_bytes name = method_name(request);
    const char *who = *request->identity->name ? request->identity->name : "this connection";
    snprintf(text, sizeof text, "%.100s may not call %.*s: gates[%zu] allows others", who,
             name.len < 100 ? (int) name.len : 100, name.data, rule->index);
    return refuse_by_rule(request, 403, "methodNotAllowed", text);
}

static int refuse_size(const gate_rule *rule, const weft_gate_request *request) {
    char text[SENTENCE];
    snprintf(text, sizeof text, "The message has %zu bytes; gates[%zu] allows %zu", request->message.len, rule->index,
             rule->max_message);
    return refuse_by_rule(request, WEFT_INVALID_REQUEST, "tooLarge", text);
}

/* A name in front of "@", an address behind it, and of this machine the user: none can be taken for another. */
static void name_rate_client(const gate_rule *rule, const weft_identity *who, char *ret, size_t size) {
    char group[WEFT_ADDRESS];
    weft__address_group(who->address, group, sizeof group);
    if (who->authenticated && *who->name)
        snprintf(ret, size, "%zu %s@", rule->index, who->name);
    else if (who->local)
        snprintf(ret, size, "%zu #%lld", rule->index, (long long) who->uid);
    else
        snprintf(ret, size, "%zu @%s", rule->index, group);
}

/* 0, or how long to wait. */
static int64_t take_rate(weft_gate_rules *self, const gate_rule *rule, const weft_identity *who) {
    char client[CLIENT_SIZE];
    name_rate_client(rule, who, client, sizeof client);
    int64_t wait = weft__rates_take(self->rates, client, rule->rate_per_minute, self->now_ms(self->ctx));
    self->stats.rates += wait > 0;
    return wait;
}

static int ask_rate(weft_gate_rules *self, const gate_rule *rule, const weft_gate_request *request) {
    int64_t wait = take_rate(self, rule, request->identity);
    if (!wait)
        return 0;
    weft_fail(request->req, weft__row_code(request->method, "rateLimited", 429), "Too many requests",
              WEFT_OBJ({"reason", weft_str("rateLimited")}, {"retryAfterMs", weft_int(wait)}));
    return -EACCES;
}

/* What costs a place in a bucket comes last. */
static int ask_rules(void *ctx, const weft_gate_request *request) {
    weft_gate_rules *self = ctx;
    int r = 0;
    for (size_t i = 0; i < self->count; i++) {
        const gate_rule *rule = &self->rules[i];
        if (!(rule->max_message || rule->allow) || !holds_for(rule, request))
            continue;
        if (rule->max_message && request->message.len > rule->max_message) {
            self->stats.sizes++;
            return refuse_size(rule, request);
        }
        if (rule->allow && !is_like_any(rule->allow, method_name(request))) {
            self->stats.methods++;
            return refuse_method(rule, request);
        }
    }
    for (size_t i = 0; r >= 0 && i < self->count; i++)
        if (self->rules[i].rate_per_minute && holds_for(&self->rules[i], request))
            r = ask_rate(self, &self->rules[i], request);
    return r;
}

int weft__gate_rules_path(weft_gate_rules *self, const weft_identity *who, const char *method, int64_t *ret_wait_ms) {
    weft_gate_request request = {.identity = who, .name = {method, strlen(method)}};
    int64_t wait = 0;
    for (size_t i = 0; i < self->count; i++) {
        const gate_rule *rule = &self->rules[i];
        bool listed = !rule->allow || is_like_any(rule->allow, request.name);
        if ((listed && !rule->sign) || !holds_for(rule, &request))
            continue;
        self->stats.methods += !listed;
        return listed ? -ENOKEY : -EACCES;
    }
    for (size_t i = 0; !wait && i < self->count; i++)
        if (self->rules[i].rate_per_minute && holds_for(&self->rules[i], &request))
            wait = take_rate(self, &self->rules[i], who);
    if (wait)
        *ret_wait_ms = wait;
    return wait ? -EBUSY : 0;
}

/* ---- reading ---- */

static int keep_text(weft_gate_rules *self, const weft_json *row, const char *name, const char **ret) {
    weft_json value = weft_get(row, name);
    weft_bytes text;
    if (!value.text)
        return 0;
    int r = weft_bytes_of(&value, &text);
    char *copy = r < 0 ? NULL : weft__arena_alloc(&self->texts, text.len + 1);
    if (!copy)
        return r < 0 ? r : -ENOMEM;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *ret = copy;
    return 0;
}

/* With blanks between them, as callers have them; people also write commas, as for a token. */
static int keep_scopes(weft_gate_rules *self, const weft_json *row, const char **ret) {
    const char *text = NULL;
    int r = keep_text(self, row, "scopes", &text);
    for (char *at = (char *) (uintptr_t) text; r >= 0 && at && (at = strchr(at, ','));)
        *at = ' ';
    if (text)
        *ret = text;
    return r;
}

static int keep_texts(weft_gate_rules *self, const weft_json *row, const char *name, const char *const **ret) {
    weft_json list = weft_get(row, name);
    size_t count = 0;
    if (!list.text)
        return 0;
    for (weft_iter it = weft_iterate(&list); weft_next(&it);)
        count++;
    const char **texts = weft__arena_alloc(&self->texts, (count + 1) * sizeof *texts);
    if (!texts)
        return -ENOMEM;
    count = 0;
    for (weft_iter it = weft_iterate(&list); weft_next(&it);) {
        weft_bytes text;
        int r = weft_bytes_of(&it.value, &text);
        char *copy = r < 0 ? NULL : weft__arena_alloc(&self->texts, text.len + 1);
        if (!copy)
            return r < 0 ? r : -ENOMEM;
        memcpy(copy, text.data, text.len);
        copy[text.len] = '\0';
        texts[count++] = copy;
    }
    texts[count] = NULL;
    *ret = texts;
    return 0;
}

static int read_gate_rule(weft_gate_rules *self, const weft_json *row, gate_rule *ret) {
    const char *require = NULL;
    int r = keep_text(self, row, "listen", &ret->listen);
    if (r >= 0)
        r = keep_text(self, row, "dialect", &ret->dialect);
    if (r >= 0)
        r = keep_text(self, row, "token", &ret->token);
    if (r >= 0)
        r = keep_scopes(self, row, &ret->scopes);
    if (r >= 0)
        r = keep_texts(self, row, "methods", &ret->methods);
    if (r >= 0)
        r = keep_texts(self, row, "allow", &ret->allow);
    if (r >= 0)
        r = keep_text(self, row, "require", &require);
    ret->sign = require != NULL;
    ret->rate_per_minute = weft_get_int(row, "rate_per_minute", 0);
    ret->max_message = (size_t) weft_get_int(row, "max_message", 0);
    return r;
}

static int read_gate_rules(weft_gate_rules *self, const weft_json *rows) {
    size_t count = 0;
    int r = 0;
    if (!rows || !rows->text)
        return 0;
    for (weft_iter it = weft_iterate(rows); weft_next(&it);)
        count++;
    self->rules = weft__zalloc(self->alloc, (count + 1) * sizeof *self->rules);
    if (!self->rules)
        return -ENOMEM;
    for (weft_iter it = weft_iterate(rows); r >= 0 && weft_next(&it); self->count++) {
        self->rules[self->count].index = self->count;
        r = read_gate_rule(self, &it.value, &self->rules[self->count]);
    }
    return r;
}

/* ---- outside ---- */

int weft__gate_rules_new(const weft_gate_rules_opts *opts, weft_gate_rules **ret) {
    weft_gate_rules *self = weft__zalloc(opts->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    if (opts->alloc) {
        self->alloc_copy = *opts->alloc;
        self->alloc = &self->alloc_copy;
    }
    self->texts.alloc = self->alloc;
    self->now_ms = opts->now_ms ? opts->now_ms : system_now_ms;
    self->ctx = opts->ctx;
    self->gate = (weft_gate){.name = "rules", .before = ask_rules, .ctx = self};
    int r = weft__rates_new(self->alloc, &self->rates);
    if (r >= 0)
        r = read_gate_rules(self, opts->rows);
    if (r < 0) {
        weft__gate_rules_free(self);
        return r;
    }
    *ret = self;
    return 0;
}

weft_gate_rules *weft__gate_rules_free(weft_gate_rules *self) {
    if (!self)
        return NULL;
    weft_alloc copy = self->alloc_copy;
    const weft_alloc *alloc = self->alloc ? &copy : NULL;
    weft__rates_free(self->rates);
    weft__arena_done(&self->texts);
    weft__free(alloc, self->rules);
    return weft__free(alloc, self);
}

weft_gate_rules_stats weft__gate_rules_stats(const weft_gate_rules *self) {
    return self->stats;
}

size_t weft__gate_rules_count(const weft_gate_rules *self) {
    return self->count;
}

static void tell_unknown(const gate_rule *rule, const char *member, const char *const *patterns, const weft_json *methods,
                         weft_service *service, weft_gate_unknown *tell, void *ctx) {
    for (; patterns && *patterns; patterns++) {
        bool any = weft_service_find(service, *patterns) != NULL; /* also one that is not shown */
        for (weft_iter it = weft_iterate(methods); !any && weft_next(&it);)
            any = is_text_like(*patterns, weft_get_str(&it.value, "name", ""));
        if (!any)
            tell(ctx, rule->index, member, *patterns);
    }
}

int weft__gate_rules_unknown(const weft_gate_rules *self, weft_service *service, weft_gate_unknown *tell, void *ctx) {
    char *text = NULL;
    size_t len;
    weft_doc *doc = NULL;
    if (!self->count)
        return 0;
    int r = weft_service_discover(service, &text, &len);
    if (r >= 0)
        r = weft_doc_parse(text, len, self->alloc, &doc);
    weft_json methods = r < 0 ? (weft_json){0} : weft_get(weft_doc_root(doc), "methods");
    for (size_t i = 0; r >= 0 && i < self->count; i++) {
        tell_unknown(&self->rules[i], "methods", self->rules[i].methods, &methods, service, tell, ctx);
        tell_unknown(&self->rules[i], "allow", self->rules[i].allow, &methods, service, tell, ctx);
    }
    weft_doc_free(doc);
    weft_text_free(text, self->alloc);
    return r < 0 ? r : 0;
}

bool weft__gate_rules_sign(const weft_gate_rules *self) {
    for (size_t i = 0; i < self->count; i++)
        if (self->rules[i].sign)
            return true;
    return false;
}

const weft_gate *weft__gate_rules_gate(weft_gate_rules *self) {
    return &self->gate;
}

size_t weft__gate_rules_max_body(const weft_gate_rules *self, const char *url, const char *dialect) {
    size_t least = 0;
    for (size_t i = 0; i < self->count; i++) {
        const gate_rule *rule = &self->rules[i];
        bool general = !rule->token && !rule->scopes && !rule->methods;
        bool here = !rule->listen || is_text_like(rule->listen, url);
        bool spoken = dialect ? rule->dialect && strcmp(rule->dialect, dialect) == 0 : !rule->dialect;
        if (rule->max_message && general && here && spoken && (!least || rule->max_message < least))
            least = rule->max_message;
    }
    return least;
}
