/* The client's half of JSON-RPC over HTTP: requests out, answers in. Knows just enough of a body to tell a JSON-RPC message
 * from a page of HTML; must not parse it.
 *
 * Requests may be written before the answers to earlier ones are there; whether that is wise is the transport's business. */
#include "http_client.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "coding.h"
#include "http1.h"
#include "http1_bytes.h"
#include "lines.h"

/* When chunks have left this much more room between body and input than there is body, the body moves up: then each byte
 * moves at most once for each byte that was dropped, and a body in one-byte chunks does not keep six times its size. */
#define MIN_GAP 4096

/*  HEAD ──server-sent events──▶ EVENTS ──▶ HEAD, in one of the codings SIZED, CHUNKS, REST
 *  HEAD ──a length──▶ SIZED ──▶ HEAD      HEAD ──chunked──▶ CHUNKS ──▶ HEAD      HEAD ──neither──▶ REST ──▶ OVER
 *  and OVER instead of HEAD after an answer that ends the connection. */
enum phase { HEAD, SIZED, CHUNKS, REST, EVENTS, OVER };

/* What an event may have beside its data: names of fields, an id, comments. */
#define MAX_EVENT_FIELDS 1024

/* What the functions that read return besides what http_client_decode() may: something is finished that nobody needs to know
 * of. */
#define GO_ON 2

typedef struct client_state {
    const weft_alloc *alloc;
    char *head; /* of each request, up to its length; owned */
    size_t head_len;
    unsigned digits;
    enum phase phase;
    int status;
    size_t pending; /* requests without an answer */
    bool keep_alive;
    bool too_large;    /* was reported; what is left of this body is dropped */
    size_t seen;       /* HEAD: bytes without a newline; EVENTS: of the text, bytes that have been looked at */
    size_t line;       /* EVENTS: where the line begins that has not come whole */
    enum phase coding; /* EVENTS: how they come */
    bool whole;        /* EVENTS: no more will come */
    void (*on_head)(void *ctx, const weft_http_head *head);
    void *ctx;
    uint64_t left; /* SIZED: bytes of the body to come */
    size_t body;   /* CHUNKS: decoded bytes at the front of the input */
    size_t raw;    /* CHUNKS: where the input goes on behind them */
    weft_chunked chunked;
    weft_gzip *gzip; /* NULL: not read */
    weft_buf plain;  /* the last body that was packed, until the next call */
    bool offers_gzip, reads_gzip;
    bool packed;     /* this answer's body is */
    size_t max_body; /* of this call */
} client_state;

/* ---- writing ---- */

static int check_client_opts(const weft_http_client_opts *opts) {
    if (!opts || !opts->host || !opts->host[0] || !opts->path || opts->path[0] != '/')
        return -EINVAL;
    bool clean = weft__http_is(opts->host, HTTP_HOST) && weft__http_is(opts->path, HTTP_TARGET);
    return clean && (!opts->token || weft__http_is(opts->token, HTTP_VALUE)) ? 0 : -EINVAL;
}

/* Append texts up to a NULL one. */
static int put_texts(weft_buf *out, const weft_alloc *alloc, const char *const *texts) {
    int r = 0;
    for (; r >= 0 && *texts; texts++)
        r = weft__buf_put(out, alloc, *texts, strlen(*texts));
    return r;
}

static int write_common_head(const weft_http_client_opts *extra, const weft_alloc *alloc, weft_buf *ret) {
    int r = check_client_opts(extra);
    if (r < 0)
        return r;
    bool has_token = extra->token && extra->token[0];
    const char *const texts[] = {"POST ",
                                 extra->path,
                                 " HTTP/1.1\r\nHost: ",
                                 extra->host,
                                 "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
                                 has_token ? "Authorization: Bearer " : "",
                                 has_token ? extra->token : "",
                                 has_token ? "\r\n" : "",
                                 extra->gzip ? "Accept-Encoding: gzip\r\n" : "",
                                 extra->more ? extra->more : "",
                                 "Content-Length: ",
                                 NULL};
    r = put_texts(ret, alloc, texts);
    if (r < 0)
        weft__buf_done(ret, alloc);
    return r;
}

int weft__http_client_change(void *state, const weft_http_client_opts *opts) {
    client_state *self = state;
    weft_buf head = {0};
    int r = write_common_head(opts, self->alloc, &head);
    if (r < 0)
        return r;
    weft__free(self->alloc, self->head);
    self->head = head.data;
    self->head_len = head.end;
    self->offers_gzip = opts->gzip;
    self->on_head = opts->on_head;
    self->ctx = opts->ctx;
    return 0;
}

static int http_client_init(void *state, const weft_framing_opts *opts) {
    ((client_state *) state)->alloc = opts->alloc;
    ((client_state *) state)->gzip = opts->gzip;
    return weft__http_client_change(state, opts->extra);
}

static void http_client_done(void *state) {
    client_state *self = state;
    self->head = weft__free(self->alloc, self->head);
    weft__buf_done(&self->plain, self->alloc);
}

static int http_client_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    client_state *self = state;
    return weft__sized_begin(out, self->alloc, (weft_bytes){self->head, self->head_len}, hint, &self->digits, ret_mark);
}

/* The head stays up to its length; that of the packed body, which is shorter, and what it is packed with follow. */
static int write_packed_request(client_state *self, weft_buf *out, size_t mark, const weft_buf *packed) {
    char text[64];
    int n = snprintf(text, sizeof text, "%zu\r\nContent-Encoding: gzip\r\n\r\n", weft__buf_len(packed));
    out->end = out->start + mark + self->head_len;
    int r = weft__buf_put(out, self->alloc, text, (size_t) n);
    return r < 0 ? r : weft__buf_put(out, self->alloc, weft__buf_head(packed), weft__buf_len(packed));
}

/* 1 it is packed, 0 it is as it was. */
static int pack_request(client_state *self, weft_buf *out, size_t mark) {
    weft_buf packed = {0};
    size_t body_at = mark + self->head_len + self->digits + 4, len = weft__buf_len(out) - body_at;
    int r = weft__pack_if_worth(self->gzip, weft__buf_head(out) + body_at, len, &packed);
    if (r > 0 && write_packed_request(self, out, mark, &packed) < 0)
        r = -ENOMEM;
    weft__buf_done(&packed, self->alloc);
    return r;
}

static int http_client_end(void *state, weft_buf *out, size_t mark) {
    client_state *self = state;
    int r = self->gzip && self->offers_gzip && self->reads_gzip ? pack_request(self, out, mark) : 0;
    if (r == 0)
        r = weft__sized_end(out, self->alloc, self->head_len, self->digits, mark);
    r = r < 0 ? r : 0;
    self->pending += r >= 0;
    return r;
}

/* ---- reading ---- */

static int wait_for_bytes(size_t used, size_t need, size_t *ret_used, weft_frame *ret) {
    *ret_used = used;
    ret->len = need;
    return 0;
}

static int report_too_large(client_state *self, size_t used, size_t *ret_used, weft_frame *ret) {
    self->too_large = true;
    *ret_used = used;
    *ret = (weft_frame){.kind = WEFT_FRAME_TOO_LARGE};
    return 1;
}

/* Refuse what is no answer: a status that says so, and a body that does not say it in JSON-RPC. */
static int check_status(const client_state *self, const char *body, size_t len) {
    static const char mark[] = "\"jsonrpc\"";
    if (self->status >= 200 && self->status < 300)
        return 0;
    size_t blank = 0;
    while (blank < len && weft__is_space(body[blank]))
        blank++;
    bool like_json = blank < len && (body[blank] == '{' || body[blank] == '[');
    if (like_json && memmem(body, len, mark, sizeof mark - 1))
        return 0;
    return self->status == 401 || self->status == 403 ? -EACCES : -EPROTO;
}

/* Is there something to hand out? An empty answer says that a notification has arrived. */
static bool is_silent(const client_state *self, const char *body, size_t len) {
    if (self->status == 202 || self->status == 204)
        return true;
    while (len && weft__is_space(*body))
        body++, len--;
    return len == 0;
}

static void next_answer(client_state *self) {
    self->phase = self->keep_alive ? HEAD : OVER;
    self->pending -= self->pending > 0;
    self->too_large = false;
    self->seen = self->line = self->body = self->raw = 0;
    self->whole = false;
    self->left = 0;
    self->chunked = (weft_chunked){0};
}

/* Its size counts while it is unpacked. -EMSGSIZE, -EPROTO, -ENOMEM. */
static int unpack_answer(client_state *self, char **body, size_t *len) {
    int r = weft__gzip_unpack(self->gzip, *body, *len, self->max_body, &self->plain);
    if (r < 0)
        return r == -EBADMSG ? -EPROTO : r;
    *body = weft__buf_head(&self->plain);
    *len = weft__buf_len(&self->plain);
    return 0;
}

/* A body is complete, and used bytes are done with. */
static int complete_body(client_state *self, char *body, size_t len, size_t used, size_t *ret_used, weft_frame *ret) {
    bool dropped = self->too_large;
    int r = dropped || !self->packed || !len ? 0 : unpack_answer(self, &body, &len);
    if (r == -EMSGSIZE) {
        next_answer(self);
        *ret_used = used;
        *ret = (weft_frame){.kind = WEFT_FRAME_TOO_LARGE};
        return 1;
    }
    if (r >= 0 && !dropped)
        r = check_status(self, body, len);
    if (r < 0)
        return r;
    next_answer(self);
    *ret_used = used;
    if (dropped || is_silent(self, body, len))
        return GO_ON;
    *ret = (weft_frame){.kind = WEFT_FRAME_BODY, .body = body, .len = len};
    return 1;
}

static bool is_event_stream(const weft_http_head *head) {
    static const char type[] = "text/event-stream";
    weft_bytes said = weft__http_find(head, "content-type", NULL);
    return said.len >= sizeof type - 1 && strncasecmp(said.data, type, sizeof type - 1) == 0;
}

/* What follows the head that was just read. */
static int enter_body(client_state *self, const weft_http_head *head) {
    self->status = head->status;
    self->keep_alive = head->keep_alive;
    self->seen = 0;
    /* We asked for no upgrade; other 1xx are followed by the answer proper. */
    if (head->status == 101)
        return -EPROTO;
    if (head->status < 200)
        return 0;
    bool none = head->status == 204 || head->status == 304;
    self->left = none || head->content_length < 0 ? 0 : (uint64_t) head->content_length;
    self->phase = head->chunked && !none ? CHUNKS : none || head->content_length >= 0 ? SIZED : REST;
    self->coding = self->phase;
    if (!none && head->status < 300 && is_event_stream(head))
        self->phase = EVENTS;
    self->packed = self->gzip && weft__coding_of(weft__http_find(head, "content-encoding", NULL)) == 1;
    self->reads_gzip |= weft__accepts_gzip(weft__http_find(head, "accept-encoding", NULL));
    if (self->packed && self->phase == EVENTS)
        return -EPROTO;
    if (self->on_head)
        self->on_head(self->ctx, head);
    return 0;
}

static int read_answer_head(client_state *self, char *in, size_t n, size_t *ret_used, weft_frame *ret) {
    /* The parser begins anew each time, so it is only asked when a line has been completed. */
    bool ask = weft__find_newline(in + self->seen, in + n) || n >= WEFT_HTTP_MAX_HEAD;
    weft_http_head head;
    int r = ask ? weft__http_response(in, n, &head) : 0;
    self->seen = n;
    if (r == 0)
        return wait_for_bytes(0, 0, ret_used, ret);
    if (r < 0 || enter_body(self, &head) < 0)
        return -EPROTO;
    *ret_used = (size_t) r;
    return GO_ON;
}

static int read_sized(client_state *self, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    if (self->too_large || self->left > max_body) {
        size_t take = self->left < n ? (size_t) self->left : n;
        self->left -= take;
        if (!self->too_large)
            return report_too_large(self, take, ret_used, ret);
        return self->left ? wait_for_bytes(take, 0, ret_used, ret) : complete_body(self, NULL, 0, take, ret_used, ret);
    }
    size_t len = (size_t) self->left;
    return n < len ? wait_for_bytes(0, len, ret_used, ret) : complete_body(self, in, len, len, ret_used, ret);
}

/* Move the body up to where the input goes on, when the gap between them has become large. How far it moved. */
static size_t close_gap(client_state *self, char *in) {
    size_t gap = self->raw - self->body;
    if (gap < MIN_GAP || gap < self->body)
        return 0;
    memmove(in + gap, in, self->body);
    self->raw = self->body;
    return gap;
}

/* The input is the body so far, a gap that the chunks' heads have left, and what is yet to be read. */
static int read_chunks(client_state *self, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    size_t used, found;
    int r = weft__chunked(&self->chunked, in + self->raw, n - self->raw, &used, &found);
    if (r < 0)
        return -EPROTO;
    if (self->too_large)
        return r ? complete_body(self, NULL, 0, used, ret_used, ret) : wait_for_bytes(used, 0, ret_used, ret);
    if (self->raw != self->body)
        memmove(in + self->body, in + self->raw, found);
    self->body += found;
    self->raw += used;
    if (self->body > max_body) {
        size_t raw = self->raw;
        self->body = self->raw = 0;
        return report_too_large(self, raw, ret_used, ret);
    }
    if (r)
        return complete_body(self, in, self->body, self->raw, ret_used, ret);
    return wait_for_bytes(close_gap(self, in), 0, ret_used, ret);
}

static int read_rest(client_state *self, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    if (self->too_large)
        return wait_for_bytes(n, 0, ret_used, ret);
    return n > max_body ? report_too_large(self, n, ret_used, ret) : wait_for_bytes(0, 0, ret_used, ret);
}

/* ---- server-sent events (WHATWG HTML section 9.2) ---- */

/* As with chunks the input is the text so far, a gap, and what is yet to be read. */
static int decode_events(client_state *self, char *in, size_t n) {
    size_t used = n - self->raw, found = used;
    int r = 0;
    if (self->whole)
        return 0;
    if (self->coding == CHUNKS)
        r = weft__chunked(&self->chunked, in + self->raw, used, &used, &found);
    if (r < 0)
        return -EPROTO;
    if (self->coding == SIZED) {
        used = found = found < self->left ? found : (size_t) self->left;
        self->left -= used;
        r = self->left == 0;
    }
    if (self->raw != self->body)
        memmove(in + self->body, in + self->raw, found);
    self->body += found;
    self->raw += used;
    self->whole = r > 0;
    return 0;
}

/* The end of the first event, behind its empty line; 0: it has not come. A line ends with LF, CR or both; what follows a CR
 * at the end of the text is not known yet. */
static size_t find_event_end(client_state *self, const char *text) {
    while (self->seen < self->body) {
        size_t at = self->seen, next = at + 1;
        if (text[at] != '\n' && text[at] != '\r') {
            self->seen++;
            continue;
        }
        if (text[at] == '\r' && next == self->body && !self->whole)
            return 0;
        if (text[at] == '\r' && next < self->body && text[next] == '\n')
            next++;
        bool empty = at == self->line;
        self->seen = self->line = next;
        if (empty)
            return next;
    }
    return 0;
}

/* Move the data of an event to its front, its lines joined by newlines. How much it is. */
static size_t gather_data(char *event, size_t len) {
    size_t to = 0;
    bool any = false;
    for (size_t at = 0, stop; at < len; at = stop + 1) {
        for (stop = at; stop < len && event[stop] != '\n' && event[stop] != '\r';)
            stop++;
        if (stop - at < 5 || memcmp(event + at, "data:", 5) != 0)
            continue;
        size_t from = at + 5 + (at + 5 < stop && event[at + 5] == ' ');
        if (any)
            event[to++] = '\n';
        memmove(event + to, event + from, stop - from);
        to += stop - from;
        any = true;
    }
    return to;
}

static void consume_event(client_state *self, size_t len) {
    self->body -= len;
    self->raw -= len;
    self->seen = self->line = 0;
}

/* An event is too large, however it came; what is left of the answer is dropped. */
static int drop_events(client_state *self, size_t *ret_used, weft_frame *ret) {
    size_t raw = self->raw;
    self->body = self->raw = self->seen = self->line = 0;
    return self->too_large ? wait_for_bytes(raw, 0, ret_used, ret) : report_too_large(self, raw, ret_used, ret);
}

/* No event is whole: the answer is, or more is needed. */
static int wait_for_event(client_state *self, char *in, size_t max_text, size_t *ret_used, weft_frame *ret) {
    if (self->whole) {
        *ret_used = self->raw;
        next_answer(self);
        return GO_ON;
    }
    bool fits = !self->too_large && self->body <= max_text;
    return fits ? wait_for_bytes(close_gap(self, in), 0, ret_used, ret) : drop_events(self, ret_used, ret);
}

static int read_events(client_state *self, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    size_t max_text = max_body + MAX_EVENT_FIELDS;
    int r = decode_events(self, in, n);
    if (r < 0)
        return r;
    size_t end = self->too_large ? 0 : find_event_end(self, in);
    if (!end)
        return wait_for_event(self, in, max_text, ret_used, ret);
    size_t len = end > max_text ? end : gather_data(in, end);
    if (len > max_body)
        return drop_events(self, ret_used, ret);
    consume_event(self, end);
    *ret_used = end;
    *ret = (weft_frame){.kind = WEFT_FRAME_BODY, .body = in, .len = len};
    return len ? 1 : GO_ON;
}

static int read_answer_body(client_state *self, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    switch (self->phase) {
    case SIZED:
        return read_sized(self, in, n, max_body, ret_used, ret);
    case CHUNKS:
        return read_chunks(self, in, n, max_body, ret_used, ret);
    case REST:
        return read_rest(self, n, max_body, ret_used, ret);
    case EVENTS:
        return read_events(self, in, n, max_body, ret_used, ret);
    case HEAD:
    case OVER:
        break;
    }
    /* It had said that there would be no more. */
    return n ? -EPROTO : wait_for_bytes(0, 0, ret_used, ret);
}

static int http_client_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    client_state *self = state;
    self->max_body = max_body;
    if (self->plain.data)
        weft__buf_done(&self->plain, self->alloc);
    for (size_t pos = 0, used;; pos += used) {
        int r = self->phase == HEAD ? read_answer_head(self, in + pos, n - pos, &used, ret)
                                    : read_answer_body(self, in + pos, n - pos, max_body, &used, ret);
        if (r < 0)
            return r;
        if (r != GO_ON) {
            *ret_used = pos + used;
            return r;
        }
    }
}

/* An answer without a length is complete when the connection ends. */
static int http_client_finish(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    client_state *self = state;
    self->max_body = max_body;
    if (self->phase == REST) {
        int r = complete_body(self, in, n, n, ret_used, ret);
        return r == GO_ON ? 0 : r;
    }
    if (self->phase == EVENTS && self->coding == REST) {
        next_answer(self);
        *ret_used = n; /* an event without its empty line is none */
        return 0;
    }
    if (n || (self->phase != HEAD && self->phase != OVER))
        return -EPROTO;
    *ret_used = 0;
    return 0;
}

size_t weft__http_client_pending(const void *state) {
    return ((const client_state *) state)->pending;
}

bool weft__http_client_over(const void *state) {
    return ((const client_state *) state)->phase == OVER;
}

void weft__http_client_again(void *state) {
    client_state *self = state;
    size_t pending = self->pending;
    self->keep_alive = true;
    next_answer(self);
    self->pending = pending;
}

int weft__http_client_status(const void *state) {
    return ((const client_state *) state)->status;
}

const weft_framing weft__http_client = {
    .name = "http",
    .state_size = sizeof(client_state),
    .init = http_client_init,
    .done = http_client_done,
    .decode = http_client_decode,
    .begin = http_client_begin,
    .end = http_client_end,
    .finish = http_client_finish,
};
