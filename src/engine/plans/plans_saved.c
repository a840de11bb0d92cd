/* What is stored of plans: for each a document that never changes and one that says how far it is, and one document that
 * says which plans there are. A start reads that one and then each of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plans_private.h"
#include "utf8.h"
#include "write.h"

#define MOST_READ (4 * WEFT_PLANS) /* of what the index says: some of them may be gone */

void weft__plan_keys(const known_plan *known, char plan[PLANS_KEY], char state[PLANS_KEY]) {
    snprintf(plan, PLANS_KEY, "plan/%s", known->id);
    snprintf(state, PLANS_KEY, "plan-state/%s", known->id);
}

/* ---- writing ---- */

int weft__plan_write_saved(const known_plan *known, weft_buf *out) {
    const weft_alloc *alloc = known->plans->alloc;
    weft_buf plan = {0};
    int r = weft__write_raw(&plan, alloc, "{", 1);
    if (r >= 0)
        r = weft__plan_write(known->plan, alloc, &plan);
    if (r >= 0)
        r = weft__write_raw(&plan, alloc, "}", 1);
    weft_val document = WEFT_OBJ({"number", weft_uint(known->pub.number)}, {"createdMs", weft_int(known->pub.created_ms)},
                                 {"at", weft_uint(known->at)}, {"by", weft_str(known->by)},
                                 {"plan", weft_raw(weft__buf_head(&plan), weft__buf_len(&plan))});
    if (r >= 0)
        r = weft__write_val(out, alloc, &document);
    weft__buf_done(&plan, alloc);
    return r;
}

static weft_val time_or_none(int64_t ms) {
    return ms ? weft_int(ms) : weft_none();
}

static int write_steps(const known_plan *known, weft_buf *out) {
    const weft_alloc *alloc = known->plans->alloc;
    int r = weft__write_raw(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < known->plan->count; i++) {
        const weft_planned_step *step = &known->next[i];
        weft_val value =
            WEFT_OBJ({"state", weft_str(weft__step_states[step->state])}, {"taskId", weft__text_or_none(step->task)},
                     {"reason", weft__text_or_none(step->reason)}, {"error", weft__text_or_none(step->error)},
                     {"startedMs", time_or_none(step->started_ms)}, {"endedMs", time_or_none(step->ended_ms)});
        if (i)
            r = weft__write_raw(out, alloc, ",", 1);
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
    }
    return r < 0 ? r : weft__write_raw(out, alloc, "]", 1);
}

int weft__plan_write_state(const known_plan *known, weft_buf *out) {
    const weft_alloc *alloc = known->plans->alloc;
    weft_buf steps = {0};
    int r = write_steps(known, &steps);
    weft_val document =
        WEFT_OBJ({"state", weft_str(weft__plan_states[known->next_state])},
                 {"stopping", weft_str_or_none(known->next_stopping)}, {"startedMs", time_or_none(known->next_started)},
                 {"endedMs", time_or_none(known->next_ended)}, {"limitMs", time_or_none(known->next_limit)},
                 {"at", weft_uint(known->at)}, {"steps", weft_raw(weft__buf_head(&steps), weft__buf_len(&steps))});
    if (r >= 0)
        r = weft__write_val(out, alloc, &document);
    weft__buf_done(&steps, alloc);
    return r;
}

int weft__plans_write_index(const weft_plans *plans, uint64_t first, uint64_t next, weft_buf *out) {
    weft_val document = WEFT_OBJ({"first", weft_uint(first)}, {"next", weft_uint(next)});
    return weft__write_val(out, plans->alloc, &document);
}

/* ---- reading ---- */

/* Outlives the plans while a page is under way. */
typedef struct plans_reading {
    weft_plans *plans; /* NULL: they are gone */
    const weft_alloc *alloc;
    uint64_t trimmed;       /* gseq: what is older is no longer kept */
    uint64_t number, until; /* the plan that is read now, and where it ends */
    known_plan *known;      /* the same, when its state is read; NULL: it itself is */
    enum { READ_TRIMMED, READ_INDEX, READ_PLAN, READ_STATE } stage;
} plans_reading;

/* Which of these words it is. Ours are plain, and a plain string is read without memory. */
static int find_state(const weft_json *data, const char *const *states, size_t count) {
    weft_json value = weft_get(data, "state");
    weft_bytes text;
    int r = weft_bytes_of(&value, &text);
    for (size_t i = 0; r >= 0 && i < count; i++)
        if (strlen(states[i]) == text.len && memcmp(states[i], text.data, text.len) == 0)
            return (int) i;
    return r == -ENOMEM ? r : -EBADMSG;
}

static int64_t read_time(const weft_json *data, const char *name) {
    int64_t ms = weft_get_int(data, name, 0);
    return ms > 0 ? ms : 0;
}

/* "" where there is none. */
static int copy_text(const weft_json *data, const char *name, char *ret, size_t size) {
    weft_json value = weft_get(data, name);
    weft_bytes text = {"", 0};
    *ret = '\0';
    if (weft_typeof(&value) == WEFT_STRING && weft_bytes_of(&value, &text) == -ENOMEM)
        return -ENOMEM;
    size_t len = weft__utf8_fit(text.data, text.len, size - 1);
    memcpy(ret, text.data, len);
    ret[len] = '\0';
    return 0;
}

static int restore_step(weft_planned_step *step, const weft_json *data) {
    int state = find_state(data, weft__step_states, WEFT_STEP_STATES);
    int r = state < 0 ? state : copy_text(data, "taskId", step->task, sizeof step->task);
    if (r >= 0)
        r = copy_text(data, "reason", step->reason, sizeof step->reason);
    if (r >= 0)
        r = copy_text(data, "error", step->error, sizeof step->error);
    if (r < 0)
        return r;
    step->state = (weft_step_state) state;
    step->started_ms = read_time(data, "startedMs");
    step->ended_ms = read_time(data, "endedMs");
    return 0;
}

static int restore_steps(known_plan *known, const weft_json *steps) {
    weft_planned_step *step = known->steps;
    int r = weft_count(steps) == known->plan->count ? 0 : -EBADMSG;
    for (weft_iter it = weft_iterate(steps); r >= 0 && weft_next(&it); step++)
        r = restore_step(step, &it.value);
    return r;
}

static int restore_state(known_plan *known, const weft_json *data) {
    weft_json steps = weft_get(data, "steps");
    char stopping[32];
    int state = find_state(data, weft__plan_states, WEFT_PLAN_STATES);
    int r = state < 0 ? state : restore_steps(known, &steps);
    if (r >= 0)
        r = copy_text(data, "stopping", stopping, sizeof stopping);
    if (r < 0)
        return r;
    known->pub.state = (weft_plan_state) state;
    known->pub.stopping = !*stopping ? NULL : strcmp(stopping, "timeLimit") == 0 ? "timeLimit" : "cancelled";
    known->want_stop = known->pub.stopping;
    known->pub.started_ms = read_time(data, "startedMs");
    known->pub.ended_ms = read_time(data, "endedMs");
    known->pub.time_limit_ms = read_time(data, "limitMs");
    known->at = (uint64_t) read_time(data, "at");
    return 0;
}

static int restore_plan(plans_reading *reading, const weft_json *data, known_plan **ret) {
    weft_plans *plans = reading->plans;
    weft_json value = weft_get(data, "plan");
    char why[WEFT_PLAN_WHY];
    weft_plan *plan = NULL;
    if (weft_get_int(data, "number", -1) != (int64_t) reading->number)
        return -EBADMSG;
    int r = weft__plan_read(&value, &(weft_plan_limits){.written = true}, plans->alloc, &plan, why);
    if (r < 0)
        return r == -ENOMEM ? r : -EBADMSG;
    char by[256];
    r = copy_text(data, "by", by, sizeof by);
    known_plan *known = r < 0 ? NULL : weft__plan_make(plans, plan, reading->number, by);
    if (!known) {
        weft__plan_free(plan);
        return -ENOMEM;
    }
    known->stored = true;
    known->pub.created_ms = read_time(data, "createdMs");
    known->at = (uint64_t) read_time(data, "at");
    *ret = known;
    return 0;
}

/* Those that do not run are remembered as long as the events that say so, as tasks are. */
static bool is_too_old(const plans_reading *reading, const known_plan *known) {
    return known->pub.state != WEFT_PLAN_RUNNING && known->at < reading->trimmed;
}

static void take_plan(plans_reading *reading, known_plan *known) {
    known->stale = is_too_old(reading, known);
    reading->plans->running += known->pub.state == WEFT_PLAN_RUNNING;
    weft__plan_show(known);
}

static int take_index(plans_reading *reading, const weft_json *data) {
    int64_t first = weft_get_int(data, "first", 0), next = weft_get_int(data, "next", 0);
    if (first < 1 || next < first || next > (int64_t) PLANS_NUMBERS)
        return -EBADMSG;
    reading->number = (uint64_t) (next - first > MOST_READ ? next - MOST_READ : first);
    reading->until = (uint64_t) next;
    reading->plans->next_number = (uint64_t) next;
    return 0;
}

static int take_document(plans_reading *reading, const weft_json *data) {
    if (reading->stage == READ_INDEX)
        return take_index(reading, data);
    return reading->stage == READ_PLAN ? restore_plan(reading, data, &reading->known) : restore_state(reading->known, data);
}

static int parse_document(plans_reading *reading, const weft_event *document) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(document->data.data, document->data.len, reading->alloc, &doc);
    if (r == -ENOMEM)
        return r;
    r = doc ? take_document(reading, weft_doc_root(doc)) : -EBADMSG;
    weft_doc_free(doc);
    if (r == -EBADMSG)
        weft__plans_note(reading->plans, "what was stored as %.64s cannot be read and is passed over", document->stream);
    if (r == -EBADMSG && reading->stage == READ_STATE) /* it has run, nobody knows how far: it must not run again */
        reading->known->pub.state = WEFT_PLAN_FAILED;
    return r == -EBADMSG ? 0 : r;
}

/* What comes behind what was just read. */
static void next_stage(plans_reading *reading) {
    if (reading->stage == READ_TRIMMED)
        reading->stage = READ_INDEX;
    else if (reading->stage == READ_PLAN && reading->known)
        reading->stage = READ_STATE;
    else {
        if (reading->stage == READ_STATE)
            take_plan(reading, reading->known);
        if (reading->stage != READ_INDEX)
            reading->number++;
        reading->known = NULL;
        reading->stage = READ_PLAN;
    }
}

static int read_next(plans_reading *reading);

static void end_reading(plans_reading *reading, int r) {
    weft_plans *plans = reading->plans;
    if (plans && reading->known)
        weft__plan_drop(reading->known);
    weft__free(reading->alloc, reading);
    if (!plans)
        return;
    plans->reading = NULL;
    weft__plans_read_end(plans, r);
}

static void on_page(void *ctx, int r, const weft_page *page) {
    plans_reading *reading = ctx;
    if (!reading->plans) {
        end_reading(reading, 0);
        return;
    }
    if (r >= 0 && reading->stage == READ_TRIMMED)
        reading->trimmed = page->trimmed;
    else if (r >= 0 && page->count)
        r = parse_document(reading, &page->events[0]);
    if (r >= 0) {
        next_stage(reading);
        r = read_next(reading);
    }
    if (r != 0)
        end_reading(reading, r < 0 ? r : 0);
}

/* 1: everything is read. */
static int read_next(plans_reading *reading) {
    char key[PLANS_KEY], id[WEFT_PLAN_ID];
    weft_query query = {.documents = true, .stream = key, .max_events = 1};
    weft__plan_name(id, reading->number);
    switch (reading->stage) {
    case READ_TRIMMED:
        query = (weft_query){.oldest = true, .aside = WEFT_STREAM_SESSION, .max_events = 1, .max_bytes = 1};
        break;
    case READ_INDEX:
        snprintf(key, sizeof key, "%s", PLANS_INDEX);
        break;
    case READ_PLAN:
        if (reading->number >= reading->until)
            return 1;
        snprintf(key, sizeof key, "plan/%s", id);
        break;
    case READ_STATE:
        snprintf(key, sizeof key, "plan-state/%s", id);
        break;
    }
    return weft__store_read(weft__engine_store(reading->plans->engine), &query, on_page, reading);
}

int weft__plans_read(weft_plans *plans) {
    plans_reading *reading = weft__zalloc(plans->alloc, sizeof *reading);
    if (!reading)
        return -ENOMEM;
    reading->plans = plans;
    reading->alloc = plans->alloc;
    int r = read_next(reading);
    if (r < 0)
        weft__free(plans->alloc, reading);
    else
        plans->reading = reading;
    return r;
}

void weft__plans_read_drop(weft_plans *plans) {
    plans_reading *reading = plans->reading;
    if (!reading)
        return;
    if (reading->known)
        reading->known = weft__plan_drop(reading->known);
    reading->plans = NULL;
}
