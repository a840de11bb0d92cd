/* update_context and context.get: what planner and executors are to know of, as clients change it. It is stored first, then
 * every holder of a role that speaks this protocol is told, and the answer says how many were. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "arena.h"
#include "context.h"
#include "plain_name.h"
#include "planner.h"
#include "reply.h"
#include "write.h"

struct update {
    const char *action, *context_type;
    weft_json data;
};
const weft_param weft__planner_update_params[] = {
    WEFT_MUST(struct update, action, str, "add, remove or modify"),
    WEFT_MUST(struct update, context_type, str, "file, dependency or state"),
    {"data", WEFT_PARAM_obj, offsetof(struct update, data), WEFT_REQUIRED,
     "file: {path} or {files[]}; dependency: {name, version?} or {dependencies[]}; state: {key, value}, or names and "
     "values"},
    WEFT_END(struct update),
};

/* ---- what is to be changed ---- */

typedef struct reading {
    const weft_hub *hub;
    weft_arena arena;
    weft_context_change change;
    weft_context_part parts[WEFT_CONTEXT_PARTS];
    char why[160]; /* "": nothing is wrong */
    char path[96]; /* where */
} reading;

static int refuse_part(reading *self, const char *path, const char *why) {
    snprintf(self->path, sizeof self->path, "%s", path);
    snprintf(self->why, sizeof self->why, "%s", why);
    return -EINVAL;
}

static int refuse_name(reading *self, const char *path, const char *wrong) {
    char why[sizeof self->why];
    snprintf(why, sizeof why, "its name %s", wrong);
    return refuse_part(self, path, why);
}

const char *weft__planner_file_wrong(const weft_hub *hub, const char *path, char ret_key[WEFT_CONTEXT_KEY + 1]) {
    if (weft__name_wrong((weft_bytes){path, strlen(path)}, WEFT_NAME_LINE) != NULL)
        return *path ? "it has a control character" : "it has no name: a string that is not empty";
    int r = weft__context_path(hub->engine, path, ret_key);
    return r == -EXDEV || r == -ELOOP ? "it leads out of the project's folder"
           : r == -EACCES             ? "it is closed: .git, .weft, .aiwg/daemon"
           : r < 0                    ? "it is not the path of a file in the project"
           : *ret_key == '-'          ? "it begins with a dash, as an option does"
                                      : NULL;
}

const char *weft__planner_files_wrong(const weft_hub *hub, const weft_json *context, size_t *ret_index) {
    char key[WEFT_CONTEXT_KEY + 1];
    weft_json files = weft_get(context, "files");
    const char *wrong = NULL;
    size_t i = 0;
    for (weft_iter it = weft_iterate(&files); !wrong && weft_typeof(&files) == WEFT_ARRAY && weft_next(&it); i++) {
        const char *file = weft_str_of(&it.value, NULL);
        wrong = i == PLANNER_FILES ? "there are too many of them: at most 1000"
                : !file            ? "it is not a string without a NUL"
                                   : weft__planner_file_wrong(hub, file, key);
        *ret_index = i;
    }
    return wrong;
}

/* Where a file is; what is removed may have become a link that leads elsewhere. */
static int read_file_key(reading *self, const char *said, const char *path, const char **ret) {
    char *key = weft__arena_alloc(&self->arena, WEFT_CONTEXT_KEY + 1);
    if (!key)
        return -ENOMEM;
    const char *wrong = weft__planner_file_wrong(self->hub, said, key);
    if (wrong && self->change.action == WEFT_CONTEXT_REMOVE && strlen(said) <= WEFT_CONTEXT_KEY) {
        memcpy(key, said, strlen(said) + 1);
        wrong = NULL;
    }
    *ret = key;
    return wrong ? refuse_part(self, path, wrong) : 0;
}

static int add_part(reading *self, const weft_json *key, const weft_json *data, const char *path) {
    const char *text = weft_str_of(key, NULL);
    if (self->change.count == WEFT_CONTEXT_PARTS)
        return refuse_part(self, "/data", "too many at once: at most 64");
    if (!text || !*text)
        return refuse_part(self, path, "it has no name: a string that is not empty");
    /* What is there can be removed, whatever it is called. */
    bool removes = self->change.action == WEFT_CONTEXT_REMOVE;
    const char *wrong = removes ? NULL : weft__name_wrong((weft_bytes){text, strlen(text)}, WEFT_NAME_LINE);
    if (wrong)
        return refuse_name(self, path, wrong);
    int r = self->change.type == WEFT_CONTEXT_FILE ? read_file_key(self, text, path, &text) : 0;
    if (r >= 0)
        self->parts[self->change.count++] = (weft_context_part){.key = text, .data = data ? *data : (weft_json){0}};
    return r;
}

static weft_json first_of(const weft_json *object, const char *const *names) {
    weft_json found = {0};
    for (; !found.text && *names; names++)
        found = weft_get(object, *names);
    return found;
}

/* Each a name, or an object that has one. */
static int add_list(reading *self, const weft_json *list, const char *const *names, const char *path) {
    size_t index = 0;
    int r = 0;
    for (weft_iter it = weft_iterate(list); r >= 0 && weft_next(&it); index++) {
        char at[64];
        bool object = weft_typeof(&it.value) == WEFT_OBJECT;
        weft_json key = object ? first_of(&it.value, names) : it.value;
        snprintf(at, sizeof at, "%s/%zu", path, index);
        r = add_part(self, &key, object ? &it.value : NULL, at);
    }
    return r;
}

/* Names and what they are. */
static int add_members(reading *self, const weft_json *object, const char *path) {
    int r = 0;
    for (weft_iter it = weft_iterate(object); r >= 0 && weft_next(&it);)
        r = add_part(self, &it.name, &it.value, path);
    return r;
}

/* One by its name, or a list of them. */
static int read_named(reading *self, const weft_json *data, const char *const *names, const char *const *lists) {
    weft_json key = first_of(data, names), list = first_of(data, lists);
    if (weft_typeof(&list) == WEFT_OBJECT)
        return add_members(self, &list, "/data");
    if (weft_typeof(&list) == WEFT_ARRAY)
        return add_list(self, &list, names, "/data");
    return add_part(self, &key, data, "/data");
}

static int read_state(reading *self, const weft_json *data) {
    weft_json key = weft_get(data, "key"), value = weft_get(data, "value"), keys = weft_get(data, "keys");
    bool removes = self->change.action == WEFT_CONTEXT_REMOVE;
    if (removes && weft_typeof(&keys) == WEFT_ARRAY)
        return add_list(self, &keys, (const char *const[]){"key", NULL}, "/data/keys");
    if (key.text && (value.text || removes))
        return add_part(self, &key, &value, "/data/key");
    return add_members(self, data, "/data");
}

static int read_data(reading *self, const weft_json *data) {
    static const char *const paths[] = {"path", "file", "name", NULL}, *const files[] = {"files", "paths", NULL};
    static const char *const names[] = {"name", "dependency", NULL}, *const dependencies[] = {"dependencies", NULL};
    int r = self->change.type == WEFT_CONTEXT_FILE         ? read_named(self, data, paths, files)
            : self->change.type == WEFT_CONTEXT_DEPENDENCY ? read_named(self, data, names, dependencies)
                                                           : read_state(self, data);
    if (r >= 0 && !self->change.count)
        r = refuse_part(self, "/data", "it names nothing");
    self->change.parts = self->parts;
    return r;
}

static int find_name(const char *const *words, int count, const char *word) {
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

static int read_update(reading *self, const struct update *in) {
    int action = find_name(weft__context_actions, WEFT_CONTEXT_ACTIONS, in->action);
    int type = find_name(weft__context_types, WEFT_CONTEXT_TYPES, in->context_type);
    if (action < 0)
        return refuse_part(self, "/action", "there is add, remove and modify");
    if (type < 0)
        return refuse_part(self, "/context_type", "there is file, dependency and state");
    self->change.action = (weft_context_action) action;
    self->change.type = (weft_context_type) type;
    return read_data(self, &in->data);
}

/* ---- changing it ---- */

/* Holders of a role that are told at most; the others are named as not told. */
#define TOLD 64
#define HOLDER 128 /* bytes of a holder's name that are kept */

struct updating;
typedef struct told {
    struct updating *of;
    bool failed;
    char name[HOLDER];
} told;

/* A change, from its beginning until everybody who is to be told has answered.
 *
 *     stored ──every holder was asked──▶ asked ──the last has answered──▶ answered */
struct updating {
    const weft_hub *hub;
    weft_req *req;
    weft_doc *params; /* for whoever is told */
    uint64_t version;
    size_t count, waiting, delivered;
    told told[TOLD];
};

static void free_updating(struct updating *self) {
    weft_doc_free(self->params);
    weft__free(self->hub->alloc, self);
}

static void answer_updated(struct updating *self) {
    weft_val failed[TOLD];
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->told[i].failed)
            failed[count++] = weft_str(self->told[i].name);
    weft__reply_val(self->req, WEFT_OBJ({"status", weft_str("success")}, {"version", weft_uint(self->version)},
                                        {"delivered", weft_uint(self->delivered)}, {"failed", weft_arr(failed, count)}));
    free_updating(self);
}

static void settle_updating(struct updating *self) {
    if (--self->waiting == 0)
        answer_updated(self);
}

static void on_holder_told(void *ctx, int r, const weft_json *result, const char *error) {
    told *one = ctx;
    struct updating *self = one->of;
    (void) result, (void) error;
    one->failed = r < 0;
    self->delivered += r >= 0;
    settle_updating(self);
}

/* One who holds both roles is told once. */
static bool is_told(const struct updating *self, const char *name) {
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->told[i].name, name) == 0)
            return true;
    return false;
}

/* Those who read text get the context with their prompts, and need not be told. */
static void tell_holder(struct updating *self, const weft_holder *holder) {
    if (self->count == TOLD || is_told(self, holder->agent->name))
        return;
    told *one = &self->told[self->count];
    *one = (told){.of = self};
    snprintf(one->name, sizeof one->name, "%s", holder->agent->name);
    int r = weft__role_ask(self->hub->engine, holder->agent->name, "update_context", weft_doc_root(self->params),
                           on_holder_told, one);
    if (r == -EOPNOTSUPP)
        return;
    self->count++;
    one->failed = r < 0;
    self->waiting += r >= 0;
}

static void tell_holders(struct updating *self) {
    static const char *const roles[] = {WEFT_ROLE_PLANNER, WEFT_ROLE_EXECUTOR};
    self->waiting = 1; /* ourselves, until all were asked */
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        weft_holder holder;
        for (size_t n = 0; weft__role_holder(self->hub->engine, roles[i], n, &holder); n++)
            tell_holder(self, &holder);
    }
    settle_updating(self);
}

static int refuse_change(weft_req *req, const char *type, int r) {
    switch (r) {
    case -ENOENT:
        return weft__reply_error(req, WEFT_INVALID_PARAMS, "notInContext", "This %s is not in the context: add it first",
                                 type);
    case -EDQUOT:
        return weft__reply_error(req, 413, "contextFull", "The context has at most %d entries and %zu bytes",
                                 WEFT_CONTEXT_ENTRIES, WEFT_CONTEXT_BYTES);
    case -EMSGSIZE:
        return weft__reply_error(req, 413, "tooLarge", "What is said of one entry has at most %zu bytes", WEFT_CONTEXT_DATA);
    case -EINVAL:
        return weft__reply_invalid(req, "/data", "a name is too long, has control characters, or is there twice");
    case -EUSERS:
        return weft__planner_fail_with(req, &(weft_planner_error){.code = PLANNER_UNAVAILABLE,
                                                                  .type = PLANNER_EXECUTION,
                                                                  .details = "Too many changes of the context are under way",
                                                                  .suggestions = {"Wait until some are done, and ask again"},
                                                                  .retryable = true});
    default:
        return weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r);
    }
}

static void on_context_changed(void *ctx, int r, uint64_t version) {
    struct updating *self = ctx;
    weft_json type = weft_get(weft_doc_root(self->params), "context_type");
    self->version = version;
    if (r >= 0) {
        tell_holders(self);
        return;
    }
    refuse_change(self->req, weft_str_of(&type, "entry"), r);
    free_updating(self);
}

/* By name, whatever way they came, and nothing besides them: some holders hand them to a function. */
static int keep_params(const weft_hub *hub, const struct update *in, weft_doc **ret) {
    char *text;
    size_t len;
    int r = weft_to_text(WEFT_OBJ({"action", weft_str(in->action)}, {"context_type", weft_str(in->context_type)},
                                  {"data", weft_copy(&in->data)}),
                         hub->alloc, &text, &len);
    if (r < 0)
        return r;
    r = weft_doc_parse(text, len, hub->alloc, ret);
    weft_text_free(text, hub->alloc);
    return r;
}

static int start_updating(weft_req *req, const weft_hub *hub, const struct update *in, const reading *from) {
    struct updating *self = weft__zalloc(hub->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->hub = hub;
    int r = keep_params(hub, in, &self->params);
    if (r >= 0)
        r = weft__context_change(hub->engine, &from->change, on_context_changed, self);
    if (r < 0) {
        free_updating(self);
        return r;
    }
    self->req = weft__req_keep(req);
    return 0;
}

int weft__planner_on_update(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct update *in = weft_req_params(req);
    reading *self = weft__zalloc(hub->alloc, sizeof *self);
    (void) params;
    if (!self)
        return -ENOMEM;
    self->hub = hub;
    self->arena.alloc = hub->alloc;
    int r = read_update(self, in);
    if (r >= 0)
        r = start_updating(req, hub, in, self);
    if (*self->why)
        r = weft__reply_invalid(weft__req_keep(req), self->path, "%s", self->why);
    else if (r < 0)
        r = refuse_change(weft__req_keep(req), in->context_type, r);
    weft__arena_done(&self->arena);
    weft__free(hub->alloc, self);
    return r;
}

/* ---- looking at it ---- */

static int write_entries(weft_buf *out, const weft_hub *hub) {
    weft_context_entry entry;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (size_t n = 0; r >= 0 && weft__context_nth(hub->engine, n, &entry); n++) {
        weft_val value =
            WEFT_OBJ({"context_type", weft_str(weft__context_types[entry.type])}, {"key", weft_str(entry.key)},
                     {"data", weft_raw(entry.data.data, entry.data.len)}, {"version", weft_uint(entry.version)});
        r = n ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, hub->alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__planner_on_context(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_buf out = {0};
    (void) params;
    int r = write_entries(&out, hub);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"version", weft_uint(weft__context_version(hub->engine))},
                                     {"entries", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}
