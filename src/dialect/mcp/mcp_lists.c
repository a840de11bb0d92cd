/* What there is: the servers, and the tools, resources and prompts of one of them or of all. One that fails does not keep
 * the others from being listed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mcp_rows.h"
#include "reply.h"
#include "write.h"

#define MOST_LISTS 2
#define LARGEST_LISTS (16u << 20) /* bytes of all that are listed together */
#define METHOD_NOT_FOUND (-32601)

struct mcp_servers {
    const char *server;
    bool log;
};
const weft_param weft__mcp_servers_params[] = {
    {"server", WEFT_PARAM_str, offsetof(struct mcp_servers, server), WEFT_NULLABLE | WEFT_NONEMPTY, "only this one"},
    {"log", WEFT_PARAM_bool, offsetof(struct mcp_servers, log), WEFT_NULLABLE,
     "also the last lines that each wrote to its log"},
    WEFT_END(struct mcp_servers),
};

/* What a server writes may hold what an agent must not see. */
static bool may_see_log(const weft_hub *hub, weft_req *req) {
    const weft_hub_host *host = hub->host;
    return !(host && host->is_agent && host->is_agent(host->ctx, weft_req_identity(req)));
}

int weft__mcp_servers(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct mcp_servers *in = weft_req_params(req);
    weft_buf out = {0};
    bool log = in->log && may_see_log(hub, req);
    (void) params;
    if (in->server && !weft__mcp_named(req, hub, in->server))
        return 0;
    int r = weft__buf_put(&out, hub->alloc, "[", 1);
    for (weft_mcp_server *at = hub->mcp ? weft__mcp_first(hub->mcp) : NULL; r >= 0 && at;
         at = weft__mcp_next(hub->mcp, at)) {
        if (in->server && strcmp(in->server, weft__mcp_spec(at)->name) != 0)
            continue;
        r = weft__buf_len(&out) > 1 ? weft__buf_put(&out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__mcp_describe(at, log, &out);
    }
    if (r >= 0)
        r = weft__buf_put(&out, hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"servers", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* ---- lists ---- */

typedef struct list_kind {
    const char *method, *name;
} list_kind;

typedef struct listing {
    const weft_hub *hub;
    weft_req *req;
    const list_kind *kinds;
    size_t pending;
    bool only; /* one server was named: its failure is the answer */
    int r;
    weft_buf items[MOST_LISTS], failed;
    bool answered;
} listing;

/* One server's part of it. */
typedef struct list_part {
    listing *of;
    size_t kind;
    char server[128];
} list_part;

static int put_bytes(const listing *self, weft_buf *out, const char *text, size_t len) {
    return weft__buf_put(out, self->hub->alloc, text, len);
}

/* The item as it came, with its server's name in front. */
static int put_item(listing *self, weft_buf *out, const char *server, const weft_json *item) {
    weft_val name = weft_str(server);
    bool bare = weft_count(item) == 0;
    if (weft__buf_len(out) + item->len > LARGEST_LISTS)
        return -EMSGSIZE;
    int r = weft__buf_len(out) ? put_bytes(self, out, ",", 1) : 0;
    if (r >= 0)
        r = put_bytes(self, out, "{\"server\":", 10);
    if (r >= 0)
        r = weft__write_val(out, self->hub->alloc, &name);
    if (r >= 0 && !bare)
        r = put_bytes(self, out, ",", 1);
    return r < 0 ? r : put_bytes(self, out, bare ? "}" : item->text + 1, bare ? 1 : item->len - 1);
}

static int put_failed(listing *self, const char *server, const char *why) {
    weft_val value = WEFT_OBJ({"server", weft_str(server)}, {"error", weft_str(why)});
    int r = weft__buf_len(&self->failed) ? put_bytes(self, &self->failed, ",", 1) : 0;
    return r < 0 ? r : weft__write_val(&self->failed, self->hub->alloc, &value);
}

static int wrap_list(const listing *self, weft_buf *list) {
    weft_buf out = {0};
    int r = put_bytes(self, &out, "[", 1);
    if (r >= 0)
        r = put_bytes(self, &out, weft__buf_head(list), weft__buf_len(list));
    if (r >= 0)
        r = put_bytes(self, &out, "]", 1);
    weft__buf_done(list, self->hub->alloc);
    *list = out;
    return r;
}

static weft_val raw_of(const weft_buf *list) {
    return weft_raw(weft__buf_head(list), weft__buf_len(list));
}

static void answer_listing(listing *self) {
    weft_member members[MOST_LISTS + 1];
    size_t count = 0;
    for (; self->r >= 0 && self->kinds[count].method; count++) {
        self->r = wrap_list(self, &self->items[count]);
        members[count] = (weft_member){self->kinds[count].name, raw_of(&self->items[count])};
    }
    if (self->r >= 0)
        self->r = wrap_list(self, &self->failed);
    members[count] = (weft_member){"failed", self->r >= 0 ? raw_of(&self->failed) : weft_none()};
    if (self->r >= 0)
        (void) weft__reply_val(self->req, weft_obj(members, count + 1));
    else
        (void) weft__mcp_reply_full(self->req, "the servers", self->r);
}

static void end_listing(listing *self) {
    if (--self->pending)
        return;
    if (!self->answered)
        answer_listing(self);
    for (size_t i = 0; i < MOST_LISTS; i++)
        weft__buf_done(&self->items[i], self->hub->alloc);
    weft__buf_done(&self->failed, self->hub->alloc);
    weft__free(self->hub->alloc, self);
}

/* A server that does not have such a list has an empty one. */
static void on_part_listed(void *ctx, const weft_mcp_answer *answer) {
    list_part *part = ctx;
    listing *self = part->of;
    bool failed = answer->r < 0 || (answer->error && answer->error->code != METHOD_NOT_FOUND);
    if (failed && self->only && !self->answered) {
        self->answered = true;
        (void) weft__mcp_reply_failed(self->req, part->server, answer);
    } else if (failed && self->r >= 0)
        self->r = put_failed(self, part->server, answer->error ? answer->error->message : answer->why);
    weft_json items = answer->result ? weft_get(answer->result, self->kinds[part->kind].name) : (weft_json){0};
    for (weft_iter it = weft_iterate(&items); self->r >= 0 && weft_next(&it);)
        self->r = put_item(self, &self->items[part->kind], part->server, &it.value);
    weft__free(self->hub->alloc, part);
    end_listing(self);
}

static int ask_part(listing *self, weft_mcp_server *server, size_t kind) {
    list_part *part = weft__zalloc(self->hub->alloc, sizeof *part);
    if (!part)
        return -ENOMEM;
    part->of = self;
    part->kind = kind;
    snprintf(part->server, sizeof part->server, "%s", weft__mcp_spec(server)->name);
    weft_mcp_call call = {
        .method = self->kinds[kind].method, .list = self->kinds[kind].name, .done = on_part_listed, .ctx = part};
    self->pending++;
    int r = weft__mcp_request(server, &call, NULL);
    if (r >= 0)
        return 0;
    self->pending--;
    weft__free(self->hub->alloc, part);
    return put_failed(self, weft__mcp_spec(server)->name, r == -ENOBUFS ? "too many requests are open" : weft_strerror(r));
}

struct mcp_list {
    const char *server;
};
const weft_param weft__mcp_list_params[] = {
    {"server", WEFT_PARAM_str, offsetof(struct mcp_list, server), WEFT_NULLABLE | WEFT_NONEMPTY,
     "only of this one; absent: of all"},
    WEFT_END(struct mcp_list),
};

static int start_listing(weft_req *req, const weft_hub *hub, const list_kind *kinds) {
    const struct mcp_list *in = weft_req_params(req);
    weft_mcp_server *only = in->server ? weft__mcp_named(req, hub, in->server) : NULL;
    if (in->server && !only)
        return 0;
    listing *self = weft__zalloc(hub->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->hub = hub;
    self->kinds = kinds;
    self->only = only != NULL;
    self->pending = 1; /* until all are asked */
    weft_mcp_server *at = only ? only : hub->mcp ? weft__mcp_first(hub->mcp) : NULL;
    for (; self->r >= 0 && at; at = only ? NULL : weft__mcp_next(hub->mcp, at))
        for (size_t i = 0; self->r >= 0 && kinds[i].method; i++)
            self->r = ask_part(self, at, i);
    self->req = weft__req_keep(req);
    end_listing(self);
    return 0;
}

int weft__mcp_tools(weft_req *req, const weft_json *params, void *ctx) {
    static const list_kind kinds[] = {{"tools/list", "tools"}, {0}};
    (void) params;
    return start_listing(req, ctx, kinds);
}

int weft__mcp_resources(weft_req *req, const weft_json *params, void *ctx) {
    static const list_kind kinds[] = {
        {"resources/list", "resources"}, {"resources/templates/list", "resourceTemplates"}, {0}};
    (void) params;
    return start_listing(req, ctx, kinds);
}

int weft__mcp_prompts(weft_req *req, const weft_json *params, void *ctx) {
    static const list_kind kinds[] = {{"prompts/list", "prompts"}, {0}};
    (void) params;
    return start_listing(req, ctx, kinds);
}
