/* Standing answers: which there are, and taking one back. They are given with question.answer. */
#include <errno.h>
#include <string.h>

#include "approval.h"
#include "hub_methods.h"
#include "reply.h"
#include "write.h"

struct listing {
    const weft_hub *hub;
    weft_buf out;
    bool first;
    int r;
};

static weft_val copy_or_none(const weft_json *data, const char *name) {
    weft_json member = weft_get(data, name);
    return member.text ? weft_copy(&member) : weft_none();
}

static void list_one(void *ctx, const char *id, int64_t time_ms, const weft_json *data) {
    struct listing *self = ctx;
    char at[WEFT_STAMP];
    weft_val row =
        WEFT_OBJ({"id", weft_str(id)}, {"agent", copy_or_none(data, "agent")}, {"scope", copy_or_none(data, "scope")},
                 {"sessionId", copy_or_none(data, "sessionId")}, {"toolKind", copy_or_none(data, "toolKind")},
                 {"title", copy_or_none(data, "title")}, {"command", copy_or_none(data, "command")},
                 {"path", copy_or_none(data, "path")}, {"by", copy_or_none(data, "by")},
                 {"at", weft__stamp_val(time_ms, at)}, {"questionId", copy_or_none(data, "questionId")});
    if (self->r >= 0 && !self->first)
        self->r = weft__buf_put(&self->out, self->hub->alloc, ",", 1);
    if (self->r >= 0)
        self->r = weft__write_val(&self->out, self->hub->alloc, &row);
    self->first = false;
}

int weft__hub_approvals(weft_req *req, const weft_json *params, void *ctx) {
    struct listing self = {.hub = ctx, .first = true};
    (void) params;
    self.r = weft__buf_put(&self.out, self.hub->alloc, "[", 1);
    int r = weft__approval_each(self.hub->engine, list_one, &self);
    r = r < 0 ? r : self.r;
    if (r >= 0)
        r = weft__buf_put(&self.out, self.hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"approvals", weft_raw(weft__buf_head(&self.out), weft__buf_len(&self.out))}));
    weft__buf_done(&self.out, self.hub->alloc);
    return r;
}

/* ---- revoking ---- */

struct revoke {
    const char *approvalId;
};
const weft_param weft__hub_revoke_params[] = {
    {"approvalId", WEFT_PARAM_str, offsetof(struct revoke, approvalId), WEFT_REQUIRED | WEFT_NONEMPTY, "which one"},
    WEFT_END(struct revoke),
};

struct revoking {
    const weft_hub *hub;
    weft_req *req;
    char id[];
};

static void on_revoked(void *ctx, int r) {
    struct revoking *self = ctx;
    const weft_hub *hub = self->hub;
    if (r < 0)
        weft__reply_failure(self->req, r);
    else
        weft__reply_val(self->req, WEFT_OBJ({"revoked", weft_bool(true)}, {"approvalId", weft_str(self->id)}));
    weft__free(hub->alloc, self);
}

int weft__hub_revoke(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct revoke *in = weft_req_params(req);
    char who[WEFT_WHO];
    size_t size = strlen(in->approvalId) + 1;
    (void) params;
    struct revoking *self = weft__alloc(hub->alloc, sizeof *self + size);
    if (!self)
        return -ENOMEM;
    self->hub = hub;
    self->req = weft__req_keep(req);
    memcpy(self->id, in->approvalId, size);
    int r = weft__approval_revoke(hub->engine, in->approvalId, weft__who(weft_req_identity(req), who), on_revoked, self);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, self);
    return r == -ENOENT
               ? weft__reply_error(req, 404, "approvalNotFound", "There is no standing answer %.64s", in->approvalId)
               : weft__reply_failure(req, r);
}
