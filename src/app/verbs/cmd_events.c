/* weft events: what happened in the hub, from the journal, and what happens next. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "event_follow.h"
#include "event_text.h"
#include "failure.h"
#include "time_text.h"
#include "utf8.h"

/* Everything up to the last event there is comes at once. When it does not, either the hub is slow or the rest is no longer
 * kept; the hub is asked, and when it has answered and still nothing came, there is no more. */
#define SILENCE_MS 2000
/* As long as any other verb waits for an answer. */
#define STUCK_MS 30000
/* 128 bits in hexadecimal digits. */
#define EPOCH_LEN 32

typedef struct settings {
    const char *url, *since, *task;
    weft_texts types;
    int64_t limit_ms; /* 0: none */
    bool follow;
} settings;

typedef struct events_view {
    weft_app *app;
    const settings *how;
    weft_event_follow events;
    weft_terminal terminal;
    weft_timer silence;
    uint64_t head; /* where to end; 0: never */
    bool asked;
    uint64_t asked_at; /* the last event when the hub was asked whether it is there */
    int64_t since_ms;  /* no event older than this */
    char epoch[64];
} events_view;

/* ---- one event ---- */

/* Where there is no terminal nothing is cut. */
#define NO_LIMIT 100000

/* An event for which there are no words, or with -v: its type and its data, cut to the terminal. */
static void put_event_data(const events_view *self, const weft_json *event, size_t room) {
    const weft_screen *out = &self->app->out;
    const char *type = weft_get_str(event, "type", "");
    weft_json data = weft_get(event, "data");
    weft__ink(out, WEFT_INK_BOLD);
    weft__put_text(out, type, strlen(type));
    weft__plain(out);
    fputc(' ', out->file);
    size_t used = strlen(type) + 2;
    if (self->app->common.verbose || data.len + used <= room)
        weft__put_compact(out, &data);
    else if (room > used) {
        weft__put_text(out, data.text, weft__utf8_fit(data.text, data.len, room - used));
        fputs("…", out->file);
    }
}

/* The position, the time of day, and what happened to whom. */
static void put_event_words(const events_view *self, const weft_json *event) {
    const weft_screen *out = &self->app->out;
    char when[WEFT_TIME_TEXT];
    weft_event_words words;
    weft__event_words(event, &words);
    int n = fprintf(out->file, "%lld ", (long long) weft_get_int(event, "gseq", 0));
    weft__ink(out, WEFT_INK_DIM);
    n += fprintf(out->file, "%s ", weft__time_of_day(when, weft__time_get(event, "time")));
    weft__plain(out);
    int width = weft__screen_width(out) - n;
    size_t room = !out->terminal ? NO_LIMIT : width > 0 ? (size_t) width : 0;
    if (words.what && !self->app->common.verbose)
        weft__event_words_put(out, &words, room);
    else
        put_event_data(self, event, room);
    fputc('\n', out->file);
}

static bool wanted_type(const weft_texts *types, const char *type) {
    for (size_t i = 0; i < types->count; i++)
        if (strncmp(type, types->items[i], strlen(types->items[i])) == 0)
            return true;
    return types->count == 0;
}

/* Without -f everything up to the head is asked for, because the last event tells that it was the last; what was not asked
 * for is left out here. */
static bool is_wanted(const events_view *self, const weft_json *event) {
    weft_json data = weft_get(event, "data");
    if (weft__time_get(event, "time") < self->since_ms)
        return false;
    if (self->how->follow)
        return true;
    return wanted_type(&self->how->types, weft_get_str(event, "type", "")) &&
           (!self->how->task || strcmp(weft_get_str(&data, "taskId", ""), self->how->task) == 0);
}

static void on_journal_event(void *ctx, const weft_json *event) {
    events_view *self = ctx;
    if (is_wanted(self, event) && self->app->common.json)
        weft__put_line(&self->app->out, weft_copy(event));
    else if (is_wanted(self, event))
        put_event_words(self, event);
    if (self->how->follow)
        fflush(self->app->out.file);
    if (ferror(self->app->out.file))
        weft__event_follow_end(&self->events, WEFT_FAILED);
    else if (self->head && self->events.gseq >= self->head)
        weft__event_follow_end(&self->events, WEFT_DONE);
    else if (self->head)
        weft__timer_set(self->events.loop, &self->silence, weft__loop_fresh_now(self->events.loop) + SILENCE_MS);
}

/* ---- the subscription ---- */

static weft_exit fail_late(const events_view *self) {
    return weft__fail(self->app, WEFT_TOO_LATE, "Wait longer with --timeout, for example --timeout 60s.",
                      "not all events came in time");
}

/* Any answer will do: it shows that the hub is not stuck. */
static void on_alive(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    events_view *self = ctx;
    (void) peer, (void) answer;
    if (r >= 0 && self->events.gseq == self->asked_at)
        weft__event_follow_end(&self->events, WEFT_DONE);
}

static void on_journal_silence(weft_timer *timer) {
    events_view *self = (events_view *) ((char *) timer - offsetof(events_view, silence));
    if (self->asked && self->asked_at == self->events.gseq) {
        weft__event_follow_end(&self->events, fail_late(self));
        return;
    }
    self->asked = true;
    self->asked_at = self->events.gseq;
    weft__timer_set(self->events.loop, timer, weft__loop_fresh_now(self->events.loop) + STUCK_MS);
    weft__event_follow_call(&self->events, "daemon.status", weft_none(), on_alive);
}

static void on_journal_ready(void *ctx, uint64_t head) {
    events_view *self = ctx;
    if (self->how->follow)
        return;
    self->head = head;
    if (self->events.gseq >= head)
        weft__event_follow_end(&self->events, WEFT_DONE);
    else
        weft__timer_set(self->events.loop, &self->silence, weft__loop_fresh_now(self->events.loop) + SILENCE_MS);
}

static void on_journal_gap(void *ctx, const char *reason) {
    events_view *self = ctx;
    weft__warn(self->app, "a gap: %s", weft__gap_words(reason));
}

/* Whoever follows has asked for so much time; whoever does not has asked for all events. */
static void on_journal_limit(void *ctx) {
    events_view *self = ctx;
    weft__event_follow_end(&self->events, self->how->follow ? WEFT_DONE : fail_late(self));
}

static void on_journal_close(void *ctx) {
    events_view *self = ctx;
    weft__timer_stop(self->events.loop, &self->silence);
}

/* ---- the position ---- */

/* An epoch is written so; "11:00" is a time. */
static bool is_epoch(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!isxdigit((unsigned char) text[i]))
            return false;
    return len == EPOCH_LEN;
}

/* "EPOCH:POS" or "POS". */
static bool read_journal_position(events_view *self, const char *text, weft_event_follow_from *ret) {
    const char *colon = strchr(text, ':'), *digits = colon ? colon + 1 : text;
    char *end;
    errno = 0;
    unsigned long long position = strtoull(digits, &end, 10);
    if (errno || !isdigit((unsigned char) *digits) || *end || position > INT64_MAX)
        return false;
    if (colon && !is_epoch(text, (size_t) (colon - text)))
        return false;
    if (colon)
        snprintf(self->epoch, sizeof self->epoch, "%.*s", (int) (colon - text), text);
    ret->after = position;
    ret->epoch = colon ? self->epoch : NULL;
    return true;
}

static weft_exit read_since(events_view *self, weft_event_follow_from *ret) {
    const char *text = self->how->since;
    if (!text)
        return WEFT_DONE;
    ret->now = strcmp(text, "now") == 0;
    if (ret->now || read_journal_position(self, text, ret) || weft__time_typed(text, weft__time_now(), &self->since_ms) >= 0)
        return WEFT_DONE;
    return weft__misused(
        self->app, "--since does not understand \"%s\"; it takes a position (1234, EPOCH:1234), " WEFT_TIME_FORMS ", or now",
        text);
}

/* ---- the verb ---- */

static weft_exit run_events(weft_app *app) {
    events_view self = {.app = app, .how = app->settings, .terminal = {.app = app}};
    weft_event_follow_opts opts = {.url = self.how->url,
                                   .limit_ms = self.how->limit_ms,
                                   .terminal = &self.terminal,
                                   .ctx = &self,
                                   .on_ready = on_journal_ready,
                                   .on_event = on_journal_event,
                                   .on_gap = on_journal_gap,
                                   .on_limit = on_journal_limit,
                                   .on_close = on_journal_close};
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"; did you mean --type or --task?", app->args[0]);
    weft_exit status = read_since(&self, &opts.from);
    if (status)
        return status;
    if (self.how->follow) {
        opts.by_stream = true;
        opts.from.task = self.how->task;
        opts.from.types = self.how->types.count ? &self.how->types : NULL;
    }
    weft__timer_init(&self.silence, on_journal_silence);
    return weft__event_follow_run(&self.events, app, &opts);
}

static const weft_option options[] = {
    WEFT_OPTION(settings, follow, flag, "follow", 'f', NULL, "then show what happens from now on, until Ctrl-C"),
    WEFT_OPTION(settings, since, text, "since", 's', "WHERE",
                "after this position (N, EPOCH:N), or since this time: 11:00, 10m"),
    WEFT_OPTION(settings, types, list, "type", 0, "TYPE", "only events whose type begins so: task. question.asked"),
    WEFT_OPTION(settings, limit_ms, time, "timeout", 't', "TIME",
                "with -f: end after this time, with status 0; else: how long to wait"),
    WEFT_OPTION(settings, task, text, "task", 0, "ID", "only events about this task"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft events",
    "all that is kept",
    "weft events -f --since now --type task.",
    "what happens to tasks from now on, until Ctrl-C",
    "weft events --since 11:00",
    "what happened since eleven o'clock",
    "weft events --since 10m --task task-0003 --json | jq .data",
    "the last ten minutes of one task, one JSON object per line",
    "weft events -f --since 1f0c9a2e4b7d4c6f8a1b2c3d4e5f6071:1234 --json",
    "go on exactly behind event 1234 of that epoch (-v says which it is)",
    NULL,
};

const weft_verb weft__events_verb = {
    .name = "events",
    .help = "show what happened, and what happens next",
    .usage = "",
    .examples = examples,
    .about =
        "--since takes a position (1234, or EPOCH:1234, which -v shows), a time of today (11:00), a day or a time of it\n"
        "(2026-01-31, 2026-01-31T12:00, with Z or +02:00 for another zone), how long ago (10m, 2h, 3d), today, yesterday,\n"
        "or now. A number alone is a position.\n\n"
        "With -f a connection that is lost is made again and goes on behind the last event shown. When that cannot be,\n"
        "because the events are no longer kept (trimmed), the journal was begun anew (epochChanged) or has not come that\n"
        "far (futureSeq), it says so and goes on with what there is. A line is cut to the terminal. -v shows\n"
        "the type and all data of each event, --json the event as it is stored.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_events,
};
