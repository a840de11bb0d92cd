/* The events that are news, and their sentences. */
#include "serve_news.h"

#include <stdio.h>
#include <string.h>

#include "daemon_log.h"
#include "list.h"
#include "screen.h"
#include "text_width.h"
#include "time_text.h"

/* Columns of a prompt, a title or an error. */
#define MOST_TOLD 60
#define MOST_NEWS 512

static const struct {
    const char *type, *level;
    const char *what;   /* behind the task's id */
    const char *member; /* of the data, what is said about it; NULL: nothing, or what the task has */
} news_rows[] = {
    {"task.started", WEFT_LOG_INFO, "started", NULL},
    {"task.completed", WEFT_LOG_INFO, "completed", NULL},
    {"task.failed", WEFT_LOG_WARN, "failed", "error"},
    {"task.cancelled", WEFT_LOG_INFO, "cancelled", NULL},
    {"task.retrying", WEFT_LOG_WARN, "failed, and is tried again", "error"},
    {"question.asked", WEFT_LOG_INFO, "asks", "title"},
};

/* The first line of it, as much as fits. */
static void say_text(FILE *to, const char *text) {
    char line[4 * MOST_TOLD + 1];
    snprintf(line, sizeof line, "%.*s", (int) strcspn(text, "\r\n"), text);
    size_t fits = weft__text_fit(line, MOST_TOLD);
    fprintf(to, ": %.*s%s", (int) fits, line, line[fits] || text[strcspn(text, "\r\n")] ? "…" : "");
}

/* What was asked and what was said is for the person in front of the hub. A log is read by others and goes to other places:
 * it has the names of things, and the reason of a failure. */
static void make_sentence(char ret[MOST_NEWS], size_t i, bool in_log, const weft_task *task, const weft_json *data) {
    const char *reason = weft_get_str(data, "reason", "");
    char took[WEFT_TIME_TEXT];
    FILE *to = fmemopen(ret, MOST_NEWS, "w");
    if (!to)
        return;
    fprintf(to, "%s %s", task->id, news_rows[i].what);
    if (strcmp(news_rows[i].type, "task.started") == 0) {
        fprintf(to, " with %s", task->runs_on);
        if (!in_log)
            say_text(to, task->prompt);
    } else if (strcmp(news_rows[i].type, "task.completed") == 0) {
        fprintf(to, " after %s", weft__duration(took, task->completed_ms - task->started_ms));
    } else if (in_log && *reason) {
        fprintf(to, ": %s", reason);
    } else if (!in_log && news_rows[i].member) {
        say_text(to, weft_get_str(data, news_rows[i].member, ""));
    }
    if (strcmp(news_rows[i].type, "question.asked") == 0)
        fprintf(to, " (weft answer %s)", weft_get_str(data, "questionId", ""));
    fclose(to);
}

static void tell_news(const weft_serve_news *self, size_t i, const weft_event *event, const weft_task *task,
                      const weft_json *data) {
    const weft_app *app = self->daemon->app;
    char sentence[MOST_NEWS] = "", when[WEFT_TIME_TEXT];
    make_sentence(sentence, i, true, task, data);
    weft__log_put(&self->daemon->log, news_rows[i].level, sentence);
    if (self->daemon->background || weft__log_speaks(&self->daemon->log))
        return;
    make_sentence(sentence, i, false, task, data);
    /* Without a terminal it may be read at one later. */
    weft_screen err = app->err;
    err.terminal = true;
    weft__ink(&app->err, WEFT_INK_DIM);
    fprintf(err.file, "%.8s ", weft__time_of_day(when, event->time_ms));
    weft__plain(&app->err);
    weft__put_text(&err, sentence, strlen(sentence));
    fputc('\n', err.file);
    fflush(err.file);
}

static void on_news(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_serve_news *self = WEFT_CONTAINER(listener, weft_serve_news, listener);
    for (size_t i = 0; i < sizeof news_rows / sizeof news_rows[0]; i++)
        if (strcmp(event->type, news_rows[i].type) == 0) {
            const weft_task *task = weft__task_find(self->engine, weft_get_str(data, "taskId", ""));
            if (task)
                tell_news(self, i, event, task, data);
            return;
        }
}

void weft__serve_news_start(weft_serve_news *self, weft_daemon *daemon, weft_engine *engine) {
    *self = (weft_serve_news){.daemon = daemon, .engine = engine, .listener = {.on_event = on_news}};
    weft__engine_listen(engine, &self->listener);
}

void weft__serve_news_end(weft_serve_news *self) {
    if (self->engine)
        weft__engine_unlisten(&self->listener);
    self->engine = NULL;
}
