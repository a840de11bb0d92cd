/* Who holds a role: role.register, role.unregister, role.list; and what those who registered stream. A connection has one
 * wire (driver_planner.h), by which the engine's driver calls it, and may have registered once for each role. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "driver_planner.h"
#include "plain_name.h"
#include "planner.h"
#include "reply.h"
#include "write.h"

#define ROLES 2
static const char *const roles[ROLES] = {WEFT_ROLE_PLANNER, WEFT_ROLE_EXECUTOR};
/* Tasks that one connection may have at a time. */
#define MOST_CONCURRENT 64

/* What a connection has registered for. */
struct holding {
    weft_client_part part;
    const weft_alloc *alloc;
    weft_planner_wire wire;
    weft_guest *guests[ROLES];
};

static size_t index_of_role(const char *role) {
    size_t i = 0;
    while (i < ROLES && strcmp(roles[i], role) != 0)
        i++;
    return i;
}

static void on_holder_gone(weft_client_part *part) {
    struct holding *holding = WEFT_CONTAINER(part, struct holding, part);
    weft__planner_wire_lost(&holding->wire);
    for (size_t i = 0; i < ROLES; i++)
        weft__role_leave(holding->guests[i]);
    weft__free(holding->alloc, holding);
}

static struct holding *holding_of(const weft_hub *hub, weft_req *req) {
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    weft_client_part *part = client ? weft__hub_client_part(client, on_holder_gone) : NULL;
    return part ? WEFT_CONTAINER(part, struct holding, part) : NULL;
}

static struct holding *new_holding(const weft_hub *hub, weft_hub_client *client) {
    struct holding *holding = weft__zalloc(hub->alloc, sizeof *holding);
    if (!holding)
        return NULL;
    holding->alloc = hub->alloc;
    holding->part.on_gone = on_holder_gone;
    weft__planner_wire_init(&holding->wire, weft__hub_client_peer(client));
    weft__hub_client_add(client, &holding->part);
    return holding;
}

/* ---- role.register ---- */

struct enrol {
    const char *role;
    int64_t concurrency;
    weft_json task_types;
};
const weft_param weft__planner_register_params[] = {
    WEFT_MUST(struct enrol, role, str, "planner or executor"),
    WEFT_MAY(struct enrol, concurrency, int, "how many tasks at a time, 1 to 64; 1 when absent"),
    {"task_types", WEFT_PARAM_arr, offsetof(struct enrol, task_types), WEFT_NULLABLE,
     "only tasks of these types; all when absent"},
    WEFT_END(struct enrol),
};

static int refuse_role(weft_req *req) {
    return weft__reply_invalid(req, "/role", "role must be planner or executor");
}

/* <0 after -32602 was answered. */
static int read_types(weft_req *req, const weft_json *list, const char *ret[WEFT_TASK_TYPES + 1]) {
    size_t count = 0;
    for (weft_iter it = weft_iterate(list); list->text && weft_next(&it);) {
        const char *type = weft_str_of(&it.value, "");
        const char *wrong = weft__name_wrong((weft_bytes){type, strlen(type)}, WEFT_NAME_WORD);
        if (wrong) {
            weft__reply_invalid(req, "/task_types", "one of task_types %s", wrong);
            return -EINVAL;
        }
        if (strlen(type) > WEFT_TASK_TYPE || count == WEFT_TASK_TYPES) {
            weft__reply_invalid(req, "/task_types", "task_types must be at most %d names of 1 to %d bytes", WEFT_TASK_TYPES,
                                WEFT_TASK_TYPE);
            return -EINVAL;
        }
        ret[count++] = type;
    }
    ret[count] = NULL;
    return 0;
}

static int refuse_register(weft_req *req, int r) {
    if (r == -ENOSPC)
        return weft__planner_fail(req, PLANNER_UNAVAILABLE, PLANNER_EXECUTION, "Too many have registered", NULL);
    return r == -ESHUTDOWN || r == -EAGAIN ? weft__reply_failure(req, -ESHUTDOWN) : r;
}

/* The same again replaces what was said before. */
int weft__planner_on_register(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct enrol *in = weft_req_params(req);
    const char *types[WEFT_TASK_TYPES + 1];
    size_t which = index_of_role(in->role);
    weft_guest *guest;
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    (void) params;
    if (which == ROLES)
        return refuse_role(req);
    if (in->concurrency < 0 || in->concurrency > MOST_CONCURRENT)
        return weft__reply_invalid(req, "/concurrency", "concurrency must be 1 to %d", MOST_CONCURRENT);
    if (!client)
        return weft__reply_error(req, WEFT_INVALID_REQUEST, "cannotListen",
                                 "Nothing can be asked of this connection: use a socket, a WebSocket or stdio");
    int r = read_types(req, &in->task_types, types);
    if (r < 0)
        return 0;
    struct holding *holding = holding_of(hub, req);
    if (!holding && !(holding = new_holding(hub, client)))
        return -ENOMEM;
    r = weft__role_join(hub->engine,
                        &(weft_guest_spec){.role = roles[which],
                                           .concurrency = (size_t) in->concurrency,
                                           .task_types = types[0] ? types : NULL,
                                           .wire = &holding->wire},
                        &guest);
    if (r < 0)
        return refuse_register(req, r);
    weft__role_leave(holding->guests[which]);
    holding->guests[which] = guest;
    return weft_reply(req, WEFT_OBJ({"registered", weft_bool(true)}, {"holder", weft_str(weft__guest_name(guest))}));
}

/* ---- role.unregister ---- */

struct leave {
    const char *role;
};
const weft_param weft__planner_unregister_params[] = {
    WEFT_MUST(struct leave, role, str, "planner or executor"),
    WEFT_END(struct leave),
};

/* What it has begun it may finish. */
int weft__planner_on_unregister(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct leave *in = weft_req_params(req);
    size_t which = index_of_role(in->role);
    struct holding *holding = holding_of(hub, req);
    (void) params;
    if (which == ROLES)
        return refuse_role(req);
    bool had = holding && holding->guests[which];
    if (had)
        holding->guests[which] = weft__role_leave(holding->guests[which]);
    return weft_reply(req, WEFT_OBJ({"unregistered", weft_bool(had)}));
}

/* ---- what they stream ---- */

struct chunk {
    const char *stream_id, *chunk;
    weft_json task_id, sequence, total_chunks;
};
const weft_param weft__planner_start_params[] = {
    WEFT_MUST(struct chunk, stream_id, str, "the stream that begins"),
    {"task_id", WEFT_PARAM_any, offsetof(struct chunk, task_id), 0, "the id of the request that it is for"},
    WEFT_END(struct chunk),
};
const weft_param weft__planner_data_params[] = {
    WEFT_MUST(struct chunk, stream_id, str, "the stream"),
    WEFT_MUST(struct chunk, chunk, str, "the next piece of the output"),
    {"sequence", WEFT_PARAM_any, offsetof(struct chunk, sequence), 0, "its number, from 1"},
    WEFT_END(struct chunk),
};
const weft_param weft__planner_end_params[] = {
    WEFT_MUST(struct chunk, stream_id, str, "the stream that ends"),
    {"total_chunks", WEFT_PARAM_any, offsetof(struct chunk, total_chunks), 0, "how many chunks it had"},
    WEFT_END(struct chunk),
};

/* A stream that belongs to nothing, or to something that was given up, is nobody's. */
int weft__planner_on_stream(weft_req *req, const weft_json *params, void *ctx) {
    struct holding *holding = holding_of(ctx, req);
    bool taken = holding && weft__planner_wire_hear(&holding->wire, weft_req_method(req), params);
    return weft_reply(req, WEFT_OBJ({"accepted", weft_bool(taken)}));
}

/* ---- role.list ---- */

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
    const weft_hub *hub = ctx;
    const struct roles *in = weft_req_params(req);
    weft_buf out = {0};
    (void) params;
    if (in->role && !weft__role_exists(in->role))
        return refuse_role(req);
    int r = weft__buf_put(&out, hub->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < ROLES; i++)
        if (!in->role || strcmp(in->role, roles[i]) == 0)
            r = write_role(&out, hub, roles[i]);
    if (r >= 0)
        r = weft__buf_put(&out, hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"holders", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}
