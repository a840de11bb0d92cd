/* What an agent asks in its turn: who answers it, a person or what was said before, and telling the agent. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "option.h"
#include "run.h"
#include "utf8.h"

/* A question that was not asked. */
typedef struct refusal {
    weft_link link;
    char key[];
} refusal;

/* ---- answered at once ---- */

/* What the configuration says instead of a person. Allowing is for this once: what an agent is given for good, a person
 * gives. NULL: there is no such option. */
static const char *configured_option(const struct run *run, const known_question *question, const weft_json *options) {
    bool allowed = run->agent->permission == WEFT_PERMISSION_ALLOW || *question->auto_by;
    const char *said = allowed ? "allow_once" : "deny", *id = NULL;
    return weft__option_meant(options, said, strlen(said), &id) > 0 ? id : NULL;
}

/* Asked and answered in one append, so that nobody sees it open. Without an option of that kind a person is asked. */
static int answer_at_once(struct run *run, known_question *question) {
    weft_doc *doc;
    int r = weft_doc_parse(question->pub.options, strlen(question->pub.options), run->engine->alloc, &doc);
    if (r < 0)
        return r;
    const char *option = configured_option(run, question, weft_doc_root(doc));
    if (option)
        r = weft__outbox_question(run, question, option);
    question->configured = option && r >= 0;
    weft_doc_free(doc);
    return r;
}

/* Need a person not be asked, because somebody said so before: with the task, or for good? */
static bool is_answered_before(struct run *run, known_question *question) {
    const weft_task *task = &run->task->pub;
    char by[60];
    if (weft__policy_allows(run->engine, &question->pub, task->permission)) {
        snprintf(question->auto_by, sizeof question->auto_by, "the task's permission (%s)",
                 weft__task_permissions[task->permission]);
        return true;
    }
    /* What the configuration denies, nobody has allowed before. */
    if (run->agent->permission == WEFT_PERMISSION_DENY)
        return false;
    const char *approval = weft__approval_for(run->engine, &question->pub, task->runs_on, by, sizeof by);
    if (!approval)
        return false;
    snprintf(question->auto_by, sizeof question->auto_by, "%s", by);
    snprintf(question->approval, sizeof question->approval, "%s", approval);
    return true;
}

/* A task that says what may be done says more than its agent's configuration. */
static bool is_configured(const struct run *run, const known_question *question) {
    return run->agent->permission != WEFT_PERMISSION_ASK && strcmp(question->pub.kind, "permission") == 0 &&
           run->task->pub.permission == WEFT_TASK_AS_CONFIGURED;
}

static int ask_new_question(struct run *run, known_question *question) {
    bool answered = is_answered_before(run, question) || is_configured(run, question);
    int r = weft__outbox_question(run, question, NULL);
    /* It is on its way from here on: a failure to answer it leaves it to a person. */
    if (r >= 0 && answered && answer_at_once(run, question) < 0)
        weft__note(run->engine, "%s: out of memory, a person must answer it", question->id);
    return r;
}

/* ---- asked ---- */

/* Nobody can be asked this: the agent hears that nothing was chosen, but not from within its own call. Whoever watches is
 * told as well. */
static int refuse_question(struct run *run, const char *key) {
    static const char told[] = "weft: the agent asked something that nobody can be asked (it is too large, or too many "
                               "questions are open); it was told that nothing was chosen\n";
    size_t size = strlen(key) + 1;
    if (weft__outbox_output(run, WEFT_RUN_STDERR, (weft_bytes){told, sizeof told - 1}) < 0)
        return -ENOMEM;
    refusal *made = weft__alloc(run->engine->alloc, sizeof *made + size);
    if (!made)
        return -ENOMEM;
    memcpy(made->key, key, size);
    weft__list_push(&run->refusals, &made->link);
    weft__run_soon(run);
    return 0;
}

void weft__run_ask(struct run *run, const char *key, weft_val asked) {
    known_question *question = NULL;
    int r = weft__question_of_run(run->engine, run, &run->task->pub, key, asked, &question);
    if (r >= 0 && !question)
        r = refuse_question(run, key);
    else if (r >= 0 && question->stored)
        r = weft__outbox_event(run, true, "question.adopted", WEFT_OBJ(WEFT_OF_QUESTION(question)));
    else if (r >= 0)
        r = ask_new_question(run, question);
    if (r < 0 && question) {
        question->run = NULL;
        if (!question->stored)
            weft__question_drop(run->engine, question);
    }
    weft__run_kept(run, r);
}

void weft__run_tell_refusals(struct run *run) {
    while (!weft__list_empty(&run->refusals)) {
        refusal *first = WEFT_CONTAINER(run->refusals.next, refusal, link);
        weft__list_remove(&first->link);
        if (run->turn)
            weft__pool_answer(run->turn, first->key, NULL);
        weft__free(run->engine->alloc, first);
    }
}

void weft__run_unask(struct run *run, const char *key) {
    weft_engine *engine = run->engine;
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->run == run && question->key && strcmp(question->key, key) == 0)
            weft__question_close(engine, question, "question.withdrawn", "agentWithdrew");
    }
}

/* ---- answered ---- */

/* NULL: the agent is told that nothing was chosen, which every agent takes for a no. */
static const char *chosen_option(const known_question *question) {
    const char *option = question->pub.option;
    return option && strcmp(option, WEFT_OPTION_DENIED) != 0 ? option : NULL;
}

/* Did the answer allow what was asked? Who does not know the kind of what was chosen does not say that it was denied. */
static bool is_denied(const known_question *question) {
    const weft_question *pub = &question->pub;
    weft_doc *doc = NULL;
    if (!pub->option || strcmp(pub->option, WEFT_OPTION_DENIED) == 0)
        return true;
    if (weft_doc_parse(pub->options, strlen(pub->options), question->engine->alloc, &doc) < 0)
        return false;
    bool denied = weft__option_rejects(weft_doc_root(doc), pub->option);
    weft_doc_free(doc);
    return denied;
}

/* An agent may end its turn because of it, and then that is why the task did not end well. */
static void note_denial(struct run *run, const known_question *question) {
    const weft_question *pub = &question->pub;
    int shown = (int) weft__utf8_fit(pub->title, strlen(pub->title), 150);
    bool answered = pub->state == WEFT_QUESTION_ANSWERED;
    *run->denied = '\0';
    if (!is_denied(question))
        return;
    run->no_reason = answered ? "denied" : "unanswered";
    if (answered)
        snprintf(run->denied, sizeof run->denied, "The agent stopped because %.80s denied %s (%.*s).",
                 pub->by && *pub->by ? pub->by : "somebody", question->id, shown, pub->title);
    else
        snprintf(run->denied, sizeof run->denied, "The agent stopped because nobody answered %s (%.*s).", question->id,
                 shown, pub->title);
}

static int give_content(struct run *run, const known_question *question) {
    const char *content = question->pub.content;
    weft_doc *doc = NULL;
    int r = weft_doc_parse(content, strlen(content), run->engine->alloc, &doc);
    if (r >= 0)
        weft__pool_accept(run->turn, question->key, weft_doc_root(doc));
    weft_doc_free(doc);
    return r;
}

void weft__run_answer(struct run *run, known_question *question) {
    question->run = NULL;
    note_denial(run, question);
    if (run->turn && question->key && question->pub.content)
        weft__run_kept(run, give_content(run, question));
    else if (run->turn && question->key)
        weft__pool_answer(run->turn, question->key, chosen_option(question));
}
