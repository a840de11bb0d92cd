/* Who holds a role: role.list. */
#include <errno.h>
#include <string.h>

#include "planner.h"
#include "reply.h"
#include "write.h"

struct roles {
    const char *role;
};
const weft_param weft__planner_roles_params[] = {
    {"role", WEFT_PARAM_str, offsetof(struct roles, role), WEFT_NULLABLE, "only this one: planner or executor"},
    WEFT_END(struct roles),
};

static int write_holder(weft_buf *out, const weft_alloc *alloc, const char *role, const weft_holder *holder) {
    weft_val types[WEFT_TASK_TYPES];
    size_t count = 0;
    for (; holder->task_types && holder->task_types[count]; count++)
        types[count] = weft_str(holder->task_types[count]);
    weft_val value = WEFT_OBJ({"role", weft_str(role)}, {"holder", weft_str(holder->agent->name)},
                              {"driver", weft_str(holder->agent->driver)}, {"registered", weft_bool(holder->guest)},
                              {"running", weft_uint(holder->busy)},
                              {"concurrency", holder->concurrency ? weft_uint(holder->concurrency) : weft_null()},
                              {"task_types", count ? weft_arr(types, count) : weft_null()});
    return weft__write_val(out, alloc, &value);
}

static int write_role(weft_buf *out, const weft_hub *hub, const char *role) {
    weft_holder holder;
    int r = 0;
    for (size_t n = 0; r >= 0 && weft__role_holder(hub->engine, role, n, &holder); n++) {
        r = weft__buf_len(out) > 1 ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_holder(out, hub->alloc, role, &holder);
    }
    return r;
}

int weft__planner_on_roles(weft_req *req, const weft_json *params, void *ctx) {
    static const char *const roles[] = {WEFT_ROLE_PLANNER, WEFT_ROLE_EXECUTOR};
    const weft_hub *hub = ctx;
    const struct roles *in = weft_req_params(req);
    weft_buf out = {0};
    (void) params;
    if (in->role && !weft__role_exists(in->role))
        return weft__reply_invalid(req, "/role", "role must be planner or executor");
    int r = weft__buf_put(&out, hub->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < sizeof roles / sizeof roles[0]; i++)
        if (!in->role || strcmp(in->role, roles[i]) == 0)
            r = write_role(&out, hub, roles[i]);
    if (r >= 0)
        r = weft__buf_put(&out, hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"holders", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}
