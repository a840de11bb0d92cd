/* One task from submission to its end. */
#include "task_follow.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"
#include "failure.h"
#include "stop_reason.h"
#include "task.h"
#include "time_text.h"

/* The bottom line appears only when there is something to wait for. */
#define FIRST_MS 100
#define EACH_MS 500
/* A daemon that is restarted is back in seconds; whoever takes longer than this is gone. */
#define PATIENCE_MS (2 * 60 * 1000)
/* A task that was cancelled ends in seconds. Where the hub cannot say so (its disk is full), nobody waits for ever. */
#define LEAVE_MS (30 * 1000)

void weft__task_follow_end(weft_task_follow *self, weft_exit status) {
    weft__event_follow_end(&self->events, status);
}

void weft__task_follow_want(weft_task_follow *self, weft_on_line *on_line, void *ctx) {
    int r = self->stdin_lines.open ? 0 : weft__stdin_lines_open(&self->stdin_lines, self->events.loop);
    if (r < 0)
        weft__task_follow_end(self, weft__fail(self->app, WEFT_FAILED, NULL, "standard input: %s", weft_strerror(r)));
    else
        weft__stdin_lines_want(&self->stdin_lines, on_line, ctx);
}

void weft__task_follow_key(char ret[WEFT_KEY_LEN]) {
    unsigned char bytes[WEFT_KEY_LEN / 2] = {0};
    ssize_t n = getrandom(bytes, sizeof bytes, 0);
    (void) n; /* so few bytes always come */
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- the bottom line ---- */

static void on_status(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_task_follow *self = ctx;
    (void) peer;
    int64_t place = 0;
    self->asking_place = false;
    if (r < 0 || answer->error)
        return;
    weft_json queued = weft_pointer(answer->result, "/subsystems/supervisor/tasks/queued");
    for (weft_iter it = weft_iterate(&queued); weft_next(&it);) {
        place++;
        if (strcmp(weft_get_str(&it.value, "id", ""), self->task) == 0)
            self->place = place;
    }
}

static void find_place(weft_task_follow *self) {
    if (self->asking_place || self->events.lost)
        return;
    self->asking_place = true;
    weft__event_follow_call(&self->events, "daemon.status", weft_none(), on_status);
}

static void draw_progress(weft_task_follow *self) {
    char since[WEFT_TIME_TEXT], place[64] = "";
    weft__duration(since, (weft__clock_ns() - self->begun_ns) / 1000000);
    if (!self->running && self->place)
        snprintf(place, sizeof place, ", number %lld in the queue", (long long) self->place);
    weft__terminal_bottom(&self->terminal, "%s %s%s, %s%s", self->task,
                          self->events.lost ? "out of sight"
                          : self->running   ? "running"
                                            : "queued",
                          place, since, self->plan);
}

static void on_follow_tick(weft_timer *timer) {
    weft_task_follow *self = (weft_task_follow *) ((char *) timer - offsetof(weft_task_follow, tick));
    if (!*self->task)
        return;
    if (!*self->question)
        draw_progress(self);
    if (!self->running && self->app->err.colour)
        find_place(self);
    weft__timer_set(self->events.loop, timer, weft__loop_fresh_now(self->events.loop) + EACH_MS);
}

/* ---- the end of a task ---- */

typedef struct ending {
    const char *state, *error, *reason, *stop_reason;
    weft_json output;
} ending;

/* It completed, but that may not be all that was wanted: a script should know. */
static weft_exit explain_stop(weft_task_follow *self, const ending *end) {
    const char *why = weft__stop_reason_text(end->stop_reason);
    if (!why)
        return WEFT_DONE;
    weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s stopped before it was done: %s (%.64s)", self->task, why,
                        end->stop_reason);
    if (*self->session)
        weft__terminal_line(&self->terminal, NULL, "  Go on with it: weft chat --session %s 'go on'", self->session);
    return WEFT_FAILED;
}

static weft_exit explain_end(weft_task_follow *self, const ending *end) {
    char next[128];
    snprintf(next, sizeof next, "\"weft task get %s\" shows all of it.", self->task);
    weft_app quiet = *self->app;
    quiet.common.json = false; /* the task is the object, and has its error */
    if (strcmp(end->state, "completed") == 0)
        return explain_stop(self, end);
    if (strcmp(end->state, "cancelled") == 0) {
        weft__terminal_line(&self->terminal, NULL, "%s was cancelled", self->task);
        return self->signals ? WEFT_INTERRUPTED : WEFT_FAILED;
    }
    bool late = strcmp(end->reason, "timeout") == 0 || strcmp(end->reason, "timedOut") == 0;
    weft__terminal_clear(&self->terminal);
    const char *error = *end->error ? end->error : *end->reason ? end->reason : "no reason was given";
    /* What the program wrote on standard error follows; that has been shown already. */
    return weft__fail(&quiet, late ? WEFT_TOO_LATE : WEFT_FAILED, next, "%s failed: %.*s", self->task,
                      (int) strcspn(error, "\n"), error);
}

static void finish_following(weft_task_follow *self, const ending *end) {
    weft_bytes output;
    /* Nothing came by, because it is no longer kept; its end is in the last event. */
    if (self->terminal.bytes == 0 && weft_bytes_of(&end->output, &output) >= 0)
        weft__terminal_data(&self->terminal, output.data, output.len);
    weft__terminal_clear(&self->terminal);
    weft__terminal_break(&self->terminal);
    weft__task_follow_forget(self);
    if (*self->changed)
        weft__terminal_line(&self->terminal, NULL, "%s changed %s: weft task diff %s", self->task, self->changed,
                            self->task);
    weft_exit how = explain_end(self, end);
    *self->task = '\0';
    weft__timer_stop(self->events.loop, &self->tick);
    weft__timer_stop(self->events.loop, &self->leave);
    self->opts->on_done(self, how);
}

static bool is_end_state(const char *state) {
    return strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0;
}

/* With --json the task itself is the data. */
static void on_whole(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_task_follow *self = ctx;
    (void) peer;
    if (r < 0 || self->events.over || !*self->task)
        return; /* asked again when the connection is back */
    if (answer->error) {
        weft__terminal_clear(&self->terminal);
        weft__task_follow_end(self, weft__hub_call_refused(self->app, "task.get", answer->error));
        return;
    }
    const weft_json *task = answer->result;
    ending end = {weft_get_str(task, "state", ""), weft_get_str(task, "error", ""),
                  weft_get_str(task, "reason", self->reason), weft_get_str(task, "stopReason", ""),
                  weft_get(task, "output")};
    if (!is_end_state(end.state)) {
        self->running = strcmp(end.state, "running") == 0;
        return;
    }
    if (self->app->common.json)
        weft__put_line(&self->app->out, weft_copy(task));
    finish_following(self, &end);
}

static void look_at_task(weft_task_follow *self) {
    weft__event_follow_call(&self->events, "task.get", WEFT_OBJ({"taskId", weft_str(self->task)}), on_whole);
}

/* Tasks in one folder get in each other's way. */
static void tell_beside(weft_task_follow *self, const weft_json *data) {
    weft_json beside = weft_get(data, "beside"), first = weft_at(&beside, 0);
    size_t count = weft_count(&beside);
    if (count)
        weft__terminal_line(&self->terminal, WEFT_INK_WARN,
                            "note: %.64s%s in the same files now; --worktree keeps tasks apart", weft_str_of(&first, ""),
                            count == 1 ? " works" : " and others work");
}

static void on_task_event(weft_task_follow *self, const char *what, const weft_json *data) {
    ending end = {what, weft_get_str(data, "error", ""), weft_get_str(data, "reason", ""),
                  weft_get_str(data, "stopReason", ""), weft_get(data, "output")};
    if (strcmp(what, "queued") == 0)
        snprintf(self->session, sizeof self->session, "%s", weft_get_str(data, "sessionId", ""));
    else if (strcmp(what, "started") == 0)
        self->running = true;
    else if (strcmp(what, "retrying") == 0)
        self->running = false;
    else if (strcmp(what, "changed") == 0 && !weft__task_changes_text(data, self->changed, sizeof self->changed))
        *self->changed = '\0';
    else if (strcmp(what, "snapshot") == 0)
        tell_beside(self, data);
    if (strcmp(what, "retrying") == 0)
        weft__terminal_line(&self->terminal, WEFT_INK_WARN, "attempt %lld failed: %s; trying again",
                            (long long) weft_get_int(data, "attempt", 0), end.error);
    if (!is_end_state(what))
        return;
    self->ended = true;
    snprintf(self->reason, sizeof self->reason, "%s", end.reason);
    if (self->app->common.json)
        look_at_task(self);
    else
        finish_following(self, &end);
}

/* ---- submitting ---- */

static void begin_following(weft_task_follow *self, const char *task, uint64_t after, const char *epoch) {
    snprintf(self->task, sizeof self->task, "%s", task);
    self->running = self->ended = self->gapped = false;
    self->place = 0;
    self->signals = 0;
    self->cancelling = false;
    self->terminal.bytes = 0;
    *self->plan = *self->shown = *self->reason = *self->changed = '\0';
    self->begun_ns = weft__clock_ns();
    weft__timer_set(self->events.loop, &self->tick, weft__loop_fresh_now(self->events.loop) + FIRST_MS);
    weft__event_follow_turn(&self->events, &(weft_event_follow_from){.after = after, .epoch = epoch, .task = self->task});
}

static void tell_refused(weft_task_follow *self, weft_exit how) {
    if (self->opts->on_refused)
        self->opts->on_refused(self, how);
    else
        weft__task_follow_end(self, how);
}

static void on_submit_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_task_follow *self = ctx;
    (void) peer;
    if (r < 0 || self->events.over)
        return; /* sent again with the same key when the connection is back */
    weft_text_free(self->params, NULL);
    self->params = NULL;
    weft__terminal_clear(&self->terminal);
    const char *task = answer->error ? NULL : weft_get_str(answer->result, "taskId", NULL);
    if (answer->error)
        tell_refused(self, weft__hub_call_refused(self->app, self->method, answer->error));
    else if (!task || strlen(task) >= sizeof self->task)
        weft__task_follow_end(self, weft__fail(self->app, WEFT_FAILED, NULL, "%s: the answer names no task", self->method));
    else
        begin_following(self, task, self->before, self->events.epoch);
}

static void send_submit(weft_task_follow *self) {
    weft__event_follow_call(&self->events, self->method, weft_raw(self->params, self->params_len), on_submit_answer);
}

void weft__task_follow_submit(weft_task_follow *self, const char *method, weft_val params) {
    self->method = method;
    self->before = self->events.gseq;
    if (weft_to_text(params, NULL, &self->params, &self->params_len) < 0)
        weft__task_follow_end(self, weft__fail(self->app, WEFT_FAILED, NULL, "out of memory"));
    else
        send_submit(self);
}

static void on_there(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_task_follow *self = ctx;
    (void) peer;
    if (self->events.over || r < 0)
        return;
    if (answer->error)
        weft__task_follow_end(self, weft__hub_call_refused(self->app, "task.get", answer->error));
    else if (is_end_state(weft_get_str(answer->result, "state", ""))) {
        snprintf(self->task, sizeof self->task, "%s", weft_get_str(answer->result, "id", ""));
        on_whole(peer, r, answer, ctx);
    } else
        begin_following(self, weft_get_str(answer->result, "id", ""), 0, NULL);
}

void weft__task_follow_watch(weft_task_follow *self, const char *task) {
    weft__event_follow_call(&self->events, "task.get", WEFT_OBJ({"taskId", weft_str(task)}), on_there);
}

/* ---- what the connection says ---- */

static void on_follow_ready(void *ctx, uint64_t head) {
    weft_task_follow *self = ctx;
    (void) head;
    if (!self->begun) {
        self->begun = true;
        self->opts->on_begin(self);
    } else if (self->params) {
        send_submit(self);
    } else if (*self->task) {
        weft__task_follow_questions(self);
        if (self->ended || self->gapped)
            look_at_task(self);
        self->gapped = false;
    }
}

static void on_follow_event(void *ctx, const weft_json *event) {
    weft_task_follow *self = ctx;
    const char *type = weft_get_str(event, "type", "");
    weft_json data = weft_get(event, "data");
    bool about = *self->task && strcmp(weft_get_str(&data, "taskId", ""), self->task) == 0;
    if (strncmp(type, "question.", 9) == 0 && *self->task) {
        if (about && strcmp(type, "question.asked") == 0)
            weft__task_follow_questions(self);
        else
            weft__task_follow_resolved(self, type, &data);
    } else if (about && strncmp(type, "task.", 5) == 0) {
        on_task_event(self, type + 5, &data);
    } else if (about) {
        weft__task_follow_output(self, type, &data);
    }
    if (ferror(self->app->out.file))
        weft__task_follow_end(self, WEFT_FAILED); /* nobody reads any more */
}

static void on_follow_gap(void *ctx, const char *reason) {
    weft_task_follow *self = ctx;
    self->gapped = true;
    if (*self->task)
        weft__terminal_line(&self->terminal, WEFT_INK_WARN,
                            "some of what it said is missing here (%s): \"weft task get %s --output\"", reason, self->task);
}

/* That it has ended comes as an event. A refusal means that it goes on, unless it had ended already. */
static void on_cancel_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_task_follow *self = ctx;
    (void) peer;
    if (r < 0 || !answer->error || self->events.over || !*self->task)
        return;
    if (strcmp(weft_get_str(&answer->error->data, "reason", ""), "taskNotCancellable") == 0)
        return;
    self->cancelling = false;
    weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s could not be cancelled: %s", self->task, answer->error->message);
}

void weft__task_follow_cancel(weft_task_follow *self, const char *why) {
    weft__terminal_line(&self->terminal, NULL, "%s", why);
    self->cancelling = true;
    weft__event_follow_call(&self->events, "task.cancel", WEFT_OBJ({"taskId", weft_str(self->task)}), on_cancel_answer);
}

/* What becomes of the task when nobody waits for it here any more. */
static void say_whereabouts(weft_task_follow *self) {
    weft_terminal *terminal = &self->terminal;
    if (*self->task && self->cancelling)
        weft__terminal_line(terminal, NULL, "%s is being cancelled; this does not wait for it: weft task get %s", self->task,
                            self->task);
    else if (*self->task && self->events.lost && !self->opts->only_watches)
        weft__terminal_line(terminal, NULL, "without a connection %s cannot be cancelled, and goes on: weft task cancel %s",
                            self->task, self->task);
    else if (*self->task)
        weft__terminal_line(terminal, NULL, "%s goes on: weft task watch %s", self->task, self->task);
    else if (self->params)
        weft__terminal_line(terminal, NULL, "the hub has not answered; it may have the task already: weft task list");
}

static void leave_task(weft_task_follow *self) {
    weft__terminal_clear(&self->terminal);
    say_whereabouts(self);
    weft__task_follow_end(self, WEFT_INTERRUPTED);
}

static void on_leave(weft_timer *timer) {
    weft_task_follow *self = (weft_task_follow *) ((char *) timer - offsetof(weft_task_follow, leave));
    if (!*self->task || !self->signals)
        return;
    weft__terminal_line(&self->terminal, WEFT_INK_WARN,
                        "the hub has not said in %d s that it ended; \"weft status\" may say why", LEAVE_MS / 1000);
    leave_task(self);
}

static void on_follow_signal(void *ctx) {
    weft_task_follow *self = ctx;
    if (!*self->task && self->opts->on_idle_signal) {
        self->opts->on_idle_signal(self);
        return;
    }
    if (self->signals++ || !*self->task || self->events.lost || self->opts->only_watches) {
        leave_task(self);
        return;
    }
    if (*self->question)
        fputc('\n', self->app->err.file);
    weft__task_follow_forget(self);
    if (self->app->err.terminal && !self->terminal.middle)
        fputs("\r\x1b[K", self->app->err.file); /* the ^C of the terminal */
    char line[128];
    snprintf(line, sizeof line, "cancelling %s; Ctrl-C again leaves without waiting for its end", self->task);
    weft__timer_set(self->events.loop, &self->leave, weft__loop_fresh_now(self->events.loop) + LEAVE_MS);
    weft__task_follow_cancel(self, line);
}

/* The time to wait is over, and the task is not. */
static void on_follow_limit(void *ctx) {
    weft_task_follow *self = ctx;
    char next[128];
    snprintf(next, sizeof next, "It goes on: weft task watch %s", self->task);
    weft__terminal_clear(&self->terminal);
    weft__terminal_break(&self->terminal);
    weft__task_follow_end(self, weft__fail(self->app, WEFT_TOO_LATE, next, "%s has not ended in time", self->task));
}

static void on_follow_close(void *ctx) {
    weft_task_follow *self = ctx;
    if (self->opts->on_close)
        self->opts->on_close(self);
    weft__stdin_lines_close(&self->stdin_lines);
    weft__timer_stop(self->events.loop, &self->tick);
    weft__timer_stop(self->events.loop, &self->leave);
}

weft_exit weft__task_follow_run(weft_task_follow *self, weft_app *app, const weft_task_follow_opts *opts) {
    /* Until there is a task, only a position is wanted. */
    static const weft_texts quiet = {.items = {"hub."}, .count = 1};
    *self = (weft_task_follow){.app = app, .opts = opts, .terminal = {.app = app, .silent = app->common.json}};
    weft__timer_init(&self->tick, on_follow_tick);
    weft__timer_init(&self->leave, on_leave);
    weft_event_follow_opts events = {.url = opts->url,
                                     .from = {.now = true, .types = &quiet},
                                     .patience_ms = PATIENCE_MS,
                                     .limit_ms = opts->limit_ms,
                                     .terminal = &self->terminal,
                                     .ctx = self,
                                     .on_ready = on_follow_ready,
                                     .on_event = on_follow_event,
                                     .on_gap = on_follow_gap,
                                     .on_signal = on_follow_signal,
                                     .on_limit = on_follow_limit,
                                     .on_close = on_follow_close};
    weft_exit status = weft__event_follow_run(&self->events, app, &events);
    weft_text_free(self->params, NULL);
    self->open = weft_doc_free(self->open);
    return status;
}
