/* relay.known: what a hub knows of sessions, tasks and questions whose events it has removed, told as events, for a relay
 * that begins. It comes from the documents that the hub itself starts from. A relay takes it in like any other events; those
 * that are kept follow, and change nothing of what is known already. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "buf.h"
#include "events.h"
#include "relay.h"
#include "reply.h"
#include "write.h"

#define PAGE_DOCUMENTS 50 /* a session makes at most nine events, and a relay takes 500 at a time */
#define PAGE_BYTES ((size_t) 1 << 20)

/* A request that waits for its page. */
typedef struct knowing {
    weft_req *req;
    weft_buf events;
} knowing;

static int put_raw(weft_buf *out, const char *text, size_t len) {
    return weft__buf_put(out, NULL, text, len);
}

static int put_told(knowing *it, const char *type, int64_t time_ms, weft_val data) {
    char time[WEFT_STAMP];
    int r = weft__buf_len(&it->events) ? put_raw(&it->events, ",", 1) : 0;
    weft_val event = WEFT_OBJ({"stream", weft_str(WEFT_STREAM_HUB)}, {"type", weft_str(type)},
                              {"time", weft_str(weft__stamp(time_ms, time))}, {"data", data});
    return r < 0 ? r : weft__write_val(&it->events, NULL, &event);
}

static bool is_named(const weft_iter *at, const char *const *names) {
    while (*names && !weft_name_is(at, *names))
        names++;
    return *names != NULL;
}

/* The object without some of its members. */
static int put_without(weft_buf *out, const weft_json *object, const char *const *names) {
    bool first = true;
    int r = put_raw(out, "{", 1);
    for (weft_iter at = weft_iterate(object); r >= 0 && weft_next(&at);) {
        if (is_named(&at, names))
            continue;
        r = first ? 0 : put_raw(out, ",", 1);
        first = false;
        if (r >= 0)
            r = put_raw(out, at.name.text, at.name.len);
        if (r >= 0)
            r = put_raw(out, ":", 1);
        if (r >= 0)
            r = put_raw(out, at.value.text, at.value.len);
    }
    return r < 0 ? r : put_raw(out, "}", 1);
}

static weft_val raw_of(const weft_buf *buf) {
    return weft_raw(weft__buf_head(buf), weft__buf_len(buf));
}

static weft_val member(const weft_json *object, const char *name) {
    weft_json value = weft_get(object, name);
    return value.text && weft_typeof(&value) != WEFT_NULL ? weft_raw(value.text, value.len) : weft_none();
}

/* The MCP servers of a session may have secrets in their environment: only the hub needs them. */
static int tell_session(knowing *it, const weft_json *doc) {
    int64_t made = weft_get_int(doc, "createdMs", 0), changed = weft_get_int(doc, "updatedMs", made);
    weft_val id = member(doc, "sessionId");
    weft_json facts = weft_get(doc, "facts");
    int r = put_told(it, "session.created", made,
                     WEFT_OBJ({"sessionId", id}, {"agent", member(doc, "agent")}, {"beneath", member(doc, "beneath")},
                              {"title", member(doc, "title")}, {"settings", member(doc, "settings")}));
    if (r >= 0 && member(doc, "agentSessionId").kind != WEFT_VAL_NONE)
        r = put_told(it, "session.agent", made,
                     WEFT_OBJ({"sessionId", id}, {"agentSessionId", member(doc, "agentSessionId")}));
    for (weft_iter at = weft_iterate(&facts); r >= 0 && facts.text && weft_next(&at);)
        r = put_told(it, "session.state", made,
                     WEFT_OBJ({"sessionId", id}, {"name", weft_raw(at.name.text, at.name.len)},
                              {"value", weft_raw(at.value.text, at.value.len)}));
    if (r >= 0 && weft_get_bool(doc, "closed", false))
        r = put_told(it, "session.closed", changed, WEFT_OBJ({"sessionId", id}));
    return r;
}

/* The key by which it was submitted is between its caller and the hub; places in the hub's streams mean nothing elsewhere.
 */
static const char *const left_of_task[] = {"key", NULL}, *const left_of_end[] = {"seq", "outputFrom", "outputTo", NULL};

static int tell_task(knowing *it, const weft_json *doc) {
    weft_json task = weft_get(doc, "task"), ended = weft_get(doc, "end");
    const char *state = weft_get_str(doc, "state", "");
    int64_t made = weft_get_int(doc, "createdMs", 0), started = weft_get_int(doc, "startedMs", made);
    weft_buf asked = {0}, end = {0};
    weft_val id = member(&task, "taskId");
    int r = put_without(&asked, &task, left_of_task);
    if (r >= 0 && ended.text) {
        r = put_without(&end, &ended, left_of_end);
        if (r >= 0)
            r = put_told(it, "task.imported", made,
                         WEFT_OBJ({"taskId", id}, {"state", weft_str(state)}, {"createdMs", weft_int(made)},
                                  {"startedMs", weft_int(started)}, {"task", raw_of(&asked)}, {"end", raw_of(&end)}));
    } else if (r >= 0) {
        r = put_told(it, "task.queued", made, raw_of(&asked));
        if (r >= 0 && strcmp(state, "running") == 0)
            r = put_told(
                it, "task.started", started,
                WEFT_OBJ({"taskId", id}, {"sessionId", member(&task, "sessionId")}, {"attempt", member(doc, "attempt")}));
    }
    weft__buf_done(&asked, NULL);
    weft__buf_done(&end, NULL);
    return r;
}

static int tell_question(knowing *it, const weft_json *doc) {
    if (strcmp(weft_get_str(doc, "state", ""), "open") != 0)
        return 0;
    return put_told(it, "question.asked", weft_get_int(doc, "createdMs", 0), weft_raw(doc->text, doc->len));
}

static int tell_document(knowing *it, const weft_event *document) {
    static const struct {
        const char *prefix;
        int (*tell)(knowing *it, const weft_json *doc);
    } kinds[] = {{"session/", tell_session}, {"task/", tell_task}, {"question/", tell_question}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        WEFT_AUTO(weft_doc) doc = NULL;
        if (strncmp(document->stream, kinds[i].prefix, strlen(kinds[i].prefix)) != 0)
            continue;
        int r = weft_doc_parse(document->data.data, document->data.len, NULL, &doc);
        return r == -ENOMEM ? r : r < 0 ? 0 : kinds[i].tell(it, weft_doc_root(doc));
    }
    return 0;
}

static void on_known_page(void *ctx, int r, const weft_page *page) {
    knowing *it = ctx;
    for (size_t i = 0; r == 0 && i < page->count; i++)
        r = tell_document(it, &page->events[i]);
    if (r != 0)
        weft__reply_failure(it->req, r < 0 ? r : -EIO);
    else {
        weft_buf list = {0};
        r = put_raw(&list, "[", 1);
        if (r >= 0)
            r = put_raw(&list, weft__buf_head(&it->events), weft__buf_len(&it->events));
        if (r >= 0)
            r = put_raw(&list, "]", 1);
        if (r >= 0)
            weft__reply_val(it->req,
                            WEFT_OBJ({"events", raw_of(&list)}, {"next", page->more ? weft_uint(page->last) : weft_none()}));
        else
            weft__reply_failure(it->req, r);
        weft__buf_done(&list, NULL);
    }
    weft__buf_done(&it->events, NULL);
    weft__free(NULL, it);
}

struct known {
    int64_t after;
};
static const weft_param known_params[] = {
    WEFT_MAY_IN(struct known, after, int, 0, INT64_MAX, "next of the page before"),
    WEFT_END(struct known),
};

static int answer_known(weft_req *req, const weft_json *params, void *ctx) {
    const weft_relay_hello *self = ctx;
    const struct known *in = weft_req_params(req);
    knowing *it = weft__zalloc(NULL, sizeof *it);
    (void) params;
    if (!it)
        return -ENOMEM;
    it->req = weft__req_keep(req);
    weft_query query = {.after = (uint64_t) in->after,
                        .documents = true,
                        .oldest = true,
                        .max_events = PAGE_DOCUMENTS,
                        .max_bytes = PAGE_BYTES};
    int r = weft__store_read(weft__engine_store(self->engine), &query, on_known_page, it);
    if (r < 0) {
        weft__free(NULL, it);
        return weft__reply_failure(req, r);
    }
    return 0;
}

static const weft_error_row known_errors[] = {
    {WEFT_INVALID_PARAMS, "Invalid params", "invalidParams"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};

const weft_method weft__relay_known_row = {
    .name = "relay.known",
    .handler = answer_known,
    .params = known_params,
    .help =
        "from a relay that begins: sessions, tasks and questions whose events are not kept any more, as events; by pages",
    .scope = WEFT_READ,
    .result = "{\"type\":\"object\",\"properties\":{\"events\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
              "\"next\":{\"type\":\"integer\",\"minimum\":0}},\"required\":[\"events\"]}",
    .errors = known_errors,
};
