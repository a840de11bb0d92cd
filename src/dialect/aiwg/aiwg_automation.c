/* Automation as AIWG's clients know it: what rules there are, switch them. */
#include <errno.h>
#include <string.h>

#include "aiwg.h"
#include "alloc.h"
#include "reply.h"

/* A request that waits until switching is durable. */
struct switching {
    const weft_hub *hub;
    weft_req *req;
    bool enabled;
};

static int failed(const weft_hub *hub) {
    if (hub->automation)
        return weft__automation_health(hub->automation).failed;
    return hub->automation_failed < 0 ? hub->automation_failed : -ENOSYS;
}

static int refuse(weft_req *req, int r) {
    return weft__reply_error(req, AIWG_UNAVAILABLE, "subsystemUnavailable", "Automation is not available: %s",
                             r == -ENOSYS ? "it was not started" : weft_strerror(r));
}

int weft__aiwg_automation_status(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    char *text;
    size_t len;
    (void) params;
    int r = failed(hub);
    if (r < 0)
        return refuse(req, r);
    r = weft__automation_status(hub->automation, &text, &len);
    if (r < 0)
        return r;
    r = weft_reply(req, weft_raw(text, len));
    weft_text_free(text, weft__engine_alloc(hub->engine));
    return r;
}

struct rule {
    const char *ruleId;
};
const weft_param weft__aiwg_rule_params[] = {
    {"ruleId", WEFT_PARAM_str, offsetof(struct rule, ruleId), WEFT_NULLABLE | WEFT_NONEMPTY,
     "only this rule; all of it when absent"},
    WEFT_END(struct rule),
};

/* The seed answers "enabled", the original "success" for a rule: both are said. */
static int say_switched(weft_req *req, bool enabled, bool success) {
    return weft__reply_val(req, WEFT_OBJ({"enabled", weft_bool(enabled)}, {"success", weft_bool(success)}));
}

static void on_switched(void *ctx, int r) {
    struct switching *switching = ctx;
    if (r < 0)
        weft__reply_failure(switching->req, r);
    else
        say_switched(switching->req, switching->enabled, true);
    weft__free(switching->hub->alloc, switching);
}

static int switch_to(weft_req *req, const weft_hub *hub, bool enabled) {
    const struct rule *in = weft_req_params(req);
    int r = failed(hub);
    if (r < 0)
        return refuse(req, r);
    struct switching *switching = weft__alloc(hub->alloc, sizeof *switching);
    if (!switching)
        return -ENOMEM;
    *switching = (struct switching){hub, weft__req_keep(req), enabled};
    r = weft__automation_switch(hub->automation, in->ruleId, enabled, on_switched, switching);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, switching);
    if (r == -ENOENT)
        return say_switched(weft__req_keep(req), false, false);
    if (r == -EINVAL)
        return weft__reply_invalid(req, "/ruleId", "the rule %s is not valid; automation.status says why", in->ruleId);
    return weft__reply_failure(req, r);
}

int weft__aiwg_enable(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return switch_to(req, ctx, true);
}

int weft__aiwg_disable(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return switch_to(req, ctx, false);
}
