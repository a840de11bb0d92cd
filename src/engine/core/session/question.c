/* Questions: what somebody must decide, kept until it is answered, expires or is withdrawn, whoever asked and whoever
 * listens. Exactly one end of a question is ever stored, because every end is appended with the question's key. How one
 * begins is in question_ask.c.
 *
 *     open ──question.answered──▶ answered     open ──question.expired──▶ expired     open ──question.withdrawn──▶ withdrawn
 *
 * An open question whose agent has gone with an earlier daemon is orphaned: it stays open, and when its task runs again and
 * asks the same thing, it is that run's, with its answer if there is one already. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"
#include "form.h"
#include "option.h"
#include "pack.h"

#define REMEMBERED 1000 /* that are over */

const char *const weft__question_states[] = {"open", "answered", "expired", "withdrawn"};

known_question *weft__question_known(const weft_engine *engine, const char *id) {
    weft_node *node = id ? weft__map_find(&engine->questions, id) : NULL;
    return node ? WEFT_CONTAINER(node, known_question, node) : NULL;
}

static known_question *question_of(const weft_engine *engine, const weft_json *data) {
    char id[ENGINE_ID];
    return weft__question_known(engine, weft__id(data, "questionId", id));
}

/* ---- life ---- */

void weft__question_id(char ret[ENGINE_ID], uint64_t number) {
    weft__name_numbered(ret, "question-", number);
}

int weft__question_renumber(weft_engine *engine, known_question *question) {
    if (engine->next_question >= ENGINE_NUMBERS)
        return -EOVERFLOW;
    /* Not in the map any more if the other writer's was delivered. */
    weft__map_remove(&engine->questions, &question->node);
    question->number = engine->next_question++;
    weft__question_id(question->id, question->number);
    weft__map_put(&engine->questions, &question->node, question->id);
    return 0;
}

static void on_question_expiry(weft_timer *timer) {
    known_question *question = WEFT_CONTAINER(timer, known_question, expiry);
    if (question->close_type)
        weft__question_close(question->engine, question, question->close_type, question->close_reason);
    else
        weft__question_close(question->engine, question, "question.expired", NULL);
}

int weft__question_new(weft_engine *engine, const question_parts *parts, known_question **ret) {
    size_t text = weft__pack_size(parts->task) + weft__pack_size(parts->session) + weft__pack_size(parts->rule) +
                  weft__pack_size(parts->kind) + weft__pack_size(parts->title) + weft__pack_size(parts->digest) +
                  parts->options.len + parts->detail.len + 2;
    known_question *question = weft__zalloc(engine->alloc, sizeof *question + text);
    if (!question)
        return -ENOMEM;
    char *at = question->text;
    question->engine = engine;
    question->number = parts->number;
    question->timeout_ms = parts->timeout_ms;
    question->digest = weft__pack(&at, parts->digest);
    snprintf(question->id, sizeof question->id, "%s", parts->id);
    question->pub = (weft_question){
        .id = question->id,
        .task = weft__pack(&at, parts->task),
        .session = weft__pack(&at, parts->session),
        .rule = weft__pack(&at, parts->rule),
        .kind = weft__pack(&at, parts->kind),
        .title = weft__pack(&at, parts->title),
        .options = weft__pack_bytes(&at, parts->options.data, parts->options.len),
        .detail = weft__pack_bytes(&at, parts->detail.data, parts->detail.len),
    };
    weft__timer_init(&question->expiry, on_question_expiry);
    weft__saved_init(&question->saved, SAVED_QUESTION);
    weft__list_push(&engine->all_questions, &question->link);
    weft__map_put(&engine->questions, &question->node, question->id);
    engine->question_count++;
    question->bytes = text;
    engine->question_bytes += text;
    *ret = question;
    return 0;
}

known_question *weft__question_drop(weft_engine *engine, known_question *question) {
    if (!question)
        return NULL;
    if (question->pub.state == WEFT_QUESTION_OPEN) {
        engine->question_count--;
        engine->question_bytes -= question->bytes;
    } else
        engine->question_over--;
    weft__saved_forget(engine, &question->saved, question->id);
    weft__timer_stop(engine->loop, &question->expiry);
    weft__list_remove(&question->link);
    weft__map_remove(&engine->questions, &question->node);
    weft__free(engine->alloc, question->key);
    weft__free(engine->alloc, question->answer);
    return weft__free(engine->alloc, question);
}

void weft__question_tidy(weft_engine *engine) {
    weft_link *link = engine->all_questions.next;
    while (engine->question_over > REMEMBERED && link != &engine->all_questions) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        link = link->next;
        if (question->stored && question->pub.state != WEFT_QUESTION_OPEN && !question->run)
            weft__question_drop(engine, question);
    }
}

void weft__question_set_expiry(weft_engine *engine, known_question *question) {
    if (question->pub.state != WEFT_QUESTION_OPEN || !question->pub.expires_ms)
        return;
    /* The wall clock says how much of the time is over, once, at a start; from then on the monotonic one runs. */
    int64_t left = engine->phase == RECOVERING ? weft__add_ms(question->pub.expires_ms, -weft__engine_now(engine))
                                               : question->timeout_ms;
    /* Set back meanwhile, it would give more time than there was. */
    left = left > question->timeout_ms ? question->timeout_ms : left > 0 ? left : 0;
    weft__timer_set(engine->loop, &question->expiry, weft__add_ms(weft_loop_now(engine->loop), left));
}

/* ---- what was asked ---- */

/* The name of the option with this id; NULL: there is none. To deny needs no option. */
static const char *option_name(const weft_json *options, const char *id) {
    if (strcmp(id, WEFT_OPTION_DENIED) == 0)
        return "deny";
    for (weft_iter it = weft_iterate(options); weft_next(&it);)
        if (weft__field_is(&it.value, "id", id))
            return weft_get_str(&it.value, "name", id);
    return NULL;
}

weft_val weft__question_data(const known_question *question, weft_member members[16]) {
    const weft_question *pub = &question->pub;
    const weft_member all[] = {
        {"questionId", weft_str(pub->id)},
        {"number", weft_uint(question->number)},
        {"taskId", weft_str_or_none(pub->task)},
        {"sessionId", weft_str_or_none(pub->session)},
        {"ruleId", weft_str_or_none(pub->rule)},
        {"kind", weft_str(pub->kind)},
        {"title", weft_str(pub->title)},
        {"options", weft_raw(pub->options, strlen(pub->options))},
        {"detail", weft_raw(pub->detail, strlen(pub->detail))},
        {"digest", weft_str(question->digest)},
        {"timeoutMs", question->timeout_ms > 0 ? weft_int(question->timeout_ms) : weft_none()},
    };
    memcpy(members, all, sizeof all);
    return weft_obj(members, sizeof all / sizeof all[0]);
}

/* ---- events ---- */

static int question_from(weft_engine *engine, const weft_json *data, known_question **ret) {
    question_parts parts = {0};
    weft_json options = weft_get(data, "options"), detail = weft_get(data, "detail");
    if (weft__member(data, "questionId", &parts.id) < 0 || weft__member(data, "taskId", &parts.task) < 0 ||
        weft__member(data, "sessionId", &parts.session) < 0 || weft__member(data, "ruleId", &parts.rule) < 0 ||
        weft__member(data, "kind", &parts.kind) < 0 || weft__member(data, "title", &parts.title) < 0 ||
        weft__member(data, "digest", &parts.digest) < 0)
        return -ENOMEM;
    weft_json number = weft_get(data, "number");
    int r = weft__number(&number, parts.id, weft__question_id, &parts.number);
    if (r < 0 || weft_typeof(&options) != WEFT_ARRAY)
        return -EBADMSG;
    parts.kind = parts.kind ? parts.kind : "";
    parts.title = parts.title ? parts.title : "";
    parts.digest = parts.digest ? parts.digest : "";
    parts.options = (weft_bytes){options.text, options.len};
    parts.detail = detail.text ? (weft_bytes){detail.text, detail.len} : (weft_bytes){"{}", 2};
    parts.timeout_ms = weft__int_between(data, "timeoutMs", 0, 0, INT64_MAX);
    return weft__question_new(engine, &parts, ret);
}

static bool is_same_or_absent(const weft_json *data, const char *name, const char *text) {
    weft_json member = weft_get(data, name);
    return text ? weft__field_is(data, name, text) : weft_typeof(&member) != WEFT_STRING;
}

/* Is what we are about to store what this event says? */
static bool is_question_as_said(const known_question *question, const weft_json *data) {
    const weft_question *pub = &question->pub;
    return weft__field_is(data, "digest", question->digest) && is_same_or_absent(data, "taskId", pub->task) &&
           is_same_or_absent(data, "sessionId", pub->session) && is_same_or_absent(data, "ruleId", pub->rule);
}

int weft__question_apply_asked(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_question *question = question_of(engine, data);
    if (question && question->stored)
        return 0;
    if (question && !is_question_as_said(question, data)) {
        /* Another writer was quicker with this number: ours is asked under another. */
        weft__map_remove(&engine->questions, &question->node);
        question = NULL;
    }
    int r = question ? 0 : question_from(engine, data, &question);
    if (r < 0 || !question)
        return r;
    question->stored = true;
    question->pub.created_ms = event->time_ms;
    question->pub.expires_ms = question->timeout_ms > 0 ? weft__add_ms(event->time_ms, question->timeout_ms) : 0;
    if (question->number >= engine->next_question)
        engine->next_question = question->number + 1;
    return 0;
}

void weft__question_act_asked(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_question *question = question_of(engine, data);
    (void) event;
    if (!question)
        return;
    weft__question_set_expiry(engine, question);
    if (question->close_type)
        weft__question_close(engine, question, question->close_type, question->close_reason);
    else if (engine->unattended)
        weft__question_close(engine, question, "question.withdrawn", "nobodyLeft");
}

static weft_question_state state_after(const char *type) {
    return strcmp(type, "question.answered") == 0  ? WEFT_QUESTION_ANSWERED
           : strcmp(type, "question.expired") == 0 ? WEFT_QUESTION_EXPIRED
                                                   : WEFT_QUESTION_WITHDRAWN;
}

int weft__question_apply_over(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_question *question = question_of(engine, data);
    const char *option, *by, *text, *approval;
    weft_json content = weft_get(data, "content");
    size_t filled = weft_typeof(&content) == WEFT_OBJECT ? content.len : 0;
    if (!question || !question->stored || question->pub.state != WEFT_QUESTION_OPEN)
        return 0;
    if (weft__member(data, "option", &option) < 0 || weft__member(data, "by", &by) < 0 ||
        weft__member(data, "text", &text) < 0 || weft__member(data, "approvalId", &approval) < 0)
        return -ENOMEM;
    char *at = weft__alloc(engine->alloc, weft__pack_size(option) + weft__pack_size(by) + weft__pack_size(text) +
                                              weft__pack_size(approval) + filled + 2);
    if (!at)
        return -ENOMEM;
    question->answer = at;
    question->pub.option = weft__pack(&at, option);
    question->pub.by = weft__pack(&at, by);
    question->pub.text = weft__pack(&at, text);
    question->pub.approval = weft__pack(&at, approval);
    question->pub.content = filled ? weft__pack_bytes(&at, content.text, filled) : NULL;
    question->pub.state = state_after(event->type);
    engine->question_count--;
    engine->question_bytes -= question->bytes;
    engine->question_over++;
    weft__timer_stop(engine->loop, &question->expiry);
    weft__later(engine->loop, &engine->tidy);
    return 0;
}

void weft__question_act_over(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_question *question = question_of(engine, data);
    (void) event;
    if (!question || question->pub.state == WEFT_QUESTION_OPEN)
        return;
    weft_question_done *on_answer = question->on_answer;
    question->on_answer = NULL;
    if (question->pub.session)
        weft__sessions_soon(engine); /* somebody may want to delete it */
    if (question->run)
        weft__run_answer(question->run, question);
    if (on_answer)
        on_answer(question->ctx, 0, &question->pub);
}

int weft__question_apply_orphaned(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_question *question = question_of(engine, data);
    (void) event;
    if (question && question->pub.state == WEFT_QUESTION_OPEN)
        question->pub.orphaned = true;
    return 0;
}

int weft__question_apply_adopted(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_question *question = question_of(engine, data);
    (void) event;
    if (question)
        question->pub.orphaned = false;
    return 0;
}

/* As it was asked, then as it ended: its document says both. */
int weft__question_restore(weft_engine *engine, const weft_json *data) {
    static const char *const types[] = {NULL, "question.answered", "question.expired", "question.withdrawn"};
    weft_event event = {.time_ms = weft_get_int(data, "createdMs", 0)};
    if (question_of(engine, data))
        return -EBADMSG;
    int r = weft__question_apply_asked(engine, &event, data);
    if (r < 0)
        return r;
    known_question *question = question_of(engine, data);
    question->pub.orphaned = weft_get_bool(data, "orphaned", false);
    question->pub.acted = weft_get_bool(data, "acted", false);
    for (size_t i = WEFT_QUESTION_ANSWERED; i < sizeof types / sizeof types[0]; i++)
        if (r >= 0 && weft__field_is(data, "state", weft__question_states[i])) {
            event.type = types[i];
            r = weft__question_apply_over(engine, &event, data);
        }
    question->saved.saved = r >= 0;
    if (r < 0) /* half of it must not be known: it is read again */
        weft__question_drop(engine, question);
    return r;
}

/* ---- the end of one ---- */

typedef struct closing {
    weft_engine *engine;
    char id[ENGINE_ID];
    weft_question_done *done;
    void *ctx;
    bool answer;
} closing;

static void over_stored(void *ctx, int r) {
    closing *made = ctx;
    weft_engine *engine = made->engine;
    known_question *question = weft__question_known(engine, made->id);
    /* Nobody waits for an end without an answer, so it is tried again here. */
    if (r < 0 && !made->answer && question && engine->phase != GONE)
        weft__again(engine, &question->expiry, r);
    weft_question_done *done = made->done;
    void *done_ctx = made->ctx;
    weft__free(engine->alloc, made);
    if (done)
        done(done_ctx, r > 0 ? -EALREADY : r, r == 0 && question ? &question->pub : NULL);
}

/* approval: the data of approval.given; empty: none goes with it. */
static int send_end(weft_engine *engine, const known_question *question, const char *type, weft_val data,
                    const weft_buf *approval, const closing *how) {
    char key[ENGINE_ID + 16];
    struct draft draft = {.engine = engine};
    closing *made = weft__alloc(engine->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    *made = *how;
    made->engine = engine;
    snprintf(made->id, sizeof made->id, "%s", question->id);
    snprintf(key, sizeof key, "question/%s", question->id);
    weft__draft_add(&draft, WEFT_STREAM_HUB, type, data);
    if (weft__buf_len(approval))
        weft__draft_add(&draft, WEFT_STREAM_HUB, "approval.given",
                        weft_raw(weft__buf_head(approval), weft__buf_len(approval)));
    int r = weft__draft_send(&draft, key, over_stored, made);
    if (r < 0)
        weft__free(engine->alloc, made);
    return r;
}

void weft__question_close(weft_engine *engine, known_question *question, const char *type, const char *reason) {
    if (question->configured)
        return;
    question->close_type = type;
    question->close_reason = reason;
    /* What is not stored yet is closed when it is. */
    if (!question->stored || question->pub.state != WEFT_QUESTION_OPEN)
        return;
    int r = send_end(engine, question, type, WEFT_OBJ(WEFT_OF_QUESTION(question), {"reason", weft_str_or_none(reason)}),
                     &(weft_buf){0}, &(closing){0});
    if (r < 0)
        weft__again(engine, &question->expiry, r);
}

int weft__question_withdraw(weft_engine *engine, const char *id, const char *reason) {
    known_question *question = weft__question_known(engine, id);
    if (!question)
        return -ENOENT;
    if (question->pub.state != WEFT_QUESTION_OPEN)
        return -EALREADY;
    weft__question_close(engine, question, "question.withdrawn", reason);
    return 0;
}

void weft__question_withdraw_all(weft_engine *engine, const char *task) {
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->pub.task && strcmp(question->pub.task, task) == 0 && question->pub.state == WEFT_QUESTION_OPEN)
            weft__question_close(engine, question, "question.withdrawn", "taskEnded");
    }
}

void weft__questions_unattended(weft_engine *engine) {
    engine->unattended = true;
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->pub.state == WEFT_QUESTION_OPEN)
            weft__question_close(engine, question, "question.withdrawn", "nobodyLeft");
    }
}

void weft__question_forget_session(weft_engine *engine, const char *session) {
    for (weft_link *link = engine->all_questions.next, *next; link != &engine->all_questions; link = next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        next = link->next;
        if (question->stored && question->pub.state != WEFT_QUESTION_OPEN && !question->run && !question->on_answer &&
            question->pub.session && strcmp(question->pub.session, session) == 0)
            weft__question_drop(engine, question);
    }
}

/* ---- answering ---- */

/* What goes to the agent with "accept": the whole of a form. Nothing for what has none. */
static int fill_in(const known_question *question, const weft_question_answer *answer, weft_buf *out,
                   char why[WEFT_FORM_WHY]) {
    bool given = answer->content && weft_typeof(answer->content) != WEFT_NULL;
    weft_doc *doc = NULL;
    snprintf(why, WEFT_FORM_WHY, "there is nothing to fill in");
    if (strcmp(question->pub.kind, "elicitation") != 0 || strcmp(answer->option, "accept") != 0)
        return given ? -EDOM : 0;
    int r = weft_doc_parse(question->pub.detail, strlen(question->pub.detail), question->engine->alloc, &doc);
    if (r < 0)
        return r;
    weft_json schema = weft_get(weft_doc_root(doc), "requestedSchema"), nothing = {0};
    if (schema.text)
        r = weft__form_fill(&schema, given ? answer->content : &nothing, question->engine->alloc, out, why);
    else
        r = given ? -EINVAL : 0;
    weft_doc_free(doc);
    return r == -EINVAL ? -EDOM : r;
}

static int send_answer(weft_engine *engine, const known_question *question, const char *name,
                       const weft_question_answer *answer, weft_question_done *done, void *ctx) {
    char room[WEFT_FORM_WHY], *why = answer->why ? answer->why : room, approval_id[ENGINE_ID];
    weft_buf content = {0}, approval = {0};
    int r = fill_in(question, answer, &content, why);
    size_t len = weft__buf_len(&content);
    if (r >= 0 && answer->always)
        r = weft__approval_make(engine, question, answer->always, answer->by, &approval, why);
    weft__name_numbered(approval_id, "approval-", question->number);
    if (r >= 0)
        r = send_end(engine, question, "question.answered",
                     WEFT_OBJ(WEFT_OF_QUESTION(question), {"option", weft_str(answer->option)}, {"name", weft_str(name)},
                              {"by", weft_str(answer->by ? answer->by : "")}, {"text", weft_str_or_none(answer->text)},
                              {"content", len ? weft_raw(weft__buf_head(&content), len) : weft_none()},
                              {"approvalId", answer->always ? weft_str(approval_id) : weft_none()}),
                     &approval, &(closing){.done = done, .ctx = ctx, .answer = true});
    weft__buf_done(&content, engine->alloc);
    weft__buf_done(&approval, engine->alloc);
    return r;
}

int weft__question_answer_with(weft_engine *engine, const char *id, const weft_question_answer *answer,
                               weft_question_done *done, void *ctx) {
    known_question *question = weft__question_known(engine, id);
    weft_doc *doc;
    if (engine->phase != READY && engine->phase != STOPPING)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    if (!question || !question->stored)
        return -ENOENT;
    if (question->pub.state != WEFT_QUESTION_OPEN || question->configured)
        return -EALREADY;
    int r = weft_doc_parse(question->pub.options, strlen(question->pub.options), engine->alloc, &doc);
    if (r < 0)
        return r;
    const char *name = answer->option ? option_name(weft_doc_root(doc), answer->option) : NULL;
    if (name && answer->always && !weft__option_allows(weft_doc_root(doc), answer->option)) {
        if (answer->why)
            snprintf(answer->why, WEFT_FORM_WHY, "only an answer that allows it can be permanent");
        r = -EDOM;
    } else
        r = name ? send_answer(engine, question, name, answer, done, ctx) : -EINVAL;
    weft_doc_free(doc);
    return r;
}

int weft__question_answer(weft_engine *engine, const char *id, const char *option, const char *by, const char *text,
                          weft_question_done *done, void *ctx) {
    return weft__question_answer_with(engine, id, &(weft_question_answer){.option = option, .by = by, .text = text}, done,
                                      ctx);
}

/* ---- for everybody ---- */

const weft_question *weft__question_find(const weft_engine *engine, const char *id) {
    known_question *question = weft__question_known(engine, id);
    return question && question->stored ? &question->pub : NULL;
}

static const weft_question *first_shown_from(const weft_engine *engine, const weft_link *link, bool all) {
    for (; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->stored && (all || question->pub.state == WEFT_QUESTION_OPEN))
            return &question->pub;
    }
    return NULL;
}

const weft_question *weft__question_first(const weft_engine *engine, bool all) {
    return first_shown_from(engine, engine->all_questions.next, all);
}

const weft_question *weft__question_next(const weft_engine *engine, const weft_question *question, bool all) {
    return first_shown_from(engine, WEFT_CONTAINER(question, known_question, pub)->link.next, all);
}
