/* tinyvex/history.*: what happened in sessions, read back, and their titles.
 *
 * The entries of a session are the events of its stream as ACP's updates, each with its seq. A prompt stands before the
 * first event of its task, and has that one's seq. Who began with the older ACP gets them in that form. Pages are read one
 * after the other until there are enough; an answer that would be too large ends early, and whoever wants the rest asks on
 * from the last seq. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "acp.h"
#include "alloc.h"
#include "reply.h"
#include "tinyvex.h"
#include "tinyvex_stream.h"

#define UPDATES_DEFAULT 100
#define UPDATES_MAX 1000
#define ANSWER_BYTES ((size_t) 8 << 20) /* about: an answer has at most 25 MiB */
#define READINGS 64                     /* at a time: each may hold an answer */
#define RECENT_DEFAULT 10
#define RECENT_MAX 100
#define SESSION_NAME 64

static int refuse_session(weft_req *req, const char *id) {
    return weft__tinyvex_refuse(req, WEFT_INVALID_PARAMS, TVX_REJECTED, "sessionNotFound", "/session_id",
                                "There is no session %s", id);
}

static int refuse_history_param(weft_req *req, const char *path, const char *what) {
    return weft__tinyvex_refuse(req, WEFT_INVALID_PARAMS, TVX_REJECTED, "invalidParams", path, "Invalid params: %s", what);
}

/* ---- reading ---- */

/* A request whose pages are being read. */
struct reading {
    weft_hub_wait wait;
    weft_hub *hub; /* NULL: it goes, and only the store still knows this */
    const weft_alloc *alloc;
    weft_req *req;
    bool old; /* the older ACP is spoken there */
    weft_buf out;
    size_t count, limit;
    int64_t since_ms;
    uint64_t after, shown_after; /* where it reads on; only what is behind the second is shown */
    uint64_t until;              /* nothing from this seq on; 0: all */
    size_t last;                 /* the last so many, when the head is known; 0: from after on */
    char task[64];               /* of the event before */
    char session[SESSION_NAME];
    char stream[SESSION_NAME + sizeof WEFT_STREAM_SESSION];
};

static void free_reading(struct reading *reading) {
    weft__hub_wait_over(&reading->wait);
    if (reading->hub)
        reading->hub->histories--;
    weft__buf_done(&reading->out, reading->alloc);
    weft__free(reading->alloc, reading);
}

/* The page that is under way still comes. */
static void end_reading(weft_hub_wait *wait) {
    struct reading *reading = WEFT_CONTAINER(wait, struct reading, wait);
    weft__reply_failure(reading->req, -ESHUTDOWN);
    weft__hub_wait_over(&reading->wait);
    reading->hub->histories--;
    reading->hub = NULL;
}

static void fail_reading(struct reading *reading, int r) {
    weft__reply_failure(reading->req, r);
    free_reading(reading);
}

static void answer_reading(struct reading *reading) {
    int r = weft__buf_put(&reading->out, reading->alloc, "]", 1);
    if (r < 0)
        weft__reply_failure(reading->req, r);
    else
        weft__reply_val(reading->req, weft_raw(weft__buf_head(&reading->out), weft__buf_len(&reading->out)));
    free_reading(reading);
}

static int write_item(struct reading *reading, const weft_event *event, weft_val update) {
    const weft_alloc *alloc = reading->alloc;
    weft_val entry = WEFT_OBJ({"session_id", weft_str(reading->session)}, {"update", update},
                              {"_meta", WEFT_OBJ({"seq", weft_uint(event->seq)}, {"ts", weft_int(event->time_ms)})});
    int r = reading->count ? weft__buf_put(&reading->out, alloc, ",", 1) : 0;
    if (r >= 0)
        r = weft__write_val(&reading->out, alloc, &entry);
    reading->count++;
    return r;
}

static int write_entry(struct reading *reading, const weft_event *event, weft_val update) {
    weft_buf text = {0};
    if (!reading->old)
        return write_item(reading, event, update);
    int r = weft__acp_put_old(reading->alloc, weft__acp_old_update, update, &text);
    if (r >= 0)
        r = write_item(reading, event, weft_raw(weft__buf_head(&text), weft__buf_len(&text)));
    weft__buf_done(&text, reading->alloc);
    return r;
}

/* What an agent says in the older form itself stays as it is. */
static int write_update(struct reading *reading, const weft_event *event, const weft_json *update) {
    if (weft_typeof(update) != WEFT_OBJECT)
        return 0;
    return weft__acp_is_old_update(update) ? write_item(reading, event, weft_copy(update))
                                           : write_entry(reading, event, weft_copy(update));
}

static int write_prompt(struct reading *reading, const weft_event *event, const char *id) {
    const weft_task *task = weft__task_find(reading->hub->engine, id);
    if (!task)
        return 0;
    return write_entry(reading, event,
                       WEFT_OBJ({"sessionUpdate", weft_str("user_message_chunk")},
                                {"content", WEFT_OBJ({"type", weft_str("text")}, {"text", weft_str(task->prompt)})}));
}

static int write_said(struct reading *reading, const weft_event *event, const weft_json *data) {
    weft_json update = weft_get(data, "update"), text = weft_get(data, "text"), stream = weft_get(data, "stream");
    if (strcmp(event->type, "session.update") == 0)
        return write_update(reading, event, &update);
    if (strcmp(event->type, "session.output") != 0 || weft_typeof(&text) != WEFT_STRING)
        return 0;
    const char *kind = weft__json_is(&stream, "stderr") ? "agent_thought_chunk" : "agent_message_chunk";
    return write_entry(reading, event,
                       WEFT_OBJ({"sessionUpdate", weft_str(kind)},
                                {"content", WEFT_OBJ({"type", weft_str("text")}, {"text", weft_copy(&text)})}));
}

/* An event with its prompt counts as one, so that nobody gets one without the other. */
static int show_event(struct reading *reading, const weft_event *event) {
    weft_doc *doc = NULL;
    const char *task;
    int r = weft_doc_parse(event->data.data, event->data.len, reading->alloc, &doc);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    const weft_json *data = weft_doc_root(doc);
    weft_json id = weft_get(data, "taskId");
    r = id.text ? weft__field_text(&id, &task) : 0;
    bool begins = r >= 0 && id.text && task && strcmp(task, reading->task) != 0;
    bool shown = event->seq > reading->shown_after && event->time_ms >= reading->since_ms;
    if (r >= 0 && begins && shown)
        r = write_prompt(reading, event, task);
    if (begins)
        snprintf(reading->task, sizeof reading->task, "%s", task);
    if (r >= 0 && shown)
        r = write_said(reading, event, data);
    weft_doc_free(doc);
    return r;
}

static bool has_enough(const struct reading *reading) {
    return reading->count >= reading->limit || weft__buf_len(&reading->out) >= ANSWER_BYTES;
}

static int read_on(struct reading *reading);

/* The head was asked for: now it is known where the last ones begin. */
static int read_last(struct reading *reading, const weft_page *page) {
    uint64_t end = reading->until ? reading->until - 1 : page->head;
    if (end > page->head)
        end = page->head;
    reading->shown_after = end > reading->last ? end - reading->last : 0;
    reading->after = reading->shown_after ? reading->shown_after - 1 : 0;
    reading->last = 0;
    return read_on(reading);
}

/* 1: it is complete. */
static int take_page(struct reading *reading, const weft_page *page) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < page->count; i++) {
        if ((reading->until && page->events[i].seq >= reading->until) || has_enough(reading))
            return 1;
        r = show_event(reading, &page->events[i]);
    }
    reading->after = page->last;
    return r < 0 ? r : !page->more || has_enough(reading) ? 1 : read_on(reading);
}

static void on_history_page(void *ctx, int r, const weft_page *page) {
    struct reading *reading = ctx;
    if (!reading->hub) {
        free_reading(reading);
        return;
    }
    if (r >= 0 && reading->last)
        r = read_last(reading, page);
    else if (r == WEFT_GAP_FUTURE)
        r = 1; /* they have everything */
    else if (r == 0)
        r = take_page(reading, page);
    else if (r > 0)
        r = -EIO; /* which there cannot be: it is read from the oldest on */
    if (r < 0)
        fail_reading(reading, r);
    else if (r > 0)
        answer_reading(reading);
}

/* Without more pages to go: where the stream ends is told by a position that is beyond it. */
static int read_on(struct reading *reading) {
    weft_query query = {.stream = reading->stream, .after = reading->last ? INT64_MAX : reading->after, .oldest = true};
    return weft__store_read(weft__engine_store(reading->hub->engine), &query, on_history_page, reading);
}

static int start_reading(weft_req *req, weft_hub *hub, const struct reading *like, const char *session) {
    if (hub->histories >= READINGS)
        return weft__reply_error(weft__req_keep(req), 429, "rateLimited", "Too much is being read: try again in a moment");
    if (!weft__session_find(hub->engine, session) || strlen(session) >= SESSION_NAME)
        return refuse_session(weft__req_keep(req), session);
    struct reading *reading = weft__zalloc(hub->alloc, sizeof *reading);
    if (!reading)
        return -ENOMEM;
    *reading = *like;
    reading->hub = hub;
    reading->alloc = hub->alloc;
    hub->histories++;
    reading->old = weft__acp_is_old(hub, req);
    reading->req = weft__req_keep(req);
    reading->wait.on_end = end_reading;
    snprintf(reading->session, sizeof reading->session, "%s", session);
    snprintf(reading->stream, sizeof reading->stream, "%s%s", WEFT_STREAM_SESSION, session);
    int r = weft__buf_put(&reading->out, hub->alloc, "[", 1);
    weft__hub_wait(hub->clients, &reading->wait);
    if (r >= 0)
        r = read_on(reading);
    if (r >= 0)
        return 0;
    reading->req = NULL;
    free_reading(reading);
    return r == -ENOMEM ? r : weft__reply_failure(weft__req_keep(req), r);
}

/* ---- history.sessionUpdates ---- */

struct updates_params {
    const char *session_id;
    int64_t since_seq, since_ts, limit;
};
const weft_param weft__tinyvex_updates_params[] = {
    {"session_id", WEFT_PARAM_str, offsetof(struct updates_params, session_id), WEFT_REQUIRED | WEFT_NONEMPTY,
     "which session"},
    {"since_seq", WEFT_PARAM_int, offsetof(struct updates_params, since_seq), WEFT_NULLABLE,
     "what comes behind this one; the seq of an entry is in its _meta"},
    {"since_ts", WEFT_PARAM_int, offsetof(struct updates_params, since_ts), WEFT_NULLABLE,
     "what happened at this time or later: milliseconds since 1970"},
    {"limit", WEFT_PARAM_int, offsetof(struct updates_params, limit), WEFT_NULLABLE,
     "how many; 100 when absent or 0, at most 1000"},
    WEFT_END(struct updates_params),
};

static size_t limit_of(int64_t limit, size_t fallback, size_t most) {
    return limit <= 0 ? fallback : (uint64_t) limit < most ? (size_t) limit : most;
}

/* The event before the first that is wanted says whether that one begins a task. */
static struct reading reading_after(int64_t seq) {
    uint64_t after = seq > 0 ? (uint64_t) seq : 0;
    return (struct reading){.shown_after = after, .after = after ? after - 1 : 0};
}

int weft__tinyvex_on_updates(weft_req *req, const weft_json *params, void *ctx) {
    const struct updates_params *in = weft_req_params(req);
    struct reading like = reading_after(in->since_seq);
    (void) params;
    if (in->since_seq < 0 || in->limit < 0)
        return refuse_history_param(weft__req_keep(req), in->limit < 0 ? "/limit" : "/since_seq", "it must not be negative");
    like.since_ms = in->since_ts;
    like.limit = limit_of(in->limit, UPDATES_DEFAULT, UPDATES_MAX);
    return start_reading(req, ctx, &like, in->session_id);
}

/* ---- history.sessionTimeline ---- */

struct timeline_params {
    const char *session_id, *direction;
    int64_t from_seq, limit;
};
const weft_param weft__tinyvex_timeline_params[] = {
    {"session_id", WEFT_PARAM_str, offsetof(struct timeline_params, session_id), WEFT_REQUIRED | WEFT_NONEMPTY,
     "which session"},
    {"limit", WEFT_PARAM_int, offsetof(struct timeline_params, limit), WEFT_NULLABLE, "at most so many; 1000 when absent"},
    {"direction", WEFT_PARAM_str, offsetof(struct timeline_params, direction), WEFT_NULLABLE | WEFT_NONEMPTY,
     "forward, from the beginning; backward: the last ones. In the order in which they happened in either case"},
    {"from_seq", WEFT_PARAM_int, offsetof(struct timeline_params, from_seq), WEFT_NULLABLE,
     "behind this one; backward: before it"},
    WEFT_END(struct timeline_params),
};

int weft__tinyvex_on_timeline(weft_req *req, const weft_json *params, void *ctx) {
    const struct timeline_params *in = weft_req_params(req);
    bool backward = in->direction && strcmp(in->direction, "backward") == 0;
    struct reading like = reading_after(backward ? 0 : in->from_seq);
    (void) params;
    if (in->direction && !backward && strcmp(in->direction, "forward") != 0)
        return refuse_history_param(weft__req_keep(req), "/direction", "direction must be forward or backward");
    if (in->from_seq < 0 || in->limit < 0)
        return refuse_history_param(weft__req_keep(req), in->limit < 0 ? "/limit" : "/from_seq", "it must not be negative");
    like.limit = limit_of(in->limit, UPDATES_MAX, UPDATES_MAX);
    if (backward) {
        like.last = like.limit;
        like.limit = 2 * like.limit; /* with their prompts */
        like.until = (uint64_t) in->from_seq;
    }
    return start_reading(req, ctx, &like, in->session_id);
}

/* ---- history.recentSessions ---- */

struct recent_params {
    int64_t limit;
};
const weft_param weft__tinyvex_recent_params[] = {
    {"limit", WEFT_PARAM_int, offsetof(struct recent_params, limit), WEFT_NULLABLE,
     "at most so many; 10 when absent or 0, at most 100"},
    WEFT_END(struct recent_params),
};

/* Those that changed last, the latest first. */
static size_t find_recent(const weft_engine *engine, const weft_session *found[RECENT_MAX], size_t limit) {
    size_t count = 0;
    for (const weft_session *session = weft__session_newest(engine); session;
         session = weft__session_older(engine, session)) {
        size_t at = count;
        while (at > 0 && found[at - 1]->updated_ms < session->updated_ms)
            at--;
        if (at == limit)
            continue;
        count += count < limit;
        memmove(found + at + 1, found + at, (count - at - 1) * sizeof *found);
        found[at] = session;
    }
    return count;
}

static weft_val title_of(const weft_session *session) {
    const char *fact = session->facts[WEFT_SESSION_TITLE];
    return session->title ? weft_str(session->title) : fact ? weft_raw(fact, strlen(fact)) : weft_null();
}

int weft__tinyvex_on_recent(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct recent_params *in = weft_req_params(req);
    const weft_session *found[RECENT_MAX];
    weft_buf out = {0};
    bool first = true;
    (void) params;
    size_t count = find_recent(hub->engine, found, limit_of(in->limit, RECENT_DEFAULT, RECENT_MAX));
    int r = weft__buf_put(&out, hub->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < count; i++)
        r = weft__stream_item(&out, hub->alloc, &first,
                              WEFT_OBJ({"session_id", weft_str(found[i]->id)}, {"last_ts", weft_int(found[i]->updated_ms)},
                                       {"message_count", weft_uint(found[i]->tasks)}, {"title", title_of(found[i])},
                                       {"archived", weft_bool(found[i]->closed)}));
    if (r >= 0)
        r = weft__buf_put(&out, hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_reply(req, weft_raw(weft__buf_head(&out), weft__buf_len(&out)));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* ---- titles, delete ---- */

struct title_params {
    const char *session_id, *title;
};
const weft_param weft__tinyvex_title_params[] = {
    {"session_id", WEFT_PARAM_str, offsetof(struct title_params, session_id), WEFT_REQUIRED | WEFT_NONEMPTY,
     "which session"},
    {"title", WEFT_PARAM_str, offsetof(struct title_params, title), WEFT_REQUIRED | WEFT_NONEMPTY, "at most 1024 bytes"},
    WEFT_END(struct title_params),
};
const weft_param weft__tinyvex_session_params[] = {
    {"session_id", WEFT_PARAM_str, offsetof(struct title_params, session_id), WEFT_REQUIRED | WEFT_NONEMPTY,
     "which session"},
    WEFT_END(struct title_params),
};

/* A command that answers {ok}. */
struct command_call {
    const weft_hub *hub;
    weft_req *req;
    char id[SESSION_NAME];
};

static int refuse_history_command(weft_req *req, const char *id, int r) {
    if (r == -ESRCH)
        return refuse_session(req, id);
    if (r == -EINVAL)
        return refuse_history_param(req, "/title", "title must have 1 to 1024 bytes");
    if (r == -ESTALE)
        return weft__tinyvex_refuse(req, WEFT_INTERNAL_ERROR, TVX_MUTATION_FAILED, "sessionClosed", NULL,
                                    "The session is being closed or deleted: %s", id);
    return weft__reply_failure(req, r);
}

static void on_command_done(void *ctx, int r, const weft_session *session, const char *error) {
    struct command_call *call = ctx;
    (void) session;
    if (r < 0)
        refuse_history_command(call->req, call->id, r);
    else
        weft__reply_val(call->req, WEFT_OBJ({"ok", weft_bool(true)}, {"agentError", weft_str_or_none(error)}));
    weft__free(call->hub->alloc, call);
}

static int finish_command(weft_req *req, struct command_call *call, int r) {
    char id[SESSION_NAME];
    if (r >= 0)
        return 0;
    memcpy(id, call->id, sizeof id);
    weft__free(call->hub->alloc, call);
    return r == -ENOMEM ? r : refuse_history_command(weft__req_keep(req), id, r);
}

static struct command_call *new_command_call(weft_req *req, const weft_hub *hub, const char *id) {
    struct command_call *call = weft__alloc(hub->alloc, sizeof *call);
    if (!call)
        return NULL;
    *call = (struct command_call){.hub = hub, .req = weft__req_keep(req)};
    snprintf(call->id, sizeof call->id, "%s", id);
    return call;
}

static int set_title(weft_req *req, const weft_hub *hub, const char *id, const weft_json *title) {
    char who[WEFT_WHO];
    struct command_call *call = new_command_call(req, hub, id);
    if (!call)
        return -ENOMEM;
    return finish_command(req, call,
                          weft__session_set(hub->engine, id, &(weft_session_setting){"title", NULL, *title},
                                            weft__who(weft_req_identity(req), who), on_command_done, call));
}

int weft__tinyvex_on_set_title(weft_req *req, const weft_json *params, void *ctx) {
    const struct title_params *in = weft_req_params(req);
    weft_json title = weft_get(params, "title");
    return set_title(req, ctx, in->session_id, &title);
}

int weft__tinyvex_on_clear_title(weft_req *req, const weft_json *params, void *ctx) {
    const struct title_params *in = weft_req_params(req);
    static const weft_json nothing = {"null", 4, NULL};
    (void) params;
    return set_title(req, ctx, in->session_id, &nothing);
}

int weft__tinyvex_on_get_title(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct title_params *in = weft_req_params(req);
    const weft_session *session = weft__session_find(hub->engine, in->session_id);
    (void) params;
    if (!session)
        return refuse_session(weft__req_keep(req), in->session_id);
    return weft_reply(req, WEFT_OBJ({"title", title_of(session)}));
}

int weft__tinyvex_on_delete_session(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct title_params *in = weft_req_params(req);
    char who[WEFT_WHO];
    (void) params;
    struct command_call *call = new_command_call(req, hub, in->session_id);
    if (!call)
        return -ENOMEM;
    return finish_command(
        req, call,
        weft__session_remove(hub->engine, in->session_id, weft__who(weft_req_identity(req), who), on_command_done, call));
}
