/* The questions of a task: put before the person at the terminal, or, where there is none, told how to be answered from
 * elsewhere. An event only says that it is time to look; the hub knows what is open now. */
#include <errno.h>
#include <string.h>

#include "asked.h"
#include "attend.h"
#include "say.h"

static void on_answer_line(void *ctx, const char *line);

static void prompt_for_answer(weft_attend *self) {
    weft__talk_clear(&self->talk);
    fputs("your answer (a number, and a reason if you like): ", self->app->err.file);
    fflush(self->app->err.file);
    weft__attend_want(self, on_answer_line, self);
}

void weft__attend_forget(weft_attend *self) {
    if (*self->question && self->person.open)
        weft__person_want(&self->person, NULL, NULL);
    *self->question = '\0';
    self->open = weft_doc_free(self->open);
}

/* ---- answering ---- */

static void on_answer_taken(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_attend *self = ctx;
    (void) peer;
    if (r < 0 || self->live.over)
        return; /* a connection that was lost: it is shown again if it is still open */
    if (answer->error)
        weft__talk_line(&self->talk, WEFT_INK_WARN, "%s: %s", self->ours, answer->error->message);
    weft__attend_look(self);
}

static void send_typed_answer(weft_attend *self, const char *option, const char *text) {
    snprintf(self->ours, sizeof self->ours, "%s", self->question);
    weft__live_call(&self->live, "question.answer",
                    WEFT_OBJ({"questionId", weft_str(self->question)}, {"option", weft_str(option)},
                             {"text", *text ? weft_str(text) : weft_none()}),
                    on_answer_taken);
    weft__attend_forget(self);
}

static void on_answer_line(void *ctx, const char *line) {
    weft_attend *self = ctx;
    const char *text, *option;
    if (!*self->question)
        return;
    if (!line) {
        fputc('\n', self->app->err.file);
        weft__talk_line(&self->talk, NULL, "It stays open: weft answer %s allow", self->question);
        weft__attend_forget(self);
        return;
    }
    int r = weft__asked_option(weft_doc_root(self->open), line, &option, &text);
    if (r > 0) {
        send_typed_answer(self, option, text);
        return;
    }
    weft__talk_line(&self->talk, WEFT_INK_WARN, "%s", weft__asked_why(r));
    prompt_for_answer(self);
}

/* ---- showing ---- */

static bool was_shown(weft_attend *self, const char *id) {
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

static void put_question(weft_attend *self, const weft_json *question) {
    weft__talk_clear(&self->talk);
    if (self->app->out.terminal)
        weft__talk_break(&self->talk);
    weft__asked_put(&self->app->err, question);
    fflush(self->app->err.file);
}

static void show_question(weft_attend *self, const weft_json *question) {
    const char *id = weft_get_str(question, "id", "");
    bool asks = weft__person_is_there() && !self->app->common.json && !self->person.ended;
    if (*self->question || strlen(id) >= sizeof self->question)
        return; /* one at a time: the others when this one is over */
    if (was_shown(self, id) && !asks)
        return;
    if (!asks) {
        put_question(self, question);
        weft__talk_line(&self->talk, NULL, "  Answer from anywhere: weft answer %s allow|deny", id);
        return;
    }
    if (weft_doc_keep(question, NULL, &self->open) < 0)
        return;
    snprintf(self->question, sizeof self->question, "%s", id);
    put_question(self, weft_doc_root(self->open));
    prompt_for_answer(self);
}

static void on_list(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_attend *self = ctx;
    (void) peer;
    if (r < 0 || answer->error || !*self->task || self->live.over)
        return;
    weft_json questions = weft_get(answer->result, "questions");
    for (weft_iter it = weft_iterate(&questions); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "taskId", ""), self->task) == 0 &&
            strcmp(weft_get_str(&it.value, "state", "open"), "open") == 0)
            show_question(self, &it.value);
}

void weft__attend_look(weft_attend *self) {
    weft__live_call(&self->live, "question.list", weft_none(), on_list);
}

void weft__attend_resolved(weft_attend *self, const char *type, const weft_json *data) {
    const char *id = weft_get_str(data, "questionId", "");
    const char *option = weft_get_str(data, "option", ""), *by = weft_get_str(data, "by", "");
    option = *option ? option : weft_get_str(data, "name", "");
    if (!*id || strcmp(id, self->question) != 0)
        return;
    fputc('\n', self->app->err.file);
    if (*option)
        weft__talk_line(&self->talk, NULL, "%s was answered with %s%s%s", id, option, *by ? " by " : "", by);
    else
        weft__talk_line(&self->talk, NULL, "%s is over: %s", id, type + strlen("question."));
    weft__attend_forget(self);
    weft__attend_look(self);
}
