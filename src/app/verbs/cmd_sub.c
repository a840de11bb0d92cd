/* weft sub: a stream of the hub, as it is and as it changes. A state is a table on a terminal, drawn again with each value;
 * a log is one line for each value. The subscription itself is libweft's. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#include "debug.h"
#include "failure.h"
#include "hub_call.h"
#include "loop.h"
#include "params.h"
#include "signals.h"
#include "table.h"
#include "time_text.h"
#include "utf8.h"

#define CELL_BYTES 60 /* of a column that is not the last */
#define FEW_LINES 24  /* where the terminal does not say how many it has */

typedef struct settings {
    const char *url, *position;
    int64_t limit_ms; /* 0: none */
    bool once;
} settings;

typedef struct sub_view {
    weft_app *app;
    const settings *how;
    weft_target target;
    weft_loop *loop;
    weft_service *service;
    weft_peer *peer;
    weft_sub *sub;
    weft_signals signals;
    weft_timer limit;
    bool was_connected, lost, begun, over;
    char resumed[64]; /* what was said about it; below the table, which takes the place of everything else */
    weft_exit status;
} sub_view;

static void end_view(sub_view *self, weft_exit status) {
    if (self->over)
        return;
    self->over = true;
    self->status = status;
    weft_loop_stop(self->loop);
}

/* ---- a state as a table ---- */

/* What of a stream's items is shown. Of other streams it is what their first item has. */
static const struct view_columns {
    const char *stream;
    const char *names[WEFT_TABLE_COLUMNS];
} view_columns[] = {
    {"tasks", {"id", "state", "agent", "startedAt", "prompt"}},
    {"threads", {"id", "agent", "busy", "tasks", "updatedAt", "title"}},
};

typedef struct columns {
    char heads[WEFT_TABLE_COLUMNS][32];
    const char *list[WEFT_TABLE_COLUMNS + 1];
    const char *names[WEFT_TABLE_COLUMNS];
    size_t count;
} columns;

static void add_column(columns *self, const char *name) {
    char *head = self->heads[self->count];
    snprintf(head, sizeof self->heads[0], "%s", name);
    for (; *head; head++)
        *head = (char) toupper((unsigned char) *head);
    self->names[self->count] = name;
    self->list[self->count] = self->heads[self->count];
    self->list[++self->count] = NULL;
}

static bool is_cell(const weft_json *value) {
    weft_type type = weft_typeof(value);
    return type == WEFT_STRING || type == WEFT_NUMBER || type == WEFT_BOOL;
}

static void choose_columns(const char *stream, const weft_json *first, columns *ret) {
    for (size_t i = 0; i < sizeof view_columns / sizeof view_columns[0]; i++)
        if (strcmp(view_columns[i].stream, stream) == 0)
            for (size_t n = 0; n < WEFT_TABLE_COLUMNS && view_columns[i].names[n]; n++)
                add_column(ret, view_columns[i].names[n]);
    if (ret->count)
        return;
    for (weft_iter it = weft_iterate(first); ret->count < WEFT_TABLE_COLUMNS && weft_next(&it);) {
        const char *name = weft_str_of(&it.name, NULL);
        if (name && *name && strlen(name) < sizeof ret->heads[0] && is_cell(&it.value))
            add_column(ret, name);
    }
}

/* "2026-01-31T12:00:00.000Z", as times are on the wire. */
static bool is_time(const char *text) {
    return strlen(text) == 24 && text[4] == '-' && text[10] == 'T' && text[23] == 'Z';
}

static int add_cell(weft_table *table, const weft_json *value, bool last) {
    char cell[CELL_BYTES + 1], time[WEFT_TIME_TEXT];
    bool text = weft_typeof(value) == WEFT_STRING;
    const char *shown = text ? weft_str_of(value, "") : "";
    size_t len = text ? strlen(shown) : value->len;
    if (text && is_time(shown))
        return weft__table_add(table, weft__time_shown(time, shown, shown));
    if (text && last)
        return weft__table_add(table, shown);
    if (!text)
        shown = is_cell(value) ? value->text : "";
    len = *shown ? weft__utf8_fit(shown, len, len < CELL_BYTES ? len : CELL_BYTES) : 0;
    snprintf(cell, sizeof cell, "%.*s", (int) len, shown);
    return weft__table_add(table, cell);
}

static size_t lines_of_terminal(const weft_app *app) {
    struct winsize size;
    if (ioctl(fileno(app->out.file), TIOCGWINSZ, &size) < 0 || size.ws_row == 0)
        return FEW_LINES;
    return size.ws_row;
}

/* As many items as there is room for below the head and above the cursor. */
static int fill_table(weft_table *table, const columns *shown, const weft_json *items, size_t room, size_t *ret_left) {
    int r = 0;
    size_t left = 0;
    for (weft_iter it = weft_iterate(items); r >= 0 && weft_next(&it);) {
        if (room == 0) {
            left++;
            continue;
        }
        room--;
        for (size_t i = 0; i < shown->count && r >= 0; i++) {
            weft_json value = weft_get(&it.value, shown->names[i]);
            r = add_cell(table, &value, i + 1 == shown->count);
        }
    }
    *ret_left = left;
    return r;
}

static int draw_table(const sub_view *self, const weft_json *items, const columns *shown) {
    const weft_screen *out = &self->app->out;
    weft_table table = {.heads = shown->list};
    bool anew = out->colour && !self->how->once;
    size_t lines = lines_of_terminal(self->app), left = 0, below = *self->resumed ? 4 : 3;
    int r = fill_table(&table, shown, items, lines > below + 1 ? lines - below : 1, &left);
    if (r >= 0) {
        if (anew)
            fputs("\033[H\033[J", out->file); /* from the first line on */
        if (shown->count)
            weft__table_put(&table, out);
        else
            fputs("(empty)\n", out->file);
        if (left)
            fprintf(out->file, "and %zu more\n", left);
        if (anew && *self->resumed)
            fprintf(out->file, "\033[2m%s\033[0m\n", self->resumed);
    }
    weft__table_done(&table);
    return r;
}

/* ---- one value ---- */

static void put_value_line(const sub_view *self, const weft_sub_value *value) {
    if (self->app->common.json) {
        weft__put_line(&self->app->out, WEFT_OBJ({"seq", weft_uint(value->seq)}, {"journal", weft_str(value->journal)},
                                                 {"value", weft_copy(value->value)}));
        return;
    }
    weft__put_compact(&self->app->out, value->value);
    fputc('\n', self->app->out.file);
}

/* A list without items has no columns of its own, and it takes the place of the table before it all the same. */
static int put_sub_value(const sub_view *self, const weft_sub_value *value) {
    columns shown = {.count = 0};
    weft_json first = weft_at(value->value, 0);
    bool table = !self->app->common.json && self->app->out.terminal && weft_sub_is_state(self->sub) &&
                 weft_typeof(value->value) == WEFT_ARRAY;
    if (table)
        choose_columns(self->app->args[0], &first, &shown);
    if (table && (shown.count || !first.text))
        return draw_table(self, value->value, &shown);
    put_value_line(self, value);
    return 0;
}

static void on_view_value(weft_sub *sub, const weft_sub_value *value, void *ctx) {
    sub_view *self = ctx;
    (void) sub;
    if (self->over)
        return;
    int r = put_sub_value(self, value);
    fflush(self->app->out.file);
    if (r < 0)
        end_view(self, weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r)));
    else if (ferror(self->app->out.file))
        end_view(self, WEFT_FAILED);
    else if (self->how->once)
        end_view(self, WEFT_DONE);
}

/* ---- how it goes ---- */

static const char *snapshot_words(const char *reason) {
    if (strcmp(reason, "trimmed") == 0)
        return "the events after this position are no longer kept";
    if (strcmp(reason, "epochChanged") == 0)
        return "the journal was begun anew";
    if (strcmp(reason, "futureSeq") == 0)
        return "there is no such position yet";
    if (strcmp(reason, "positionDamaged") == 0)
        return "the file with the position is damaged";
    return *reason ? reason : "the position is unknown";
}

static void on_view_ended(sub_view *self, const weft_sub_news *news) {
    if (news->error)
        end_view(self, weft__hub_call_refused(self->app, "tinyvex/subscribe", news->error));
    else
        end_view(self, weft__target_fail(self->app, &self->target, news->why, weft_peer_trouble(self->peer)));
}

static void on_view_news(weft_sub *sub, const weft_sub_news *news, void *ctx) {
    sub_view *self = ctx;
    if (self->over)
        return;
    switch (news->state) {
    case WEFT_SUB_RESUMED:
        snprintf(self->resumed, sizeof self->resumed, "resumed behind %" PRIu64 "; nothing was missed", weft_sub_seq(sub));
        weft__warn(self->app, "%s", self->resumed);
        break;
    case WEFT_SUB_SNAPSHOT:
        *self->resumed = '\0';
        weft__warn(self->app, "%s%s; it begins anew", weft_sub_is_state(sub) ? "" : "a gap: ", snapshot_words(news->reason));
        break;
    case WEFT_SUB_LOST:
        if (*news->reason)
            weft__warn(self->app, "%s; trying again", news->reason);
        break;
    case WEFT_SUB_UNSAVED:
        weft__warn(self->app, "%s: the position cannot be saved: %s", self->how->position, weft_strerror(news->why));
        break;
    case WEFT_SUB_NOTICE:
        if (strcmp(news->reason, "TVX005") != 0) /* the latest value is what is shown */
            weft__warn(self->app, "%s", news->error->message);
        return;
    case WEFT_SUB_ENDED:
        on_view_ended(self, news);
        return;
    case WEFT_SUB_LIVE:
    case WEFT_SUB_CATCHING_UP:
        break;
    }
    self->begun =
        self->begun || news->state == WEFT_SUB_LIVE || news->state == WEFT_SUB_RESUMED || news->state == WEFT_SUB_SNAPSHOT;
}

/* ---- the connection ---- */

static void on_view_token_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    sub_view *self = ctx;
    (void) peer;
    if (!self->over && r == 0 && answer->error && answer->error->code != WEFT_METHOD_NOT_FOUND)
        end_view(self, weft__fail_refused(self->app, "weft.auth", answer->error, "The server refused the token."));
}

static void on_view_connected(sub_view *self) {
    self->was_connected = true;
    self->lost = false;
    if (weft__target_shows_by_call(&self->target) &&
        weft__target_show(self->peer, &self->target, on_view_token_answer, self) < 0)
        end_view(self, weft__fail(self->app, WEFT_FAILED, NULL, "out of memory"));
}

static void on_view_lost(sub_view *self, bool for_good, int why) {
    const char *trouble = weft_peer_trouble(self->peer);
    if (for_good || !self->was_connected)
        end_view(self, weft__target_fail(self->app, &self->target, why, trouble));
    else if (!self->lost)
        weft__warn(self->app, "%s; trying again%s", *trouble ? trouble : weft_strerror(why),
                   self->target.here ? ". If the hub is gone, \"weft start\" starts it" : "");
    self->lost = true;
}

static void on_view_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    sub_view *self = data;
    self->peer = peer;
    if (self->over)
        return;
    if (state == WEFT_PEER_CONNECTED)
        on_view_connected(self);
    else if (state != WEFT_PEER_CONNECTING)
        on_view_lost(self, state == WEFT_PEER_CLOSED, why);
}

static void on_view_signal(void *ctx) {
    end_view(ctx, WEFT_DONE);
}

/* Following for so long is what was asked for; with --once a value was. */
static void on_view_limit(weft_timer *timer) {
    sub_view *self = (sub_view *) ((char *) timer - offsetof(sub_view, limit));
    if (!self->begun || self->how->once)
        end_view(self, weft__fail(self->app, WEFT_TOO_LATE, "Wait longer with --timeout, for example --timeout 60s.",
                                  "%s: no value came in time", self->target.shown));
    else if (self->lost)
        end_view(self, weft__fail(self->app, WEFT_UNREACHABLE, NULL,
                                  "%s: the connection was lost and was not made again in time", self->target.shown));
    else
        end_view(self, WEFT_DONE);
}

/* ---- its life ---- */

static int connect_view(sub_view *self) {
    int r = weft_loop_new(NULL, &self->loop);
    if (r >= 0)
        r = weft__debug_service(&self->service);
    if (r >= 0)
        r = weft__signals_open(&self->signals, self->loop, on_view_signal, self);
    if (r < 0)
        return r;
    if (self->how->limit_ms > 0)
        weft__timer_set(self->loop, &self->limit, weft__loop_fresh_now(self->loop) + self->how->limit_ms);
    weft_connect_opts opts = weft__target_opts(self->app, &self->target, self->service);
    opts.reconnect = !(self->target.scheme->flags & WEFT_ENDS);
    opts.data = self;
    opts.on_state = on_view_state;
    return weft_connect_on(self->loop, self->target.url, &opts, &self->peer, &self->target.trouble);
}

static weft_exit fail_subscribe(const sub_view *self, int r) {
    if (r == -EEXIST)
        return weft__fail(self->app, WEFT_FAILED, "Use a file for each stream.",
                          "%s: this is the position of another stream", self->how->position);
    if (r == -EINVAL)
        return weft__fail(self->app, WEFT_USAGE, "For example: weft sub messagesByThread threadId=ID",
                          "the params of a stream are an object");
    if (self->how->position && r != -ENOMEM && r != -EMSGSIZE)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s: %s", self->how->position, weft_strerror(r));
    return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
}

static void follow_stream(sub_view *self, const weft_doc *params) {
    weft_sub_opts opts = {.on_value = on_view_value, .on_state = on_view_news, .ctx = self, .file = self->how->position};
    weft__timer_init(&self->limit, on_view_limit);
    int r = connect_view(self);
    if (r < 0)
        end_view(self, weft__target_fail(self->app, &self->target, r, self->target.trouble.text));
    else if ((r = weft_subscribe(self->peer, self->app->args[0], weft__params_val(params), &opts, &self->sub)) < 0)
        end_view(self, fail_subscribe(self, r));
    else
        weft_loop_run(self->loop);
}

/* In the end, too: whoever asked for one value has no other moment to hear of it. */
static void save_position(sub_view *self) {
    int r = self->sub ? weft_sub_save(self->sub) : 0;
    if (r >= 0)
        return;
    weft_exit status = weft__fail(self->app, WEFT_FAILED, NULL, "%s: the position cannot be saved: %s", self->how->position,
                                  weft_strerror(r));
    if (self->status == WEFT_DONE)
        self->status = status;
}

static void close_view(sub_view *self) {
    self->over = true;
    save_position(self);
    if (self->loop)
        weft__timer_stop(self->loop, &self->limit);
    weft__signals_close(&self->signals);
    weft_sub_free(self->sub);
    weft_peer_free(self->peer);
    if (self->loop)
        weft_loop_run(self->loop); /* its good-bye takes a turn or two */
    weft_loop_free(self->loop);
    weft_service_unref(self->service);
}

static weft_exit run_sub(weft_app *app) {
    sub_view self = {.app = app, .how = app->settings, .status = WEFT_FAILED};
    WEFT_AUTO(weft_doc) params = NULL;
    if (app->arg_count == 0)
        return weft__misused(app, "which stream? For example tasks, events or threads");
    weft_exit status = weft__params_read(app, app->args + 1, &params);
    if (status == WEFT_DONE)
        status = weft__hub_call_target(app, self.how->url, &self.target);
    if (status == WEFT_DONE) {
        follow_stream(&self, params);
        close_view(&self);
        status = self.status;
    }
    weft__target_done(&self.target);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, once, flag, "once", '1', NULL, "end after the first value"),
    WEFT_OPTION(settings, position, text, "position", 'p', "FILE",
                "keep the position in this file, and go on behind the one in it"),
    WEFT_OPTION(settings, limit_ms, time, "timeout", 't', "TIME",
                "end after this time, with status 0; with --once: how long to wait"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft sub tasks",
    "the tasks as a table that changes with them, until Ctrl-C",
    "weft sub tasks --once --json | jq '.value[].id'",
    "the tasks as they are now",
    "weft sub taskOutput taskId=task-0003",
    "what a task says, from its beginning",
    "weft sub events types:='[\"task.\"]' --position ~/tasks.position --json",
    "what happens to tasks; the next time what happened since",
    NULL,
};

const weft_verb weft__sub_verb = {
    .name = "sub",
    .help = "follow a stream: tasks, taskOutput, events, threads, ...",
    .usage = "STREAM [name=value...]",
    .examples = examples,
    .about =
        "Streams: threads, messagesByThread, toolCallsByThread, tasks, questions and documents are states, of which each\n"
        "value replaces the one before; taskOutput, events and sessionUpdates are logs, of which every value counts.\n"
        "On a terminal a state that is a list is a table, drawn again when it changes; everything else is one line of\n"
        "JSON for each value. --json adds the position: {seq, journal, value}.\n\n"
        "A connection that is lost is made again and goes on behind the last value shown; it says \"resumed\", or why\n"
        "that cannot be. With --position this also holds from one run to the next; a state that has not changed since is\n"
        "not shown again then.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_sub,
};
