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

struct sentence {
    char text[MOST_NEWS];
    size_t len;
};

static void add_bytes(struct sentence *to, const char *text, size_t len) {
    size_t room = sizeof to->text - 1 - to->len;
    len = len < room ? len : room;
    memcpy(to->text + to->len, text, len);
    to->len += len;
    to->text[to->len] = '\0';
}

static void add(struct sentence *to, const char *text) {
    add_bytes(to, text, strlen(text));
}

/* The first line of it, as much as fits. */
static void add_text(struct sentence *to, const char *text) {
    char line[4 * MOST_TOLD + 1];
    size_t whole = strcspn(text, "\r\n"), len = whole < sizeof line ? whole : sizeof line - 1;
    memcpy(line, text, len);
    line[len] = '\0';
    size_t fits = weft__text_fit(line, MOST_TOLD);
    add(to, ": ");
    add_bytes(to, line, fits);
    if (fits < whole || text[whole])
        add(to, "…");
}

/* What was asked and what was said is for the person in front of the hub. A log is read by others and goes to other places:
 * it has the names of things, and the reason of a failure. */
static void add_sentence(struct sentence *ret, size_t i, bool in_log, const weft_task *task, const weft_json *data) {
    const char *reason = in_log ? weft_get_str(data, "reason", "") : "";
    char took[WEFT_TIME_TEXT];
    add(ret, task->id);
    add(ret, " ");
    add(ret, news_rows[i].what);
    if (strcmp(news_rows[i].type, "task.started") == 0) {
        add(ret, " with ");
        add(ret, task->runs_on);
        if (!in_log)
            add_text(ret, task->prompt);
    } else if (strcmp(news_rows[i].type, "task.completed") == 0) {
        add(ret, " after ");
        add(ret, weft__duration(took, task->completed_ms - task->started_ms));
    } else if (in_log && *reason) {
        add(ret, ": ");
        add(ret, reason);
    } else if (!in_log && news_rows[i].member) {
        add_text(ret, weft_get_str(data, news_rows[i].member, ""));
    }
    if (strcmp(news_rows[i].type, "question.asked") == 0) {
        add(ret, " (weft answer ");
        add(ret, weft_get_str(data, "questionId", ""));
        add(ret, ")");
    }
}

/* "12:34:56", or the date of another day. */
static const char *tell_time(weft_serve_news *self, int64_t ms) {
    char text[WEFT_TIME_TEXT];
    if (!*self->when || self->second != ms / 1000)
        snprintf(self->when, sizeof self->when, "%.8s ", weft__time_of_day(text, ms));
    self->second = ms / 1000;
    return self->when;
}

static void tell_person(weft_serve_news *self, size_t i, const weft_event *event, const weft_task *task,
                        const weft_json *data) {
    const weft_screen *to = &self->daemon->app->err;
    weft_screen err = *to;
    struct sentence sentence = {.len = 0};
    const char *when = tell_time(self, event->time_ms);
    err.terminal = true; /* without a terminal it may be read at one later */
    if (!to->colour)
        add(&sentence, when); /* in one piece */
    else {
        weft__ink(to, WEFT_INK_DIM);
        fputs(when, err.file);
        weft__plain(to);
    }
    add_sentence(&sentence, i, false, task, data);
    weft__put_text(&err, sentence.text, sentence.len);
    fputc('\n', err.file);
    fflush(err.file);
}

static void tell_news(weft_serve_news *self, size_t i, const weft_event *event, const weft_task *task,
                      const weft_json *data) {
    weft_log *log = &self->daemon->log;
    if (weft__log_takes(log)) {
        struct sentence sentence = {.len = 0};
        add_sentence(&sentence, i, true, task, data);
        weft__log_put(log, news_rows[i].level, sentence.text);
    }
    if (!self->daemon->background && !weft__log_speaks(log))
        tell_person(self, i, event, task, data);
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
