/* Questions: what somebody must decide, kept until it is answered, expires or is withdrawn, whoever asked and whoever
 * listens. Exactly one end of a question is ever stored, because every end is appended with the question's key.
 *
 *     open ──question.answered──▶ answered     open ──question.expired──▶ expired     open ──question.withdrawn──▶ withdrawn
 *
 * An open question whose agent has gone with an earlier daemon is orphaned: it stays open, and when its task runs again and
 * asks the same thing, it is that run's, with its answer if there is one already. */
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"
#include "pack.h"

#define REMEMBERED 1000               /* that are over */
#define MAX_OPTIONS 100               /* more than that nobody reads */
#define DIGEST_TEXT 65                /* SHA-256 in hex, and a NUL */
#define MAX_ASKED ((size_t) 16 << 20) /* bytes of all of it: it must fit into an event */
#define MAX_TITLE 16384               /* bytes shown to a person in one line or a few */

const char *const weft__question_states[] = {"open", "answered", "expired", "withdrawn"};

static known_question *known(const weft_engine *engine, const char *id) {
    weft_node *node = id ? weft__map_find(&engine->questions, id) : NULL;
    return node ? WEFT_CONTAINER(node, known_question, node) : NULL;
}

static known_question *question_of(const weft_engine *engine, const weft_json *data) {
    char id[ENGINE_ID];
    return known(engine, weft__id(data, "questionId", id));
}

/* ---- life ---- */

typedef struct question_parts {
    const char *id, *task, *session, *rule, *kind, *title, *digest;
    weft_bytes options, detail; /* JSON */
    uint64_t number;
    int64_t timeout_ms;
} question_parts;

static void over_due(weft_timer *timer) {
    known_question *question = WEFT_CONTAINER(timer, known_question, expiry);
    if (question->close_type)
        weft__question_close(question->engine, question, question->close_type, question->close_reason);
    else
        weft__question_close(question->engine, question, "question.expired", NULL);
}

static int new_question(weft_engine *engine, const question_parts *parts, known_question **ret) {
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
    weft__timer_init(&question->expiry, over_due);
    weft__list_push(&engine->all_questions, &question->link);
    weft__map_put(&engine->questions, &question->node, question->id);
    engine->question_count++;
    *ret = question;
    return 0;
}

known_question *weft__question_drop(weft_engine *engine, known_question *question) {
    if (!question)
        return NULL;
    if (question->pub.state == WEFT_QUESTION_OPEN)
        engine->question_count--;
    else
        engine->question_over--;
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
    /* The wall clock says how much of the time is over, once; from then on the monotonic one runs. */
    int64_t left = question->pub.expires_ms - weft__engine_now(engine);
    weft__timer_set(engine->loop, &question->expiry, weft_loop_now(engine->loop) + (left > 0 ? left : 0));
}

/* ---- what was asked ---- */

static void hash_text(EVP_MD_CTX *hash, const char *text, size_t len) {
    char size[24];
    int n = snprintf(size, sizeof size, "%zu:", len);
    EVP_DigestUpdate(hash, size, (size_t) n);
    EVP_DigestUpdate(hash, text, len);
}

/* Everything a person sees. An agent that is started again names its tool call otherwise, so that name is left out. */
static int digest_of(const char *kind, const char *title, const weft_json *options, const weft_json *detail,
                     char ret[DIGEST_TEXT]) {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    if (!hash || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(hash);
        return -ENOMEM;
    }
    hash_text(hash, kind, strlen(kind));
    hash_text(hash, title, strlen(title));
    hash_text(hash, options->text, options->len);
    if (weft_typeof(detail) == WEFT_OBJECT) {
        for (weft_iter it = weft_iterate(detail); weft_next(&it);)
            if (!weft_name_is(&it, "toolCallId")) {
                hash_text(hash, it.name.text, it.name.len);
                hash_text(hash, it.value.text, it.value.len);
            }
    } else if (detail->text)
        hash_text(hash, detail->text, detail->len);
    EVP_DigestFinal_ex(hash, bytes, &len);
    EVP_MD_CTX_free(hash);
    for (unsigned int i = 0; i < len && 2 * i + 2 < DIGEST_TEXT; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* At least one option, each an object with an id of its own. */
static bool options_valid(const weft_json *options) {
    size_t count = weft_typeof(options) == WEFT_ARRAY ? weft_count(options) : 0;
    if (count == 0 || count > MAX_OPTIONS)
        return false;
    for (weft_iter it = weft_iterate(options); weft_next(&it);) {
        weft_json id = weft_get(&it.value, "id");
        if (weft_typeof(&id) != WEFT_STRING || id.len <= 2)
            return false;
    }
    return true;
}

/* The name of the option with this id; NULL: there is none. */
static const char *option_name(const weft_json *options, const char *id) {
    for (weft_iter it = weft_iterate(options); weft_next(&it);)
        if (weft__says(&it.value, "id", id))
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
    if (!parts.id || strlen(parts.id) >= ENGINE_ID)
        return 0;
    parts.kind = parts.kind ? parts.kind : "";
    parts.title = parts.title ? parts.title : "";
    parts.digest = parts.digest ? parts.digest : "";
    parts.options = options.text ? (weft_bytes){options.text, options.len} : (weft_bytes){"[]", 2};
    parts.detail = detail.text ? (weft_bytes){detail.text, detail.len} : (weft_bytes){"{}", 2};
    parts.number = (uint64_t) weft_get_int(data, "number", 0);
    parts.timeout_ms = weft_get_int(data, "timeoutMs", 0);
    return new_question(engine, &parts, ret);
}

int weft__question_apply_asked(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_question *question = question_of(engine, data);
    if (question && question->stored)
        return 0;
    int r = question ? 0 : question_from(engine, data, &question);
    if (r < 0 || !question)
        return r;
    question->stored = true;
    weft__retention_mark(engine, &question->kept);
    question->pub.created_ms = event->time_ms;
    question->pub.expires_ms = question->timeout_ms > 0 ? event->time_ms + question->timeout_ms : 0;
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
}

static weft_question_state state_after(const char *type) {
    return strcmp(type, "question.answered") == 0  ? WEFT_QUESTION_ANSWERED
           : strcmp(type, "question.expired") == 0 ? WEFT_QUESTION_EXPIRED
                                                   : WEFT_QUESTION_WITHDRAWN;
}

int weft__question_apply_over(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_question *question = question_of(engine, data);
    const char *option, *by, *text;
    if (!question || !question->stored || question->pub.state != WEFT_QUESTION_OPEN)
        return 0;
    if (weft__member(data, "option", &option) < 0 || weft__member(data, "by", &by) < 0 ||
        weft__member(data, "text", &text) < 0)
        return -ENOMEM;
    char *at = weft__alloc(engine->alloc, weft__pack_size(option) + weft__pack_size(by) + weft__pack_size(text) + 1);
    if (!at)
        return -ENOMEM;
    question->answer = at;
    question->pub.option = weft__pack(&at, option);
    question->pub.by = weft__pack(&at, by);
    question->pub.text = weft__pack(&at, text);
    question->pub.state = state_after(event->type);
    engine->question_count--;
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
    known_question *question = known(engine, made->id);
    /* Nobody waits for an end without an answer, so it is tried again here. */
    if (r < 0 && !made->answer && question && engine->phase != GONE)
        weft__again(engine, &question->expiry, r);
    weft_question_done *done = made->done;
    void *done_ctx = made->ctx;
    weft__free(engine->alloc, made);
    if (done)
        done(done_ctx, r > 0 ? -EALREADY : r, r == 0 && question ? &question->pub : NULL);
}

static int send_end(weft_engine *engine, const known_question *question, const char *type, weft_val data,
                    const closing *how) {
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
    int r = weft__draft_send(&draft, key, over_stored, made);
    if (r < 0)
        weft__free(engine->alloc, made);
    return r;
}

void weft__question_close(weft_engine *engine, known_question *question, const char *type, const char *reason) {
    question->close_type = type;
    question->close_reason = reason;
    /* What is not stored yet is closed when it is. */
    if (!question->stored || question->pub.state != WEFT_QUESTION_OPEN)
        return;
    int r = send_end(engine, question, type,
                     WEFT_OBJ({"questionId", weft_str(question->id)}, {"reason", weft_str_or_none(reason)}), &(closing){0});
    if (r < 0)
        weft__again(engine, &question->expiry, r);
}

void weft__question_withdraw_all(weft_engine *engine, const char *task) {
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->pub.task && strcmp(question->pub.task, task) == 0 && question->pub.state == WEFT_QUESTION_OPEN)
            weft__question_close(engine, question, "question.withdrawn", "taskEnded");
    }
}

/* ---- asking ---- */

typedef struct ask_parts {
    const char *task, *session, *rule, *kind, *title;
    const weft_json *options, *detail;
} ask_parts;

static int make(weft_engine *engine, const ask_parts *asked, const char *digest, known_question **ret) {
    char id[ENGINE_ID];
    uint64_t number = engine->next_question++;
    snprintf(id, sizeof id, "question-%04" PRIu64, number);
    return new_question(
        engine,
        &(question_parts){
            .id = id,
            .number = number,
            .task = asked->task,
            .session = asked->session,
            .rule = asked->rule,
            .kind = asked->kind,
            .title = asked->title,
            .digest = digest,
            .options = {asked->options->text, asked->options->len},
            .detail = asked->detail->text ? (weft_bytes){asked->detail->text, asked->detail->len} : (weft_bytes){"{}", 2},
            .timeout_ms = engine->limits.question_ms > 0 ? engine->limits.question_ms : 0,
        },
        ret);
}

static known_question *find_orphan(const weft_engine *engine, const char *task, const char *digest) {
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->pub.orphaned && !question->run && question->pub.state <= WEFT_QUESTION_ANSWERED &&
            question->pub.task && strcmp(question->pub.task, task) == 0 && strcmp(question->digest, digest) == 0)
            return question;
    }
    return NULL;
}

static int ask_for_run(weft_engine *engine, struct run *run, const char *key, const weft_json *asked, const weft_task *task,
                       known_question **ret) {
    char digest[DIGEST_TEXT] = "";
    const char *kind, *title;
    weft_json options = weft_get(asked, "options"), detail = weft_get(asked, "detail");
    if (weft__member(asked, "kind", &kind) < 0 || weft__member(asked, "title", &title) < 0)
        return -ENOMEM;
    kind = kind ? kind : "permission";
    title = title ? title : "";
    if (!options_valid(&options) || strlen(title) > MAX_TITLE)
        return 0;
    if (digest_of(kind, title, &options, &detail, digest) < 0)
        return -ENOMEM;
    char *copy = weft__strndup(engine->alloc, key, strlen(key));
    if (!copy)
        return -ENOMEM;
    known_question *question = find_orphan(engine, task->id, digest);
    if (!question && engine->question_count < engine->limits.max_questions &&
        make(engine, &(ask_parts){task->id, task->session, NULL, kind, title, &options, &detail}, digest, &question) < 0) {
        weft__free(engine->alloc, copy);
        return -ENOMEM;
    }
    if (!question) {
        weft__free(engine->alloc, copy);
        return 0;
    }
    weft__free(engine->alloc, question->key);
    question->key = copy;
    question->run = run;
    *ret = question;
    return 0;
}

int weft__question_of_run(weft_engine *engine, struct run *run, const weft_task *task, const char *key, weft_val asked,
                          known_question **ret) {
    char *text;
    size_t len;
    weft_doc *doc;
    int r = weft_to_text(asked, engine->alloc, &text, &len);
    if (r < 0)
        return r;
    r = len > MAX_ASKED ? -EMSGSIZE : weft_doc_parse(text, len, engine->alloc, &doc);
    weft_text_free(text, engine->alloc);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    r = ask_for_run(engine, run, key, weft_doc_root(doc), task, ret);
    weft_doc_free(doc);
    return r;
}

static void ask_stored(void *ctx, int r) {
    known_question *question = ctx;
    weft_engine *engine = question->engine;
    weft_question_done *on_asked = question->on_asked;
    void *done_ctx = question->ctx;
    question->on_asked = NULL;
    if (r < 0 && !question->stored)
        question = weft__question_drop(engine, question);
    if (on_asked)
        on_asked(done_ctx, r, question ? &question->pub : NULL);
}

static int send_question(weft_engine *engine, known_question *question) {
    weft_member members[16];
    struct draft draft = {.engine = engine};
    weft__draft_add(&draft, WEFT_STREAM_HUB, "question.asked", weft__question_data(question, members));
    return weft__draft_send(&draft, NULL, ask_stored, question);
}

/* As a value that can be read: one that came as JSON is one already. */
static int read_val(weft_engine *engine, weft_val value, weft_doc **ret) {
    char *text;
    size_t len;
    int r = weft_to_text(value.kind == WEFT_VAL_NONE ? weft_null() : value, engine->alloc, &text, &len);
    if (r < 0)
        return r;
    r = weft_doc_parse(text, len, engine->alloc, ret);
    weft_text_free(text, engine->alloc);
    return r == -EBADMSG ? -EINVAL : r;
}

static int ask(weft_engine *engine, const weft_question_spec *spec, const weft_json *options, const weft_json *detail,
               known_question **ret) {
    char digest[DIGEST_TEXT] = "";
    if (!spec->kind || !spec->title || strlen(spec->title) > MAX_TITLE || !options_valid(options))
        return -EINVAL;
    int r = digest_of(spec->kind, spec->title, options, detail, digest);
    if (r < 0)
        return r;
    return make(engine,
                &(ask_parts){spec->task, spec->session, spec->rule, spec->kind, spec->title, options,
                             weft_typeof(detail) == WEFT_OBJECT ? detail : &(weft_json){0}},
                digest, ret);
}

int weft__question_ask(weft_engine *engine, const weft_question_spec *spec, weft_question_done *on_asked,
                       weft_question_done *on_answer, void *ctx) {
    weft_doc *options = NULL, *detail = NULL;
    known_question *question = NULL;
    if (engine->phase != READY)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    if (engine->question_count >= engine->limits.max_questions)
        return -ENOBUFS;
    int r = read_val(engine, spec->options, &options);
    if (r >= 0)
        r = read_val(engine, spec->detail, &detail);
    if (r >= 0)
        r = ask(engine, spec, weft_doc_root(options), weft_doc_root(detail), &question);
    weft_doc_free(options);
    weft_doc_free(detail);
    if (r < 0)
        return r;
    question->on_asked = on_asked;
    question->on_answer = on_answer;
    question->ctx = ctx;
    r = send_question(engine, question);
    if (r < 0)
        weft__question_drop(engine, question);
    return r;
}

/* ---- answering ---- */

int weft__question_answer(weft_engine *engine, const char *id, const char *option, const char *by, const char *text,
                          weft_question_done *done, void *ctx) {
    known_question *question = known(engine, id);
    weft_doc *doc;
    if (engine->phase != READY && engine->phase != STOPPING)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    if (!question || !question->stored)
        return -ENOENT;
    if (question->pub.state != WEFT_QUESTION_OPEN)
        return -EALREADY;
    int r = weft_doc_parse(question->pub.options, strlen(question->pub.options), engine->alloc, &doc);
    if (r < 0)
        return r;
    const char *name = option ? option_name(weft_doc_root(doc), option) : NULL;
    r = name ? send_end(engine, question, "question.answered",
                        WEFT_OBJ({"questionId", weft_str(id)}, {"option", weft_str(option)}, {"name", weft_str(name)},
                                 {"by", weft_str(by ? by : "")}, {"text", weft_str_or_none(text)}),
                        &(closing){.done = done, .ctx = ctx, .answer = true})
             : -EINVAL;
    weft_doc_free(doc);
    return r;
}

/* ---- for everybody ---- */

const weft_question *weft__question_find(const weft_engine *engine, const char *id) {
    known_question *question = known(engine, id);
    return question && question->stored ? &question->pub : NULL;
}

static const weft_question *from(const weft_engine *engine, const weft_link *link, bool all) {
    for (; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->stored && (all || question->pub.state == WEFT_QUESTION_OPEN))
            return &question->pub;
    }
    return NULL;
}

const weft_question *weft__question_first(const weft_engine *engine, bool all) {
    return from(engine, engine->all_questions.next, all);
}

const weft_question *weft__question_next(const weft_engine *engine, const weft_question *question, bool all) {
    return from(engine, WEFT_CONTAINER(question, known_question, pub)->link.next, all);
}
