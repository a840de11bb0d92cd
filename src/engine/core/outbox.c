/* What a run says, on its way to the store: one append under way at a time, what comes meanwhile forms the next. When more
 * waits than should, the agent is not read from; when the store fails, everything waits and is sent again. */
#include <errno.h>
#include <string.h>

#include "run.h"
#include "utf8.h"
#include "write.h"

#define PARCEL_TEXT ((size_t) 64 * 1024)  /* of one session.output */
#define APPEND_BYTES ((size_t) 1 << 20)   /* of one append, about */
#define PAUSE_ABOVE ((size_t) 256 * 1024) /* bytes that wait */
#define RESUME_BELOW ((size_t) 64 * 1024)

struct parcel {
    weft_link link;
    const char *type;
    bool hub;
    bool text; /* data is text of stream, not yet JSON */
    weft_run_stream stream;
    weft_buf data;
};

static struct parcel *drop(struct run *run, struct parcel *old) {
    weft__list_remove(&old->link);
    weft__buf_done(&old->data, run->engine->alloc);
    return weft__free(run->engine->alloc, old);
}

static struct parcel *add(struct run *run, const char *type, bool hub) {
    struct parcel *made = weft__zalloc(run->engine->alloc, sizeof *made);
    if (!made)
        return NULL;
    made->type = type;
    made->hub = hub;
    weft__list_push(&run->outbox, &made->link);
    return made;
}

static void grown(struct run *run, size_t bytes) {
    run->outbox_bytes += bytes;
    if (run->outbox_bytes > PAUSE_ABOVE && !run->paused && run->turn) {
        run->paused = true;
        weft__pool_pause(run->turn, true);
    }
    weft__run_soon(run);
}

/* The last parcel, if more of this stream's text fits into it. */
static struct parcel *open_parcel(struct run *run, weft_run_stream stream) {
    struct parcel *last = WEFT_CONTAINER(run->outbox.prev, struct parcel, link);
    bool fits = !weft__list_empty(&run->outbox) && last->text && last->stream == stream &&
                weft__buf_len(&last->data) + WEFT_UTF8_MAX <= PARCEL_TEXT;
    if (fits)
        return last;
    struct parcel *made = add(run, "session.output", false);
    if (made) {
        made->text = true;
        made->stream = stream;
    }
    return made;
}

/* At most max bytes of it, not cut within a character. */
static size_t piece(weft_bytes text, size_t max) {
    size_t n = weft__utf8_fit(text.data, text.len, max);
    return n ? n : max; /* what is no UTF-8 has no characters to spare */
}

int weft__outbox_output(struct run *run, weft_run_stream stream, weft_bytes text) {
    size_t total = text.len;
    while (text.len) {
        struct parcel *into = open_parcel(run, stream);
        size_t n = into ? piece(text, PARCEL_TEXT - weft__buf_len(&into->data)) : 0;
        if (!into || weft__buf_put(&into->data, run->engine->alloc, text.data, n) < 0)
            return -ENOMEM;
        text = (weft_bytes){text.data + n, text.len - n};
    }
    grown(run, total);
    return 0;
}

int weft__outbox_event(struct run *run, bool hub, const char *type, weft_val data) {
    struct parcel *made = add(run, type, hub);
    int r = made ? weft__write_val(&made->data, run->engine->alloc, &data) : -ENOMEM;
    if (r < 0 && made)
        drop(run, made);
    if (r >= 0)
        grown(run, weft__buf_len(&made->data));
    return r;
}

/* ---- sending ---- */

static void add_to(struct draft *draft, const struct run *run, const struct parcel *parcel) {
    const char *stream = parcel->hub ? WEFT_STREAM_HUB : run->task->session->stream;
    const char *data = weft__buf_head(&parcel->data);
    size_t len = weft__buf_len(&parcel->data);
    if (parcel->text)
        weft__draft_add(draft, stream, parcel->type,
                        WEFT_OBJ({"sessionId", weft_str(run->task->pub.session)}, {"taskId", weft_str(run->task->pub.id)},
                                 {"stream", weft_str(parcel->stream == WEFT_RUN_STDOUT ? "stdout" : "stderr")},
                                 {"text", weft_strn(data ? data : "", len)}));
    else
        weft__draft_add(draft, stream, parcel->type, weft_raw(data, len));
}

static void put_back(struct run *run) {
    while (!weft__list_empty(&run->sent)) {
        weft_link *last = run->sent.prev;
        weft__list_remove(last);
        weft__list_push(run->outbox.next, last);
    }
}

static void forget_sent(struct run *run) {
    while (!weft__list_empty(&run->sent)) {
        struct parcel *first = WEFT_CONTAINER(run->sent.next, struct parcel, link);
        run->outbox_bytes -= weft__buf_len(&first->data);
        drop(run, first);
    }
}

static void failed(struct run *run, int r) {
    put_back(run);
    if (run->turn && !run->paused) {
        run->paused = true;
        weft__pool_pause(run->turn, true);
    }
    weft__again(run->engine, &run->again, r);
}

static void stored(void *ctx, int r) {
    struct run *run = ctx;
    run->sending = false;
    if (run->engine->phase == GONE)
        return;
    if (r < 0 && run->engine->phase == STOPPING && run->ended) {
        weft__note(run->engine, "%s: %zu bytes it said could not be stored", run->task->id, run->outbox_bytes);
        run->lost = r;
        weft__outbox_drop(run);
    } else if (r < 0) {
        failed(run, r);
        return;
    }
    forget_sent(run);
    if (run->paused && run->outbox_bytes < RESUME_BELOW && run->turn) {
        run->paused = false;
        weft__pool_pause(run->turn, false);
    }
    weft__run_soon(run);
}

void weft__outbox_flush(struct run *run) {
    struct draft draft = {.engine = run->engine};
    if (run->sending || weft__list_empty(&run->outbox))
        return;
    size_t bytes = 0;
    do {
        struct parcel *first = WEFT_CONTAINER(run->outbox.next, struct parcel, link);
        weft__list_remove(&first->link);
        weft__list_push(&run->sent, &first->link);
        add_to(&draft, run, first);
        bytes += weft__buf_len(&first->data);
    } while (bytes < APPEND_BYTES && draft.count < WEFT_STORE_EVENTS && !weft__list_empty(&run->outbox) && draft.r >= 0);
    run->sending = true;
    int r = weft__draft_send(&draft, NULL, stored, run);
    if (r < 0) {
        run->sending = false;
        failed(run, r);
    }
}

void weft__outbox_drop(struct run *run) {
    put_back(run);
    while (!weft__list_empty(&run->outbox))
        drop(run, WEFT_CONTAINER(run->outbox.next, struct parcel, link));
    run->outbox_bytes = 0;
}
