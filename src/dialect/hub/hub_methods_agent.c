/* Agents: which there are, which is used. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "agent_program.h"
#include "hub_methods.h"
#include "reply.h"
#include "write.h"

/* Of an agent's command, in a list. */
#define MAX_ARGS 64

/* ---- agents ---- */

int weft__hub_agent_write(weft_buf *out, const weft_alloc *alloc, const weft_agent *agent, const char *folder,
                          bool is_default) {
    weft_val args[MAX_ARGS];
    size_t count = 0;
    char path[PATH_MAX], version[64] = "";
    while (agent->argv && agent->argv[count] && count < MAX_ARGS) {
        args[count] = weft_str(agent->argv[count]);
        count++;
    }
    bool found = weft__agent_program(agent, folder, path, sizeof path) >= 0;
    if (found)
        weft__agent_version(agent, path, version, sizeof version);
    weft_val value =
        WEFT_OBJ({"name", weft_str(agent->name)}, {"driver", weft_str(agent->driver)}, {"command", weft_arr(args, count)},
                 {"found", weft_bool(found)}, {"path", found && *path ? weft_str(path) : weft_none()},
                 {"version", weft_str_or_none(*version ? version : NULL)}, {"isDefault", weft_bool(is_default)},
                 {"preset", weft_bool(agent->preset)}, {"about", weft_str_or_none(agent->about)},
                 {"advice", weft_str_or_none(agent->advice)}, {"login", weft_str_or_none(agent->login)},
                 {"package", weft_str_or_none(agent->package)});
    return weft__write_val(out, alloc, &value);
}

static weft_val default_name(const weft_hub *hub) {
    const weft_agent *agent = weft__agent_default(hub->engine);
    return weft_str(agent ? agent->name : NULL);
}

/* What the configuration says, where somebody has chosen otherwise. */
static weft_val overruled_name(const weft_hub *hub) {
    const weft_agents *agents = weft__engine_agents(hub->engine);
    return weft__agent_is_chosen(hub->engine) ? weft_str_or_none(agents->fallback) : weft_none();
}

static int write_agents(weft_buf *out, const weft_hub *hub) {
    const weft_agents *agents = weft__engine_agents(hub->engine);
    const weft_agent *chosen = weft__agent_default(hub->engine);
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < agents->count; i++) {
        r = i ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__hub_agent_write(out, hub->alloc, &agents->list[i], weft__engine_folder(hub->engine),
                                      chosen && strcmp(chosen->name, agents->list[i].name) == 0);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__hub_agents(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_buf out = {0};
    (void) params;
    int r = write_agents(&out, hub);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"default", default_name(hub)}, {"configured", overruled_name(hub)},
                                     {"agents", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

struct use {
    const char *agent;
};
const weft_param weft__hub_use_params[] = {
    {"agent", WEFT_PARAM_str, offsetof(struct use, agent), WEFT_NULLABLE | WEFT_NONEMPTY,
     "its name; null or absent: as configured"},
    WEFT_END(struct use),
};

/* A request that waits until the choice is durable. */
struct choosing {
    const weft_hub *hub;
    weft_req *req;
};

static void on_chosen(void *ctx, int r) {
    struct choosing *choosing = ctx;
    if (r < 0)
        weft__reply_failure(choosing->req, r);
    else
        weft__reply_val(choosing->req, WEFT_OBJ({"default", default_name(choosing->hub)}));
    weft__free(choosing->hub->alloc, choosing);
}

int weft__hub_use(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct use *in = weft_req_params(req);
    (void) params;
    struct choosing *choosing = weft__alloc(hub->alloc, sizeof *choosing);
    if (!choosing)
        return -ENOMEM;
    *choosing = (struct choosing){hub, weft__req_keep(req)};
    int r = weft__agent_choose(hub->engine, in->agent, on_chosen, choosing);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, choosing);
    if (r == -ENOENT)
        return weft__reply_no_agent(weft__req_keep(req), hub, WEFT_INVALID_PARAMS, "invalidParams", "/agent", in->agent);
    return weft__reply_failure(req, r);
}
