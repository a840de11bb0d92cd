/* What is no longer kept: old events over all, and what one session says beyond its share.
 *
 * Events go from the old end, whatever they say. So before any goes, what still matters is said again: the counters, and
 * the events of what is still alive (hub.kept). All of that is written while nothing else is under way, so that it says
 * exactly what the journal before it says. What comes meanwhile is held back by the store, for as long as it takes to store
 * what came before and one piece of this: nobody has to be silent for it, and nobody waits longer than for two syncs. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "engine_private.h"

#define MINUTE_MS ((int64_t) 60 * 1000)
#define HOUR_MS ((int64_t) 3600 * 1000)
#define DAY_MS (24 * HOUR_MS)
#define SLACK 8               /* trimmed when it has grown by an eighth of what is kept */
#define CHUNK_EVENTS 200      /* of one append of what still matters, */
#define CHUNK_BYTES (4 << 20) /* about */
#define MAX_SWITCHES 1000     /* of rules that are remembered as switched: more than anybody writes */

/* A rule that somebody switched, or all of them (""). */
typedef struct switched {
    weft_link link;
    kept_mark kept;
    bool enabled;
    char rule[];
} switched;

/* ---- the clock ---- */

/* It goes on while the machine sleeps, or every lid that was closed would look like a clock that was set. */
static int64_t steady(const weft_engine *engine) {
    struct timespec now;
    if (engine->opts.steady_ms)
        return engine->opts.steady_ms(engine->opts.ctx);
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t weft__retention_observed(const weft_engine *engine) {
    return weft__age_now(&engine->age, steady(engine));
}

static void note_observed(weft_engine *engine, const weft_event *event, const weft_json *data) {
    weft__age_note(&engine->age, event->gseq, weft_get_int(data, "observedMs", -1), engine->limits.keep_ms);
}

/* ---- the share of a session ---- */

static known_session *session_of(const weft_engine *engine, const char *stream) {
    size_t prefix = sizeof WEFT_STREAM_SESSION - 1;
    return strncmp(stream, WEFT_STREAM_SESSION, prefix) == 0 ? weft__session_known(engine, stream + prefix) : NULL;
}

static void trim_session(weft_engine *engine, known_session *session) {
    uint64_t keep = engine->limits.keep_output;
    if (session->bytes < keep || session->bytes - keep < keep / SLACK)
        return;
    /* What could not be trimmed now is tried again when as much has come again. */
    session->bytes = keep;
    weft__store_trim(engine->store, &(weft_trim){.stream = session->stream, .bytes = keep}, NULL, NULL);
}

/* That is no growth: where what still matters is much, saying it again would call for saying it again, without end. */
static bool is_said_again(const weft_event *event) {
    return strcmp(event->type, "hub.kept") == 0 || strcmp(event->type, "hub.counted") == 0;
}

void weft__retention_count(weft_engine *engine, const weft_event *event) {
    known_session *session = session_of(engine, event->stream);
    engine->bytes_total += event->data.len;
    engine->bytes_since += is_said_again(event) ? 0 : event->data.len;
    if (session) {
        session->bytes += event->data.len;
        trim_session(engine, session);
    }
    if (engine->bytes_since > engine->limits.keep_bytes / SLACK && engine->phase == READY)
        weft__retention_start(engine);
}

/* ---- what still matters ---- */

void weft__retention_mark(const weft_engine *engine, kept_mark *mark) {
    mark->ms = weft__retention_observed(engine);
    /* Nobody knows how much was written after what is read at a start: as if it were much. */
    mark->total = engine->phase == FOLDING ? 0 : engine->bytes_total;
}

/* Half of what is kept has been written since, or half of the time is over. */
static bool is_old(const weft_engine *engine, const kept_mark *mark) {
    return engine->bytes_total - mark->total > engine->limits.keep_bytes / 2 ||
           weft__retention_observed(engine) - mark->ms > engine->limits.keep_ms / 2;
}

static bool full(const struct draft *draft) {
    return draft->r < 0 || draft->count >= CHUNK_EVENTS || weft__buf_len(&draft->text) >= CHUNK_BYTES;
}

static void keep(struct draft *draft, const char *type, int64_t time_ms, weft_val data) {
    weft__draft_add(draft, WEFT_STREAM_HUB, "hub.kept",
                    WEFT_OBJ({"type", weft_str(type)}, {"time", weft_int(time_ms)}, {"data", data}));
}

static void keep_session(struct draft *draft, const known_session *session) {
    const weft_session *pub = &session->pub;
    keep(draft, "session.created", pub->created_ms,
         WEFT_OBJ({"sessionId", weft_str(pub->id)}, {"agent", weft_str(pub->agent)},
                  {"folder", weft_str(draft->engine->folder)}));
    if (pub->agent_session)
        keep(draft, "session.agent", pub->updated_ms,
             WEFT_OBJ({"sessionId", weft_str(pub->id)}, {"agentSessionId", weft_str(pub->agent_session)}));
}

static void keep_task(struct draft *draft, known_task *task) {
    weft_member members[16];
    if (!task->stored || full(draft) || !is_old(draft->engine, &task->kept))
        return;
    if (task->session)
        keep_session(draft, task->session);
    keep(draft, "task.queued", task->pub.created_ms, weft__task_data(task, members));
    if (task->pub.attempt > 0)
        keep(draft, "task.started", task->pub.started_ms,
             WEFT_OBJ({"taskId", weft_str(task->pub.id)}, {"sessionId", weft_str(task->pub.session)},
                      {"attempt", weft_int(task->pub.attempt)}));
    /* It waits for its next attempt: how many it has had decides how many follow. */
    if (task->pub.attempt > 0 && task->pub.state == WEFT_TASK_QUEUED)
        keep(draft, "task.retrying", task->pub.created_ms,
             WEFT_OBJ({"taskId", weft_str(task->pub.id)}, {"sessionId", weft_str(task->pub.session)},
                      {"attempt", weft_int(task->pub.attempt)}, {"delayMs", weft_int(0)}));
    weft__retention_mark(draft->engine, &task->kept);
}

static void keep_tasks(struct draft *draft) {
    weft_engine *engine = draft->engine;
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next)
        keep_task(draft, WEFT_CONTAINER(link, known_task, slot));
    for (weft_link *link = engine->queue.next; link != &engine->queue; link = link->next)
        keep_task(draft, WEFT_CONTAINER(link, known_task, place));
}

static void keep_questions(struct draft *draft) {
    weft_engine *engine = draft->engine;
    weft_member members[16];
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (!question->stored || question->pub.state != WEFT_QUESTION_OPEN || full(draft) ||
            !is_old(engine, &question->kept))
            continue;
        keep(draft, "question.asked", question->pub.created_ms, weft__question_data(question, members));
        if (question->pub.orphaned)
            keep(draft, "question.orphaned", question->pub.created_ms, WEFT_OBJ(WEFT_OF_QUESTION(question)));
        weft__retention_mark(engine, &question->kept);
    }
}

/* Choices of people's. To say them again changes nothing, so they are said as they were. */
static void keep_choices(struct draft *draft) {
    weft_engine *engine = draft->engine;
    if (engine->chosen && is_old(engine, &engine->chosen_kept)) {
        weft__draft_add(draft, WEFT_STREAM_HUB, "agent.chosen", WEFT_OBJ({"agent", weft_str(engine->chosen)}));
        weft__retention_mark(engine, &engine->chosen_kept);
    }
    for (weft_link *link = engine->switches.next; link != &engine->switches; link = link->next) {
        switched *one = WEFT_CONTAINER(link, switched, link);
        if (full(draft) || !is_old(engine, &one->kept))
            continue;
        weft__draft_add(
            draft, WEFT_STREAM_HUB, "automation.switched",
            WEFT_OBJ({"enabled", weft_bool(one->enabled)}, {"ruleId", *one->rule ? weft_str(one->rule) : weft_none()}));
        weft__retention_mark(engine, &one->kept);
    }
}

static void keep_counts(struct draft *draft) {
    const weft_engine *engine = draft->engine;
    const uint64_t *of = engine->counts.of;
    weft__draft_add(draft, WEFT_STREAM_HUB, "hub.counted",
                    WEFT_OBJ({"tasks", weft_uint(engine->next_task)}, {"questions", weft_uint(engine->next_question)},
                             {"observedMs", weft_int(weft__retention_observed(engine))},
                             {"totals", WEFT_OBJ({"completed", weft_uint(of[WEFT_TASK_COMPLETED])},
                                                 {"failed", weft_uint(of[WEFT_TASK_FAILED])},
                                                 {"cancelled", weft_uint(of[WEFT_TASK_CANCELLED])})}));
}

/* ---- at a start ---- */

int weft__retention_apply_kept(weft_engine *engine, const weft_event *event, const weft_json *data) {
    weft_json inner = weft_get(data, "data");
    weft_event was = *event;
    if (engine->phase != FOLDING)
        return 0;
    if (weft__member(data, "type", &was.type) < 0)
        return -ENOMEM;
    if (!was.type || strcmp(was.type, event->type) == 0)
        return 0;
    was.time_ms = weft_get_int(data, "time", event->time_ms);
    return weft__apply(engine, &was, &inner);
}

int weft__retention_apply_counted(weft_engine *engine, const weft_event *event, const weft_json *data) {
    note_observed(engine, event, data);
    return weft__task_apply_counted(engine, event, data);
}

int weft__retention_apply_stopped(weft_engine *engine, const weft_event *event, const weft_json *data) {
    note_observed(engine, event, data);
    return 0;
}

int weft__retention_apply_switched(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const char *rule;
    weft_link *link = engine->switches.next;
    size_t count = 0;
    (void) event;
    if (weft__member(data, "ruleId", &rule) < 0)
        return -ENOMEM;
    rule = rule ? rule : "";
    for (; link != &engine->switches && strcmp(WEFT_CONTAINER(link, switched, link)->rule, rule) != 0; link = link->next)
        count++;
    switched *one = link == &engine->switches ? NULL : WEFT_CONTAINER(link, switched, link);
    if (!one && count >= MAX_SWITCHES)
        return 0;
    if (!one) {
        size_t size = strlen(rule) + 1;
        one = weft__zalloc(engine->alloc, sizeof *one + size);
        if (!one)
            return -ENOMEM;
        memcpy(one->rule, rule, size);
        weft__list_push(&engine->switches, &one->link);
    }
    one->enabled = weft_get_bool(data, "enabled", true);
    weft__retention_mark(engine, &one->kept);
    return 0;
}

void weft__retention_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->switches)) {
        switched *one = WEFT_CONTAINER(engine->switches.next, switched, link);
        weft__list_remove(&one->link);
        weft__free(engine->alloc, one);
    }
}

/* ---- the work ---- */

/* What waited for it goes on. */
void weft__retention_stop(weft_engine *engine) {
    engine->retaining = false;
    weft__journal_hold(engine, false);
}

static void go_on(weft_engine *engine, int64_t next_ms) {
    weft__timer_set(engine->loop, &engine->retention_timer, weft_loop_now(engine->loop) + next_ms);
    weft__retention_stop(engine);
}

/* What was marked as kept may not be: everything counts as old again. */
static void failed(weft_engine *engine) {
    engine->bytes_total += engine->limits.keep_bytes;
    engine->bytes_since++;
    go_on(engine, MINUTE_MS);
}

static void chunk_stored(void *ctx, int r) {
    weft_engine *engine = ctx;
    if (r < 0 && engine->phase != GONE)
        failed(engine);
}

static void note_older(uint64_t *oldest, const kept_mark *mark) {
    if (mark->total < *oldest)
        *oldest = mark->total;
}

/* As configured, but never so little that something goes that still matters. Half of it is for what is written before the
 * store trims. */
static uint64_t bytes_to_keep(const weft_engine *engine) {
    uint64_t oldest = engine->bytes_total;
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next)
        note_older(&oldest, &WEFT_CONTAINER(link, known_task, slot)->kept);
    for (weft_link *link = engine->queue.next; link != &engine->queue; link = link->next)
        note_older(&oldest, &WEFT_CONTAINER(link, known_task, place)->kept);
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        const known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->stored && question->pub.state == WEFT_QUESTION_OPEN)
            note_older(&oldest, &question->kept);
    }
    for (weft_link *link = engine->switches.next; link != &engine->switches; link = link->next)
        note_older(&oldest, &WEFT_CONTAINER(link, switched, link)->kept);
    if (engine->chosen)
        note_older(&oldest, &engine->chosen_kept);
    uint64_t since = engine->bytes_total - oldest, keep_bytes = engine->limits.keep_bytes;
    return since > keep_bytes / 2 ? since + keep_bytes / 2 : keep_bytes;
}

static void counted(void *ctx, int r) {
    weft_engine *engine = ctx;
    uint64_t upto = weft__age_until(&engine->age, steady(engine), engine->limits.keep_ms);
    chunk_stored(engine, r);
    if (r >= 0)
        weft__store_trim(engine->store, &(weft_trim){.bytes = bytes_to_keep(engine), .upto = upto}, NULL, NULL);
}

void weft__retention_check(weft_engine *engine) {
    struct draft draft = {.engine = engine, .ahead = true};
    if (!engine->retaining || engine->under_way || engine->lagging)
        return;
    keep_tasks(&draft);
    keep_questions(&draft);
    keep_choices(&draft);
    bool last = !full(&draft);
    if (last)
        keep_counts(&draft);
    if (weft__draft_send(&draft, NULL, last ? counted : chunk_stored, engine) < 0)
        failed(engine);
    else if (last)
        go_on(engine, HOUR_MS);
    else {
        weft__journal_hold(engine, false); /* what waited comes between this piece and the next */
        weft__journal_hold(engine, true);
    }
}

void weft__retention_start(weft_engine *engine) {
    int64_t now = weft_loop_now(engine->loop);
    if (engine->retaining)
        return;
    weft__timer_set(engine->loop, &engine->retention_timer, now + HOUR_MS);
    /* A daemon that does nothing writes nothing, but once a day, because time goes on. */
    if (!engine->bytes_since && now < engine->retained + DAY_MS)
        return;
    engine->bytes_since = 0;
    engine->retained = now;
    engine->retaining = true;
    weft__journal_hold(engine, true);
    weft__later(engine->loop, &engine->retention_later);
}

/* A journal that begins now has nothing that could go. */
void weft__retention_begin(weft_engine *engine) {
    weft__age_begin(&engine->age, steady(engine));
    if (engine->fresh) {
        engine->bytes_since = 0;
        engine->retained = weft_loop_now(engine->loop);
    }
    weft__retention_start(engine);
}

static void due(weft_timer *timer) {
    weft_engine *engine = WEFT_CONTAINER(timer, weft_engine, retention_timer);
    if (engine->phase == READY)
        weft__retention_start(engine);
}

static void check_later(weft_later *later) {
    weft__retention_check(WEFT_CONTAINER(later, weft_engine, retention_later));
}

void weft__retention_init(weft_engine *engine) {
    weft__list_init(&engine->switches);
    weft__timer_init(&engine->retention_timer, due);
    weft__later_init(&engine->retention_later, check_later);
    engine->bytes_total = engine->limits.keep_bytes;
}
