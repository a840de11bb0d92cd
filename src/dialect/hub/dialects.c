/* Several vocabularies as one table of methods. A name that one dialect has is a row as it stands; a name that several have
 * becomes a row that asks the connection which it speaks. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "hub_clients.h"
#include "past_gate.h"
#include "reply.h"

struct route {
    weft_dialects *all;
    const weft_method *rows[WEFT_DIALECTS]; /* by dialect; NULL: it has no such method */
    weft_error_row *errors;                 /* of all of them; owned */
    weft_form forms[WEFT_DIALECTS + 1];     /* those that have it, for rpc.discover; ends with NULL */
};

struct weft_dialects {
    const weft_alloc *alloc;
    weft_hub *hub;
    const weft_dialect *list[WEFT_DIALECTS];
    size_t count;
    weft_method *methods; /* ends with a NULL name */
    size_t method_count;
    struct route *routes; /* as many as methods; used are the first route_count */
    size_t route_count;
    weft_gate people;
    weft_past_gate past;
    const weft_gate *gates[3]; /* ends with NULL */
};

/* ---- asking a connection which it speaks ---- */

static size_t index_of_dialect(const weft_dialects *all, const char *name) {
    size_t i = 0;
    while (i < all->count && strcmp(all->list[i]->name, name) != 0)
        i++;
    return i;
}

static const weft_method *choose_spoken(const struct route *route, const char *dialect) {
    const weft_dialects *all = route->all;
    size_t spoken = index_of_dialect(all, dialect), first = 0;
    if (spoken < all->count && !route->rows[spoken] && all->list[spoken]->also)
        spoken = index_of_dialect(all, all->list[spoken]->also);
    while (!route->rows[first])
        first++;
    return spoken < all->count && route->rows[spoken] ? route->rows[spoken] : route->rows[first];
}

/* The dialect whose row is the one for these params; NULL: nobody claims them. */
static const weft_dialect *find_claimant(const struct route *route, const weft_json *params) {
    const weft_dialects *all = route->all;
    for (size_t i = 0; i < all->count; i++)
        if (route->rows[i] && all->list[i]->claims && all->list[i]->claims(params))
            return all->list[i];
    return NULL;
}

static const weft_dialect *dialect_of_row(const struct route *route, const weft_method *row) {
    size_t i = 0;
    while (route->rows[i] != row)
        i++;
    return route->all->list[i];
}

/* The library has checked and bound nothing, because the router's row has no params table: the chosen row's has its turn. */
static int answer_by_dialect(weft_req *req, const weft_json *params, void *ctx) {
    const struct route *route = ctx;
    const weft_method *row = choose_spoken(route, weft_req_identity(req)->dialect);
    return weft_req_pass_on(req, row, params, row->ctx ? row->ctx : route->all->hub);
}

static int refuse_other_dialect(weft_req *req, const weft_dialect *wanted) {
    return weft__reply_error(req, WEFT_INVALID_REQUEST, "dialectDecided",
                             "This connection speaks %s already; open another one to speak %s",
                             weft_req_identity(req)->dialect, wanted->name);
}

/* Which row answers a request that says which dialect the connection speaks. */
struct deciding {
    const struct route *route;
    const weft_method *row;
};

/* The params are right. A single HTTP request is no client: it is answered, and nothing remembers it. */
static int decide_and_call(weft_req *req, const weft_json *params, void *ctx) {
    const struct deciding *deciding = ctx;
    const weft_method *row = deciding->row;
    weft_hub *hub = deciding->route->all->hub;
    const weft_dialect *dialect = dialect_of_row(deciding->route, row);
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    int r = client ? weft__hub_client_decide(client, dialect) : 0;
    if (r == -EBUSY)
        return refuse_other_dialect(req, dialect);
    return r < 0 ? r : row->handler(req, params, row->ctx ? row->ctx : hub);
}

/* Decided before the handler runs, so that it finds a client of its own dialect, and after the params were checked. */
static int answer_and_decide(weft_req *req, const weft_json *params, void *ctx) {
    const struct route *route = ctx;
    const weft_dialect *claimant = find_claimant(route, params);
    struct deciding deciding = {route, choose_spoken(route, claimant ? claimant->name : weft_req_identity(req)->dialect)};
    weft_method row = *deciding.row;
    row.handler = decide_and_call;
    return weft_req_pass_on(req, &row, params, &deciding);
}

/* ---- keeping agents out ---- */

/* The gate of all rows with WEFT_FOR_PEOPLE. It is asked before the scope, because the refusal should say why: an agent has
 * no scope that would help. */
static int ask_people(void *ctx, const weft_gate_request *request) {
    const weft_hub *hub = ctx;
    const weft_hub_host *host = hub->host;
    if (!host || !host->is_agent || !host->is_agent(host->ctx, request->identity))
        return 0;
    weft__reply_error(request->req, 403, "agentMayNot", "%s is not for agents: the caller is a process of one, or has ended",
                      request->method->name);
    return -EACCES;
}

/* ---- merging ---- */

static size_t count_errors(const weft_error_row *errors) {
    size_t n = 0;
    while (errors && errors[n].code)
        n++;
    return n;
}

static bool has_error(const weft_error_row *rows, size_t count, const weft_error_row *error) {
    for (size_t i = 0; i < count; i++)
        if (rows[i].code == error->code && strcmp(rows[i].message, error->message) == 0)
            return true;
    return false;
}

static int add_errors(const weft_dialects *all, struct route *route, const weft_error_row *errors) {
    size_t had = count_errors(route->errors), more = count_errors(errors);
    weft_error_row *rows = weft__resize(all->alloc, route->errors, (had + more + 1) * sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < more; i++)
        if (!has_error(rows, had, &errors[i]))
            rows[had++] = errors[i];
    rows[had] = (weft_error_row){0};
    route->errors = rows;
    return 0;
}

static bool same_scope(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static const weft_method *find_own(const weft_dialect *dialect, const char *name) {
    for (const weft_method *row = dialect->methods; row && row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* A second dialect has this name: from here on the row asks. Which was the first is found again, because rows do not say. */
static int make_route(weft_dialects *all, weft_method *row) {
    struct route *route = &all->routes[all->route_count];
    int r = add_errors(all, route, row->errors);
    if (r < 0)
        return r;
    size_t first = 0;
    while (!(route->rows[first] = find_own(all->list[first], row->name)))
        first++;
    route->all = all;
    all->route_count++;
    row->handler = row->flags & WEFT_DECIDES ? answer_and_decide : answer_by_dialect;
    row->ctx = route;
    return 0;
}

static void list_forms(struct route *route) {
    size_t count = 0;
    for (size_t i = 0; i < route->all->count; i++)
        if (route->rows[i])
            route->forms[count++] = (weft_form){route->all->list[i]->name, route->rows[i]};
    route->forms[count] = (weft_form){0};
}

/* Discovery shows the params and results of all its rows. */
static int share_row(weft_dialects *all, weft_method *row, const weft_method *other, size_t dialect) {
    bool routed = row->handler == answer_by_dialect || row->handler == answer_and_decide;
    bool differs = !same_scope(row->scope, other->scope) || ((row->flags ^ other->flags) & WEFT_DECIDES);
    int r = differs ? -EINVAL : 0;
    if (r >= 0 && !routed)
        r = make_route(all, row);
    struct route *route = row->ctx;
    if (r >= 0)
        r = add_errors(all, route, other->errors);
    if (r < 0)
        return r;
    route->rows[dialect] = other;
    list_forms(route);
    row->forms = route->forms;
    row->errors = route->errors;
    row->params = NULL;
    row->params_schema = NULL;
    row->defaults = NULL;
    row->timeout_ms = 0; /* that of the chosen row counts */
    row->result = row->result == other->result ? row->result : NULL;
    row->flags = ((row->flags | other->flags) & (WEFT_ROW_CHANGES | WEFT_ROW_SOON | WEFT_FOR_PEOPLE | WEFT_DECIDES)) |
                 (row->flags & other->flags & (WEFT_ROW_OPEN | WEFT_ROW_HIDDEN | WEFT_EARLY));
    return 0;
}

static weft_method *find_method_row(const weft_dialects *all, const char *name) {
    for (size_t i = 0; i < all->method_count; i++)
        if (strcmp(all->methods[i].name, name) == 0)
            return &all->methods[i];
    return NULL;
}

static int add_rows(weft_dialects *all, size_t dialect) {
    int r = 0;
    for (const weft_method *row = all->list[dialect]->methods; r >= 0 && row && row->name; row++) {
        weft_method *there = find_method_row(all, row->name);
        if (there) {
            r = share_row(all, there, row, dialect);
            continue;
        }
        weft_method *added = &all->methods[all->method_count++];
        *added = *row;
        if (!added->ctx)
            added->ctx = all->hub;
        if (added->flags & WEFT_DECIDES)
            r = make_route(all, added);
    }
    return r;
}

static size_t count_methods(const weft_dialects *all) {
    size_t n = 0;
    for (size_t i = 0; i < all->count; i++)
        for (const weft_method *row = all->list[i]->methods; row && row->name; row++)
            n++;
    return n;
}

static int merge_rows(weft_dialects *all) {
    size_t count = count_methods(all);
    all->methods = weft__zalloc(all->alloc, (count + 1) * sizeof *all->methods);
    all->routes = weft__zalloc(all->alloc, (count + 1) * sizeof *all->routes);
    int r = all->methods && all->routes ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < all->count; i++)
        r = add_rows(all, i);
    return r;
}

/* ---- outside ---- */

static bool has_too_many_variants(const weft_dialect *dialect) {
    size_t count = 0;
    while (dialect->variants && dialect->variants[count])
        count++;
    return count > WEFT_VARIANTS;
}

int weft__dialects_new(const weft_dialect *const *list, weft_hub *hub, const weft_alloc *alloc, weft_dialects **ret) {
    weft_dialects *all = weft__zalloc(alloc, sizeof *all);
    if (!all)
        return -ENOMEM;
    all->alloc = alloc;
    all->hub = hub;
    all->people = (weft_gate){.name = "people", .before = ask_people, .ctx = hub, .flags = WEFT_FOR_PEOPLE};
    all->gates[0] = &all->people;
    all->gates[1] = &all->past.gate;
    int r = 0;
    for (; *list && r >= 0; list++)
        if (all->count == WEFT_DIALECTS || has_too_many_variants(*list))
            r = -EINVAL;
        else
            all->list[all->count++] = *list;
    if (r >= 0)
        r = merge_rows(all);
    if (r >= 0)
        weft__past_gate_init(&all->past, hub, all->methods);
    if (r < 0) {
        weft__dialects_free(all);
        return r;
    }
    *ret = all;
    return 0;
}

weft_dialects *weft__dialects_free(weft_dialects *dialects) {
    if (!dialects)
        return NULL;
    if (dialects->past.hub)
        weft__past_gate_done(&dialects->past);
    for (size_t i = 0; i < dialects->route_count; i++)
        weft__free(dialects->alloc, dialects->routes[i].errors);
    weft__free(dialects->alloc, dialects->routes);
    weft__free(dialects->alloc, dialects->methods);
    weft__free(dialects->alloc, dialects);
    return NULL;
}

const weft_method *weft__dialects_methods(const weft_dialects *dialects) {
    return dialects->methods;
}

const weft_gate *const *weft__dialects_gates(const weft_dialects *dialects) {
    return dialects->gates;
}

const char *weft__dialects_endpoint(const weft_dialects *dialects, const weft_scheme *scheme, const char *path) {
    for (size_t i = 0; i < dialects->count; i++)
        if (dialects->list[i]->endpoint && dialects->list[i]->endpoint(scheme, path))
            return dialects->list[i]->name;
    return "";
}

const weft_dialect *weft__dialects_at(const weft_dialects *dialects, size_t index) {
    return index < dialects->count ? dialects->list[index] : NULL;
}
