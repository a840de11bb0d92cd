/* The questions of a task: put before the person at the terminal, or, where there is none, told how to be answered from
 * elsewhere. An event only says that it is time to look; the hub knows what is open now. */
#include <errno.h>
#include <string.h>

#include "failure.h"
#include "question_text.h"
#include "task_follow.h"

static void on_answer_line(void *ctx, const char *line);

static void tell_asking(weft_task_follow *self, bool asks) {
    if (self->opts->on_asking)
        self->opts->on_asking(self, asks);
}

static void prompt_for_answer(weft_task_follow *self) {
    weft__terminal_clear(&self->terminal);
    tell_asking(self, true);
    fputs("your answer (number, allow or deny): ", self->app->err.file);
    fflush(self->app->err.file);
    weft__task_follow_want(self, on_answer_line, self);
}

void weft__task_follow_forget(weft_task_follow *self) {
    bool asked = *self->question && self->stdin_lines.open;
    if (asked)
        weft__stdin_lines_want(&self->stdin_lines, NULL, NULL);
    *self->question = '\0';
    if (asked)
        tell_asking(self, false);
    weft__form_done(&self->filling);
    self->open = weft_doc_free(self->open);
}

/* ---- answering ---- */

static void on_answer_taken(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_task_follow *self = ctx;
    (void) peer;
    if (r < 0 || self->events.over)
        return; /* a connection that was lost: it is shown again if it is still open */
    if (answer->error)
        weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s: %s", self->ours, answer->error->message);
    weft__task_follow_questions(self);
}

/* content: what was filled in; NULL: nothing. */
static void send_typed_answer(weft_task_follow *self, const char *option, const char *text, const weft_buf *content) {
    snprintf(self->ours, sizeof self->ours, "%s", self->question);
    weft__event_follow_call(
        &self->events, "question.answer",
        WEFT_OBJ({"questionId", weft_str(self->question)}, {"option", weft_str(option)},
                 {"text", *text ? weft_str(text) : weft_none()},
                 {"content", content ? weft_raw(weft__buf_head(content), weft__buf_len(content)) : weft_none()}),
        on_answer_taken);
    weft__task_follow_forget(self);
}

static void on_form_line(void *ctx, const char *line);

static void prompt_for_field(weft_task_follow *self) {
    weft__terminal_clear(&self->terminal);
    tell_asking(self, true);
    weft__form_prompt(&self->filling, &self->app->err);
    weft__task_follow_want(self, on_form_line, self);
}

static void leave_open(weft_task_follow *self) {
    fputc('\n', self->app->err.file);
    weft__terminal_line(&self->terminal, NULL, "It stays open: weft answer %s", self->question);
    weft__task_follow_forget(self);
}

/* r as of weft__form_line(). */
static void go_on_filling_in(weft_task_follow *self, int r, const char *why) {
    if (r == 0)
        send_typed_answer(self, "accept", "", &self->filling.content);
    else if (r == -ENOMEM)
        leave_open(self);
    else {
        if (r == -EINVAL)
            weft__terminal_line(&self->terminal, WEFT_INK_WARN, "  it %s", why);
        prompt_for_field(self);
    }
}

static void on_form_line(void *ctx, const char *line) {
    weft_task_follow *self = ctx;
    char why[WEFT_FORM_WHY] = "";
    if (!*self->question)
        return;
    if (!line)
        leave_open(self);
    else
        go_on_filling_in(self, weft__form_line(&self->filling, line, why), why);
}

/* true: there is a form, and it is being filled in. */
static bool fill_in_form(weft_task_follow *self, const char *option) {
    weft_json form = weft__form_of(weft_doc_root(self->open));
    if (!form.text || strcmp(option, "accept") != 0)
        return false;
    int r = weft__form_begin(&self->filling, &form);
    go_on_filling_in(self, r == 0 ? weft__form_close(&self->filling) : r, "");
    return true;
}

static void on_answer_line(void *ctx, const char *line) {
    weft_task_follow *self = ctx;
    const char *text, *option;
    if (!*self->question)
        return;
    if (!line) {
        leave_open(self);
        return;
    }
    int r = weft__question_option(weft_doc_root(self->open), line, &option, &text);
    if (r > 0) {
        if (!fill_in_form(self, option))
            send_typed_answer(self, option, text, NULL);
        return;
    }
    weft__terminal_line(&self->terminal, WEFT_INK_WARN, "%s", weft__question_option_why(r));
    prompt_for_answer(self);
}

/* ---- showing ---- */

static bool was_shown(weft_task_follow *self, const char *id) {
    char word[WEFT_TASK_ID + 2];
    snprintf(word, sizeof word, "%s ", id);
    if (strstr(self->shown, word))
        return true;
    size_t used = strlen(self->shown);
    if (used + strlen(word) >= sizeof self->shown)
        used = 0;
    snprintf(self->shown + used, sizeof self->shown - used, "%s", word);
    return false;
}

static void put_question(weft_task_follow *self, const weft_json *question) {
    weft__terminal_clear(&self->terminal);
    if (self->app->out.terminal)
        weft__terminal_break(&self->terminal);
    weft__question_put(&self->app->err, question);
    fflush(self->app->err.file);
}

/* ---- without a person ---- */

weft_on_question weft__task_on_question(const char *name) {
    static const char *const names[] = {"ask", "deny", "allow", "fail"};
    for (size_t i = 0; name && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return (weft_on_question) i;
    return WEFT_QUESTION_ASK;
}

/* The task cannot go on, and nobody is to wait for it. */
static void give_up(weft_task_follow *self, const char *id) {
    char line[200];
    snprintf(line, sizeof line, "cancelling %s: its agent asks something (%s), and --on-question does not answer that",
             self->task, id);
    weft__task_follow_cancel(self, line);
}

/* Once, and never for good: that is for a person to say. A form is declined, as there is nothing to fill in. */
static void answer_as_told(weft_task_follow *self, const weft_json *question) {
    const char *id = weft_get_str(question, "id", ""), *option, *text;
    bool allow = self->opts->on_question == WEFT_QUESTION_ALLOW && !weft__form_of(question).text;
    if (*self->question || strlen(id) >= sizeof self->question || was_shown(self, id))
        return;
    put_question(self, question);
    if (self->opts->on_question == WEFT_QUESTION_FAIL ||
        weft__question_option(question, allow ? "allow" : "deny", &option, &text) <= 0) {
        give_up(self, id);
        return;
    }
    weft__terminal_line(&self->terminal, NULL, "%s: %s, as --on-question says", id, allow ? "allowed" : "denied");
    snprintf(self->question, sizeof self->question, "%s", id);
    send_typed_answer(self, option, allow ? "" : "--on-question deny", NULL);
}

static void show_question(weft_task_follow *self, const weft_json *question) {
    const char *id = weft_get_str(question, "id", "");
    bool asks = weft__stdin_is_person() && !self->app->common.json && !self->stdin_lines.ended;
    if (self->opts->on_question != WEFT_QUESTION_ASK) {
        answer_as_told(self, question);
        return;
    }
    if (*self->question || strlen(id) >= sizeof self->question)
        return; /* one at a time: the others when this one is over */
    if (was_shown(self, id) && !asks)
        return;
    if (!asks) {
        put_question(self, question);
        weft__terminal_line(&self->terminal, NULL, "  Answer from anywhere: weft answer %s %s", id,
                            weft__form_of(question).text ? "accept NAME=VALUE..." : "allow|deny");
        return;
    }
    if (weft_doc_keep(question, NULL, &self->open) < 0)
        return;
    snprintf(self->question, sizeof self->question, "%s", id);
    put_question(self, weft_doc_root(self->open));
    prompt_for_answer(self);
}

static void on_list(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_task_follow *self = ctx;
    (void) peer;
    if (r < 0 || answer->error || !*self->task || self->events.over)
        return;
    weft_json questions = weft_get(answer->result, "questions");
    for (weft_iter it = weft_iterate(&questions); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "taskId", ""), self->task) == 0 &&
            strcmp(weft_get_str(&it.value, "state", "open"), "open") == 0)
            show_question(self, &it.value);
}

void weft__task_follow_questions(weft_task_follow *self) {
    weft__event_follow_call(&self->events, "question.list", weft_none(), on_list);
}

void weft__task_follow_resolved(weft_task_follow *self, const char *type, const weft_json *data) {
    const char *id = weft_get_str(data, "questionId", "");
    const char *option = weft_get_str(data, "option", ""), *by = weft_get_str(data, "by", "");
    option = *option ? option : weft_get_str(data, "name", "");
    if (!*id || strcmp(id, self->question) != 0)
        return;
    fputc('\n', self->app->err.file);
    if (*option)
        weft__terminal_line(&self->terminal, NULL, "%s was answered with %s%s%s", id, option, *by ? " by " : "", by);
    else
        weft__terminal_line(&self->terminal, NULL, "%s is over: %s", id, type + strlen("question."));
    weft__task_follow_forget(self);
    weft__task_follow_questions(self);
}
