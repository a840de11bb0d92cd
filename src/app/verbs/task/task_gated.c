/* Sending a gated task, showing one, and staying with one until it has ended: what its agent says, and a line for every
 * iteration and every gate. It is the hub's: when the connection is lost it goes on, and is found again. */
#include "task_gated.h"

#include <string.h>

#include "diagnostics_text.h"
#include "event_follow.h"
#include "failure.h"
#include "question_text.h"
#include "task_follow.h"
#include "time_text.h"

#define PATIENCE_MS (2 * 60 * 1000)
#define ID 64
#define MOST_SHOWN 10 /* findings of a gate, while it is watched */

bool weft__gated_is_id(const char *text) {
    const char *colon = strrchr(text, ':'); /* behind the names of a relay's hubs */
    return strncmp(colon ? colon + 1 : text, "gated-", 6) == 0;
}

/* ---- params ---- */

typedef struct send_text {
    char *text; /* owned */
    size_t len;
} send_text;

static int write_params(const weft_app *app, const char *prompt, const char *key, send_text *ret) {
    const weft_task_settings *how = app->settings;
    weft_val gates[WEFT_MAX_TEXTS];
    for (size_t i = 0; i < how->gates.count; i++)
        gates[i] = weft_str(how->gates.items[i]);
    return weft_to_text(WEFT_OBJ({"prompt", weft_str(prompt)}, {"gates", weft_arr(gates, how->gates.count)},
                                 {"maxIterations", how->max_iterations ? weft_int(how->max_iterations) : weft_none()},
                                 {"agent", weft_str_or_none(how->agent)}, {"permission", weft_str_or_none(how->permission)},
                                 {"isolation", how->worktree || how->with_changes ? weft_str("worktree") : weft_none()},
                                 {"withChanges", how->with_changes ? weft_bool(true) : weft_none()},
                                 {"hub", weft_str_or_none(how->hub)},
                                 {"_meta", key ? WEFT_OBJ({"weft/idempotencyKey", weft_str(key)}) : weft_none()}),
                        NULL, &ret->text, &ret->len);
}

/* ---- following ---- */

typedef struct following {
    weft_app *app;
    weft_event_follow events;
    weft_terminal terminal;
    send_text send; /* what is to be sent; NULL: it was, or it is there already */
    bool only_watches, shown;
    char id[ID], session[ID];
    int signals;
} following;

static void end_following(following *self, weft_exit status) {
    weft__event_follow_end(&self->events, status);
}

static void put_gate_line(following *self, const weft_json *gate, int64_t iteration) {
    bool good = weft_get_bool(gate, "passed", false);
    weft_json found = weft_get(gate, "findings").text ? weft_get(gate, "findings") : weft_get(gate, "diagnostics");
    long long count = (long long) weft_count(&found);
    char took[WEFT_TIME_TEXT], what[48] = "";
    if (!good && count)
        snprintf(what, sizeof what, ", %lld finding%s", count, count == 1 ? "" : "s");
    weft__terminal_line(&self->terminal, good ? NULL : WEFT_INK_WARN, "  iteration %lld: %s %s in %s%s",
                        (long long) iteration, weft_get_str(gate, "gate", ""), good ? "passed" : "did not pass",
                        weft__duration(took, weft_get_int(gate, "durationMs", 0)), what);
    if (!good && count && count <= MOST_SHOWN && !self->terminal.silent)
        weft__diagnostics_put(&self->app->err, &found, "    ");
}

static weft_exit gated_exit(const weft_json *task) {
    return strcmp(weft_get_str(task, "state", ""), "completed") == 0 ? WEFT_DONE : WEFT_FAILED;
}

static void finish_gated(following *self, const weft_json *task) {
    const char *state = weft_get_str(task, "state", ""), *error = weft_get_str(task, "error", "");
    long long n = (long long) weft_get_int(task, "iteration", 0);
    weft_exit how = gated_exit(task);
    weft__terminal_break(&self->terminal);
    weft__terminal_clear(&self->terminal);
    if (self->app->common.json)
        weft__put_line(&self->app->out, weft_copy(task));
    else {
        weft__terminal_line(&self->terminal, how == WEFT_DONE ? WEFT_INK_BOLD : WEFT_INK_WARN,
                            "%s %s after %lld iteration%s%s%s", self->id, state, n, n == 1 ? "" : "s", *error ? ": " : "",
                            error);
        if (self->app->err.terminal)
            weft__terminal_line(&self->terminal, NULL, "  What it changed: weft task diff %s", self->id);
    }
    end_following(self, self->signals && how ? WEFT_INTERRUPTED : how);
}

static void on_gated_shown(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    following *self = ctx;
    (void) peer;
    if (r < 0 || self->events.over)
        return; /* asked again when the connection is back */
    if (answer->error) {
        end_following(self, weft__hub_call_refused(self->app, "gated.get", answer->error));
        return;
    }
    weft_json task = weft_get(answer->result, "task"), results = weft_get(&task, "results");
    snprintf(self->session, sizeof self->session, "%s", weft_get_str(&task, "sessionId", ""));
    if (self->only_watches && !self->shown && !self->app->common.json)
        for (weft_iter it = weft_iterate(&results); weft_next(&it);)
            if (weft_get(&it.value, "iteration").text)
                put_gate_line(self, &it.value, weft_get_int(&it.value, "iteration", 0));
    self->shown = true;
    if (strcmp(weft_get_str(&task, "state", ""), "running") != 0)
        finish_gated(self, &task);
}

static void look_at_gated(following *self) {
    weft__event_follow_call(&self->events, "gated.get", WEFT_OBJ({"taskId", weft_str(self->id)}), on_gated_shown);
}

static void on_gated_sent(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    following *self = ctx;
    (void) peer;
    if (r < 0 || self->events.over)
        return; /* sent again, with the same key, when the connection is back */
    if (answer->error) {
        end_following(self, weft__hub_call_refused(self->app, "sendTask", answer->error));
        return;
    }
    snprintf(self->id, sizeof self->id, "%s", weft_get_str(answer->result, "taskId", ""));
    weft__terminal_line(&self->terminal, NULL, "%s", self->id);
    look_at_gated(self);
}

static void on_gated_ready(void *ctx, uint64_t head) {
    following *self = ctx;
    (void) head;
    if (*self->id)
        look_at_gated(self);
    else
        weft__event_follow_call(&self->events, "sendTask", weft_raw(self->send.text, self->send.len), on_gated_sent);
}

/* ---- events ---- */

static void on_said(following *self, const char *type, const weft_json *data) {
    weft_json text =
        strcmp(type, "session.output") == 0 ? weft_get(data, "text") : weft_pointer(data, "/update/content/text");
    weft_json kind = weft_pointer(data, "/update/sessionUpdate");
    weft_bytes bytes;
    bool said = strcmp(type, "session.output") == 0 || strcmp(weft_str_of(&kind, ""), "agent_message_chunk") == 0;
    if (said && !self->terminal.silent && weft_bytes_of(&text, &bytes) >= 0)
        weft__terminal_data(&self->terminal, bytes.data, bytes.len);
}

static void on_asked(following *self, const weft_json *data) {
    const char *id = weft_get_str(data, "questionId", "");
    weft__terminal_break(&self->terminal);
    weft__terminal_line(&self->terminal, WEFT_INK_WARN, "  asks: %.400s", weft_get_str(data, "title", ""));
    weft__terminal_line(&self->terminal, NULL, "  Answer from anywhere: weft answer %s allow|deny", id);
}

static void on_gated_event(void *ctx, const weft_json *event) {
    following *self = ctx;
    const char *type = weft_get_str(event, "type", "");
    weft_json data = weft_get(event, "data");
    bool ours = *self->id && strcmp(weft_get_str(&data, "gatedId", ""), self->id) == 0;
    bool talk = *self->session && strcmp(weft_get_str(&data, "sessionId", ""), self->session) == 0;
    if (ours && strcmp(type, "gated.iteration") == 0) {
        snprintf(self->session, sizeof self->session, "%s", weft_get_str(&data, "sessionId", ""));
        weft__terminal_break(&self->terminal);
        weft__terminal_line(&self->terminal, WEFT_INK_BOLD, "iteration %lld of %lld (%s)",
                            (long long) weft_get_int(&data, "iteration", 0),
                            (long long) weft_get_int(&data, "maxIterations", 0), weft_get_str(&data, "taskId", ""));
    } else if (ours && strcmp(type, "gated.gate") == 0) {
        weft__terminal_break(&self->terminal);
        put_gate_line(self, &data, weft_get_int(&data, "iteration", 0));
    } else if (ours && strcmp(type, "gated.finished") == 0)
        look_at_gated(self);
    else if (talk && strncmp(type, "session.", 8) == 0)
        on_said(self, type, &data);
    else if (talk && strcmp(type, "question.asked") == 0)
        on_asked(self, &data);
    else if (talk && strcmp(type, "question.answered") == 0)
        weft__terminal_line(&self->terminal, NULL, "  %s was answered: %.64s", weft_get_str(&data, "questionId", ""),
                            weft_get_str(&data, "name", weft_get_str(&data, "option", "deny")));
}

/* ---- Ctrl-C and limits ---- */

static void on_cancel_answered(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    following *self = ctx;
    (void) peer;
    if (r >= 0 && answer->error && !self->events.over)
        weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s could not be cancelled: %s", self->id,
                            answer->error->message);
}

static void on_gated_signal(void *ctx) {
    following *self = ctx;
    weft__terminal_break(&self->terminal);
    if (self->only_watches || self->signals++ || !*self->id || self->events.lost) {
        if (*self->id)
            weft__terminal_line(&self->terminal, NULL, self->signals > 1 ? "%s is being cancelled" : "%s goes on", self->id);
        end_following(self, self->only_watches ? WEFT_DONE : WEFT_INTERRUPTED);
        return;
    }
    weft__terminal_line(&self->terminal, NULL, "cancelling %s; Ctrl-C again leaves without waiting for its end", self->id);
    weft__event_follow_call(&self->events, "cancelTask", WEFT_OBJ({"taskId", weft_str(self->id)}), on_cancel_answered);
}

static void on_gated_limit(void *ctx) {
    following *self = ctx;
    weft__terminal_break(&self->terminal);
    end_following(self, weft__fail(self->app, WEFT_TOO_LATE, NULL, "%s has not ended in time; it goes on", self->id));
}

static weft_exit follow_gated(weft_app *app, following *self) {
    static const weft_texts types = {.items = {"gated.", "question.asked", "session.output", "session.update"}, .count = 4};
    const weft_task_settings *how = app->settings;
    self->app = app;
    self->terminal = (weft_terminal){.app = app, .silent = app->common.json};
    weft_event_follow_opts opts = {.url = how->url,
                                   .from = {.now = true, .types = &types},
                                   .patience_ms = PATIENCE_MS,
                                   .limit_ms = how->timeout_ms,
                                   .terminal = &self->terminal,
                                   .ctx = self,
                                   .on_ready = on_gated_ready,
                                   .on_event = on_gated_event,
                                   .on_signal = on_gated_signal,
                                   .on_limit = on_gated_limit};
    return weft__event_follow_run(&self->events, app, &opts);
}

/* ---- the words ---- */

static weft_exit send_gated(weft_app *app, const send_text *send) {
    const weft_task_settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(app, how->url, "sendTask", weft_raw(send->text, send->len), &answer);
    if (status)
        return status;
    const char *id = weft_get_str(answer.result, "taskId", "");
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else {
        weft__put_text(&app->out, id, strlen(id));
        fputc('\n', app->out.file);
    }
    if (app->err.terminal && !app->common.json)
        fprintf(app->err.file, "  Watch it: weft task watch %s\n", id);
    return WEFT_DONE;
}

weft_exit weft__gated_submit_word(weft_app *app, const char *prompt) {
    const weft_task_settings *how = app->settings;
    following self = {0};
    char key[WEFT_KEY_LEN];
    if (how->session || how->priority || how->retries || how->on_question)
        return weft__misused(app, "--session, --priority, --retries and --on-question are not for tasks with gates");
    weft__task_follow_key(key);
    int r = write_params(app, prompt, how->once ? how->once : how->wait ? key : NULL, &self.send);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    weft_exit status = how->wait ? follow_gated(app, &self) : send_gated(app, &self.send);
    weft_text_free(self.send.text, NULL);
    return status;
}

weft_exit weft__gated_watch_word(weft_app *app) {
    following self = {.only_watches = true};
    snprintf(self.id, sizeof self.id, "%s", app->args[0]);
    return follow_gated(app, &self);
}

weft_exit weft__gated_cancel_word(weft_app *app) {
    const weft_task_settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status =
        weft__hub_call_once(app, how->url, "cancelTask", WEFT_OBJ({"taskId", weft_str(app->args[0])}), &answer);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->err.file, "%s is %s\n", app->args[0], weft_get_str(answer.result, "state", "cancelled"));
    return WEFT_DONE;
}

/* ---- one of them ---- */

static void put_row(const weft_app *app, const char *label, const char *text) {
    if (!text || !*text)
        return;
    weft__ink(&app->out, WEFT_INK_BOLD);
    fprintf(app->out.file, "%-10s", label);
    weft__plain(&app->out);
    weft__put_prose(&app->out, text, strlen(text));
    fputc('\n', app->out.file);
}

static void put_names(const weft_app *app, const weft_json *list, const char *words, bool *any) {
    for (weft_iter it = weft_iterate(list); weft_next(&it);) {
        const char *name = weft_str_of(&it.value, "");
        fputs(*any ? ", " : "", app->out.file);
        weft__put_text(&app->out, name, strlen(name));
        fprintf(app->out.file, " %s", words);
        *any = true;
    }
}

static void put_iteration(const weft_app *app, const weft_json *turn) {
    weft_json passed = weft_get(turn, "passed"), failed = weft_get(turn, "failed");
    const char *task = weft_get_str(turn, "taskId", "");
    bool any = false;
    fprintf(app->out.file, "  %-3lld %-10s ", (long long) weft_get_int(turn, "iteration", 0), task);
    put_names(app, &failed, "did not pass", &any);
    put_names(app, &passed, "passed", &any);
    fputc('\n', app->out.file);
}

static void put_gated(const weft_app *app, const weft_json *task) {
    weft_json turns = weft_get(task, "iterations"), results = weft_get(task, "results");
    char iterations[64], state[64];
    const char *phase = weft_get_str(task, "phase", "");
    snprintf(iterations, sizeof iterations, "%lld of %lld", (long long) weft_get_int(task, "iteration", 0),
             (long long) weft_get_int(task, "maxIterations", 0));
    snprintf(state, sizeof state, "%s%s%s", weft_get_str(task, "state", ""), *phase ? ", " : "",
             strcmp(phase, "gates") == 0   ? "its gates run"
             : strcmp(phase, "agent") == 0 ? "its agent works"
                                           : "");
    put_row(app, "task", weft_get_str(task, "taskId", ""));
    put_row(app, "state", state);
    put_row(app, "error", weft_get_str(task, "error", ""));
    put_row(app, "reason", weft_get_str(task, "reason", ""));
    put_row(app, "agent", weft_get_str(task, "agent", ""));
    put_row(app, "session", weft_get_str(task, "sessionId", ""));
    put_row(app, "iteration", iterations);
    put_row(app, "prompt", weft_get_str(task, "prompt", ""));
    for (weft_iter it = weft_iterate(&turns); weft_next(&it);)
        put_iteration(app, &it.value);
    for (weft_iter it = weft_iterate(&results); weft_next(&it);) {
        weft_json found = weft_get(&it.value, "findings");
        if (!weft_count(&found))
            continue;
        fputc('\n', app->out.file);
        put_row(app, "gate", weft_get_str(&it.value, "gate", ""));
        weft__diagnostics_put(&app->out, &found, "  ");
    }
}

weft_exit weft__gated_get_word(weft_app *app) {
    const weft_task_settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status =
        weft__hub_call_once(app, how->url, "gated.get", WEFT_OBJ({"taskId", weft_str(app->args[0])}), &answer);
    if (status)
        return status;
    weft_json task = weft_get(answer.result, "task");
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(&task));
    else
        put_gated(app, &task);
    return WEFT_DONE;
}
