/* What is stored of gated tasks: for each a document that never changes and one that says how far it is, and one document
 * that says which there are. A start reads that one and then each of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gated_private.h"
#include "utf8.h"
#include "write.h"

#define MOST_READ (4 * WEFT_GATED) /* of what the index says: some of them may be gone */

void weft__gated_keys(const gated_task *task, char fixed[GATED_KEY], char state[GATED_KEY]) {
    snprintf(fixed, GATED_KEY, "gated/%s", task->id);
    snprintf(state, GATED_KEY, "gated-state/%s", task->id);
}

/* ---- writing ---- */

int weft__gated_write_fixed(const gated_task *task, weft_buf *out) {
    const weft_gated *pub = &task->pub;
    weft_val gates[WEFT_GATED_GATES];
    for (size_t i = 0; i < pub->gate_count; i++)
        gates[i] = weft_str(pub->gates[i]);
    weft_val document = WEFT_OBJ(
        {"number", weft_uint(pub->number)}, {"createdMs", weft_int(pub->created_ms)}, {"prompt", weft_str(pub->prompt)},
        {"agent", weft_str_or_none(pub->agent)}, {"gates", weft_arr(gates, pub->gate_count)},
        {"maxIterations", weft_int(pub->max_iterations)}, {"permission", weft_int((int64_t) pub->permission)},
        {"isolation", weft_int((int64_t) pub->isolation)}, {"by", weft_str(pub->by)}, {"key", weft__text_or_none(pub->key)});
    return weft__write_val(out, task->of->alloc, &document);
}

static int write_result(const gated_task *task, size_t i, weft_buf *out) {
    bool newer = task->pending.there && task->pending.gate == i;
    const weft_gate_result *result = newer ? &task->pending.result : &task->results[i];
    const char *found = result->diagnostics;
    weft_val value = result->known
                         ? WEFT_OBJ({"passed", weft_bool(result->passed)}, {"iteration", weft_int(result->iteration)},
                                    {"exitCode", weft_int(result->exit_code)}, {"ms", weft_int(result->ms)},
                                    {"why", weft__text_or_none(result->why)}, {"output", weft__text_or_none(result->output)},
                                    {"diagnostics", found ? weft_raw(found, strlen(found)) : weft_none()})
                         : weft_null();
    return weft__write_val(out, task->of->alloc, &value);
}

static int write_turn(const gated_task *task, size_t i, weft_buf *out) {
    weft_gated_turn turn = task->turns[i];
    bool last = (int64_t) i + 1 == task->next.iteration;
    if (last && *task->next.task)
        memcpy(turn.task, task->next.task, sizeof turn.task);
    if (task->pending.there && (int64_t) i + 1 == task->pending.result.iteration) {
        turn.ran |= 1u << task->pending.gate;
        turn.passed |= task->pending.result.passed ? 1u << task->pending.gate : 0;
    }
    weft_val value = WEFT_OBJ({"taskId", weft__text_or_none(turn.task)}, {"ran", weft_uint(turn.ran)},
                              {"passed", weft_uint(turn.passed)});
    return weft__write_val(out, task->of->alloc, &value);
}

static int write_list(const gated_task *task, size_t count, int (*write)(const gated_task *, size_t, weft_buf *),
                      weft_buf *out) {
    const weft_alloc *alloc = task->of->alloc;
    int r = weft__write_raw(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < count; i++) {
        if (i)
            r = weft__write_raw(out, alloc, ",", 1);
        if (r >= 0)
            r = write(task, i, out);
    }
    return r < 0 ? r : weft__write_raw(out, alloc, "]", 1);
}

int weft__gated_write_state(const gated_task *task, weft_buf *out) {
    const weft_alloc *alloc = task->of->alloc;
    const gated_now *next = &task->next;
    weft_buf turns = {0}, results = {0};
    int r = write_list(task, (size_t) next->iteration, write_turn, &turns);
    if (r >= 0)
        r = write_list(task, task->pub.gate_count, write_result, &results);
    weft_val document =
        WEFT_OBJ({"state", weft_str(weft__gated_states[next->state])}, {"stopping", weft_bool(next->stopping)},
                 {"gating", weft_bool(next->gating)}, {"iteration", weft_int(next->iteration)},
                 {"taskId", weft__text_or_none(next->task)}, {"sessionId", weft__text_or_none(next->session)},
                 {"reason", weft__text_or_none(next->reason)}, {"error", weft__text_or_none(next->error)},
                 {"endedMs", next->ended_ms ? weft_int(next->ended_ms) : weft_none()},
                 {"failedGate", next->failed_gate >= 0 ? weft_int(next->failed_gate) : weft_none()},
                 {"seen", next->seen ? weft_bool(true) : weft_none()},
                 {"turns", weft_raw(weft__buf_head(&turns), weft__buf_len(&turns))},
                 {"results", weft_raw(weft__buf_head(&results), weft__buf_len(&results))});
    if (r >= 0)
        r = weft__write_val(out, alloc, &document);
    weft__buf_done(&turns, alloc);
    weft__buf_done(&results, alloc);
    return r;
}

int weft__gated_write_index(const weft_gated_tasks *tasks, uint64_t first, uint64_t next, weft_buf *out) {
    weft_val document = WEFT_OBJ({"first", weft_uint(first)}, {"next", weft_uint(next)});
    return weft__write_val(out, tasks->alloc, &document);
}

/* ---- reading ---- */

/* Outlives the gated tasks while a page is under way. */
typedef struct gated_reading {
    weft_gated_tasks *tasks; /* NULL: they are gone */
    const weft_alloc *alloc;
    uint64_t number, until; /* the one that is read now, and where it ends */
    gated_task *task;       /* the same, when its state is read; NULL: it itself is */
    enum { READ_INDEX, READ_FIXED, READ_STATE } stage;
} gated_reading;

/* "" where there is none. */
static int copy_member(const weft_json *data, const char *name, char *ret, size_t size) {
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

static int copy_owned(const weft_json *data, const char *name, const char *fallback, const weft_alloc *alloc,
                      const char **ret) {
    const char *text = weft_get_str(data, name, fallback);
    *ret = weft__strndup(alloc, text, strlen(text));
    return *ret ? 0 : -ENOMEM;
}

static int restore_result(const gated_task *task, weft_gate_result *result, const weft_json *data) {
    const weft_alloc *alloc = task->of->alloc;
    weft_json found = weft_get(data, "diagnostics");
    if (weft_typeof(data) != WEFT_OBJECT)
        return 0;
    result->known = true;
    result->passed = weft_get_bool(data, "passed", false);
    result->iteration = weft_get_int(data, "iteration", 0);
    result->exit_code = (int) weft_get_int(data, "exitCode", -1);
    result->ms = weft_get_int(data, "ms", 0);
    int r = copy_owned(data, "why", "", alloc, &result->why);
    if (r >= 0)
        r = copy_owned(data, "output", "", alloc, &result->output);
    if (r >= 0 && !(result->diagnostics = weft__strndup(alloc, found.text ? found.text : "[]", found.text ? found.len : 2)))
        r = -ENOMEM;
    return r;
}

static int restore_lists(gated_task *task, const weft_json *data) {
    weft_json turns = weft_get(data, "turns"), results = weft_get(data, "results");
    size_t i = 0;
    int r =
        weft_count(&results) == task->pub.gate_count && weft_count(&turns) == (size_t) task->now.iteration ? 0 : -EBADMSG;
    for (weft_iter it = weft_iterate(&turns); r >= 0 && weft_next(&it); i++) {
        r = copy_member(&it.value, "taskId", task->turns[i].task, sizeof task->turns[i].task);
        task->turns[i].ran = (uint32_t) weft_get_int(&it.value, "ran", 0);
        task->turns[i].passed = (uint32_t) weft_get_int(&it.value, "passed", 0);
    }
    i = 0;
    for (weft_iter it = weft_iterate(&results); r >= 0 && weft_next(&it); i++)
        r = restore_result(task, &task->results[i], &it.value);
    return r;
}

static int read_state_word(const weft_json *data, weft_gated_state *ret) {
    const char *word = weft_get_str(data, "state", "");
    for (int i = 0; i < WEFT_GATED_STATES; i++)
        if (strcmp(weft__gated_states[i], word) == 0) {
            *ret = (weft_gated_state) i;
            return 0;
        }
    return -EBADMSG;
}

static int restore_state(gated_task *task, const weft_json *data) {
    gated_now *now = &task->now;
    int64_t iteration = weft_get_int(data, "iteration", 0), failed = weft_get_int(data, "failedGate", -1);
    int r = read_state_word(data, &now->state);
    if (r < 0 || iteration < 0 || iteration > WEFT_GATED_ITERATIONS || failed >= (int64_t) task->pub.gate_count)
        return -EBADMSG;
    now->stopping = weft_get_bool(data, "stopping", false);
    now->gating = weft_get_bool(data, "gating", false);
    now->iteration = iteration;
    now->failed_gate = failed < 0 ? -1 : (int) failed;
    now->ended_ms = weft_get_int(data, "endedMs", 0);
    now->seen = weft_get_bool(data, "seen", false);
    task->want_stop = now->stopping;
    r = copy_member(data, "taskId", now->task, sizeof now->task);
    if (r >= 0)
        r = copy_member(data, "sessionId", now->session, sizeof now->session);
    if (r >= 0)
        r = copy_member(data, "reason", now->reason, sizeof now->reason);
    if (r >= 0)
        r = copy_member(data, "error", now->error, sizeof now->error);
    return r < 0 ? r : restore_lists(task, data);
}

static int restore_fixed(gated_reading *reading, const weft_json *data, gated_task **ret) {
    const char *gates[WEFT_GATED_GATES];
    weft_json list = weft_get(data, "gates");
    weft_gated_spec spec = {.prompt = weft_get_str(data, "prompt", ""),
                            .agent = weft_get_str(data, "agent", NULL),
                            .gates = gates,
                            .max_iterations = weft_get_int(data, "maxIterations", 0),
                            .permission = (weft_task_permission) weft_get_int(data, "permission", 0),
                            .isolation = (weft_isolation) weft_get_int(data, "isolation", 0),
                            .by = weft_get_str(data, "by", ""),
                            .key = weft_get_str(data, "key", NULL)};
    for (weft_iter it = weft_iterate(&list);
         weft_typeof(&list) == WEFT_ARRAY && spec.gate_count < WEFT_GATED_GATES && weft_next(&it);)
        gates[spec.gate_count++] = weft_str_of(&it.value, "");
    if (weft_get_int(data, "number", -1) != (int64_t) reading->number || !spec.gate_count || !*spec.prompt ||
        spec.max_iterations < 1 || spec.max_iterations > WEFT_GATED_ITERATIONS || spec.permission > WEFT_TASK_MAY_ALL ||
        spec.isolation > WEFT_ISOLATION_OFF)
        return -EBADMSG;
    gated_task *task = weft__gated_make(reading->tasks, &spec, reading->number);
    if (!task)
        return -ENOMEM;
    task->stored = true;
    task->pub.created_ms = weft_get_int(data, "createdMs", 0);
    *ret = task;
    return 0;
}

static int take_index(gated_reading *reading, const weft_json *data) {
    int64_t first = weft_get_int(data, "first", 0), next = weft_get_int(data, "next", 0);
    if (first < 1 || next < first || next > (int64_t) GATED_NUMBERS)
        return -EBADMSG;
    reading->number = (uint64_t) (next - first > MOST_READ ? next - MOST_READ : first);
    reading->until = (uint64_t) next;
    reading->tasks->next_number = (uint64_t) next;
    return 0;
}

static int take_document(gated_reading *reading, const weft_json *data) {
    if (reading->stage == READ_INDEX)
        return take_index(reading, data);
    return reading->stage == READ_FIXED ? restore_fixed(reading, data, &reading->task) : restore_state(reading->task, data);
}

static int parse_document(gated_reading *reading, const weft_event *document) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(document->data.data, document->data.len, reading->alloc, &doc);
    if (r == -ENOMEM)
        return r;
    r = doc ? take_document(reading, weft_doc_root(doc)) : -EBADMSG;
    weft_doc_free(doc);
    if (r == -EBADMSG)
        weft__gated_note(reading->tasks, "what was stored as %.64s cannot be read and is passed over", document->stream);
    if (r == -EBADMSG && reading->stage == READ_STATE) { /* nobody knows how far it was: it must not begin again */
        reading->task->now = (gated_now){.state = WEFT_GATED_STATE_FAILED, .failed_gate = -1};
        snprintf(reading->task->now.reason, sizeof reading->task->now.reason, "forgotten");
    }
    return r == -EBADMSG ? 0 : r;
}

static void take_task(gated_reading *reading) {
    gated_task *task = reading->task;
    weft__gated_publish(task);
    reading->tasks->running += task->now.state == WEFT_GATED_STATE_RUNNING;
    weft__gated_show(task);
}

/* What comes behind what was just read. */
static void next_stage(gated_reading *reading) {
    if (reading->stage == READ_FIXED && reading->task) {
        reading->stage = READ_STATE;
        return;
    }
    if (reading->stage == READ_STATE)
        take_task(reading);
    if (reading->stage != READ_INDEX)
        reading->number++;
    reading->task = NULL;
    reading->stage = READ_FIXED;
}

static int read_next(gated_reading *reading);

static void end_reading(gated_reading *reading, int r) {
    weft_gated_tasks *tasks = reading->tasks;
    if (tasks && reading->task)
        weft__gated_drop(reading->task);
    weft__free(reading->alloc, reading);
    if (!tasks)
        return;
    tasks->reading = NULL;
    weft__gated_read_end(tasks, r);
}

static void on_page(void *ctx, int r, const weft_page *page) {
    gated_reading *reading = ctx;
    if (!reading->tasks) {
        end_reading(reading, 0);
        return;
    }
    if (r >= 0 && page->count)
        r = parse_document(reading, &page->events[0]);
    if (r >= 0) {
        next_stage(reading);
        r = read_next(reading);
    }
    if (r != 0)
        end_reading(reading, r < 0 ? r : 0);
}

/* 1: everything is read. */
static int read_next(gated_reading *reading) {
    char key[GATED_KEY] = GATED_INDEX, id[WEFT_GATED_ID];
    weft_query query = {.documents = true, .stream = key, .max_events = 1};
    weft__gated_name(id, reading->number);
    if (reading->stage != READ_INDEX && reading->number >= reading->until)
        return 1;
    if (reading->stage != READ_INDEX)
        snprintf(key, sizeof key, "%s/%s", reading->stage == READ_FIXED ? "gated" : "gated-state", id);
    return weft__store_read(weft__engine_store(reading->tasks->engine), &query, on_page, reading);
}

int weft__gated_read(weft_gated_tasks *tasks) {
    gated_reading *reading = weft__zalloc(tasks->alloc, sizeof *reading);
    if (!reading)
        return -ENOMEM;
    reading->tasks = tasks;
    reading->alloc = tasks->alloc;
    int r = read_next(reading);
    if (r < 0)
        weft__free(tasks->alloc, reading);
    else
        tasks->reading = reading;
    return r;
}

void weft__gated_read_drop(weft_gated_tasks *tasks) {
    gated_reading *reading = tasks->reading;
    if (!reading)
        return;
    if (reading->task)
        reading->task = weft__gated_drop(reading->task);
    reading->tasks = NULL;
}
