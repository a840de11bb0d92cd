/* session/messages and session/elements: the transcript of a session, as messages or as what a screen shows. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "cdev.h"
#include "reply.h"
#include "transcript.h"
#include "write.h"

#define MESSAGES_DEFAULT 50
#define ELEMENTS_DEFAULT 50
#define ELEMENTS_MAX 100

struct messages_params {
    const char *session_id;
    int64_t limit, offset;
    const char *order;
    int64_t until_seq;
    const char *agent_type, *sessionId;
};
const weft_param weft__cdev_messages_params[] = {
    {"session_id", WEFT_PARAM_str, offsetof(struct messages_params, session_id), WEFT_NULLABLE, "which session"},
    {"limit", WEFT_PARAM_int, offsetof(struct messages_params, limit), WEFT_NULLABLE,
     "how many; 50 when absent or 0, at most 500"},
    {"offset", WEFT_PARAM_int, offsetof(struct messages_params, offset), WEFT_NULLABLE,
     "how many to leave out, from the beginning"},
    {"order", WEFT_PARAM_str, offsetof(struct messages_params, order), WEFT_NULLABLE,
     "asc: the oldest first, the default; desc: the newest first"},
    {"until_seq", WEFT_PARAM_int, offsetof(struct messages_params, until_seq), WEFT_NULLABLE,
     "only what happened up to here: since_seq of session/watch, so that nothing is missing or told twice"},
    {"agent_type", WEFT_PARAM_str, offsetof(struct messages_params, agent_type), WEFT_NULLABLE, "ignored"},
    {"sessionId", WEFT_PARAM_str, offsetof(struct messages_params, sessionId), WEFT_NULLABLE, "the same as session_id"},
    WEFT_END(struct messages_params),
};

struct elements_params {
    const char *session_id;
    int64_t limit;
    const char *before, *after;
    int64_t until_seq;
    const char *agent_type, *sessionId;
};
const weft_param weft__cdev_elements_params[] = {
    {"session_id", WEFT_PARAM_str, offsetof(struct elements_params, session_id), WEFT_NULLABLE, "which session"},
    {"limit", WEFT_PARAM_int, offsetof(struct elements_params, limit), WEFT_NULLABLE,
     "the elements of at most so many messages; 50 when absent or 0, at most 100"},
    {"before", WEFT_PARAM_str, offsetof(struct elements_params, before), WEFT_NULLABLE | WEFT_NONEMPTY,
     "those before this id; the last ones when both are absent"},
    {"after", WEFT_PARAM_str, offsetof(struct elements_params, after), WEFT_NULLABLE | WEFT_NONEMPTY, "those after this id"},
    {"until_seq", WEFT_PARAM_int, offsetof(struct elements_params, until_seq), WEFT_NULLABLE,
     "only what happened up to here, as in session/messages"},
    {"agent_type", WEFT_PARAM_str, offsetof(struct elements_params, agent_type), WEFT_NULLABLE, "ignored"},
    {"sessionId", WEFT_PARAM_str, offsetof(struct elements_params, sessionId), WEFT_NULLABLE, "the same as session_id"},
    WEFT_END(struct elements_params),
};

/* A request that waits for the store. */
struct transcribing {
    const weft_hub *hub;
    weft_req *req;
    int64_t limit, offset;
    bool newest_first;
    const char *path; /* of the param with an element's id */
    char session[];
};

/* ---- messages ---- */

/* Content blocks as agents of the original write them. */
static weft_val tool_block(const weft_transcript_item *item, weft_member room[5]) {
    const weft_bytes *members = item->members;
    const weft_bytes *input = &members[WEFT_TOOL_INPUT], *name = &members[WEFT_TOOL_KIND], *id = &members[WEFT_TOOL_CALL_ID];
    room[0] = (weft_member){"type", weft_str("tool_use")};
    room[1] = (weft_member){"id", id->data ? weft_raw(id->data, id->len) : weft_none()};
    room[2] = (weft_member){"name", name->data ? weft_raw(name->data, name->len) : weft_str("tool")};
    room[3] = (weft_member){"input", input->data ? weft_raw(input->data, input->len) : weft_obj(NULL, 0)};
    room[4] = (weft_member){"status", members[WEFT_TOOL_STATUS].data
                                          ? weft_raw(members[WEFT_TOOL_STATUS].data, members[WEFT_TOOL_STATUS].len)
                                          : weft_none()};
    return weft_obj(room, 5);
}

/* What stands for it where only a text fits. */
static weft_val item_text(const weft_transcript_item *item) {
    const weft_bytes *title = &item->members[WEFT_TOOL_TITLE];
    if (item->said == WEFT_SAID_TOOL)
        return title->data ? weft_raw(title->data, title->len) : weft_str("");
    return item->said == WEFT_SAID_PLAN ? weft_str("") : weft_strn(item->text.data, item->text.len);
}

static const char *const kinds[] = {
    [WEFT_SAID_PROMPT] = "text",   [WEFT_SAID_TEXT] = "text",     [WEFT_SAID_THOUGHT] = "thinking",
    [WEFT_SAID_OUTPUT] = "stdout", [WEFT_SAID_ERRORS] = "stderr", [WEFT_SAID_TOOL] = "tool_use",
    [WEFT_SAID_PLAN] = "plan",
};

static int write_message(const struct transcribing *to, const weft_transcript_item *item, weft_buf *out) {
    const char *role = item->said == WEFT_SAID_PROMPT ? "user" : "assistant";
    const weft_bytes *entries = &item->members[WEFT_PLAN_ENTRIES];
    weft_member block[5];
    weft_val calls[] = {item->said == WEFT_SAID_TOOL ? tool_block(item, block) : weft_none()}, text = item_text(item);
    char time[WEFT_STAMP];
    weft_val value = WEFT_OBJ({"id", weft_str(item->id)}, {"session_id", weft_str(to->session)}, {"type", weft_str(role)},
                              {"role", weft_str(role)}, {"kind", weft_str(kinds[item->said])}, {"content", text},
                              {"tool_calls", item->said == WEFT_SAID_TOOL ? weft_arr(calls, 1) : weft_none()},
                              {"plan", entries->data ? weft_raw(entries->data, entries->len) : weft_none()},
                              {"task_id", weft_str(item->task)}, {"timestamp", weft_str(weft__stamp(item->time_ms, time))},
                              {"seq", item->gseq ? weft_uint(item->gseq) : weft_none()},
                              {"truncated", item->cut ? weft_bool(true) : weft_none()},
                              {"message", WEFT_OBJ({"role", weft_str(role)},
                                                   {"content", item->said == WEFT_SAID_TOOL ? weft_arr(calls, 1) : text})});
    return weft__write_val(out, to->hub->alloc, &value);
}

static int write_messages(const struct transcribing *to, const weft_transcript *transcript, weft_buf *out) {
    int r = weft__buf_put(out, to->hub->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < transcript->count; i++) {
        r = i ? weft__buf_put(out, to->hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_message(to, transcript->items[to->newest_first ? transcript->count - 1 - i : i], out);
    }
    return r < 0 ? r : weft__buf_put(out, to->hub->alloc, "]", 1);
}

static void answer_messages(const struct transcribing *to, const weft_transcript *transcript) {
    weft_buf out = {0};
    uint64_t behind = to->newest_first ? transcript->first : transcript->total - transcript->first - transcript->count;
    weft_val more = weft_bool(behind > 0);
    int r = write_messages(to, transcript, &out);
    if (r < 0)
        weft__reply_error(to->req, WEFT_INTERNAL_ERROR, "outOfMemory", "Internal error");
    else
        weft__reply_val(to->req,
                        WEFT_OBJ({"session_id", weft_str(to->session)},
                                 {"messages", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                 {"total", weft_uint(transcript->total)}, {"count", weft_uint(transcript->count)},
                                 {"limit", weft_int(to->limit)}, {"offset", weft_int(to->offset)}, {"has_more", more},
                                 {"hasMore", more}, {"last_seq", weft_uint(transcript->until)}));
    weft__buf_done(&out, to->hub->alloc);
}

/* ---- elements ---- */

static weft_val element_id(const weft_transcript *transcript, size_t index, char room[WEFT_TRANSCRIPT_ID + 8]) {
    if (!transcript->count)
        return weft_none();
    snprintf(room, WEFT_TRANSCRIPT_ID + 8, "elem_%s", transcript->items[index]->id);
    return weft_str(room);
}

static void answer_elements(const struct transcribing *to, const weft_transcript *transcript) {
    weft_buf out = {0};
    char oldest[WEFT_TRANSCRIPT_ID + 8], newest[WEFT_TRANSCRIPT_ID + 8];
    size_t count = 0;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < transcript->count; i++)
        r = weft__cdev_write_elements(to->hub->alloc, transcript->items[i], &out, &count);
    if (r >= 0)
        r = weft__buf_put(&out, to->hub->alloc, "]", 1);
    if (r < 0) {
        weft__reply_error(to->req, WEFT_INTERNAL_ERROR, "outOfMemory", "Internal error");
        weft__buf_done(&out, to->hub->alloc);
        return;
    }
    char *text = weft__buf_head(&out); /* each has a comma before it: of the first one it becomes the bracket */
    weft_val list = weft__buf_len(&out) > 1 ? (*text = '[', weft_raw(text, weft__buf_len(&out))) : weft_arr(NULL, 0);
    weft__reply_val(
        to->req, WEFT_OBJ({"session_id", weft_str(to->session)}, {"elements", list},
                          {"pagination",
                           WEFT_OBJ({"total", weft_uint(transcript->total)}, {"returned", weft_uint(count)},
                                    {"has_more_before", weft_bool(transcript->first > 0)},
                                    {"has_more_after", weft_bool(transcript->first + transcript->count < transcript->total)},
                                    {"oldest_id", element_id(transcript, 0, oldest)},
                                    {"newest_id", element_id(transcript, transcript->count - 1, newest)})},
                          {"last_seq", weft_uint(transcript->until)}));
    weft__buf_done(&out, to->hub->alloc);
}

/* ---- asking ---- */

static void finish_transcribing(struct transcribing *to, int r, const weft_transcript *transcript,
                                void (*answer)(const struct transcribing *to, const weft_transcript *transcript)) {
    if (r == -ENOENT)
        weft__reply_invalid(to->req, to->path, "there is no such element");
    else if (r == -ECANCELED)
        weft__reply_failure(to->req, -ESHUTDOWN);
    else if (r < 0)
        weft__reply_error(to->req, 507, "storageFailed", "The session cannot be read: %s", weft_strerror(r));
    else if (to->req)
        answer(to, transcript);
    weft__free(to->hub->alloc, to);
}

static void on_messages(void *ctx, int r, const weft_transcript *transcript) {
    finish_transcribing(ctx, r, transcript, answer_messages);
}

static void on_elements(void *ctx, int r, const weft_transcript *transcript) {
    finish_transcribing(ctx, r, transcript, answer_elements);
}

static int refuse_read(weft_req *req, const struct transcribing *like, const char *session, int r) {
    switch (r) {
    case -ESRCH:
        return weft__cdev_no_session(req, session);
    case -EBUSY:
        return weft__reply_error(req, 429, "rateLimited", "Too many transcripts are being read; try again in a moment");
    case -EINVAL:
        return weft__reply_invalid(req, like->path, "there is no such element");
    default:
        return r;
    }
}

static int start_transcript(weft_req *req, const weft_hub *hub, const struct transcribing *like, weft_transcript_spec *spec,
                            weft_transcript_done *done) {
    if (!spec->session || !*spec->session)
        return weft__reply_invalid(req, "/session_id", "session_id is missing");
    size_t size = strlen(spec->session) + 1;
    struct transcribing *to = weft__alloc(hub->alloc, sizeof *to + size);
    if (!to)
        return -ENOMEM;
    *to = *like;
    to->hub = hub;
    to->req = weft__req_keep(req);
    memcpy(to->session, spec->session, size);
    int r = weft__transcript_read(hub->engine, spec, done, to);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, to);
    return refuse_read(req, like, spec->session, r);
}

static int64_t limit_or_usual(int64_t limit, int64_t usual, int64_t most) {
    return limit == 0 ? usual : limit < most ? limit : most;
}

int weft__cdev_messages(weft_req *req, const weft_json *params, void *ctx) {
    const struct messages_params *in = weft_req_params(req);
    (void) params;
    bool newest_first = in->order && strcmp(in->order, "desc") == 0;
    if (in->order && !newest_first && strcmp(in->order, "asc") != 0)
        return weft__reply_invalid(req, "/order", "order must be \"asc\" or \"desc\"");
    if (in->limit < 0)
        return weft__reply_invalid(req, "/limit", "limit must not be negative");
    if (in->offset < 0)
        return weft__reply_invalid(req, "/offset", "offset must not be negative");
    struct transcribing like = {.limit = limit_or_usual(in->limit, MESSAGES_DEFAULT, WEFT_TRANSCRIPT_ITEMS),
                                .offset = in->offset,
                                .newest_first = newest_first};
    weft_transcript_spec spec = {.session = in->session_id ? in->session_id : in->sessionId,
                                 .window = newest_first ? WEFT_WINDOW_LAST : WEFT_WINDOW_FIRST,
                                 .offset = (uint64_t) in->offset,
                                 .limit = (size_t) like.limit,
                                 .until = in->until_seq > 0 ? (uint64_t) in->until_seq : 0};
    return start_transcript(req, ctx, &like, &spec, on_messages);
}

/* An element's id is that of its message, with a word before it and perhaps one behind. */
static bool read_element_id(const char *id, char ret[WEFT_TRANSCRIPT_ID]) {
    static const char before[] = "elem_";
    size_t skip = strncmp(id, before, sizeof before - 1) == 0 ? sizeof before - 1 : 0, len = strcspn(id + skip, "_");
    if (len >= WEFT_TRANSCRIPT_ID)
        return false;
    memcpy(ret, id + skip, len);
    ret[len] = '\0';
    return true;
}

int weft__cdev_elements(weft_req *req, const weft_json *params, void *ctx) {
    const struct elements_params *in = weft_req_params(req);
    const char *named = in->before ? in->before : in->after, *path = in->before ? "/before" : "/after";
    char id[WEFT_TRANSCRIPT_ID];
    (void) params;
    if (in->limit < 0)
        return weft__reply_invalid(req, "/limit", "limit must not be negative");
    if (named && !read_element_id(named, id))
        return weft__reply_invalid(req, path, "there is no such element");
    struct transcribing like = {.limit = limit_or_usual(in->limit, ELEMENTS_DEFAULT, ELEMENTS_MAX), .path = path};
    weft_transcript_spec spec = {.session = in->session_id ? in->session_id : in->sessionId,
                                 .window = in->before  ? WEFT_WINDOW_BEFORE
                                           : in->after ? WEFT_WINDOW_AFTER
                                                       : WEFT_WINDOW_LAST,
                                 .id = named ? id : NULL,
                                 .limit = (size_t) like.limit,
                                 .until = in->until_seq > 0 ? (uint64_t) in->until_seq : 0};
    return start_transcript(req, ctx, &like, &spec, on_elements);
}
