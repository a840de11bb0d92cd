/* Running builds, and what is stored of them.
 *
 *     ok, failed, none ──build.started is stored──▶ running ──the command has ended, build.finished is stored──▶ ok, failed
 *
 * A daemon that dies leaves one that runs; the next one shows it as failed, because nobody saw its end. */
#include "builds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "list.h"
#include "loop.h"
#include "texts.h"
#include "utf8.h"
#include "write.h"

#define BUILD_KEY 32
#define BUILD_LINE 200 /* bytes of a line of progress */

const char *const weft__build_kinds[WEFT_BUILD_KINDS] = {"frontend", "backend"};
const char *const weft__build_states[WEFT_BUILD_STATES] = {"none", "running", "ok", "failed"};

typedef struct build_waiter {
    weft_link link;
    weft_build_done *done;
    void *ctx;
} build_waiter;

typedef struct build_slot {
    weft_builds *of;
    weft_build pub;  /* why, by, diagnostics and output are owned */
    char **line;     /* its command; NULL: none is configured */
    weft_build next; /* one that is being stored as started */
    char next_by[128];
    weft_link waiters;
    size_t waiting;
    bool busy; /* from the call that starts it until everybody was told */
    uint64_t run;
    uint64_t lines;
    int64_t told_ms;       /* of the loop: when progress was stored last */
    char last[BUILD_LINE]; /* the line that is being printed */
    size_t last_len;
} build_slot;

struct weft_builds {
    weft_builds_opts opts;
    weft_loop *loop;
    const weft_alloc *alloc;
    build_slot slots[WEFT_BUILD_KINDS];
    int64_t within_ms;
    uint64_t next_number;
    bool ready, was_read;
    struct builds_reading *reading;
    weft_link ops;
    weft_timer read_again;
};

const char *weft__build_id(const weft_build *build, char ret[WEFT_BUILD_ID]) {
    snprintf(ret, WEFT_BUILD_ID, "build-%04" PRIu64, build->number);
    return ret;
}

/* ---- appends that are under way ---- */

typedef struct build_op {
    weft_link link;
    build_slot *slot; /* NULL: they are gone */
    const weft_alloc *alloc;
} build_op;

static build_op *new_op(build_slot *slot) {
    build_op *op = weft__zalloc(slot->of->alloc, sizeof *op);
    if (!op)
        return NULL;
    *op = (build_op){.slot = slot, .alloc = slot->of->alloc};
    weft__list_push(&slot->of->ops, &op->link);
    return op;
}

static build_slot *end_op(build_op *op) {
    build_slot *slot = op->slot;
    weft__list_remove(&op->link);
    weft__free(op->alloc, op);
    return slot;
}

/* ---- what is kept ---- */

static void forget_texts(build_slot *slot) {
    const weft_alloc *alloc = slot->of->alloc;
    weft__free(alloc, (char *) (uintptr_t) slot->pub.why);
    weft__free(alloc, (char *) (uintptr_t) slot->pub.by);
    weft__free(alloc, (char *) (uintptr_t) slot->pub.diagnostics);
    weft__free(alloc, (char *) (uintptr_t) slot->pub.output);
    slot->pub.why = slot->pub.by = slot->pub.diagnostics = slot->pub.output = NULL;
}

static int set_text(build_slot *slot, const char **field, const char *text, size_t len) {
    char *copy = weft__strndup(slot->of->alloc, text, len);
    if (!copy)
        return -ENOMEM;
    weft__free(slot->of->alloc, (char *) (uintptr_t) *field);
    *field = copy;
    return 0;
}

static int set_texts(build_slot *slot, const char *why, const char *by, const char *diagnostics, const char *output) {
    int r = set_text(slot, &slot->pub.why, why, strlen(why));
    if (r >= 0)
        r = set_text(slot, &slot->pub.by, by, strlen(by));
    if (r >= 0)
        r = set_text(slot, &slot->pub.diagnostics, diagnostics, strlen(diagnostics));
    return r < 0 ? r : set_text(slot, &slot->pub.output, output, strlen(output));
}

static int write_build(const build_slot *slot, const weft_build *is, weft_buf *out) {
    weft_val document =
        WEFT_OBJ({"number", weft_uint(is->number)}, {"state", weft_str(weft__build_states[is->state])},
                 {"startedMs", weft_int(is->started_ms)}, {"endedMs", weft_int(is->ended_ms)},
                 {"durationMs", weft_int(is->duration_ms)}, {"exitCode", weft_int(is->exit_code)},
                 {"why", weft_str(is->why)}, {"by", weft_str(is->by)}, {"errors", weft_uint(is->errors)},
                 {"warnings", weft_uint(is->warnings)}, {"truncated", weft_bool(is->truncated)},
                 {"diagnostics", weft_raw(is->diagnostics, strlen(is->diagnostics))}, {"output", weft_str(is->output)});
    return weft__write_val(out, slot->of->alloc, &document);
}

static int store_build(build_slot *slot, const weft_build *is, const char *const *types, const weft_val *data, size_t count,
                       void (*done)(void *ctx, int r)) {
    weft_builds *self = slot->of;
    char key[BUILD_KEY];
    weft_buf text = {0};
    build_op *op = new_op(slot);
    int r = op ? write_build(slot, is, &text) : -ENOMEM;
    snprintf(key, sizeof key, "build/%s", weft__build_kinds[slot->pub.kind]);
    if (r >= 0)
        r = weft__engine_change(
            self->opts.engine,
            &(weft_engine_change){.stream = WEFT_STREAM_BUILD,
                                  .types = types,
                                  .data = data,
                                  .count = count,
                                  .documents = &(weft_document){key, {weft__buf_head(&text), weft__buf_len(&text)}},
                                  .document_count = 1},
            done, op);
    weft__buf_done(&text, self->alloc);
    if (r < 0 && op)
        end_op(op);
    return r;
}

/* ---- the end ---- */

static void tell_build(build_slot *slot, int r) {
    slot->busy = false;
    if (slot->pub.state == WEFT_BUILD_RUNNING)
        slot->pub.state = WEFT_BUILD_FAILED;
    while (!weft__list_empty(&slot->waiters)) {
        build_waiter *first = WEFT_CONTAINER(slot->waiters.next, build_waiter, link);
        build_waiter told = *first;
        weft__list_remove(&first->link);
        weft__free(slot->of->alloc, first);
        slot->waiting--;
        told.done(told.ctx, r, r < 0 ? NULL : &slot->pub);
    }
}

static void on_finish_stored(void *ctx, int r) {
    build_slot *slot = end_op(ctx);
    if (slot)
        tell_build(slot, r < 0 ? r : 0);
}

/* The warnings one by one, and what came of it. */
static int store_finish(build_slot *slot, const weft_diagnostics *found) {
    const char *types[WEFT_BUILD_WARNINGS + 1];
    weft_val data[WEFT_BUILD_WARNINGS + 1];
    weft_member members[WEFT_BUILD_WARNINGS][3], of[WEFT_BUILD_WARNINGS][WEFT_DIAGNOSTIC_MEMBERS], end[11];
    const weft_build *is = &slot->pub;
    const char *kind = weft__build_kinds[is->kind];
    char id[WEFT_BUILD_ID];
    size_t n = 0;
    weft__build_id(is, id);
    for (size_t i = 0; i < found->count && n < WEFT_BUILD_WARNINGS; i++) {
        if (found->items[i].severity != WEFT_SEVERITY_WARNING)
            continue;
        members[n][0] = (weft_member){"buildId", weft_str(id)};
        members[n][1] = (weft_member){"kind", weft_str(kind)};
        members[n][2] = (weft_member){"diagnostic", weft__diagnostic_val(&found->items[i], of[n])};
        types[n] = "build.warning";
        data[n] = weft_obj(members[n], 3);
        n++;
    }
    const weft_member finished[11] = {
        {"buildId", weft_str(id)},
        {"kind", weft_str(kind)},
        {"ok", weft_bool(is->state == WEFT_BUILD_OK)},
        {"exitCode", is->exit_code >= 0 ? weft_int(is->exit_code) : weft_none()},
        {"why", *is->why ? weft_str(is->why) : weft_none()},
        {"durationMs", weft_int(is->duration_ms)},
        {"errors", weft_uint(is->errors)},
        {"warnings", weft_uint(is->warnings)},
        {"diagnostics", weft_raw(is->diagnostics, strlen(is->diagnostics))},
        {"truncated", is->truncated ? weft_bool(true) : weft_none()},
        {"output", weft_str(is->output)},
    };
    memcpy(end, finished, sizeof end);
    types[n] = "build.finished";
    data[n] = weft_obj(end, 11);
    return store_build(slot, is, types, data, n + 1, on_finish_stored);
}

static const char *why_ended(const weft_command_report *report, char ret[160]) {
    *ret = '\0';
    if (report->r == -ETIMEDOUT)
        snprintf(ret, 160, "It took too long and was ended.");
    else if (report->r == -ENOENT)
        snprintf(ret, 160, "Its program is not there.");
    else if (report->r < 0)
        snprintf(ret, 160, "It could not be run: %s.", weft_strerror(report->r));
    else if (report->exit_code < 0)
        snprintf(ret, 160, "It was ended by signal %d.", report->signal);
    return ret;
}

static int keep_report(build_slot *slot, const weft_command_report *report, weft_diagnostics *found, char *text) {
    weft_builds *self = slot->of;
    weft_build *pub = &slot->pub;
    const char *folder = weft__engine_folder(self->opts.engine);
    char why[160];
    weft_buf list = {0};
    found->arena.alloc = self->alloc;
    int r = weft__diagnostics_read(found, report->head, folder);
    if (r >= 0 && report->tail.len)
        r = weft__diagnostics_read(found, report->tail, folder);
    if (r >= 0)
        r = weft__diagnostics_write(found, WEFT_DIAGNOSTICS, self->alloc, &list);
    if (r >= 0)
        r = weft__buf_put(&list, self->alloc, "", 1);
    text[weft__plain_output(weft__end_of_output(report), text)] = '\0';
    if (r >= 0)
        r = set_texts(slot, why_ended(report, why), pub->by, weft__buf_head(&list), text);
    weft__buf_done(&list, self->alloc);
    pub->state = report->r == 0 && report->exit_code == 0 ? WEFT_BUILD_OK : WEFT_BUILD_FAILED;
    pub->exit_code = report->r < 0 ? -1 : report->exit_code;
    pub->duration_ms = report->ms;
    pub->ended_ms = weft__engine_now(self->opts.engine);
    pub->errors = found->errors;
    pub->warnings = found->warnings;
    pub->truncated = found->truncated;
    return r;
}

static void on_build_end(void *ctx, const weft_command_report *report) {
    build_slot *slot = ctx;
    const weft_alloc *alloc = slot->of->alloc;
    weft_diagnostics *found = weft__zalloc(alloc, sizeof *found);
    char *text = weft__alloc(alloc, WEFT_GATE_OUTPUT + 1);
    int r = found && text ? keep_report(slot, report, found, text) : -ENOMEM;
    if (r >= 0)
        r = store_finish(slot, found);
    if (found)
        weft__diagnostics_done(found);
    weft__free(alloc, found);
    weft__free(alloc, text);
    if (r < 0)
        tell_build(slot, r);
}

/* ---- progress ---- */

static void keep_line(build_slot *slot, weft_bytes text) {
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\n' || c == '\r') {
            slot->lines += c == '\n';
            slot->last_len = 0;
        } else if (slot->last_len + 1 < sizeof slot->last)
            slot->last[slot->last_len++] = c;
    }
}

/* At most one in a second is stored: it is for people who wait, and the result has all. */
static void on_build_text(void *ctx, weft_bytes text) {
    build_slot *slot = ctx;
    weft_builds *self = slot->of;
    int64_t now = weft_loop_now(self->loop);
    char id[WEFT_BUILD_ID], plain[BUILD_LINE];
    keep_line(slot, text);
    if (now - slot->told_ms < WEFT_BUILD_PROGRESS)
        return;
    slot->told_ms = now;
    const char *end = memrchr(text.data, '\n', text.len);
    const char *begin = end ? memrchr(text.data, '\n', (size_t) (end - text.data)) : NULL;
    weft_bytes line = !end ? (weft_bytes){slot->last, slot->last_len}
                           : (weft_bytes){begin ? begin + 1 : text.data, (size_t) (end - (begin ? begin + 1 : text.data))};
    size_t len = weft__plain_output((weft_bytes){line.data, line.len < BUILD_LINE ? line.len : BUILD_LINE}, plain);
    weft__engine_append(self->opts.engine, WEFT_STREAM_BUILD, "build.progress",
                        WEFT_OBJ({"buildId", weft_str(weft__build_id(&slot->pub, id))},
                                 {"kind", weft_str(weft__build_kinds[slot->pub.kind])}, {"lines", weft_uint(slot->lines)},
                                 {"line", weft_strn(plain, len)}),
                        NULL, NULL);
}

/* ---- the beginning ---- */

/* It is stored that it runs: from now on everybody sees that. */
static int show_start(build_slot *slot) {
    weft_build next = slot->next;
    int r = set_texts(slot, "", next.by, "[]", "");
    if (r < 0)
        return r;
    next.why = slot->pub.why;
    next.by = slot->pub.by;
    next.diagnostics = slot->pub.diagnostics;
    next.output = slot->pub.output;
    slot->pub = next;
    slot->lines = 0;
    slot->last_len = 0;
    slot->told_ms = weft_loop_now(slot->of->loop) - WEFT_BUILD_PROGRESS;
    return 0;
}

static void on_start_stored(void *ctx, int r) {
    build_slot *slot = end_op(ctx);
    if (!slot)
        return;
    weft_builds *self = slot->of;
    weft_command_order order = {.argv = (const char *const *) slot->line,
                                .folder = weft__engine_folder(self->opts.engine),
                                .within_ms = self->within_ms,
                                .on_text = on_build_text,
                                .on_end = on_build_end,
                                .ctx = slot};
    if (r >= 0)
        r = show_start(slot);
    if (r >= 0)
        r = slot->line ? weft__commands_run(self->opts.commands, &order, &slot->run) : -ENOENT;
    if (r < 0)
        tell_build(slot, r);
}

static int start_build(build_slot *slot, const char *by) {
    static const char *const type = "build.started";
    weft_builds *self = slot->of;
    weft_build *next = &slot->next;
    char id[WEFT_BUILD_ID];
    snprintf(slot->next_by, sizeof slot->next_by, "%s", by ? by : "");
    *next = (weft_build){.kind = slot->pub.kind,
                         .state = WEFT_BUILD_RUNNING,
                         .number = self->next_number,
                         .started_ms = weft__engine_now(self->opts.engine),
                         .exit_code = -1,
                         .why = "",
                         .by = slot->next_by,
                         .diagnostics = "[]",
                         .output = ""};
    weft_val data =
        WEFT_OBJ({"buildId", weft_str(weft__build_id(next, id))}, {"kind", weft_str(weft__build_kinds[next->kind])},
                 {"by", *next->by ? weft_str(next->by) : weft_none()});
    int r = store_build(slot, next, &type, &data, 1, on_start_stored);
    self->next_number += r >= 0;
    return r;
}

int weft__builds_start(weft_builds *self, weft_build_kind kind, const char *by, weft_build_done *done, void *ctx) {
    build_slot *slot = &self->slots[kind];
    if (!self->ready)
        return -EAGAIN;
    if (!slot->line)
        return -ENOENT;
    if (slot->waiting >= WEFT_BUILD_WAITERS)
        return -EUSERS;
    build_waiter *made = weft__zalloc(self->alloc, sizeof *made);
    int r = !made ? -ENOMEM : slot->busy ? 0 : start_build(slot, by);
    if (r < 0) {
        weft__free(self->alloc, made);
        return r;
    }
    *made = (build_waiter){.done = done, .ctx = ctx};
    weft__list_push(&slot->waiters, &made->link);
    slot->waiting++;
    slot->busy = true;
    return 0;
}

bool weft__builds_configured(const weft_builds *self, weft_build_kind kind) {
    return self->slots[kind].line != NULL;
}

const weft_build *weft__builds_last(const weft_builds *self, weft_build_kind kind) {
    const weft_build *last = &self->slots[kind].pub;
    return last->state == WEFT_BUILD_NONE ? NULL : last;
}

/* ---- reading ---- */

typedef struct builds_reading {
    weft_builds *of; /* NULL: they are gone */
    const weft_alloc *alloc;
    size_t kind;
} builds_reading;

static int restore_build(build_slot *slot, const weft_json *data) {
    const char *word = weft_get_str(data, "state", "");
    weft_json found = weft_get(data, "diagnostics");
    weft_build *pub = &slot->pub;
    bool running = strcmp(word, "running") == 0, ok = strcmp(word, "ok") == 0;
    weft_buf list = {0};
    int r = found.text ? weft__buf_put(&list, slot->of->alloc, found.text, found.len)
                       : weft__buf_put(&list, slot->of->alloc, "[]", 2);
    if (r >= 0)
        r = weft__buf_put(&list, slot->of->alloc, "", 1);
    if (r >= 0)
        r = set_texts(slot, running ? "The daemon ended while it ran." : weft_get_str(data, "why", ""),
                      weft_get_str(data, "by", ""), weft__buf_head(&list), weft_get_str(data, "output", ""));
    weft__buf_done(&list, slot->of->alloc);
    if (r < 0)
        return r;
    pub->state = ok ? WEFT_BUILD_OK : WEFT_BUILD_FAILED;
    pub->number = (uint64_t) weft_get_int(data, "number", 0);
    pub->started_ms = weft_get_int(data, "startedMs", 0);
    pub->ended_ms = weft_get_int(data, "endedMs", 0);
    pub->duration_ms = weft_get_int(data, "durationMs", 0);
    pub->exit_code = (int) weft_get_int(data, "exitCode", -1);
    pub->errors = (uint64_t) weft_get_int(data, "errors", 0);
    pub->warnings = (uint64_t) weft_get_int(data, "warnings", 0);
    pub->truncated = weft_get_bool(data, "truncated", false);
    if (pub->number >= slot->of->next_number)
        slot->of->next_number = pub->number + 1;
    return 0;
}

static void on_build_read(void *ctx, int r, const weft_page *page);

static int read_build(builds_reading *reading) {
    char key[BUILD_KEY];
    weft_query query = {.documents = true, .stream = key, .max_events = 1};
    snprintf(key, sizeof key, "build/%s", weft__build_kinds[reading->kind]);
    return weft__store_read(weft__engine_store(reading->of->opts.engine), &query, on_build_read, reading);
}

static int take_build(builds_reading *reading, const weft_event *document) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(document->data.data, document->data.len, reading->alloc, &doc);
    if (r >= 0)
        r = restore_build(&reading->of->slots[reading->kind], weft_doc_root(doc));
    weft_doc_free(doc);
    return r == -ENOMEM ? r : 0; /* what cannot be read is as if it had never been */
}

static void end_builds_reading(builds_reading *reading, int r) {
    weft_builds *self = reading->of;
    weft__free(reading->alloc, reading);
    if (!self)
        return;
    self->reading = NULL;
    self->ready = r >= 0;
    self->was_read = true;
    if (r < 0 && r != -ECANCELED)
        weft__timer_set(self->loop, &self->read_again,
                        weft__add_ms(weft_loop_now(self->loop), weft__engine_limits(self->opts.engine)->again_ms));
}

static void on_build_read(void *ctx, int r, const weft_page *page) {
    builds_reading *reading = ctx;
    if (!reading->of) {
        end_builds_reading(reading, 0);
        return;
    }
    if (r >= 0 && page->count)
        r = take_build(reading, &page->events[0]);
    if (r >= 0 && ++reading->kind < WEFT_BUILD_KINDS) {
        r = read_build(reading);
        if (r >= 0)
            return;
    }
    end_builds_reading(reading, r);
}

static int begin_builds_reading(weft_builds *self) {
    builds_reading *reading = weft__zalloc(self->alloc, sizeof *reading);
    if (!reading)
        return -ENOMEM;
    *reading = (builds_reading){.of = self, .alloc = self->alloc};
    int r = read_build(reading);
    if (r < 0)
        weft__free(self->alloc, reading);
    else
        self->reading = reading;
    return r;
}

static void on_read_again(weft_timer *timer) {
    weft_builds *self = WEFT_CONTAINER(timer, weft_builds, read_again);
    if (begin_builds_reading(self) < 0)
        weft__timer_set(self->loop, timer,
                        weft__add_ms(weft_loop_now(self->loop), weft__engine_limits(self->opts.engine)->again_ms));
}

/* ---- life ---- */

int weft__builds_new(const weft_builds_opts *opts, weft_builds **ret) {
    const weft_alloc *alloc = weft__engine_alloc(opts->engine);
    weft_builds *self = weft__zalloc(alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->opts = *opts;
    self->loop = weft__engine_loop(opts->engine);
    self->alloc = alloc;
    self->next_number = 1;
    self->within_ms = WEFT_BUILD_MS;
    weft__list_init(&self->ops);
    weft__timer_init(&self->read_again, on_read_again);
    for (size_t i = 0; i < WEFT_BUILD_KINDS; i++) {
        self->slots[i] = (build_slot){.of = self, .pub.kind = (weft_build_kind) i};
        weft__list_init(&self->slots[i].waiters);
    }
    int r = begin_builds_reading(self);
    if (r < 0)
        weft__free(alloc, self);
    else
        *ret = self;
    return r;
}

bool weft__builds_read(const weft_builds *self) {
    return self->was_read;
}

static int copy_line(const weft_alloc *alloc, const char *const *line, char ***ret) {
    size_t count = weft__texts_count(line);
    char **made = count ? weft__zalloc(alloc, (count + 1) * sizeof *made) : NULL;
    *ret = NULL;
    if (!count)
        return 0;
    for (size_t i = 0; made && i < count; i++)
        if (!(made[i] = weft__strndup(alloc, line[i], strlen(line[i])))) {
            weft__command_line_free(made, alloc);
            return -ENOMEM;
        }
    *ret = made;
    return made ? 0 : -ENOMEM;
}

int weft__builds_set(weft_builds *self, const char *const *const lines[WEFT_BUILD_KINDS], int64_t within_ms) {
    for (size_t i = 0; i < WEFT_BUILD_KINDS; i++) {
        char **made;
        int r = copy_line(self->alloc, lines[i], &made);
        if (r < 0)
            return r;
        weft__command_line_free(self->slots[i].line, self->alloc);
        self->slots[i].line = made;
    }
    self->within_ms = within_ms > 0 ? within_ms : WEFT_BUILD_MS;
    return 0;
}

weft_builds *weft__builds_free(weft_builds *self) {
    if (!self)
        return NULL;
    if (self->reading)
        self->reading->of = NULL;
    weft__timer_stop(self->loop, &self->read_again);
    while (!weft__list_empty(&self->ops)) {
        build_op *first = WEFT_CONTAINER(self->ops.next, build_op, link);
        weft__list_remove(&first->link);
        first->slot = NULL;
    }
    for (size_t i = 0; i < WEFT_BUILD_KINDS; i++) {
        tell_build(&self->slots[i], -ECANCELED);
        forget_texts(&self->slots[i]);
        weft__command_line_free(self->slots[i].line, self->alloc);
    }
    return weft__free(self->alloc, self);
}
