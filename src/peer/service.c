/* What all peers of a service share. No connection is known here. */
#include <errno.h>
#include <string.h>

#include <weft/json.h>

#include "gate.h"
#include "gzip.h"
#include "meter.h"
#include "row_schemas.h"
#include "zip.h"

#define KIB ((size_t) 1024)
#define MIB (1024 * KIB)
#define HARD_BODY_CAP (64 * MIB)
/* More than anybody can send; a minute of it is counted in 1/60000 of a request and must fit into 63 bits. */
#define RATE_CAP ((int64_t) 1000 * 1000 * 1000 * 1000)

static void default_size(size_t *value, size_t fallback) {
    if (!*value)
        *value = fallback;
}

static void default_ms(int64_t *value, int64_t fallback) {
    if (!*value)
        *value = fallback;
}

static void fill_limits(weft_limits *limits) {
    default_size(&limits->max_body, 32 * MIB);
    default_size(&limits->max_body_stranger, 1 * MIB);
    default_size(&limits->max_batch, 1000);
    default_size(&limits->max_answer, 25 * MIB);
    default_size(&limits->out_soft, 1 * MIB);
    default_size(&limits->out_hard, 8 * MIB);
    default_size(&limits->max_calls, 65536);
    default_size(&limits->max_requests, 65536);
    default_size(&limits->max_idempotent, 4096);
    default_ms(&limits->call_timeout_ms, 30000);
    default_ms(&limits->ping_ms, 25000);
    default_ms(&limits->pong_ms, 10000);
    default_ms(&limits->idempotent_ms, 600000);
    if (limits->max_body > HARD_BODY_CAP)
        limits->max_body = HARD_BODY_CAP;
    if (limits->rate_per_minute > RATE_CAP)
        limits->rate_per_minute = RATE_CAP;
    if (limits->max_body_stranger > limits->max_body)
        limits->max_body_stranger = limits->max_body;
}

static int answer_discover(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    char *text = NULL;
    size_t len = 0;
    weft_service *service = weft__req_of(req)->service;
    int r = weft_service_discover(service, &text, &len);
    if (r < 0)
        return r;
    r = weft_reply(req, weft_raw(text, len));
    weft__free(service->alloc, text);
    return r;
}

static const weft_method discover_row = {
    .name = "rpc.discover",
    .handler = answer_discover,
    .help = "The OpenRPC document of this service",
    .result = "{\"type\":\"object\"}",
};

/* ---- rows ---- */

static int check_json_text(const weft_service *service, const char *text) {
    weft_doc *doc = NULL;
    int r = text ? weft_doc_parse(text, strlen(text), service->alloc, &doc) : 0;
    weft_doc_free(doc);
    return r == -EBADMSG ? -EINVAL : r;
}

static int check_params_text(const weft_service *service, const char *text) {
    size_t blanks = text ? strspn(text, " \t\r\n") : 0;
    return text && text[blanks] != '{' && text[blanks] != '[' ? -EINVAL : check_json_text(service, text);
}

static int check_examples(const weft_service *service, const weft_example *example) {
    int r = 0;
    for (; r >= 0 && example && example->name; example++) {
        r = check_params_text(service, example->params);
        if (r >= 0)
            r = check_json_text(service, example->result);
    }
    return r;
}

static int check_table(const weft_param *table) {
    size_t count = 0;
    for (; table && table->name && count <= WEFT_PARAMS_ROWS; table++, count++)
        if (table->one_of && table->type != WEFT_PARAM_str)
            return -EINVAL;
    return count > WEFT_PARAMS_ROWS || (table && table->offset > WEFT_PARAMS_MAX) ? -EMSGSIZE : 0;
}

/* What would show only when somebody calls it, or never. */
static int check_described(const weft_service *service, const weft_method *row) {
    int r = row->name && *row->name ? check_table(row->params) : -EINVAL;
    if (r >= 0)
        r = check_json_text(service, row->result);
    if (r >= 0)
        r = check_json_text(service, row->params_schema); /* of a notification nobody compiles it */
    if (r >= 0)
        r = check_examples(service, row->examples);
    for (const weft_form *form = row->forms; r >= 0 && form && form->name; form++)
        r = form->row && form->row->handler ? check_described(service, form->row) : -EINVAL;
    return r;
}

/* The specification keeps names that begin with "rpc." for itself (section 4); of these we have one, and a program may have
 * its own of it. */
static int check_row(const weft_service *service, const weft_method *row) {
    int r = check_described(service, row);
    if (r < 0)
        return r;
    bool kept = strncmp(row->name, "rpc.", 4) == 0 && strcmp(row->name, discover_row.name) != 0;
    return kept || !row->handler ? -EINVAL : 0;
}

static int add_methods(weft_service *service, const weft_method *rows) {
    int r = 0;
    for (; rows && rows->name && r >= 0; rows++)
        r = weft_service_add(service, rows);
    if (r >= 0 && !weft__methods_find(&service->methods, discover_row.name, strlen(discover_row.name)))
        r = weft__methods_add(&service->methods, service->alloc, &discover_row);
    return r;
}

static int fill_service(weft_service *service, const weft_service_opts *opts) {
    const char *title = opts->title ? opts->title : "Weft";
    const char *version = opts->version ? opts->version : WEFT_VERSION;
    service->limits = opts->limits;
    fill_limits(&service->limits);
    service->ctx = opts->ctx;
    service->authorize = opts->authorize;
    service->on_message = service->log = opts->on_message;
    service->now_us = opts->now_us;
    service->on_ready = opts->on_ready;
    service->check_results = opts->check_results;
    service->named_errors = opts->named_errors;
    service->gates = opts->gates && *opts->gates ? opts->gates : NULL;
    for (const weft_gate *const *gate = service->gates; gate && *gate; gate++) {
        service->gate_flags |= (*gate)->flags ? (*gate)->flags : WEFT_GATE_ALL;
        service->tells |= (*gate)->after != NULL;
    }
    service->guarded = service->gate_flags | (service->authorize ? WEFT_GATE_ALL : 0);
    service->notifications = opts->notifications;
    service->title = weft__strndup(service->alloc, title, strlen(title));
    service->version = weft__strndup(service->alloc, version, strlen(version));
    if (opts->description)
        service->description = weft__strndup(service->alloc, opts->description, strlen(opts->description));
    if (!service->title || !service->version || !service->description != !opts->description)
        return -ENOMEM;
    int r = 0;
    for (const weft_method *told = service->notifications; r >= 0 && told && told->name; told++)
        r = check_described(service, told);
    if (r >= 0)
        r = weft__zip_new(service->alloc, &service->zip);
    if (r >= 0)
        r = weft__gzip_new(service->alloc, &service->gzip);
    if (r >= 0 && opts->measure)
        r = weft__meter_new(service->alloc, &service->meter);
    return r < 0 ? r : add_methods(service, opts->methods);
}

/* Whoever logs may free the peer, so the tap is first. */
static void tap_and_log(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    const weft_service *service = weft_peer_service(peer);
    service->tap(service->tap_ctx, peer, outgoing, text);
    if (service->log)
        service->log(ctx, peer, outgoing, text);
}

void weft__service_tap(weft_service *service, void (*tap)(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text),
                       void *ctx) {
    service->tap = tap;
    service->tap_ctx = ctx;
    service->on_message = tap ? tap_and_log : service->log;
}

int weft_service_new(const weft_service_opts *opts, weft_service **ret) {
    static const weft_service_opts none;
    if (!opts)
        opts = &none;
    weft_service *service = weft__zalloc(opts->alloc, sizeof *service);
    if (!service)
        return -ENOMEM;
    service->refs = 1;
    if (opts->alloc) {
        service->alloc_copy = *opts->alloc;
        service->alloc = &service->alloc_copy;
    }
    int r = fill_service(service, opts);
    if (r < 0) {
        weft_service_unref(service);
        return r;
    }
    *ret = service;
    return 0;
}

void weft_service_set_limits(weft_service *service, const weft_limits *limits) {
    service->limits = limits ? *limits : (weft_limits){0};
    fill_limits(&service->limits);
}

weft_service *weft_service_ref(weft_service *service) {
    service->refs++;
    return service;
}

/* Calls without a connection must not keep the service that nobody else has. They are ended under a reference, because their
 * callbacks and peers give back theirs. */
static void end_calls(weft_service *service) {
    service->refs++;
    weft__service_calls_end(service);
    service->refs--;
}

weft_service *weft_service_unref(weft_service *service) {
    if (!service)
        return NULL;
    service->refs--;
    if (service->refs && service->refs == service->inner_refs && !service->closing)
        end_calls(service);
    if (service->refs)
        return NULL;
    weft_alloc copy = service->alloc_copy; /* it lies in what is freed last */
    const weft_alloc *alloc = service->alloc ? &copy : NULL;
    while (service->pool) {
        weft_req *next = service->pool->next_free;
        weft__free(alloc, service->pool);
        service->pool = next;
    }
    weft__service_calls_done(service);
    weft__idempotent_done(service);
    weft__rate_done(service);
    weft__row_schemas_done(service);
    weft__zip_free(service->zip);
    weft__gzip_free(service->gzip);
    weft__meter_free(service->meter, alloc);
    weft__methods_done(&service->methods, alloc);
    weft__free(alloc, service->title);
    weft__free(alloc, service->version);
    weft__free(alloc, service->description);
    weft__free(alloc, service);
    return NULL;
}

void weft_service_freep(weft_service **service) {
    *service = weft_service_unref(*service);
}

int weft_service_add(weft_service *service, const weft_method *method) {
    int r = method ? check_row(service, method) : -EINVAL;
    if (r < 0)
        return r;
    if (weft__methods_find(&service->methods, method->name, strlen(method->name)))
        return -EEXIST;
    r = weft__row_schemas_add(service, method);
    if (r < 0)
        return r;
    r = weft__methods_add(&service->methods, service->alloc, method);
    if (r < 0)
        weft__row_schemas_remove(service, method);
    return r;
}

int weft_service_remove(weft_service *service, const char *name) {
    if (!name)
        return -ENOENT;
    const weft_method *row = weft_service_find(service, name);
    if (row && service->meter)
        weft__meter_forget(service, row);
    if (row)
        weft__row_schemas_remove(service, row);
    return weft__methods_remove(&service->methods, name);
}

const weft_method *weft_service_find(weft_service *service, const char *name) {
    return !name ? NULL : weft__methods_find(&service->methods, name, strlen(name));
}

const weft_stats *weft_service_stats(const weft_service *service) {
    return &service->stats;
}

/* ---- the pool of requests ---- */

weft_req *weft__req_alloc(weft_service *service) {
    weft_req *req = weft__zalloc(service->alloc, sizeof *req);
    if (req) {
        req->turn = service->turns++; /* memory that was freed and comes again begins elsewhere */
        weft__req_next_turn(req);
    }
    return req;
}

void weft__req_dispose(weft_req *req) {
    weft_service *service = req->service;
    bool deferred = (req->flags & REQ_DEFERRED);
    req->kept = weft__free(service->alloc, req->kept);
    service->inner_refs -= deferred && (req->flags & REQ_UNCARRIED);
    if (req->flags & REQ_OWN_IDENTITY)
        req->identity = weft__free(service->alloc, req->identity);
    req->flags &= ~(unsigned) (REQ_DEFERRED | REQ_OWN_IDENTITY);
    if (service->pooled < WEFT_REQ_POOL)
        weft__req_release(req);
    else
        weft__free(service->alloc, req);
    if (deferred)
        weft_service_unref(service); /* a request that outlives its connection keeps the service */
}

void *weft__service_ctx(const weft_service *service) {
    return service->ctx;
}

const weft_limits *weft__service_limits(const weft_service *service) {
    return &service->limits;
}
