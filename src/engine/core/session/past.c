/* The past: tasks that have ended, and sessions that have no task. They are most of what is known, and nobody needs them to
 * begin. After a clean stop the engine is ready without them and reads them afterwards, page by page, while it works.
 *
 * A clean stop leaves, in the hub's document, copies of what still matters ("open"): the tasks that wait, and their
 * sessions. A start that finds them, with nothing behind that document but the end of the daemon that wrote it, takes these
 * and is ready. Any other start reads all documents first, as it would without this file.
 *
 * While the past is unread nothing of it may be looked for, because it would not be found. Commands that name something old
 * are refused with -EAGAIN; whoever lists or finds things waits for weft__engine_await_past(). Nothing is forgotten
 * meanwhile, so what is read is never something that was deleted since; what is known already is newer and is passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_private.h"
#include "write.h"

#define OPEN_TASKS 200                  /* that are copied at a stop: */
#define OPEN_BYTES ((size_t) 512 << 10) /* with more, or larger ones, the next start reads everything first */

/* Outlives the engine while a page is under way. */
struct past_reading {
    weft_engine *engine; /* NULL: it is gone */
    const weft_alloc *alloc;
};

/* ---- at a stop ---- */

/* An approval that is not acted upon yet is acted upon at the next start, with a key that may be an old task's. */
static bool questions_are_settled(const weft_engine *engine) {
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        const weft_question *pub = &WEFT_CONTAINER(link, known_question, link)->pub;
        if (pub->state == WEFT_QUESTION_OPEN || (pub->rule && !pub->acted))
            return false;
    }
    return true;
}

/* No session may have a name that will be given to a new one before it is read. */
static bool names_are_given(const weft_engine *engine) {
    static const char prefix[] = "session-";
    for (weft_link *link = engine->all_sessions.next; link != &engine->all_sessions; link = link->next) {
        const char *id = WEFT_CONTAINER(link, known_session, link)->pub.id;
        if (strncmp(id, prefix, sizeof prefix - 1) == 0 && strtoull(id + sizeof prefix - 1, NULL, 10) >= engine->next_task)
            return false;
    }
    return true;
}

typedef int write_one(weft_engine *engine, const known_task *task, weft_buf *out);

static int write_session_of(weft_engine *engine, const known_task *task, weft_buf *out) {
    return weft__saved_session(engine, task->session, out);
}

/* One for each task that waits; of a session once. */
static int write_list(weft_engine *engine, const char *name, bool sessions, weft_buf *out) {
    write_one *write = sessions ? write_session_of : weft__saved_task;
    bool first = true;
    int r = weft__buf_put(out, engine->alloc, name, strlen(name));
    for (weft_link *link = engine->queue.next; r >= 0 && link != &engine->queue; link = link->next) {
        const known_task *task = WEFT_CONTAINER(link, known_task, place);
        if (sessions && task->turn.prev != &task->session->turns)
            continue;
        r = first ? 0 : weft__buf_put(out, engine->alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = write(engine, task, out);
    }
    return r;
}

/* A task whose end could not be stored has left its slot, and runs as far as the journal knows. */
static bool nothing_runs(const weft_engine *engine) {
    return weft__list_empty(&engine->slots) && !engine->counts.of[WEFT_TASK_RUNNING];
}

int weft__past_write_open(weft_engine *engine, weft_buf *out) {
    if (engine->phase != STOPPING || engine->queue_count > OPEN_TASKS || !nothing_runs(engine) ||
        !questions_are_settled(engine) || !names_are_given(engine))
        return 0;
    int r = write_list(engine, "{\"sessions\":[", true, out);
    if (r >= 0)
        r = write_list(engine, "],\"tasks\":[", false, out);
    /* What waits may run at once, and is told the context. */
    if (r >= 0)
        r = weft__buf_put(out, engine->alloc, "],\"context\":", 12);
    if (r >= 0)
        r = weft__context_write(engine, out);
    if (r >= 0)
        r = weft__buf_put(out, engine->alloc, "}", 1);
    return r < 0 ? r : weft__buf_len(out) <= OPEN_BYTES;
}

/* ---- at a start ---- */

bool weft__past_may_wait(const weft_engine *engine, const weft_json *hub) {
    weft_json open = weft_get(hub, "open"), firings = weft_get(hub, "fired");
    return weft_typeof(&open) == WEFT_OBJECT && firings.text &&
           weft__int_between(hub, "gseq", 0, 0, INT64_MAX - 1) + 1 == (int64_t) engine->applied;
}

static int restore_list(weft_engine *engine, const weft_json *open, const char *name,
                        int (*restore)(weft_engine *engine, const weft_json *data)) {
    weft_json list = weft_get(open, name);
    int r = 0;
    for (weft_iter it = weft_iterate(&list); r >= 0 && weft_next(&it);) {
        r = restore(engine, &it.value);
        if (r != -EBADMSG)
            continue;
        weft__note(engine, "one of the %s that were saved as open cannot be read and is passed over", name);
        engine->skipped++;
        r = 0;
    }
    return r;
}

/* Of version 0 there is none; earlier versions of Weft did not write it here, and it is read with the past. */
static int restore_context(weft_engine *engine, const weft_json *open) {
    weft_json context = weft_get(open, "context");
    int r = weft_get_int(&context, "version", 0) > 0 ? weft__context_restore(engine, &context) : 0;
    return r == -EBADMSG ? 0 : r;
}

int weft__past_restore_open(weft_engine *engine, const weft_json *hub) {
    weft_json open = weft_get(hub, "open");
    engine->past_unread = engine->past_restoring = true;
    int r = restore_list(engine, &open, "sessions", weft__session_restore);
    if (r >= 0)
        r = restore_list(engine, &open, "tasks", weft__task_restore);
    if (r >= 0)
        r = restore_context(engine, &open);
    engine->past_restoring = false;
    return r;
}

/* ---- in its order ---- */

static void put_in_order(weft_link *list, weft_link **at, weft_link *link,
                         bool (*older)(const weft_link *a, const weft_link *b)) {
    weft_link *after = *at ? *at : list;
    while (after != list && older(link, after))
        after = after->prev;
    while (after->next != list && older(after->next, link))
        after = after->next;
    weft__list_push(after->next, link);
    *at = link;
}

static bool is_older_task(const weft_link *a, const weft_link *b) {
    return WEFT_CONTAINER(a, known_task, all)->pub.number < WEFT_CONTAINER(b, known_task, all)->pub.number;
}

/* Their names are numbers of at least four digits behind one word. */
static bool is_older_session(const weft_link *a, const weft_link *b) {
    const char *one = WEFT_CONTAINER(a, known_session, link)->pub.id, *two = WEFT_CONTAINER(b, known_session, link)->pub.id;
    size_t len = strlen(one), other = strlen(two);
    return len != other ? len < other : strcmp(one, two) < 0;
}

void weft__past_put_task(weft_engine *engine, known_task *task) {
    if (engine->past_restoring)
        put_in_order(&engine->all_tasks, &engine->past_task, &task->all, is_older_task);
    else
        weft__list_push(&engine->all_tasks, &task->all);
}

void weft__past_put_session(weft_engine *engine, known_session *session) {
    if (engine->past_restoring)
        put_in_order(&engine->all_sessions, &engine->past_session, &session->link, is_older_session);
    else
        weft__list_push(&engine->all_sessions, &session->link);
}

void weft__past_leave(weft_engine *engine, const weft_link *link) {
    if (engine->past_task == link)
        engine->past_task = NULL;
    if (engine->past_session == link)
        engine->past_session = NULL;
}

/* ---- reading it ---- */

static void tell_waiters(weft_engine *engine, int r) {
    weft_link told;
    weft__list_init(&told);
    /* Those that come meanwhile wait for the next time. */
    while (!weft__list_empty(&engine->past_waiters)) {
        weft_link *link = engine->past_waiters.next;
        weft__list_remove(link);
        weft__list_push(&told, link);
    }
    while (!weft__list_empty(&told)) {
        weft_past_waiter *first = WEFT_CONTAINER(told.next, weft_past_waiter, link);
        weft__list_remove(&first->link);
        first->on_past(first, r);
    }
}

static void past_is_read(weft_engine *engine) {
    engine->past_unread = false;
    engine->past_r = 0;
    engine->past_task = engine->past_session = NULL;
    weft__task_forget_trimmed(engine, engine->past_trimmed);
    weft__tidy(engine);
    tell_waiters(engine, 0);
}

static void past_failed(weft_engine *engine, int r) {
    if (engine->past_r != r)
        weft__note(engine, "what tasks and sessions of the past were cannot be read: %s", weft_strerror(r));
    engine->past_r = r;
    if (r != -EUCLEAN)
        weft__again(engine, &engine->past_again, r);
    tell_waiters(engine, r);
}

static void read_page_of_past(weft_engine *engine);

static int restore_page(weft_engine *engine, const weft_page *page) {
    int r = 0;
    engine->past_restoring = true;
    for (size_t i = 0; r >= 0 && i < page->count; i++)
        r = weft__saved_restore_past(engine, &page->events[i]);
    engine->past_restoring = false;
    return r;
}

static void on_past_page(void *ctx, int r, const weft_page *page) {
    struct past_reading *reading = ctx;
    weft_engine *engine = reading->engine;
    weft__free(reading->alloc, reading);
    if (!engine)
        return;
    engine->past_reading = NULL;
    if (engine->phase >= STOPPED || r == -ECANCELED)
        return;
    if (r > 0)
        r = -EIO;
    if (r >= 0)
        r = restore_page(engine, page);
    if (r < 0) {
        past_failed(engine, r);
        return;
    }
    engine->past_after = page->last;
    if (page->more)
        read_page_of_past(engine);
    else
        past_is_read(engine);
}

static void read_page_of_past(weft_engine *engine) {
    struct past_reading *reading = weft__zalloc(engine->alloc, sizeof *reading);
    int r = reading ? 0 : -ENOMEM;
    if (reading) {
        *reading = (struct past_reading){engine, engine->alloc};
        r = weft__store_read(
            engine->store,
            &(weft_query){.documents = true, .after = engine->past_after, .max_events = engine->limits.past_page},
            on_past_page, reading);
    }
    if (r >= 0)
        engine->past_reading = reading;
    else {
        weft__free(engine->alloc, reading);
        past_failed(engine, r);
    }
}

void weft__past_begin(weft_engine *engine) {
    if (engine->past_unread)
        read_page_of_past(engine);
}

static void on_past_again(weft_timer *timer) {
    weft_engine *engine = WEFT_CONTAINER(timer, weft_engine, past_again);
    if (engine->past_unread && !engine->past_reading && engine->phase < STOPPED)
        read_page_of_past(engine);
}

int weft__engine_past(const weft_engine *engine) {
    return !engine->past_unread ? 0 : engine->past_r == -EUCLEAN ? -EUCLEAN : -EAGAIN;
}

void weft__engine_await_past(weft_engine *engine, weft_past_waiter *who) {
    weft__list_push(&engine->past_waiters, &who->link);
}

void weft__past_init(weft_engine *engine) {
    weft__list_init(&engine->past_waiters);
    weft__timer_init(&engine->past_again, on_past_again);
}

void weft__past_drop(weft_engine *engine) {
    if (engine->past_reading)
        engine->past_reading->engine = NULL;
    tell_waiters(engine, -ECANCELED);
}
