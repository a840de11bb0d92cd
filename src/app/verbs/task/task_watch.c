/* weft task watch: one task until its end, or all of them until Ctrl-C. */
#include "task.h"

#include <string.h>

#include "event_text.h"
#include "failure.h"
#include "task_follow.h"
#include "task_gated.h"

/* ---- one ---- */

static void on_watch_begin(weft_task_follow *follow) {
    weft__task_follow_watch(follow, follow->app->args[0]);
}

static void on_watch_done(weft_task_follow *follow, weft_exit how) {
    weft__task_follow_end(follow, how);
}

/* Who only watches takes nothing with them. */
static weft_exit watch_one(weft_app *app) {
    const weft_task_settings *how = app->settings;
    weft_task_follow *follow = weft__zalloc(NULL, sizeof *follow);
    if (!follow)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    weft_task_follow_opts opts = {.url = how->url,
                                  .limit_ms = how->timeout_ms,
                                  .on_begin = on_watch_begin,
                                  .on_done = on_watch_done,
                                  .only_watches = true};
    weft_exit status = weft__task_follow_run(follow, app, &opts);
    weft__free(NULL, follow);
    return status;
}

/* ---- all ---- */

#define NO_LIMIT 100000 /* columns where there is no terminal */

typedef struct watching {
    weft_app *app;
    weft_event_follow events;
    weft_terminal terminal;
    char speaker[WEFT_TASK_ID]; /* whose line is open */
} watching;

/* A line of whoever speaks begins with its name; who is interrupted begins a new line. */
static void put_said(watching *self, const char *task, const char *text, size_t len) {
    const weft_screen *out = &self->app->out;
    if (self->terminal.middle && strcmp(self->speaker, task) != 0)
        weft__terminal_break(&self->terminal);
    snprintf(self->speaker, sizeof self->speaker, "%s", task);
    for (const char *end = text + len; text < end;) {
        const char *line = memchr(text, '\n', (size_t) (end - text));
        size_t n = (size_t) ((line ? line + 1 : end) - text);
        if (!self->terminal.middle) {
            weft__ink(out, WEFT_INK_DIM);
            weft__put_text(out, task, strlen(task));
            fputs(" | ", out->file);
            weft__plain(out);
        }
        weft__terminal_data(&self->terminal, text, n);
        text += n;
    }
}

static void put_change(watching *self, const weft_json *event) {
    const weft_screen *out = &self->app->out;
    weft_event_words words;
    weft__event_words(event, &words);
    if (!words.what)
        return;
    weft__terminal_break(&self->terminal);
    weft__event_words_put(out, &words, out->terminal ? (size_t) weft__screen_width(out) : NO_LIMIT);
    fputc('\n', out->file);
    fflush(out->file);
}

/* Who may answer must know how. */
static void put_question_change(watching *self, const weft_json *event, const weft_json *data) {
    const char *id = weft_get_str(data, "questionId", "");
    put_change(self, event);
    if (strcmp(weft_get_str(event, "type", ""), "question.asked") == 0)
        fprintf(self->app->out.file, "    weft answer %s allow|deny\n", id);
    fflush(self->app->out.file);
}

/* Of little interest while it works: where it stands in the journal is "weft events". */
static bool is_detail(const char *type) {
    return strcmp(type, "task.process") == 0 || strcmp(type, "task.snapshot") == 0;
}

static void put_event(watching *self, const weft_json *event, const weft_json *data) {
    const char *type = weft_get_str(event, "type", ""), *task = weft_get_str(data, "taskId", "");
    weft_json text = weft_get(data, "text"), chunk = weft_pointer(data, "/update/content/text");
    weft_json kind = weft_pointer(data, "/update/sessionUpdate");
    weft_bytes bytes;
    if (is_detail(type))
        return;
    if (strncmp(type, "task.", 5) == 0)
        put_change(self, event);
    else if (strncmp(type, "question.", 9) == 0)
        put_question_change(self, event, data);
    else if (strcmp(type, "session.output") == 0 && weft_bytes_of(&text, &bytes) >= 0)
        put_said(self, task, bytes.data, bytes.len);
    else if (strcmp(weft_str_of(&kind, ""), "agent_message_chunk") == 0 && weft_bytes_of(&chunk, &bytes) >= 0)
        put_said(self, task, bytes.data, bytes.len);
}

static void on_tasks_ready(void *ctx, uint64_t head) {
    watching *self = ctx;
    (void) head;
    if (self->app->err.terminal && !self->events.was_ready)
        fputs("watching all tasks; Ctrl-C ends it\n", self->app->err.file);
}

static void on_tasks_event(void *ctx, const weft_json *event) {
    watching *self = ctx;
    weft_json data = weft_get(event, "data");
    if (self->app->common.json)
        weft__put_line(&self->app->out, weft_copy(event));
    else
        put_event(self, event, &data);
    if (ferror(self->app->out.file))
        weft__event_follow_end(&self->events, WEFT_FAILED);
}

static void on_tasks_gap(void *ctx, const char *reason) {
    watching *self = ctx;
    weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s", weft__gap_words(reason));
}

static weft_exit watch_all(weft_app *app) {
    static const weft_texts types = {.items = {"task.", "question.", "session.output", "session.update"}, .count = 4};
    const weft_task_settings *how = app->settings;
    watching self = {.app = app, .terminal = {.app = app}};
    weft_event_follow_opts opts = {.url = how->url,
                                   .from = {.now = true, .types = &types},
                                   .limit_ms = how->timeout_ms,
                                   .terminal = &self.terminal,
                                   .ctx = &self,
                                   .on_ready = on_tasks_ready,
                                   .on_event = on_tasks_event,
                                   .on_gap = on_tasks_gap};
    weft_exit status = weft__event_follow_run(&self.events, app, &opts);
    weft__terminal_break(&self.terminal);
    return status;
}

weft_exit weft__task_watch_word(weft_app *app) {
    if (app->arg_count && weft__gated_is_id(app->args[0]))
        return weft__gated_watch_word(app);
    return app->arg_count ? watch_one(app) : watch_all(app);
}
