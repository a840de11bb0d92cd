/* Server-sent events, line by line. Comments, names and ids are skipped. */
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
    return r;
}

static int take_line(weft_sse_in *self, const char *line, size_t len, bool (*on_event)(char *data, size_t len, void *ctx),
                     void *ctx) {
    size_t name = sizeof data_field - 1;
    if (len == 0)
        return end_event(self, on_event, ctx);
    if (len < name || memcmp(line, data_field, name) != 0)
        return 1;
    int r = add_data(self, line + name, len - name);
    return r < 0 ? r : 1;
}

static size_t line_length(const char *bytes, size_t n) {
    size_t len = 0;
    while (len < n && bytes[len] != '\n' && bytes[len] != '\r')
        len++;
    return len;
}

/* A line that came in pieces is put together, unless it is longer than any event may be. */
static int keep_part(weft_sse_in *self, const char *bytes, size_t n) {
    if (weft__buf_len(&self->line) + n > self->max + sizeof data_field) {
        self->too_large = true;
        return 0;
    }
    return weft__buf_put(&self->line, self->alloc, bytes, n);
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
        weft_buf begun = self->line;
        self->line = (weft_buf){0};
        int r = 1;
        if (weft__buf_len(&begun) == 0)
            r = take_line(self, bytes, len, on_event, ctx);
        else if ((r = weft__buf_put(&begun, self->alloc, bytes, len)) == 0)
            r = take_line(self, weft__buf_head(&begun), weft__buf_len(&begun), on_event, ctx);
        weft__buf_done(&begun, self->alloc);
        if (r <= 0)
            return r;
        bytes += len + 1;
        n -= len + 1;
    }
    return 1;
}

void weft__sse_in_done(weft_sse_in *self) {
    weft__buf_done(&self->line, self->alloc);
    weft__buf_done(&self->data, self->alloc);
}
