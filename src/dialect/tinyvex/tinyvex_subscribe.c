/* tinyvex/subscribe and unsubscribe: from a request to a subscription of the client, and its answer. What happens then is in
 * dialect/clients. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "alloc.h"
#include "reply.h"
#include "tinyvex.h"
#include "write.h"

struct subscribe_params {
    const char *subId, *name;
    weft_json params, lastSeq;
    const char *journal;
};
const weft_param weft__tinyvex_subscribe_params[] = {
    {"subId", WEFT_PARAM_str, offsetof(struct subscribe_params, subId), WEFT_REQUIRED | WEFT_NONEMPTY,
     "the client's own name for the subscription, at most 256 bytes; one that is used again replaces its subscription"},
    {"name", WEFT_PARAM_str, offsetof(struct subscribe_params, name), WEFT_REQUIRED,
     "threads, messagesByThread, toolCallsByThread, tasks, taskOutput, events, sessionUpdates, questions or documents"},
    {"params", WEFT_PARAM_obj, offsetof(struct subscribe_params, params), WEFT_NULLABLE, "what the stream is about"},
    {"lastSeq", WEFT_PARAM_any, offsetof(struct subscribe_params, lastSeq), WEFT_NULLABLE,
     "the seq of the last value that the client has; absent: it begins anew"},
    {"journal", WEFT_PARAM_str, offsetof(struct subscribe_params, journal), WEFT_NULLABLE,
     "the journal that came with that value"},
    WEFT_END(struct subscribe_params),
};

struct unsubscribe_params {
    const char *subId;
};
const weft_param weft__tinyvex_unsubscribe_params[] = {
    WEFT_MUST(struct unsubscribe_params, subId, str, "of tinyvex/subscribe"),
    WEFT_END(struct unsubscribe_params),
};

/* ---- the answer ---- */

/* A request that waits for the store or for a value. */
struct subscribing {
    const weft_hub *hub;
    weft_hub_client *client;
    weft_req *req; /* NULL: a notification */
    bool resumes, log;
    char id[];
};

static int say_subscribed(const struct subscribing *to, int gap, uint64_t start) {
    const weft_subscription *subscription = weft__hub_client_stream(to->client, to->id);
    const char *digest = subscription ? weft__subscription_digest(subscription) : NULL;
    char journal[WEFT_JOURNAL];
    return weft__reply_val(to->req, WEFT_OBJ({"accepted", weft_bool(true)}, {"resumed", weft_bool(to->resumes && !gap)},
                                             {"startSeq", weft_uint(start)},
                                             {"journal", weft_str(weft__journal_text(to->hub, start, digest, journal))},
                                             {"mode", weft_str(to->log ? "log" : "state")},
                                             {"reason", gap ? weft_str(weft__gap_name(gap)) : weft_none()}));
}

static int say_not_subscribed(weft_req *req, int r) {
    switch (r) {
    case -ECANCELED:
        return weft__reply_error(req, WEFT_CANCELLED, "superseded", "Something else was subscribed meanwhile");
    case -EBUSY:
    case -ETIMEDOUT:
        return weft__tinyvex_refuse(req, WEFT_INTERNAL_ERROR, TVX_TIMEOUT, "timeout", NULL,
                                    "The value takes too long to compute; try again");
    case -EMSGSIZE:
        return weft__tinyvex_refuse(req, WEFT_INTERNAL_ERROR, TVX_REJECTED, "tooLarge", NULL, "The value is too large");
    default:
        return weft__tinyvex_refuse(req, WEFT_INTERNAL_ERROR, TVX_RESUME_FAILED, "storageFailed", NULL,
                                    "The events cannot be read: %s", weft_strerror(r));
    }
}

/* Where memory is too short for the answer the client believes that this failed, and must come back. */
static void on_stream_subscribed(void *ctx, int r, uint64_t start) {
    struct subscribing *to = ctx;
    const weft_alloc *alloc = to->hub->alloc;
    bool gone = to->req && !weft_req_peer(to->req);
    int said = r < 0 ? say_not_subscribed(to->req, r) : say_subscribed(to, r, start);
    if ((said < 0 || gone) && r != -ECANCELED)
        weft__hub_client_lose(to->client);
    weft__free(alloc, to);
}

/* ---- the params of a stream ---- */

static int refuse_param(weft_req *req, const char *name, const char *what) {
    char path[96];
    snprintf(path, sizeof path, "/params/%s", name);
    weft__tinyvex_refuse(weft__req_keep(req), WEFT_INVALID_PARAMS, TVX_REJECTED, "invalidParams", path,
                         "Invalid params: %s must be %s", name, what);
    return -EINVAL;
}

static bool is_list_of_strings(const weft_json *value) {
    bool strings = weft_typeof(value) == WEFT_ARRAY;
    for (weft_iter it = weft_iterate(value); strings && weft_next(&it);)
        strings = weft_typeof(&it.value) == WEFT_STRING;
    return strings;
}

/* <0 after an answer. */
static int check_param(weft_req *req, const weft_param *param, const weft_json *value) {
    bool absent = !value->text || weft_typeof(value) == WEFT_NULL;
    if (absent)
        return param->flags & WEFT_REQUIRED ? refuse_param(req, param->name, "given") : 0;
    if (param->type == WEFT_PARAM_arr && !is_list_of_strings(value))
        return refuse_param(req, param->name, "a list of strings");
    if (param->type == WEFT_PARAM_str && (weft_typeof(value) != WEFT_STRING || value->len <= 2))
        return refuse_param(req, param->name, "a string that is not empty");
    return 0;
}

static int put_form(const weft_hub *hub, bool first, weft_buf *out) {
    static const char form[] = ",\"form\":\"old\"";
    return weft__buf_put(out, hub->alloc, form + first, sizeof form - 1 - first);
}

/* Only what the stream knows, so that who adds something else shares the computation all the same. */
static int write_params(weft_req *req, const weft_hub *hub, const weft_stream_kind *kind, const weft_json *params,
                        weft_buf *out) {
    bool first = true;
    int r = weft__buf_put(out, hub->alloc, "{", 1);
    for (const weft_param *param = kind->params; r >= 0 && param->name; param++) {
        weft_json value = weft_get(params, param->name);
        r = check_param(req, param, &value);
        if (r < 0 || !value.text || weft_typeof(&value) == WEFT_NULL)
            continue;
        r = first ? 0 : weft__buf_put(out, hub->alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = weft__write_str(out, hub->alloc, param->name, strlen(param->name));
        if (r >= 0)
            r = weft__buf_put(out, hub->alloc, ":", 1);
        if (r >= 0)
            r = weft__buf_put(out, hub->alloc, value.text, value.len);
    }
    if (r >= 0 && kind->acp && weft__acp_is_old(hub, req))
        r = put_form(hub, first, out);
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "}", 1);
}

/* In canonical form; owned. -EINVAL after an answer; -ENOMEM. */
static int canonical_params(weft_req *req, const weft_hub *hub, const weft_stream_kind *kind, const weft_json *params,
                            char **ret) {
    weft_buf text = {0};
    weft_doc *doc = NULL;
    size_t len;
    int r = write_params(req, hub, kind, params, &text);
    if (r >= 0)
        r = weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), hub->alloc, &doc);
    if (r >= 0)
        r = weft_to_canonical(weft_doc_root(doc), hub->alloc, ret, &len);
    if (r == -EBADMSG)
        r = refuse_param(req, "", "texts that can be written in UTF-8");
    weft_doc_free(doc);
    weft__buf_done(&text, hub->alloc);
    return r;
}

/* ---- the position ---- */

/* "EPOCH" or "EPOCH.SEQ.DIGEST"; the digest counts if it is that of the last value. A longer epoch is of no journal. */
static void read_journal(const char *journal, char epoch[WEFT_EPOCH + 1], weft_subscription_spec *spec) {
    size_t len = strcspn(journal, ".");
    char *end;
    snprintf(epoch, WEFT_EPOCH + 1, "%.*s", len > WEFT_EPOCH ? 0 : (int) len, journal);
    spec->epoch = epoch;
    if (journal[len] != '.' || !isdigit((unsigned char) journal[len + 1]))
        return;
    uint64_t seq = strtoull(journal + len + 1, &end, 10);
    if (*end == '.' && seq == spec->after && strlen(end + 1) == WEFT_DIGEST)
        spec->digest = end + 1;
}

/* Like gseq, a seq above 2^63 has never been seen: it is beyond the last event. false: it is none. */
static bool read_position(const struct subscribe_params *in, char epoch[WEFT_EPOCH + 1], weft_subscription_spec *spec) {
    bool large = weft_num_of(&in->lastSeq, -1) >= 0x1p63;
    int64_t seq = large ? INT64_MAX : weft_int_of(&in->lastSeq, -1);
    spec->live = !in->lastSeq.text;
    if (spec->live)
        return true;
    spec->after = seq > 0 ? (uint64_t) seq : 0;
    if (in->journal)
        read_journal(in->journal, epoch, spec);
    return seq >= 0;
}

/* ---- subscribe ---- */

static int refuse_subscription(weft_req *req, int r) {
    weft_req *kept = weft__req_keep(req);
    switch (r) {
    case -EMFILE:
        return weft__tinyvex_refuse(kept, WEFT_INTERNAL_ERROR, TVX_REJECTED, "tooManySubscriptions", NULL,
                                    "A connection may have %d subscriptions; end one of them", WEFT_CLIENT_SUBSCRIPTIONS);
    case -ENOBUFS:
        return weft__tinyvex_refuse(kept, WEFT_INTERNAL_ERROR, TVX_REJECTED, "tooManyStreams", NULL,
                                    "Too many different streams are followed; try again later");
    case -EINVAL:
        return weft__tinyvex_refuse(kept, WEFT_INVALID_PARAMS, TVX_REJECTED, "invalidParams", "/subId",
                                    "Invalid params: subId must not be longer than %d bytes", WEFT_SUBSCRIPTION_ID);
    case -ENOMEM:
        return r;
    default:
        return say_not_subscribed(kept, r);
    }
}

static int start_subscribing(weft_req *req, const weft_hub *hub, weft_hub_client *client,
                             const weft_subscription_spec *spec) {
    size_t size = strlen(spec->id) + 1;
    struct subscribing *to = weft__alloc(hub->alloc, sizeof *to + size);
    if (!to)
        return -ENOMEM;
    *to = (struct subscribing){.hub = hub,
                               .client = client,
                               .req = weft__req_keep(req),
                               .resumes = !spec->live,
                               .log = spec->kind->class == WEFT_CLASS_LOG};
    memcpy(to->id, spec->id, size);
    int r = weft__hub_client_subscribe(client, spec, on_stream_subscribed, to);
    if (r < 0)
        weft__free(hub->alloc, to);
    return r < 0 ? refuse_subscription(req, r) : 0;
}

int weft__tinyvex_on_subscribe(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct subscribe_params *in = weft_req_params(req);
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    const weft_stream_kind *kind = weft__tinyvex_stream(in->name);
    weft_subscription_spec spec = {.id = in->subId, .kind = kind};
    char epoch[WEFT_EPOCH + 1], *canonical = NULL;
    (void) params;
    if (!client)
        return weft__tinyvex_refuse(weft__req_keep(req), WEFT_INVALID_REQUEST, TVX_REJECTED, "cannotListen", NULL,
                                    "Values cannot be delivered here; connect by socket or WebSocket");
    if (!kind)
        return weft__tinyvex_refuse(weft__req_keep(req), WEFT_INVALID_PARAMS, TVX_REJECTED, "streamNotFound", "/name",
                                    "There is no stream \"%.200s\"", in->name);
    if (!read_position(in, epoch, &spec))
        return weft__tinyvex_refuse(weft__req_keep(req), WEFT_INVALID_PARAMS, TVX_REJECTED, "invalidParams", "/lastSeq",
                                    "Invalid params: lastSeq must be an integer, 0 or more");
    int r = canonical_params(req, hub, kind, &in->params, &canonical);
    if (r < 0)
        return r;
    spec.params = canonical;
    r = start_subscribing(req, hub, client, &spec);
    weft_text_free(canonical, hub->alloc);
    return r;
}

int weft__tinyvex_on_unsubscribe(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct unsubscribe_params *in = weft_req_params(req);
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    (void) params;
    if (!client || !weft__hub_client_unsubscribe_stream(client, in->subId))
        return weft__tinyvex_refuse(weft__req_keep(req), WEFT_INVALID_PARAMS, TVX_NOT_SUBSCRIBED, "subscriptionNotFound",
                                    "/subId", "There is no subscription \"%.256s\"", in->subId);
    int r = weft_reply(req, WEFT_OBJ({"ok", weft_bool(true)}));
    if (r < 0)
        weft__hub_client_lose(client); /* it was told that this failed */
    return r;
}
