/* Server-sent events, line by line. Comments are skipped; so are names and ids, unless somebody wants them. */
#include "sse_in.h"

#include <errno.h>
#include <string.h>

static const char data_field[] = "data:";

/* One line of data belongs to the event; lines are joined by newlines. */
static int add_data(weft_sse_in *self, const char *text, size_t len) {
    if (len && *text == ' ')
        text++, len--;
    if (self->too_large || weft__buf_len(&self->data) + len + 1 > self->max) {
        self->too_large = true;
        return 0;
    }
    int r = weft__buf_put(&self->data, self->alloc, text, len);
    return r < 0 ? r : weft__buf_put(&self->data, self->alloc, "\n", 1);
}

/* An empty line ends the event. 1 go on, 0 stop. */
static int end_event(weft_sse_in *self, bool (*on_event)(char *data, size_t len, void *ctx), void *ctx) {
    size_t len = weft__buf_len(&self->data);
    bool tell = len > 0 && !self->too_large;
    /* The buffer is ours alone while the callback runs: that may end everything. */
    weft_buf data = self->data;
    self->data = (weft_buf){0};
    self->too_large = false;
    const weft_alloc *alloc = self->alloc;
    int r = !tell || on_event(weft__buf_head(&data), len - 1, ctx);
    weft__buf_done(&data, alloc);
    if (r > 0)
        self->event[0] = '\0';
    return r;
}

/* Longer than there is room for, or with a NUL: as if it were not there. */
static void keep_field(char *to, size_t size, const char *text, size_t len) {
    if (len >= size || memchr(text, '\0', len))
        return;
    memcpy(to, text, len);
    to[len] = '\0';
}

static void keep_retry(weft_sse_in *self, const char *text, size_t len) {
    int64_t ms = 0;
    if (!len || len > 9)
        return;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return;
        ms = 10 * ms + (text[i] - '0');
    }
    self->retry_ms = ms;
}

static bool is_field(const char *line, size_t name, const char *want) {
    return name == strlen(want) && memcmp(line, want, name) == 0;
}

/* What is neither data nor a comment. */
static void take_sse_field(weft_sse_in *self, const char *line, size_t len) {
    const char *colon = memchr(line, ':', len);
    size_t name = colon ? (size_t) (colon - line) : len, at = colon ? name + 1 : len;
    at += at < len && line[at] == ' ';
    if (is_field(line, name, "event"))
        keep_field(self->event, sizeof self->event, line + at, len - at);
    else if (is_field(line, name, "id"))
        keep_field(self->id, sizeof self->id, line + at, len - at);
    else if (is_field(line, name, "retry"))
        keep_retry(self, line + at, len - at);
}

static int take_sse_line(weft_sse_in *self, const char *line, size_t len,
                         bool (*on_event)(char *data, size_t len, void *ctx), void *ctx) {
    size_t name = sizeof data_field - 1;
    if (len == 0)
        return end_event(self, on_event, ctx);
    if (len < name || memcmp(line, data_field, name) != 0) {
        if (self->named)
            take_sse_field(self, line, len);
        return 1;
    }
    int r = add_data(self, line + name, len - name);
    return r < 0 ? r : 1;
}

static size_t line_length(const char *bytes, size_t n) {
    size_t len = 0;
    while (len < n && bytes[len] != '\n' && bytes[len] != '\r')
        len++;
    return len;
}

/* A line that came in pieces is put together, unless it is longer than any event may be: then it is skipped up to its end,
 * and if it is data, so is its event. */
static int keep_part(weft_sse_in *self, const char *bytes, size_t n) {
    size_t name = sizeof data_field - 1, room = self->max + sizeof data_field - weft__buf_len(&self->line);
    if (self->skipping)
        return 0;
    int r = weft__buf_put(&self->line, self->alloc, bytes, n < room ? n : room);
    if (r < 0 || n <= room)
        return r;
    self->skipping = true;
    self->too_large |= memcmp(weft__buf_head(&self->line), data_field, name) == 0;
    weft__buf_done(&self->line, self->alloc);
    return 0;
}

/* The rest of a line has come, or all of it. 1 go on, 0 stop. */
static int end_line(weft_sse_in *self, const char *bytes, size_t len, bool (*on_event)(char *data, size_t len, void *ctx),
                    void *ctx) {
    const weft_alloc *alloc = self->alloc;
    if (!self->skipping && weft__buf_len(&self->line) == 0 && len <= self->max + sizeof data_field)
        return take_sse_line(self, bytes, len, on_event, ctx);
    int r = keep_part(self, bytes, len);
    if (r < 0)
        return r;
    if (self->skipping) {
        self->skipping = false;
        return 1;
    }
    weft_buf line = self->line;
    self->line = (weft_buf){0};
    r = take_sse_line(self, weft__buf_head(&line), weft__buf_len(&line), on_event, ctx);
    weft__buf_done(&line, alloc);
    return r;
}

int weft__sse_in(weft_sse_in *self, const char *bytes, size_t n, bool (*on_event)(char *data, size_t len, void *ctx),
                 void *ctx) {
    while (n) {
        if (self->after_cr && *bytes == '\n')
            bytes++, n--;
        self->after_cr = false;
        size_t len = line_length(bytes, n);
        if (len == n)
            return n ? (keep_part(self, bytes, n) < 0 ? -ENOMEM : 1) : 1;
        self->after_cr = bytes[len] == '\r';
        int r = end_line(self, bytes, len, on_event, ctx);
        if (r <= 0)
            return r;
        bytes += len + 1;
        n -= len + 1;
    }
    return 1;
}

void weft__sse_in_restart(weft_sse_in *self) {
    weft__sse_in_done(self);
    self->after_cr = self->too_large = self->skipping = false;
    self->event[0] = '\0';
}

void weft__sse_in_done(weft_sse_in *self) {
    weft__buf_done(&self->line, self->alloc);
    weft__buf_done(&self->data, self->alloc);
}
