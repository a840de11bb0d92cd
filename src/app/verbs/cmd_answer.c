/* weft answer: the questions that wait for a person, and answering them, from any terminal. */
#include <ctype.h>
#include <string.h>

#include "failure.h"
#include "form_text.h"
#include "hub_call.h"
#include "question_text.h"
#include "stdin_lines.h"
#include "table.h"
#include "time_text.h"
#include "tool_call.h"

typedef struct settings {
    const char *url, *text, *always, *command, *beneath;
    bool all;
} settings;

typedef struct answering {
    weft_app *app;
    weft_connection connection;
    weft_answer list;
    weft_json questions;
} answering;

/* ---- answering ---- */

static int read_command_words(const char *text, char room[WEFT_TOOL_ROOM], weft_val ret[WEFT_TOOL_WORDS]) {
    const char *words[WEFT_TOOL_WORDS];
    int count = weft__tool_words(text, room, WEFT_TOOL_ROOM, words);
    for (int i = 0; i < count; i++)
        ret[i] = weft_str(words[i]);
    return count;
}

static void put_answered(const weft_app *app, const weft_json *result) {
    const char *approval = weft_get_str(result, "approvalId", NULL);
    fprintf(app->err.file, "answered with %s\n", weft_get_str(result, "option", "deny"));
    if (approval)
        weft__say(app, "The same answer is given from now on (%s). End that: weft approvals revoke %s", approval, approval);
}

/* content: what was filled in, JSON; NULL: nothing. */
static weft_exit answer_question(answering *self, const char *id, const char *option, const char *text,
                                 const weft_buf *content) {
    const weft_app *app = self->app;
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    char room[WEFT_TOOL_ROOM];
    weft_val words[WEFT_TOOL_WORDS];
    int count = how->command ? read_command_words(how->command, room, words) : 0;
    if (count < 0)
        return weft__misused(app, "--command: a program and its first arguments, without operators of a shell");
    weft_val always = WEFT_OBJ({"scope", weft_str_or_none(how->always)},
                               {"command", count ? weft_arr(words, (size_t) count) : weft_none()},
                               {"path", weft_str_or_none(how->beneath)});
    weft_exit status = weft__hub_call(
        &self->connection, "question.answer",
        WEFT_OBJ({"questionId", weft_str(id)}, {"option", weft_str(option)},
                 {"text", text && *text ? weft_str(text) : weft_none()},
                 {"content", content ? weft_raw(weft__buf_head(content), weft__buf_len(content)) : weft_none()},
                 {"always", how->always ? always : weft_none()}),
        &answer);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        put_answered(app, answer.result);
    return WEFT_DONE;
}

static bool read_typed(char *line, size_t size) {
    if (!fgets(line, (int) size, stdin))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

/* Field by field. The end of the input leaves the question open. */
static weft_exit fill_in_form(answering *self, const weft_json *question, const weft_json *form, const char *option,
                              const char *text) {
    char line[4096], why[WEFT_FORM_WHY];
    weft_form_filling filling;
    weft_exit status = WEFT_DONE;
    int r = weft__form_begin(&filling, form);
    if (r == 0)
        r = weft__form_close(&filling);
    while (r > 0 || r == -EINVAL) {
        weft__form_prompt(&filling, &self->app->err);
        if (!read_typed(line, sizeof line))
            break;
        r = weft__form_line(&filling, line, why);
        if (r == -EINVAL)
            fprintf(self->app->err.file, "  it %s\n", why);
    }
    if (r == 0)
        status = answer_question(self, weft_get_str(question, "id", ""), option, text, &filling.content);
    else if (r == -ENOMEM)
        status = weft__fail(self->app, WEFT_FAILED, NULL, "out of memory");
    weft__form_done(&filling);
    return status;
}

static weft_exit send_chosen(answering *self, const weft_json *question, const char *option, const char *text) {
    weft_json form = weft__form_of(question);
    if (form.text && strcmp(option, "accept") == 0)
        return fill_in_form(self, question, &form, option, text);
    return answer_question(self, weft_get_str(question, "id", ""), option, text, NULL);
}

/* At a terminal, blocking: there is nothing else to do meanwhile. */
static weft_exit ask_person(answering *self, const weft_json *question) {
    char line[4096];
    const char *text, *option;
    int r = 0;
    while (r <= 0) {
        fputs("your answer (number, allow or deny; Enter leaves it open): ", self->app->err.file);
        fflush(self->app->err.file);
        if (!read_typed(line, sizeof line) || !line[strspn(line, " \t")])
            return WEFT_DONE;
        r = weft__question_option(question, line, &option, &text);
        if (r <= 0)
            fprintf(self->app->err.file, "%s\n", weft__question_option_why(r));
    }
    return send_chosen(self, question, option, text);
}

/* ---- showing ---- */

static const weft_json *find_question(answering *self, const char *id, weft_json *ret) {
    for (weft_iter it = weft_iterate(&self->questions); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "id", ""), id) == 0) {
            *ret = it.value;
            return ret;
        }
    return NULL;
}

static bool is_question_open(const weft_json *question) {
    return strcmp(weft_get_str(question, "state", "open"), "open") == 0;
}

static int add_question_row(weft_table *table, const weft_json *question) {
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

static void put_question_table(const answering *self) {
    static const char *const heads[] = {"ID", "STATE", "OF", "AGE", "QUESTION", NULL};
    weft_table table = {.heads = heads};
    int r = 0;
    for (weft_iter it = weft_iterate(&self->questions); r >= 0 && weft_next(&it);)
        r = add_question_row(&table, &it.value);
    weft__table_put(&table, &self->app->out);
    weft__table_done(&table);
}

static void put_details(const answering *self) {
    const char *last = "question-0000";
    for (weft_iter it = weft_iterate(&self->questions); weft_next(&it);) {
        if (!is_question_open(&it.value))
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

/* One after the other, until the input ends. */
static weft_exit ask_each(answering *self) {
    weft_exit status = WEFT_DONE;
    bool first = true;
    for (weft_iter it = weft_iterate(&self->questions); !feof(stdin) && weft_next(&it); first = false) {
        if (!first)
            fputc('\n', self->app->out.file);
        weft__question_put(&self->app->out, &it.value);
        weft_exit answered = ask_person(self, &it.value);
        status = answered ? answered : status; /* somebody else may have answered; the others still wait */
    }
    return status;
}

static weft_exit show_all(answering *self) {
    weft_app *app = self->app;
    const settings *how = app->settings;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(self->list.result));
        return WEFT_DONE;
    }
    if (weft_count(&self->questions) == 0) {
        fputs("nothing waits for an answer\n", app->err.file);
        return WEFT_DONE;
    }
    if (!how->all && can_ask(app))
        return ask_each(self);
    put_question_table(self);
    put_details(self);
    return WEFT_DONE;
}

static weft_exit show_one(answering *self, const weft_json *question) {
    if (self->app->common.json) {
        weft__put_line(&self->app->out, weft_copy(question));
        return WEFT_DONE;
    }
    weft__question_put(&self->app->out, question);
    return is_question_open(question) && can_ask(self->app) ? ask_person(self, question) : WEFT_DONE;
}

/* ---- the verb ---- */

/* NAME=VALUE for each field, as a person would type it. */
static weft_exit answer_named(answering *self, const weft_json *question, const char *option) {
    const weft_app *app = self->app;
    const settings *how = app->settings;
    weft_json form = weft__form_of(question);
    char why[WEFT_FORM_WHY] = "";
    weft_form_filling filling;
    weft_exit status;
    if (!form.text)
        return weft__fail(app, WEFT_USAGE, "A reason is --text.", "%s has nothing to fill in", app->args[0]);
    int r = weft__form_begin(&filling, &form);
    size_t i = 2;
    for (; r >= 0 && i < app->arg_count; i++)
        r = weft__form_put_named(&filling, app->args[i], why);
    if (r >= 0)
        r = weft__form_close(&filling);
    if (r == -EINVAL)
        status = weft__fail(app, WEFT_USAGE, NULL, "\"%s\": it %s", app->args[i - 1], why);
    else if (r == -ENOENT)
        status = weft__fail(app, WEFT_USAGE, "Fields are NAME=VALUE; \"weft answer\" shows them.",
                            "there is no field \"%s\"", app->args[i - 1]);
    else if (r < 0)
        status = weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    else
        status = answer_question(self, app->args[0], option, how->text, &filling.content);
    weft__form_done(&filling);
    return status;
}

/* A number counts the options; everything else the hub understands itself. */
static weft_exit answer_with(answering *self, const char *id, const char *option) {
    const settings *how = self->app->settings;
    weft_json question;
    const char *text, *chosen = option;
    bool number = option[strspn(option, "0123456789")] == '\0';
    if (number && find_question(self, id, &question) && weft__question_option(&question, option, &chosen, &text) <= 0)
        return weft__fail(self->app, WEFT_USAGE, "\"weft answer\" shows what can be answered.", "%s has no option %s", id,
                          option);
    if (self->app->arg_count > 2 && find_question(self, id, &question))
        return answer_named(self, &question, chosen);
    return answer_question(self, id, chosen, how->text, NULL);
}

static weft_exit list_or_answer(answering *self) {
    const settings *how = self->app->settings;
    char **args = self->app->args;
    weft_json question;
    bool all = how->all || self->app->arg_count == 1;
    weft_exit status = weft__hub_call(&self->connection, "question.list",
                                      WEFT_OBJ({"all", all ? weft_bool(true) : weft_none()}), &self->list);
    if (status)
        return status;
    self->questions = weft_get(self->list.result, "questions");
    if (self->app->arg_count >= 2)
        return answer_with(self, args[0], args[1]);
    if (self->app->arg_count == 0)
        return show_all(self);
    if (!find_question(self, args[0], &question))
        return weft__fail(self->app, WEFT_NOT_FOUND, "\"weft answer\" shows which are open.", "there is no question %s",
                          args[0]);
    return show_one(self, &question);
}

static weft_exit run_answer(weft_app *app) {
    const settings *how = app->settings;
    answering self = {.app = app};
    if (app->arg_count > 2 && !strchr(app->args[2], '='))
        return weft__misused(app, "unexpected argument \"%s\"; a reason is --text", app->args[2]);
    if ((how->command || how->beneath) && !how->always)
        return weft__misused(app, "--command and --beneath go with --always");
    if (how->always && app->arg_count < 2)
        return weft__misused(app, "--always goes with an answer");
    if (how->text && app->arg_count < 2)
        return weft__misused(app, "--text goes with an answer");
    weft_exit status = weft__hub_call_open(app, how->url, &self.connection);
    if (status == WEFT_DONE)
        status = list_or_answer(&self);
    weft_answer_done(&self.list);
    weft__connection_done(&self.connection);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, text, text, "text", 0, "REASON", "say why; the agent gets to read it where it can"),
    {.name = "always",
     .kind = WEFT_OPTION_text,
     .value = "WHERE",
     .offset = offsetof(settings, always),
     .help = "allow the same kind of tool from now on, in this session or in the whole project",
     .choices = "session project"},
    WEFT_OPTION(settings, command, text, "command", 0, "WORDS", "with --always: only commands that begin with these words"),
    WEFT_OPTION(settings, beneath, text, "beneath", 0, "PATH", "with --always: only for files beneath this"),
    WEFT_OPTION(settings, all, flag, "all", 'a', NULL, "also those that are over"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft answer",
    "what waits for a person, with what would change; at a terminal you can answer each right there",
    "weft answer question-0001 allow",
    "this once; \"deny\" refuses; an option's number, id or kind (allow_always) means that one",
    "weft answer question-0001 deny --text 'not in this file'",
    "with a reason",
    "weft answer question-0001 allow --always project --command 'npm test'",
    "and do not ask again for commands that begin so; \"weft approvals\" lists what was allowed",
    "weft answer question-0001 accept branch=main force=no",
    "a form: each field by its name; at a terminal they are asked one after the other",
    NULL,
};

const weft_verb weft__answer_verb = {
    .name = "answer",
    .help = "show the questions of agents, and answer them",
    .usage = "[ID [OPTION [NAME=VALUE]...]]",
    .examples = examples,
    .about = "The first answer counts: who comes later gets status 8. Questions stay open over a restart\n"
             "where their task is queued again (tasks.on_restart: \"requeue\"); else they end with it.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_answer,
};
