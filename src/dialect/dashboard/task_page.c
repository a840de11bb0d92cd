/* task.page and task.seen. task.list is AIWG's: it carries outputs and ends at a thousand; here is what a list of ten
 * thousand shows. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "dashboard_methods.h"
#include "reply.h"
#include "utf8.h"
#include "write.h"

#define PAGE_DEFAULT 100
#define PAGE_MOST 1000
/* Bytes of a prompt and of an error in a list; and of a prompt that are searched, so that a search costs what a list does.
 */
#define SHOWN 300
#define SEARCHED 4096
#define SEEN_MOST 1000

struct page {
    const char *state, *text, *before;
    int64_t limit;
    bool unseen;
};
const weft_param weft__dashboard_page_params[] = {
    {"state", WEFT_PARAM_str, offsetof(struct page, state), WEFT_NULLABLE,
     "only those that are queued, running, completed, failed or cancelled"},
    {"text", WEFT_PARAM_str, offsetof(struct page, text), WEFT_NULLABLE,
     "only those with this in their id, prompt, agent or error; case does not matter"},
    {"unseen", WEFT_PARAM_bool, offsetof(struct page, unseen), WEFT_NULLABLE,
     "only those that nobody has looked at (task.seen)"},
    {"before", WEFT_PARAM_str, offsetof(struct page, before), WEFT_NULLABLE, "the last taskId of the page before this one"},
    {"limit", WEFT_PARAM_int, offsetof(struct page, limit), WEFT_NULLABLE, "how many; 100 when absent or 0, at most 1000"},
    WEFT_END(struct page),
};

/* ---- which ---- */

static bool holds_text(const char *text, const char *part) {
    char piece[SEARCHED + 1];
    if (!text)
        return false;
    size_t len = strnlen(text, SEARCHED);
    if (text[len] == '\0')
        return strcasestr(text, part) != NULL;
    memcpy(piece, text, len);
    piece[len] = '\0';
    return strcasestr(piece, part) != NULL;
}

static bool is_wanted(const struct page *in, const weft_task *task) {
    if (in->state && strcmp(in->state, weft__task_states[task->state]) != 0)
        return false;
    if (in->unseen && (task->seen || task->state < WEFT_TASK_COMPLETED))
        return false;
    return !in->text || !*in->text || holds_text(task->id, in->text) || holds_text(task->prompt, in->text) ||
           holds_text(task->runs_on, in->text) || holds_text(task->error, in->text);
}

/* ---- writing ---- */

static weft_val cut_text(const char *text) {
    return text ? weft_strn(text, weft__utf8_fit(text, strlen(text), SHOWN)) : weft_null();
}

static int write_row(weft_buf *out, const weft_hub *hub, const weft_task *task) {
    char created[WEFT_STAMP], started[WEFT_STAMP], completed[WEFT_STAMP];
    weft_member changes[WEFT_CHANGES_MEMBERS];
    const weft_session *session = weft__session_find(hub->engine, task->session);
    weft_val value = WEFT_OBJ(
        {"id", weft_str(task->id)}, {"prompt", cut_text(task->prompt)}, {"agent", weft_str(task->runs_on)},
        {"priority", weft_int(task->priority)}, {"state", weft_str(weft__task_states[task->state])},
        {"createdAt", weft__stamp_val(task->created_ms, created)}, {"startedAt", weft__stamp_val(task->started_ms, started)},
        {"completedAt", weft__stamp_val(task->completed_ms, completed)}, {"sessionId", weft_str(task->session)},
        {"attempt", weft_int(task->attempt)}, {"retries", weft_int(task->retries)}, {"reason", weft_str(task->reason)},
        {"error", cut_text(task->error)}, {"seen", weft_bool(task->seen)}, {"outputBytes", weft_uint(task->output_bytes)},
        {"usage", weft__usage_or_none(task)}, {"changes", weft__changes_val(task->changes, false, changes)},
        {"branch", weft_str_or_none(session ? session->branch : NULL)});
    return weft__write_val(out, hub->alloc, &value);
}

typedef struct page_found {
    uint64_t total; /* all that are wanted, wherever the page begins */
    int64_t count;
    bool more;
} page_found;

/* All tasks are looked at, because the total is said too. */
static int write_page(weft_buf *out, const weft_hub *hub, const struct page *in, const weft_task *after, page_found *ret) {
    bool begun = !after;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (const weft_task *task = weft__task_newest(hub->engine); r >= 0 && task;
         task = weft__task_older(hub->engine, task)) {
        bool wanted = is_wanted(in, task);
        ret->total += wanted;
        if (wanted && begun && ret->count < in->limit) {
            r = ret->count++ ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
            if (r >= 0)
                r = write_row(out, hub, task);
        } else if (wanted && begun)
            ret->more = true;
        begun |= task == after;
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__dashboard_page(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    struct page *in = weft_req_params(req);
    const weft_task *after = in->before ? weft__task_find(hub->engine, in->before) : NULL;
    weft_buf out = {0};
    page_found found = {0};
    (void) params;
    if (in->limit < 0)
        return weft__reply_invalid(req, "/limit", "limit must not be negative");
    if (in->before && !after)
        return weft__reply_invalid(req, "/before", "there is no task %.64s any more; begin with the first page", in->before);
    in->limit = in->limit == 0 ? PAGE_DEFAULT : in->limit > PAGE_MOST ? PAGE_MOST : in->limit;
    int r = write_page(&out, hub, in, after, &found);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"tasks", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                     {"total", weft_uint(found.total)}, {"more", weft_bool(found.more)}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* ---- task.seen ---- */

struct seen {
    weft_json taskIds;
};
const weft_param weft__dashboard_seen_params[] = {
    {"taskIds", WEFT_PARAM_arr, offsetof(struct seen, taskIds), WEFT_REQUIRED, "which tasks, also gated ones, at most 1000"},
    WEFT_END(struct seen),
};

/* One request, and its marks that are not durable yet. */
struct marking {
    const weft_hub *hub;
    weft_req *req;
    size_t open, marked;
    int r;
};

static void end_marking(struct marking *marking) {
    if (marking->r < 0)
        weft__reply_failure(marking->req, marking->r);
    else
        weft__reply_val(marking->req, WEFT_OBJ({"seen", weft_uint(marking->marked)}));
    weft__free(marking->hub->alloc, marking);
}

static void on_marked(void *ctx, int r) {
    struct marking *marking = ctx;
    marking->marked += r >= 0;
    if (r < 0)
        marking->r = r;
    if (--marking->open == 0)
        end_marking(marking);
}

static int mark_one(struct marking *marking, const char *id, const char *by) {
    const weft_hub *hub = marking->hub;
    if (hub->gated && weft__gated_find(hub->gated, id))
        return weft__gated_seen(hub->gated, id, by, on_marked, marking);
    return weft__task_seen(hub->engine, id, by, on_marked, marking);
}

/* What is no id, or nobody's, or has not ended is left out: it may be forgotten between a list and this. */
static int mark_all(struct marking *marking, const weft_json *ids, const char *by) {
    int r = 0;
    for (weft_iter it = weft_iterate(ids); r >= 0 && weft_next(&it);) {
        const char *id = weft_str_of(&it.value, NULL);
        r = id ? mark_one(marking, id, by) : 1;
        marking->open += r == 0;
        if (r == -ENOENT || r == -EBUSY)
            r = 0;
    }
    return r;
}

int weft__dashboard_seen(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct seen *in = weft_req_params(req);
    char by[WEFT_WHO];
    (void) params;
    if (weft_count(&in->taskIds) > SEEN_MOST)
        return weft__reply_invalid(req, "/taskIds", "taskIds must not be more than %d", SEEN_MOST);
    struct marking *marking = weft__zalloc(hub->alloc, sizeof *marking);
    if (!marking)
        return -ENOMEM;
    *marking = (struct marking){.hub = hub, .req = weft__req_keep(req), .open = 1};
    int r = mark_all(marking, &in->taskIds, weft__who(weft_req_identity(req), by));
    if (r < 0)
        marking->r = r;
    if (--marking->open == 0)
        end_marking(marking);
    return 0;
}
