/* Planning a request, and staying with a plan until it has ended: a line for every task that ends, the bottom line for those
 * that run, questions of their agents put to the person at the terminal.
 *
 *     planning ──the plan──▶ shown ──yes, or --run──▶ running ──plan.finished──▶ summed up
 *
 * The plan is the hub's: when the connection is lost it goes on, and is found again when the connection is back. */
#include <string.h>

#include "clock.h"
#include "event_follow.h"
#include "failure.h"
#include "form_text.h"
#include "plan_verb.h"
#include "question_text.h"
#include "stdin_lines.h"
#include "task.h"
#include "time_text.h"

/* The bottom line appears only when there is something to wait for. */
#define FIRST_MS 100
#define EACH_MS 500
/* A daemon that is restarted is back in seconds; whoever takes longer than this is gone. */
#define PATIENCE_MS (2 * 60 * 1000)
/* A plan that was cancelled ends in seconds. Where the hub cannot say so, nobody waits for ever. */
#define LEAVE_MS (60 * 1000)
/* A planner with a model may think for minutes before it says anything; a person who waits can press Ctrl-C. */
#define PLANNER_MS (10 * 60 * 1000)
#define ID 64
#define TASKS 100 /* of a plan */

typedef enum plan_stage { PLANNING, OFFERED, STARTING, RUNNING } plan_stage;

typedef struct following {
    weft_app *app;
    weft_event_follow events;
    weft_terminal terminal;
    weft_stdin_lines stdin_lines;
    weft_timer tick, leave;
    plan_stage stage;
    const char *request; /* NULL: the plan is there */
    char id[ID];
    weft_doc *plan; /* as plan.get showed it last; NULL: not yet */
    struct {
        char id[ID + 1];
        int64_t ms;
    } started[TASKS]; /* when tasks began to run, by the hub's clock */
    size_t started_count;
    char busy[128];  /* ids of the tasks that run, a blank behind each */
    size_t over, of; /* tasks that have ended, of how many */
    int64_t begun_ns;
    int signals;
    weft_doc *question; /* the one that is before the person; NULL: none */
    char shown[1024];   /* ids of those that were shown, a blank behind each */
} following;

static void end_following(following *self, weft_exit status) {
    weft__event_follow_end(&self->events, status);
}

static void want_line(following *self, weft_on_line *on_line) {
    int r = self->stdin_lines.open ? 0 : weft__stdin_lines_open(&self->stdin_lines, self->events.loop);
    if (r < 0)
        end_following(self, weft__fail(self->app, WEFT_FAILED, NULL, "standard input: %s", weft_strerror(r)));
    else
        weft__stdin_lines_want(&self->stdin_lines, on_line, self);
}

/* Whoever is asked something must be there, and must not be a script that reads JSON. */
static bool may_ask(const following *self) {
    return weft__stdin_is_person() && !self->app->common.json && !self->stdin_lines.ended;
}

/* ---- words in a list ---- */

static void drop_word(char *list, const char *word) {
    char with[ID + 2];
    snprintf(with, sizeof with, "%s ", word);
    char *at = strstr(list, with);
    if (at && (at == list || at[-1] == ' '))
        memmove(at, at + strlen(with), strlen(at + strlen(with)) + 1);
}

static void add_word(char *list, size_t size, const char *word) {
    size_t used = strlen(list);
    drop_word(list, word);
    used = strlen(list);
    if (used + strlen(word) + 2 < size)
        snprintf(list + used, size - used, "%s ", word);
}

/* ---- the bottom line ---- */

static void draw_plan(following *self) {
    char since[WEFT_TIME_TEXT];
    weft__duration(since, (weft__clock_ns() - self->begun_ns) / 1000000);
    if (self->stage == PLANNING)
        weft__terminal_bottom(&self->terminal, "planning, %s", since);
    else if (self->stage == RUNNING)
        weft__terminal_bottom(&self->terminal, "%s %s, %zu of %zu done, %s%s%s", self->id,
                              self->events.lost ? "out of sight" : "running", self->over, self->of, since,
                              *self->busy ? ": " : "", self->busy);
}

static void on_plan_tick(weft_timer *timer) {
    following *self = (following *) ((char *) timer - offsetof(following, tick));
    if (!self->question && self->stage != OFFERED)
        draw_plan(self);
    weft__timer_set(self->events.loop, timer, weft__loop_fresh_now(self->events.loop) + EACH_MS);
}

static void start_clock(following *self) {
    self->begun_ns = weft__clock_ns();
    weft__timer_set(self->events.loop, &self->tick, weft__loop_fresh_now(self->events.loop) + FIRST_MS);
}

/* ---- the end ---- */

static void finish_plan(following *self, const weft_json *plan) {
    weft_exit how = weft__plan_exit(plan);
    weft__terminal_clear(&self->terminal);
    if (self->app->common.json)
        weft__put_line(&self->app->out, weft_copy(plan));
    else {
        char sum[WEFT_PLAN_SUM];
        const char *state = weft_get_str(plan, "state", "");
        const char *why = strcmp(weft_get_str(plan, "stopping", ""), "timeLimit") == 0 ? " (it reached its time limit)" : "";
        weft__terminal_line(&self->terminal, how == WEFT_DONE ? WEFT_INK_BOLD : WEFT_INK_WARN, "%s %s%s: %s", self->id,
                            state, why, weft__plan_sum(sum, plan));
        if (self->app->err.terminal)
            weft__terminal_line(&self->terminal, NULL, "  What became of each task: weft plan show %s", self->id);
    }
    end_following(self, self->signals && how ? WEFT_INTERRUPTED : how);
}

static bool is_over(const char *state) {
    return strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0;
}

/* ---- looking at it ---- */

static void offer_plan(following *self);

/* What the events before this have not told: after a start, after a gap. */
static void count_tasks(following *self, const weft_json *plan) {
    weft_json tasks = weft_get(plan, "tasks");
    self->over = self->of = 0;
    *self->busy = '\0';
    for (weft_iter it = weft_iterate(&tasks); weft_next(&it); self->of++) {
        const char *state = weft_get_str(&it.value, "state", "");
        self->over += is_over(state) || strcmp(state, "skipped") == 0;
        if (strcmp(state, "running") == 0)
            add_word(self->busy, sizeof self->busy, weft_get_str(&it.value, "id", ""));
    }
}

static void on_plan_shown(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    following *self = ctx;
    weft_doc *copy = NULL;
    (void) peer;
    if (r < 0 || self->events.over)
        return; /* asked again when the connection is back */
    if (answer->error) {
        weft__terminal_clear(&self->terminal);
        end_following(self, weft__hub_call_refused(self->app, "plan.get", answer->error));
        return;
    }
    weft_json plan = weft_get(answer->result, "plan");
    if (weft_doc_keep(&plan, NULL, &copy) < 0) {
        end_following(self, weft__fail(self->app, WEFT_FAILED, NULL, "out of memory"));
        return;
    }
    weft_doc_free(self->plan);
    self->plan = copy;
    count_tasks(self, weft_doc_root(copy));
    if (self->stage == RUNNING && is_over(weft_get_str(&plan, "state", "")))
        finish_plan(self, weft_doc_root(copy));
    else if (self->stage == OFFERED)
        offer_plan(self);
}

static void look_at_plan(following *self) {
    weft__event_follow_call(&self->events, "plan.get", WEFT_OBJ({"planId", weft_str(self->id)}), on_plan_shown);
}

/* ---- running it ---- */

static void on_run_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    following *self = ctx;
    (void) peer;
    if (self->events.over || r < 0)
        return; /* it is looked at when the connection is back */
    if (answer->error) {
        weft__terminal_clear(&self->terminal);
        end_following(self, weft__hub_call_refused(self->app, "run_plan", answer->error));
        return;
    }
    self->stage = RUNNING;
    look_at_plan(self);
}

static void run_plan(following *self) {
    const weft_plan_settings *how = self->app->settings;
    int64_t seconds = (how->time_limit_ms + 999) / 1000;
    self->stage = STARTING;
    start_clock(self);
    weft__event_follow_call(
        &self->events, "run_plan",
        WEFT_OBJ({"planId", weft_str(self->id)},
                 {"options",
                  WEFT_OBJ({"wait", weft_bool(false)}, {"time_limit_seconds", seconds ? weft_int(seconds) : weft_none()})}),
        on_run_answer);
}

static void leave_offered(following *self) {
    weft__terminal_line(&self->terminal, NULL, "It does not run. To run it: weft plan run %s", self->id);
    end_following(self, WEFT_DONE);
}

static void on_run_line(void *ctx, const char *line) {
    following *self = ctx;
    const char *word = line ? line + strspn(line, " \t") : "";
    if (strncasecmp(word, "y", 1) == 0)
        run_plan(self);
    else
        leave_offered(self);
}

static void offer_plan(following *self) {
    const weft_plan_settings *how = self->app->settings;
    weft__terminal_clear(&self->terminal);
    if (self->app->common.json && !how->run)
        weft__put_line(&self->app->out, weft_copy(weft_doc_root(self->plan)));
    else if (!self->app->common.json && !weft__time_get(weft_doc_root(self->plan), "startedAt") &&
             weft__plan_put(self->app, weft_doc_root(self->plan), false) < 0)
        end_following(self, weft__fail(self->app, WEFT_FAILED, NULL, "out of memory"));
    if (how->run)
        run_plan(self);
    else if (may_ask(self)) {
        fputs("\nRun it now? [y/N] ", self->app->err.file);
        fflush(self->app->err.file);
        want_line(self, on_run_line);
    } else if (!self->app->common.json)
        leave_offered(self);
    else
        end_following(self, WEFT_DONE);
}

/* ---- planning ---- */

/* The planner's errors say more in their data than in their message. */
static weft_exit explain_planner(const weft_app *app, const weft_error *error) {
    const char *details = weft_get_str(&error->data, "details", "");
    weft_json suggestion = weft_pointer(&error->data, "/recovery_suggestions/0");
    bool late = strcmp(weft_get_str(&error->data, "type", ""), "TIMEOUT") == 0;
    if (!*details)
        return weft__hub_call_refused(app, "create_plan", error);
    return weft__fail(app, late ? WEFT_TOO_LATE : WEFT_REFUSED, weft_str_of(&suggestion, NULL), "there is no plan: %.*s",
                      (int) strcspn(details, "\r\n"), details);
}

static void on_planned(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    following *self = ctx;
    (void) peer;
    if (self->events.over)
        return;
    weft__terminal_clear(&self->terminal);
    if (r < 0) {
        end_following(self, weft__fail(self->app, WEFT_UNREACHABLE, "Ask again when the hub is back.",
                                       "the connection was lost before there was a plan"));
        return;
    }
    if (answer->error) {
        end_following(self, explain_planner(self->app, answer->error));
        return;
    }
    weft_json plan = weft_get(answer->result, "plan");
    snprintf(self->id, sizeof self->id, "%s", weft_get_str(&plan, "plan_id", ""));
    self->stage = OFFERED;
    look_at_plan(self);
}

static void plan_request(following *self) {
    const weft_plan_settings *how = self->app->settings;
    int64_t seconds = (how->time_limit_ms + 999) / 1000;
    weft_val constraints = WEFT_OBJ({"max_tasks", how->max_tasks ? weft_int(how->max_tasks) : weft_none()},
                                    {"time_limit_seconds", seconds ? weft_int(seconds) : weft_none()});
    self->stage = PLANNING;
    start_clock(self);
    weft__event_follow_call(&self->events, "create_plan",
                            WEFT_OBJ({"user_request", weft_str(self->request)}, {"constraints", constraints},
                                     {"options", WEFT_OBJ({"timeout_ms", weft_int(PLANNER_MS)})}),
                            on_planned);
}

/* ---- questions ---- */

static void look_for_questions(following *self);

static void forget_question(following *self) {
    if (self->question && self->stdin_lines.open)
        weft__stdin_lines_want(&self->stdin_lines, NULL, NULL);
    self->question = weft_doc_free(self->question);
}

static void on_answer_taken(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    following *self = ctx;
    (void) peer;
    if (r < 0 || self->events.over)
        return;
    if (answer->error)
        weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s", answer->error->message);
    look_for_questions(self);
}

static void on_answer_line(void *ctx, const char *line);

static void prompt_for_answer(following *self) {
    weft__terminal_clear(&self->terminal);
    fputs("your answer (number, allow or deny): ", self->app->err.file);
    fflush(self->app->err.file);
    want_line(self, on_answer_line);
}

static void on_answer_line(void *ctx, const char *line) {
    following *self = ctx;
    const char *text, *option;
    if (!self->question)
        return;
    const weft_json *question = weft_doc_root(self->question);
    const char *id = weft_get_str(question, "id", "");
    int r = line ? weft__question_option(question, line, &option, &text) : 0;
    if (line && r <= 0) {
        weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s", weft__question_option_why(r));
        prompt_for_answer(self);
        return;
    }
    if (!line)
        weft__terminal_line(&self->terminal, NULL, "It stays open: weft answer %s", id);
    else
        weft__event_follow_call(&self->events, "question.answer",
                                WEFT_OBJ({"questionId", weft_str(id)}, {"option", weft_str(option)},
                                         {"text", *text ? weft_str(text) : weft_none()}),
                                on_answer_taken);
    forget_question(self);
}

/* Forms are filled in elsewhere; everything else can be answered here. */
static void show_question(following *self, const weft_json *question) {
    const char *id = weft_get_str(question, "id", "");
    bool form = weft__form_of(question).text != NULL, asks = may_ask(self) && !form;
    char word[ID + 2];
    snprintf(word, sizeof word, "%.*s ", ID, id);
    if (self->question || (!asks && strstr(self->shown, word)))
        return;
    weft__terminal_clear(&self->terminal);
    weft__question_put(&self->app->err, question);
    add_word(self->shown, sizeof self->shown, id);
    if (asks && weft_doc_keep(question, NULL, &self->question) >= 0)
        prompt_for_answer(self);
    else
        weft__terminal_line(&self->terminal, NULL, "  Answer from anywhere: weft answer %s %s", id,
                            form ? "accept NAME=VALUE..." : "allow|deny");
}

static bool is_ours(const following *self, const char *task) {
    weft_json tasks = self->plan ? weft_get(weft_doc_root(self->plan), "tasks") : (weft_json){0};
    for (weft_iter it = weft_iterate(&tasks); *task && weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "taskId", ""), task) == 0)
            return true;
    return false;
}

static void on_questions(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    following *self = ctx;
    (void) peer;
    if (r < 0 || answer->error || self->events.over)
        return;
    weft_json questions = weft_get(answer->result, "questions");
    for (weft_iter it = weft_iterate(&questions); weft_next(&it);)
        if (is_ours(self, weft_get_str(&it.value, "taskId", "")))
            show_question(self, &it.value);
}

static void look_for_questions(following *self) {
    weft__event_follow_call(&self->events, "question.list", weft_none(), on_questions);
}

/* Whose task it is, is known from the plan as it is now. */
static void on_fresh_plan(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    on_plan_shown(peer, r, answer, ctx);
    following *self = ctx;
    if (r >= 0 && !self->events.over)
        look_for_questions(self);
}

static void on_question_event(following *self, const char *type, const weft_json *data) {
    const char *id = weft_get_str(data, "questionId", "");
    if (strcmp(type, "question.asked") == 0 && self->stage == RUNNING)
        weft__event_follow_call(&self->events, "plan.get", WEFT_OBJ({"planId", weft_str(self->id)}), on_fresh_plan);
    else if (self->question && strcmp(weft_get_str(weft_doc_root(self->question), "id", ""), id) == 0) {
        fputc('\n', self->app->err.file);
        weft__terminal_line(&self->terminal, NULL, "%s was answered elsewhere, or is over", id);
        forget_question(self);
        look_for_questions(self);
    }
}

/* ---- events ---- */

/* What the plan calls it. */
static weft_json find_task(const following *self, const char *id) {
    weft_json tasks = self->plan ? weft_get(weft_doc_root(self->plan), "tasks") : (weft_json){0};
    for (weft_iter it = weft_iterate(&tasks); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "id", ""), id) == 0)
            return it.value;
    return (weft_json){0};
}

static void note_start(following *self, const char *id, int64_t ms) {
    size_t i = 0;
    while (i < self->started_count && strcmp(self->started[i].id, id) != 0)
        i++;
    if (i == TASKS)
        return;
    snprintf(self->started[i].id, sizeof self->started[i].id, "%s", id);
    self->started[i].ms = ms;
    self->started_count += i == self->started_count;
}

/* " in 3 s"; "" when it never ran. */
static const char *time_since_start(const following *self, const char *id, int64_t ms, char ret[WEFT_TIME_TEXT + 8]) {
    char took[WEFT_TIME_TEXT];
    *ret = '\0';
    for (size_t i = 0; i < self->started_count; i++)
        if (strcmp(self->started[i].id, id) == 0 && ms >= self->started[i].ms)
            snprintf(ret, WEFT_TIME_TEXT + 8, " in %s", weft__duration(took, ms - self->started[i].ms));
    return ret;
}

static void on_task_change(following *self, const weft_json *data, int64_t now) {
    const char *id = weft_get_str(data, "id", ""), *state = weft_get_str(data, "state", "");
    const char *error = weft_get_str(data, "error", ""), *as = weft_get_str(data, "taskId", "");
    weft_json task = find_task(self, id);
    const char *what = weft_get_str(&task, "description", "");
    bool runs = strcmp(state, "running") == 0, good = strcmp(state, "completed") == 0;
    bool over = good || is_over(state) || strcmp(state, "skipped") == 0;
    char took[WEFT_TIME_TEXT + 8];
    drop_word(self->busy, id);
    if (runs) {
        add_word(self->busy, sizeof self->busy, id);
        note_start(self, id, now);
    }
    self->over += over;
    if (over)
        weft__terminal_line(&self->terminal, good ? NULL : WEFT_INK_WARN, "  %s %s%s%s%s%s: %.*s", id, state,
                            time_since_start(self, id, now, took), *as ? " (" : "", as, *as ? ")" : "",
                            (int) strcspn(*error ? error : what, "\r\n"), *error ? error : what);
    else if (runs && !self->app->err.colour)
        weft__terminal_line(&self->terminal, NULL, "  %s running (%s): %.*s", id, as, (int) strcspn(what, "\r\n"), what);
}

static void on_plan_event(void *ctx, const weft_json *event) {
    following *self = ctx;
    const char *type = weft_get_str(event, "type", "");
    weft_json data = weft_get(event, "data");
    if (strncmp(type, "question.", 9) == 0) {
        on_question_event(self, type, &data);
        return;
    }
    if (self->stage < STARTING || strcmp(weft_get_str(&data, "planId", ""), self->id) != 0)
        return;
    if (strcmp(type, "plan.task") == 0 && !self->app->common.json)
        on_task_change(self, &data, weft__time_get(event, "time"));
    else if (strcmp(type, "plan.stopping") == 0 && !self->signals)
        weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s: %s", self->id,
                            strcmp(weft_get_str(&data, "reason", ""), "timeLimit") == 0
                                ? "the time limit is reached; what has not ended is cancelled"
                                : "it was cancelled");
    else if (strcmp(type, "plan.finished") == 0) {
        self->stage = RUNNING;
        look_at_plan(self);
    }
}

static void on_plan_ready(void *ctx, uint64_t head) {
    following *self = ctx;
    (void) head;
    if (self->stage == PLANNING && self->request && !self->begun_ns)
        plan_request(self);
    else if (self->stage == OFFERED && !self->request && !self->begun_ns)
        look_at_plan(self);
    else if (self->stage >= STARTING)
        look_at_plan(self);
}

/* ---- Ctrl-C ---- */

static void leave_plan(following *self) {
    weft__terminal_clear(&self->terminal);
    if (self->stage >= STARTING)
        weft__terminal_line(&self->terminal, NULL,
                            self->signals > 1 ? "%s is being cancelled; this does not wait for it: weft plan show %s"
                                              : "without a connection %s goes on: weft plan show %s",
                            self->id, self->id);
    else if (self->stage == OFFERED && *self->id) {
        fputc('\n', self->app->err.file); /* behind the question */
        weft__terminal_line(&self->terminal, NULL, "It does not run. To run it: weft plan run %s", self->id);
    }
    end_following(self, WEFT_INTERRUPTED);
}

static void on_cancelled(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    following *self = ctx;
    (void) peer;
    if (r < 0 || !answer->error || self->events.over)
        return; /* that it has ended comes as an event */
    if (strcmp(weft_get_str(&answer->error->data, "reason", ""), "planEnded") != 0)
        weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s could not be cancelled: %s", self->id,
                            answer->error->message);
}

static void on_leave_due(weft_timer *timer) {
    following *self = (following *) ((char *) timer - offsetof(following, leave));
    self->signals++;
    leave_plan(self);
}

static void on_plan_signal(void *ctx) {
    following *self = ctx;
    if (self->signals++ || self->stage < STARTING || self->events.lost) {
        leave_plan(self);
        return;
    }
    if (self->question)
        fputc('\n', self->app->err.file);
    forget_question(self);
    if (self->app->err.terminal)
        fputs("\r\x1b[K", self->app->err.file); /* the ^C of the terminal */
    weft__terminal_line(&self->terminal, NULL, "cancelling %s; Ctrl-C again leaves without waiting for its end", self->id);
    weft__timer_set(self->events.loop, &self->leave, weft__loop_fresh_now(self->events.loop) + LEAVE_MS);
    weft__event_follow_call(&self->events, "plan.cancel", WEFT_OBJ({"planId", weft_str(self->id)}), on_cancelled);
}

static void on_plan_limit(void *ctx) {
    following *self = ctx;
    char next[128];
    snprintf(next, sizeof next, "It goes on: weft plan show %s", self->id);
    weft__terminal_clear(&self->terminal);
    end_following(self,
                  weft__fail(self->app, WEFT_TOO_LATE, self->stage >= STARTING ? next : NULL, "%s",
                             self->stage >= STARTING ? "the plan has not ended in time" : "there was no plan in time"));
}

static void on_plan_close(void *ctx) {
    following *self = ctx;
    weft__stdin_lines_close(&self->stdin_lines);
    weft__timer_stop(self->events.loop, &self->tick);
    weft__timer_stop(self->events.loop, &self->leave);
}

/* ---- the words ---- */

static weft_exit follow_plan(following *self) {
    static const weft_texts types = {.items = {"plan.", "question."}, .count = 2};
    const weft_plan_settings *how = self->app->settings;
    weft__timer_init(&self->tick, on_plan_tick);
    weft__timer_init(&self->leave, on_leave_due);
    weft_event_follow_opts opts = {.url = how->url,
                                   .from = {.now = true, .types = &types},
                                   .patience_ms = PATIENCE_MS,
                                   .limit_ms = how->timeout_ms,
                                   .terminal = &self->terminal,
                                   .ctx = self,
                                   .on_ready = on_plan_ready,
                                   .on_event = on_plan_event,
                                   .on_signal = on_plan_signal,
                                   .on_limit = on_plan_limit,
                                   .on_close = on_plan_close};
    weft_exit status = weft__event_follow_run(&self->events, self->app, &opts);
    weft_doc_free(self->question);
    weft_doc_free(self->plan);
    return status;
}

static weft_exit with_following(weft_app *app, const char *request, const char *id) {
    following *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    *self = (following){.app = app,
                        .terminal = {.app = app, .silent = app->common.json},
                        .request = request,
                        .stage = request ? PLANNING : OFFERED};
    if (id)
        snprintf(self->id, sizeof self->id, "%s", id);
    weft_exit status = follow_plan(self);
    weft__free(NULL, self);
    return status;
}

weft_exit weft__plan_request(weft_app *app) {
    char *request = NULL;
    weft_exit status = weft__prompt_read(app, &request);
    if (status)
        return status;
    status = with_following(app, request, NULL);
    weft__free(NULL, request);
    return status;
}

/* It was read before: it is not offered again. */
weft_exit weft__plan_run_word(weft_app *app) {
    weft_plan_settings *how = app->settings;
    how->run = true;
    return with_following(app, NULL, app->args[0]);
}
