/* session.find: where something was said in a session, the latest first. A session may have a million lines, which no page
 * wants to load in order to find one.
 *
 * The stream is read backwards in windows, each from its beginning to its end because that is how a store reads. A call
 * looks at so many events and answers with where to go on, so that nobody waits long and a search can be given up. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "dashboard_methods.h"
#include "events.h"
#include "find_text.h"
#include "reply.h"
#include "utf8.h"
#include "write.h"

#define FIND_DEFAULT 50
#define FIND_MOST 200
#define RING (FIND_MOST + 1)  /* the end of the hit before is where one begins */
#define WINDOW 2000           /* events */
#define LOOKED_MOST 50000     /* events of one call */
#define FINDING_AT_ONCE 8     /* calls that read at a time: the store has one reader */
#define AROUND ((size_t) 100) /* bytes shown before and behind what was found */
#define NEEDLE_MOST 256

struct find {
    const char *sessionId, *text;
    int64_t before, limit;
};
const weft_param weft__dashboard_find_params[] = {
    {"sessionId", WEFT_PARAM_str, offsetof(struct find, sessionId), WEFT_REQUIRED, "which session"},
    {"text", WEFT_PARAM_str, offsetof(struct find, text), WEFT_REQUIRED | WEFT_NONEMPTY,
     "what was said, at most 256 bytes; the case of letters A to Z does not matter"},
    {"before", WEFT_PARAM_int, offsetof(struct find, before), WEFT_NULLABLE,
     "only before this seq: next of the answer before"},
    {"limit", WEFT_PARAM_int, offsetof(struct find, limit), WEFT_NULLABLE, "hits; 50 when absent or 0, at most 200"},
    WEFT_END(struct find),
};

struct finding {
    weft_hub_wait wait;
    weft_hub *hub; /* NULL: it has gone, and was answered */
    const weft_alloc *alloc;
    weft_req *req;
    char stream[sizeof WEFT_STREAM_SESSION + 64], needle[NEEDLE_MOST + 1];
    uint64_t before; /* hits are before this seq; 0: the head is not known yet */
    uint64_t from;   /* this window has the events behind this seq, up to before */
    uint64_t after;  /* read up to here in it */
    uint64_t looked; /* events in all */
    size_t limit, count;
    weft_buf out;      /* hits, the latest first */
    weft_buf window;   /* the hits of this window as they came */
    size_t ends[RING]; /* where each ends there, in a ring: the latest count */
    uint64_t seqs[RING];
    size_t in_window;
};

/* ---- looking ---- */

/* What an event says to people: the text of an output or of a message, else the title of a tool call. */
static int said_text(const weft_event *event, const weft_json *data, weft_bytes *ret) {
    weft_json update = weft_get(data, "update"), content = weft_get(&update, "content"), text = weft_get(&content, "text");
    if (strcmp(event->type, "session.output") == 0)
        text = weft_get(data, "text");
    if (weft_typeof(&text) != WEFT_STRING)
        text = weft_get(&update, "title");
    return weft_typeof(&text) == WEFT_STRING ? weft_bytes_of(&text, ret) : -ENOENT;
}

static int put_hit(struct finding *self, const weft_event *event, weft_bytes text, const char *at) {
    size_t place = (size_t) (at - text.data), begin = place > AROUND ? place - AROUND : 0;
    begin = weft__utf8_from(text.data, text.len, begin);
    size_t rest = text.len - begin,
           shown = weft__utf8_fit(text.data + begin, rest, place - begin + strlen(self->needle) + AROUND);
    weft_val hit = WEFT_OBJ({"seq", weft_uint(event->seq)}, {"ts", weft_int(event->time_ms)},
                            {"type", weft_str(event->type)}, {"text", weft_strn(text.data + begin, shown)});
    int r = weft__write_val(&self->window, self->alloc, &hit);
    self->ends[self->in_window % RING] = weft__buf_len(&self->window);
    self->seqs[self->in_window++ % RING] = event->seq;
    return r;
}

static int look_at_event(struct finding *self, const weft_event *event) {
    weft_doc *doc;
    weft_bytes text;
    int r = weft_doc_parse(event->data.data, event->data.len, self->alloc, &doc);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    r = said_text(event, weft_doc_root(doc), &text);
    const char *at = r >= 0 ? weft__find_text(text, self->needle) : NULL;
    r = at ? put_hit(self, event, text, at) : r == -ENOMEM ? r : 0;
    weft_doc_free(doc);
    return r;
}

/* ---- answering ---- */

static void free_finding(struct finding *self) {
    if (self->hub) {
        weft__hub_wait_over(&self->wait);
        self->hub->histories--;
    }
    weft__buf_done(&self->out, self->alloc);
    weft__buf_done(&self->window, self->alloc);
    weft__free(self->alloc, self);
}

/* The store still has its page to bring. */
static void end_finding(weft_hub_wait *wait) {
    struct finding *self = WEFT_CONTAINER(wait, struct finding, wait);
    weft__reply_failure(self->req, -ESHUTDOWN);
    self->hub->histories--;
    self->hub = NULL;
}

/* next: where to go on; 0: everything was looked at. */
static void answer_found(struct finding *self, uint64_t next) {
    int r = weft__buf_put(&self->out, self->alloc, "]", 1);
    if (r < 0)
        weft__reply_failure(self->req, r);
    else
        weft__reply_val(self->req, WEFT_OBJ({"hits", weft_raw(weft__buf_head(&self->out), weft__buf_len(&self->out))},
                                            {"next", next ? weft_uint(next) : weft_none()}));
    free_finding(self);
}

/* The hits of a window, the latest first, as many as are wanted. *ret_last: the seq of the last that was taken. */
static int take_window(struct finding *self, uint64_t *ret_last) {
    size_t known = self->in_window < RING ? self->in_window : RING;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < known && self->count < self->limit; i++) {
        size_t place = (self->in_window - 1 - i) % RING;
        bool first = self->in_window - 1 - i == 0;
        size_t begin = first ? 0 : self->ends[(self->in_window - 2 - i) % RING], end = self->ends[place];
        if (!first && i + 1 == RING)
            break; /* where it begins was overwritten; it is found by the next call */
        r = self->count++ ? weft__buf_put(&self->out, self->alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__buf_put(&self->out, self->alloc, weft__buf_head(&self->window) + begin, end - begin);
        *ret_last = self->seqs[place];
    }
    return r;
}

/* ---- reading ---- */

static int read_window(struct finding *self);

/* 1: answered. */
static int end_window(struct finding *self, uint64_t trimmed) {
    uint64_t last = self->from + 1;
    size_t hits = self->in_window, before = self->count;
    int r = take_window(self, &last);
    if (r < 0)
        return r;
    bool all = self->count - before == hits;
    weft__buf_done(&self->window, self->alloc);
    self->in_window = 0;
    self->before = all ? self->from + 1 : last;
    bool over = all && self->from <= trimmed;
    if (over || self->count >= self->limit || self->looked >= LOOKED_MOST || !all) {
        answer_found(self, over ? 0 : self->before);
        return 1;
    }
    self->from = self->before - 1 > WINDOW ? self->before - 1 - WINDOW : 0;
    self->after = self->from;
    return read_window(self);
}

static int take_page(struct finding *self, const weft_page *page) {
    int r = 0;
    if (!self->before || self->before > page->head + 1) { /* the head was asked for */
        self->before = page->head + 1;
        self->from = self->after = page->head > WINDOW ? page->head - WINDOW : 0;
        return page->head ? read_window(self) : end_window(self, 0);
    }
    for (size_t i = 0; r >= 0 && i < page->count && page->events[i].seq < self->before; i++, self->looked++)
        r = look_at_event(self, &page->events[i]);
    self->after = page->last;
    if (r < 0)
        return r;
    return page->more && self->after + 1 < self->before ? read_window(self) : end_window(self, page->trimmed);
}

static void on_find_page(void *ctx, int r, const weft_page *page) {
    struct finding *self = ctx;
    if (!self->hub) {
        free_finding(self);
        return;
    }
    if (r >= 0 && (r == 0 || r == WEFT_GAP_FUTURE))
        r = take_page(self, page);
    else if (r > 0)
        r = -EIO; /* which there cannot be: it is read from the oldest on */
    if (r < 0) {
        weft__reply_failure(self->req, r);
        free_finding(self);
    }
}

/* Where the stream ends is told by a position that is beyond it. */
static int read_window(struct finding *self) {
    bool head = !self->before || self->before == UINT64_MAX;
    weft_query query = {
        .stream = self->stream, .after = head ? INT64_MAX : self->after, .oldest = true, .max_events = WINDOW};
    return weft__store_read(weft__engine_store(self->hub->engine), &query, on_find_page, self);
}

int weft__dashboard_find(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const struct find *in = weft_req_params(req);
    (void) params;
    if (in->limit < 0 || in->limit > FIND_MOST)
        return weft__reply_invalid(req, "/limit", "limit must be at most %d", FIND_MOST);
    if (strlen(in->text) > NEEDLE_MOST)
        return weft__reply_invalid(req, "/text", "text must be at most %d bytes", NEEDLE_MOST);
    if (in->before < 0)
        return weft__reply_invalid(req, "/before", "before must not be negative");
    if (!weft__session_find(hub->engine, in->sessionId) || strlen(in->sessionId) > 63)
        return weft__reply_error(req, 404, "sessionNotFound", "there is no session %.64s", in->sessionId);
    if (hub->histories >= FINDING_AT_ONCE)
        return weft__reply_error(req, 429, "rateLimited", "too much is being read: try again in a moment");
    struct finding *self = weft__zalloc(hub->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    *self = (struct finding){
        .hub = hub, .alloc = hub->alloc, .wait.on_end = end_finding, .limit = in->limit ? (size_t) in->limit : FIND_DEFAULT};
    snprintf(self->stream, sizeof self->stream, WEFT_STREAM_SESSION "%s", in->sessionId);
    snprintf(self->needle, sizeof self->needle, "%s", in->text);
    self->before = in->before > 0 ? (uint64_t) in->before : 0;
    self->from = self->before > WINDOW + 1 ? self->before - 1 - WINDOW : 0;
    self->after = self->from;
    int r = weft__buf_put(&self->out, self->alloc, "[", 1);
    hub->histories++;
    weft__hub_wait(hub->clients, &self->wait);
    if (r >= 0)
        r = read_window(self);
    if (r >= 0) {
        self->req = weft__req_keep(req);
        return 0;
    }
    free_finding(self);
    return r == -ENOMEM ? r : weft__reply_failure(req, r);
}
