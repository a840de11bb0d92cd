/* The rules of the configuration's "gates": for which requests one holds, and what it asks of them. A request must meet
 * every rule that holds for it. The rows have been checked (config_keys.c). */
#ifndef WEFT_GATE_RULES_H
#define WEFT_GATE_RULES_H

#include <weft/weft.h>

typedef struct weft_gate_rules weft_gate_rules;

typedef struct weft_gate_rules_opts {
    const weft_json *rows; /* read while they are made; NULL or absent: none */
    const weft_alloc *alloc;
    int64_t (*now_ms)(void *ctx); /* a clock that only goes on; NULL: the system's */
    void *ctx;
} weft_gate_rules_opts;

/* -EINVAL: a row that cannot be; -ENOMEM. */
int weft__gate_rules_new(const weft_gate_rules_opts *opts, weft_gate_rules **ret);
weft_gate_rules *weft__gate_rules_free(weft_gate_rules *rules);
size_t weft__gate_rules_count(const weft_gate_rules *rules);
/* Does one of them ask for signatures at all? */
bool weft__gate_rules_sign(const weft_gate_rules *rules);
/* Tell of each pattern of "methods" and "allow" that is like none of the service's methods: it may be misspelt. The service
 * has the allocator of the rules. */
typedef void weft_gate_unknown(void *ctx, size_t index, const char *member, const char *pattern);
int weft__gate_rules_unknown(const weft_gate_rules *rules, weft_service *service, weft_gate_unknown *tell, void *ctx);
/* For weft_signatures_opts.required; ctx is the rules. */
bool weft__gate_rules_required(void *ctx, const weft_gate_request *request);
/* Requests and notifications that were refused so far, by what the rule asked. */
typedef struct weft_gate_rules_stats {
    uint64_t rates, sizes, methods;
} weft_gate_rules_stats;
weft_gate_rules_stats weft__gate_rules_stats(const weft_gate_rules *rules);
/* Sizes, allow-lists and rates. Comes behind the gate of signatures: who has signed is who the rules see. Borrowed. */
const weft_gate *weft__gate_rules_gate(weft_gate_rules *rules);
/* The same for who asks by a path for what this method gives: 0; -EACCES: an allow-list does not have it; -ENOKEY: it must
 * be signed; -EBUSY: too often, and not before *ret_wait_ms. */
int weft__gate_rules_path(weft_gate_rules *rules, const weft_identity *who, const char *method, int64_t *ret_wait_ms);
/* The largest message for all connections of an endpoint, whoever they are; 0: no rule says. By the rules that name no
 * dialect (NULL), or by those that name this one. */
size_t weft__gate_rules_max_body(const weft_gate_rules *rules, const char *url, const char *dialect);

#endif
