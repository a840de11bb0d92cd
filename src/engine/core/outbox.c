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
#define CLOSING_PARCELS 64 /* that are stored with the end: it has room in the append, whatever comes with it */

struct parcel {
    weft_link link;
    const char *type;
    bool hub;
    bool text; /* data is text of stream, not yet JSON */
    weft_run_stream stream;
    known_question *question; /* asked or answered; data is the answer's option, not yet JSON. NULL: none */
    bool asks;
    uint64_t at;           /* everything up to this number of its runner's is in this and those before it; 0: not known */
    size_t question_bytes; /* of what is asked: when it is stored, the question may be forgotten before this */
    weft_buf data;
};

static size_t parcel_bytes(const struct parcel *parcel) {
    return weft__buf_len(&parcel->data) + parcel->question_bytes;
}

static struct parcel *drop_parcel(struct run *run, struct parcel *old) {
    weft__list_remove(&old->link);
    weft__buf_done(&old->data, run->engine->alloc);
    return weft__free(run->engine->alloc, old);
}

static struct parcel *add_parcel(struct run *run, const char *type, bool hub) {
    struct parcel *made = weft__zalloc(run->engine->alloc, sizeof *made);
    if (!made)
        return NULL;
    made->type = type;
    made->hub = hub;
    weft__list_push(&run->outbox, &made->link);
    return made;
}

static void note_outbox_growth(struct run *run, size_t bytes) {
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
    struct parcel *made = add_parcel(run, "session.output", false);
    if (made) {
        made->text = true;
        made->stream = stream;
    }
    return made;
}

/* At most max bytes of it, not cut within a character. */
static size_t piece_length(weft_bytes text, size_t max) {
    size_t n = weft__utf8_fit(text.data, text.len, max);
    return n ? n : max; /* what is no UTF-8 has no characters to spare */
}

int weft__outbox_output(struct run *run, weft_run_stream stream, weft_bytes text) {
    size_t total = text.len;
    if (run->deaf)
        return 0;
    while (text.len) {
        struct parcel *into = open_parcel(run, stream);
        size_t n = into ? piece_length(text, PARCEL_TEXT - weft__buf_len(&into->data)) : 0;
        if (!into || weft__buf_put(&into->data, run->engine->alloc, text.data, n) < 0)
            return -ENOMEM;
        text = (weft_bytes){text.data + n, text.len - n};
    }
    note_outbox_growth(run, total);
    return 0;
}

int weft__outbox_event(struct run *run, bool hub, const char *type, weft_val data) {
    if (run->deaf)
        return 0;
    struct parcel *made = add_parcel(run, type, hub);
    int r = made ? weft__write_val(&made->data, run->engine->alloc, &data) : -ENOMEM;
    if (r < 0 && made)
        drop_parcel(run, made);
    if (r >= 0)
        note_outbox_growth(run, weft__buf_len(&made->data));
    return r;
}

int weft__outbox_question(struct run *run, known_question *question, const char *option) {
    struct parcel *made = add_parcel(run, option ? "question.answered" : "question.asked", true);
    if (!made)
        return -ENOMEM;
    made->question = question;
    made->asks = !option;
    made->question_bytes = option ? 0 : question->bytes;
    if (option && weft__buf_put(&made->data, run->engine->alloc, option, strlen(option)) < 0) {
        drop_parcel(run, made);
        return -ENOMEM;
    }
    note_outbox_growth(run, parcel_bytes(made));
    return 0;
}

/* ---- sending ---- */

static void add_question_to(struct draft *draft, const struct parcel *parcel) {
    const known_question *question = parcel->question;
    weft_member members[16];
    if (parcel->asks) {
        draft->counter = COUNTER_QUESTION;
        draft->number = question->number;
        weft__draft_add(draft, WEFT_STREAM_HUB, parcel->type, weft__question_data(question, members));
    } else
        weft__draft_add(draft, WEFT_STREAM_HUB, parcel->type,
                        WEFT_OBJ(WEFT_OF_QUESTION(question),
                                 {"option", weft_strn(weft__buf_head(&parcel->data), weft__buf_len(&parcel->data))},
                                 {"by", weft_str(*question->auto_by ? question->auto_by : "configuration")},
                                 {"approvalId", *question->approval ? weft_str(question->approval) : weft_none()}));
}

static void add_parcel_to(struct draft *draft, const struct run *run, const struct parcel *parcel) {
    const char *stream = parcel->hub ? WEFT_STREAM_HUB : run->task->session->stream;
    const char *data = weft__buf_head(&parcel->data);
    size_t len = weft__buf_len(&parcel->data);
    if (parcel->question)
        add_question_to(draft, parcel);
    else if (parcel->text)
        weft__draft_add(draft, stream, parcel->type,
                        WEFT_OBJ({"sessionId", weft_str(run->task->pub.session)}, {"taskId", weft_str(run->task->pub.id)},
                                 {"attempt", weft__later_attempt(run)},
                                 {"stream", weft_str(parcel->stream == WEFT_RUN_STDOUT ? "stdout" : "stderr")},
                                 {"text", weft_strn(data ? data : "", len)}));
    else
        weft__draft_add(draft, stream, parcel->type, weft_raw(data, len));
}

static void put_back_sent(struct run *run) {
    while (!weft__list_empty(&run->sent)) {
        weft_link *last = run->sent.prev;
        weft__list_remove(last);
        weft__list_push(run->outbox.next, last);
    }
}

static void forget_sent(struct run *run) {
    while (!weft__list_empty(&run->sent)) {
        struct parcel *first = WEFT_CONTAINER(run->sent.next, struct parcel, link);
        run->outbox_bytes -= parcel_bytes(first);
        drop_parcel(run, first);
    }
}

bool weft__outbox_mark(struct run *run, uint64_t at) {
    if (run->deaf)
        return false;
    if (!weft__list_empty(&run->outbox)) {
        WEFT_CONTAINER(run->outbox.prev, struct parcel, link)->at = at;
        return false;
    }
    run->idle_at = at;
    return !run->sending;
}

static uint64_t sent_up_to(const struct run *run) {
    uint64_t at = 0;
    for (weft_link *link = run->sent.next; link != &run->sent; link = link->next)
        at = WEFT_CONTAINER(link, struct parcel, link)->at > at ? WEFT_CONTAINER(link, struct parcel, link)->at : at;
    return at;
}

static void retry_sending(struct run *run, int r) {
    put_back_sent(run);
    if (run->turn && !run->paused) {
        run->paused = true;
        weft__pool_pause(run->turn, true);
    }
    weft__again(run->engine, &run->again, r);
}

static struct parcel *asking_parcel(const struct run *run) {
    for (weft_link *link = run->sent.next; link != &run->sent; link = link->next)
        if (WEFT_CONTAINER(link, struct parcel, link)->asks)
            return WEFT_CONTAINER(link, struct parcel, link);
    return NULL;
}

/* Another writer took the number of the question that was under way: it gets the next one, and everything is sent again. */
static bool send_renumbered(struct run *run) {
    struct parcel *asking = asking_parcel(run);
    if (!asking || ++run->tries >= ENGINE_TRIES)
        return false;
    if (asking->question->stored) { /* the other one asked the same of the same task: it is asked */
        run->outbox_bytes -= parcel_bytes(asking);
        drop_parcel(run, asking);
    } else if (weft__question_renumber(run->engine, asking->question) < 0)
        return false;
    put_back_sent(run);
    weft__run_soon(run);
    return true;
}

static void on_parcels_stored(void *ctx, int r) {
    struct run *run = ctx;
    run->sending = false;
    if (run->engine->phase == GONE || (r == -EAGAIN && send_renumbered(run)))
        return;
    run->tries = 0;
    if (r < 0 && run->engine->phase == STOPPING && run->ended) {
        weft__note(run->engine, "%s: %zu bytes it said could not be stored", run->task->id, run->outbox_bytes);
        run->lost = r;
        weft__outbox_drop(run);
    } else if (r < 0) {
        retry_sending(run, r);
        return;
    }
    uint64_t at = sent_up_to(run);
    forget_sent(run);
    if (weft__list_empty(&run->outbox) && run->idle_at > at)
        at = run->idle_at;
    if (at && run->turn && r >= 0)
        weft__pool_kept(run->turn, at);
    if (run->paused && run->outbox_bytes < RESUME_BELOW && run->turn) {
        run->paused = false;
        weft__pool_pause(run->turn, false);
    }
    weft__run_soon(run);
}

/* At most one question is asked in an append, because an append takes one number. */
void weft__outbox_flush(struct run *run) {
    struct draft draft = {.engine = run->engine};
    if (run->sending || weft__list_empty(&run->outbox))
        return;
    size_t bytes = 0;
    do {
        struct parcel *first = WEFT_CONTAINER(run->outbox.next, struct parcel, link);
        weft__list_remove(&first->link);
        weft__list_push(&run->sent, &first->link);
        add_parcel_to(&draft, run, first);
        bytes += parcel_bytes(first);
    } while (bytes < APPEND_BYTES && draft.count < WEFT_STORE_EVENTS - 1 && !weft__list_empty(&run->outbox) &&
             draft.r >= 0 && !(draft.counter && WEFT_CONTAINER(run->outbox.next, struct parcel, link)->asks));
    uint64_t at = sent_up_to(run);
    if (at)
        weft__draft_add(
            &draft, WEFT_STREAM_HUB, "runner.kept",
            WEFT_OBJ({"taskId", weft_str(run->task->id)}, {"lease", weft_uint(run->task->lease)}, {"at", weft_uint(at)}));
    run->sending = true;
    int r = weft__draft_send(&draft, NULL, on_parcels_stored, run);
    if (r < 0) {
        run->sending = false;
        retry_sending(run, r);
    }
}

/* ---- with the end ---- */

/* The end says where in the session's stream the output is, so that must be known before it is stored. */
bool weft__outbox_may_close(const struct run *run) {
    size_t count = 0;
    for (weft_link *link = run->outbox.next; link != &run->outbox; link = link->next)
        if (WEFT_CONTAINER(link, struct parcel, link)->question || ++count > CLOSING_PARCELS)
            return false;
    const known_session *session = run->task->session;
    return !run->apart && !run->sending && run->outbox_bytes < APPEND_BYTES && session && session->next_seq;
}

/* As weft__task_apply_output() will do it, from the same text. */
static int count_parcel(const struct run *run, const struct parcel *parcel, weft_bytes json, uint64_t seq, run_said *said) {
    const weft_alloc *alloc = run->engine->alloc;
    weft_event event = {.type = parcel->type};
    weft_doc *doc = NULL;
    weft_bytes text;
    if (strcmp(parcel->type, "session.output") != 0 && strcmp(parcel->type, "session.update") != 0)
        return 0;
    int r = weft_doc_parse(json.data, json.len, alloc, &doc);
    if (r < 0)
        return r;
    r = weft__output_text(&event, weft_doc_root(doc), &text);
    if (r > 0) {
        said->bytes += text.len;
        r = weft__buf_put(&said->text, alloc, text.data, text.len);
    }
    weft_doc_free(doc);
    said->from = said->from ? said->from : seq;
    said->to = seq;
    return r;
}

void weft__outbox_close(struct run *run, struct draft *draft, run_said *said) {
    uint64_t seq = run->task->session->next_seq;
    while (!weft__list_empty(&run->outbox)) {
        struct parcel *first = WEFT_CONTAINER(run->outbox.next, struct parcel, link);
        size_t before = weft__buf_len(&draft->text);
        weft__list_remove(&first->link);
        weft__list_push(&run->sent, &first->link);
        add_parcel_to(draft, run, first);
        if (draft->r < 0 || first->hub)
            continue;
        weft_bytes json = {weft__buf_head(&draft->text) + before, weft__buf_len(&draft->text) - before};
        int r = count_parcel(run, first, json, seq++, said);
        draft->r = r < 0 ? r : draft->r;
    }
    run->sending = true;
}

void weft__outbox_closed(struct run *run, int r) {
    run->apart |= r < 0;
    on_parcels_stored(run, r);
}

void weft__outbox_drop(struct run *run) {
    put_back_sent(run);
    while (!weft__list_empty(&run->outbox))
        drop_parcel(run, WEFT_CONTAINER(run->outbox.next, struct parcel, link));
    run->outbox_bytes = 0;
}
