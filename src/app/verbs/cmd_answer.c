/* weft answer: the questions that wait for a person, and answering them, from any terminal. */
#include <ctype.h>
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "question_text.h"
#include "stdin_lines.h"
#include "table.h"
#include "time_text.h"

typedef struct settings {
    const char *url, *text;
    bool all;
} settings;

typedef struct answering {
    weft_app *app;
    weft_connection connection;
    weft_answer list;
    weft_json questions;
} answering;

/* ---- answering ---- */

static weft_exit send_answer(answering *self, const char *id, const char *option, const char *text) {
    const weft_app *app = self->app;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call(&self->connection, "question.answer",
                                      WEFT_OBJ({"questionId", weft_str(id)}, {"option", weft_str(option)},
                                               {"text", text && *text ? weft_str(text) : weft_none()}),
                                      &answer);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->err.file, "answered with %s\n", weft_get_str(answer.result, "option", "deny"));
    return WEFT_DONE;
}

/* At a terminal, blocking: there is nothing else to do meanwhile. */
static weft_exit ask_person(answering *self, const weft_json *question) {
    char line[4096];
    const char *text, *option;
    int r = 0;
    while (r <= 0) {
        fputs("your answer (a number, and a reason if you like; Enter leaves it open): ", self->app->err.file);
        fflush(self->app->err.file);
        if (!fgets(line, sizeof line, stdin) || !line[strspn(line, " \t\n")])
            return WEFT_DONE;
        line[strcspn(line, "\n")] = '\0';
        r = weft__question_option(question, line, &option, &text);
        if (r <= 0)
            fprintf(self->app->err.file, "%s\n", weft__question_option_why(r));
    }
    return send_answer(self, weft_get_str(question, "id", ""), option, text);
}

/* ---- showing ---- */

static const weft_json *find(answering *self, const char *id, weft_json *ret) {
    for (weft_iter it = weft_iterate(&self->questions); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "id", ""), id) == 0) {
            *ret = it.value;
            return ret;
        }
    return NULL;
}

static bool is_open(const weft_json *question) {
    return strcmp(weft_get_str(question, "state", "open"), "open") == 0;
}

static int add(weft_table *table, const weft_json *question) {
    char age[WEFT_TIME_TEXT] = "";
    int64_t asked = weft__time_get(question, "createdAt");
    if (asked)
        weft__duration(age, weft__time_now() - asked);
    const char *cells[] = {weft_get_str(question, "id", ""), weft_get_str(question, "state", ""),
                           weft_get_str(question, "taskId", weft_get_str(question, "ruleId", "-")), age,
                           weft_get_str(question, "title", "")};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

static void put_table(const answering *self) {
    static const char *const heads[] = {"ID", "STATE", "OF", "AGE", "QUESTION", NULL};
    weft_table table = {.heads = heads};
    int r = 0;
    for (weft_iter it = weft_iterate(&self->questions); r >= 0 && weft_next(&it);)
        r = add(&table, &it.value);
    weft__table_put(&table, &self->app->out);
    weft__table_done(&table);
}

static void put_details(const answering *self) {
    const char *last = "question-0000";
    for (weft_iter it = weft_iterate(&self->questions); weft_next(&it);) {
        if (!is_open(&it.value))
            continue;
        fputc('\n', self->app->out.file);
        weft__question_put(&self->app->out, &it.value);
        last = weft_get_str(&it.value, "id", last);
    }
    fflush(self->app->out.file);
    if (self->app->err.terminal)
        fprintf(self->app->err.file, "\n  Answer one: weft answer %s allow, or deny, or one of its numbers\n", last);
}

static bool can_ask(const weft_app *app) {
    return weft__stdin_is_person() && app->out.terminal && !app->common.json;
}

static weft_exit show_all(answering *self) {
    weft_app *app = self->app;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(self->list.result));
        return WEFT_DONE;
    }
    if (weft_count(&self->questions) == 0) {
        fputs("nothing waits for an answer\n", app->err.file);
        return WEFT_DONE;
    }
    weft_json only = weft_at(&self->questions, 0);
    if (weft_count(&self->questions) == 1 && is_open(&only) && can_ask(app)) {
        weft__question_put(&app->out, &only);
        return ask_person(self, &only);
    }
    put_table(self);
    put_details(self);
    return WEFT_DONE;
}

static weft_exit show_one(answering *self, const weft_json *question) {
    if (self->app->common.json) {
        weft__put_line(&self->app->out, weft_copy(question));
        return WEFT_DONE;
    }
    weft__question_put(&self->app->out, question);
    return is_open(question) && can_ask(self->app) ? ask_person(self, question) : WEFT_DONE;
}

/* ---- the verb ---- */

/* A number counts the options; everything else the hub understands itself. */
static weft_exit answer_with(answering *self, const char *id, const char *option) {
    const settings *how = self->app->settings;
    weft_json question;
    const char *text, *chosen = option;
    bool number = option[strspn(option, "0123456789")] == '\0';
    if (number && find(self, id, &question) && weft__question_option(&question, option, &chosen, &text) <= 0)
        return weft__fail(self->app, WEFT_USAGE, "\"weft answer\" shows what can be answered.", "%s has no option %s", id,
                          option);
    return send_answer(self, id, chosen, how->text);
}

static weft_exit act(answering *self) {
    const settings *how = self->app->settings;
    char **args = self->app->args;
    weft_json question;
    bool all = how->all || self->app->arg_count == 1;
    weft_exit status =
        weft__hub_call(&self->connection, "question.list", WEFT_OBJ({"all", all ? weft_bool(true) : weft_none()}), &self->list);
    if (status)
        return status;
    self->questions = weft_get(self->list.result, "questions");
    if (self->app->arg_count == 2)
        return answer_with(self, args[0], args[1]);
    if (self->app->arg_count == 0)
        return show_all(self);
    if (!find(self, args[0], &question))
        return weft__fail(self->app, WEFT_NOT_FOUND, "\"weft answer\" shows which are open.", "there is no question %s",
                          args[0]);
    return show_one(self, &question);
}

static weft_exit run(weft_app *app) {
    const settings *how = app->settings;
    answering self = {.app = app};
    if (app->arg_count > 2)
        return weft__misused(app, "\"%s\" has no place here; a reason is --text", app->args[2]);
    if (how->text && app->arg_count != 2)
        return weft__misused(app, "--text goes with an answer");
    weft_exit status = weft__hub_call_open(app, how->url, &self.connection);
    if (status == WEFT_DONE)
        status = act(&self);
    weft_answer_done(&self.list);
    weft__connection_done(&self.connection);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, text, text, "text", 0, "REASON", "say why; the agent gets to read it where it can"),
    WEFT_OPTION(settings, all, flag, "all", 'a', NULL, "also those that are over"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft answer",
    "what waits for a person, with what would change; a single one can be answered right there",
    "weft answer question-0001 allow",
    "this once; \"deny\" refuses; an option's number, id or kind (allow_always) means that one",
    "weft answer question-0001 deny --text 'not in this file'",
    "with a reason",
    NULL,
};

const weft_verb weft__answer_verb = {
    .name = "answer",
    .help = "show the questions of agents, and answer them",
    .usage = "[ID [OPTION]]",
    .examples = examples,
    .about = "The first answer counts: who comes later gets status 8. Questions stay open over a restart\n"
             "where their task is queued again (tasks.on_restart: \"requeue\"); else they end with it.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run,
};
