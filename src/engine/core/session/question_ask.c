/* Asking: whether what is asked can be a question, what makes two of them the same, and how one comes into the journal. A
 * run's go with what the run says, in its outbox; a rule's are stored from here. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"

#define MAX_OPTIONS 100               /* more than that nobody reads */
#define DIGEST_TEXT 65                /* SHA-256 in hex, and a NUL */
#define MAX_ASKED ((size_t) 16 << 20) /* bytes of all of it: it must fit into an event */
#define MAX_TITLE 16384               /* bytes shown to a person in one line or a few */

/* ---- what is asked ---- */

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

typedef struct ask_parts {
    const char *task, *session, *rule, *kind, *title;
    const weft_json *options, *detail;
} ask_parts;

static int make_question(weft_engine *engine, const ask_parts *asked, const char *digest, known_question **ret) {
    char id[ENGINE_ID];
    if (engine->next_question >= ENGINE_NUMBERS)
        return -ENOBUFS;
    uint64_t number = engine->next_question++;
    weft__question_id(id, number);
    return weft__question_new(
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

/* What is open is kept in memory, and in every list of it. */
static bool has_room(const weft_engine *engine, size_t bytes) {
    const weft_engine_limits *limits = &engine->limits;
    return engine->question_count < limits->max_questions && engine->question_bytes < limits->max_question_bytes &&
           bytes <= limits->max_question_bytes - engine->question_bytes;
}

/* ---- by a run ---- */

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
    if (!question && has_room(engine, strlen(title) + options.len + detail.len) &&
        make_question(engine, &(ask_parts){task->id, task->session, NULL, kind, title, &options, &detail}, digest,
                      &question) < 0) {
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

/* ---- by somebody else ---- */

static int send_question(weft_engine *engine, known_question *question);

static bool send_question_renumbered(weft_engine *engine, known_question *question) {
    return engine->phase == READY && !question->stored && ++question->tries < ENGINE_TRIES &&
           weft__question_renumber(engine, question) >= 0 && send_question(engine, question) >= 0;
}

static void ask_stored(void *ctx, int r) {
    known_question *question = ctx;
    weft_engine *engine = question->engine;
    if (r == -EAGAIN && send_question_renumbered(engine, question))
        return;
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
    struct draft draft = {.engine = engine, .counter = COUNTER_QUESTION, .number = question->number};
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

static int ask_question(weft_engine *engine, const weft_question_spec *spec, const weft_json *options,
                        const weft_json *detail, known_question **ret) {
    char digest[DIGEST_TEXT] = "";
    if (!spec->kind || !spec->title || strlen(spec->title) > MAX_TITLE || !options_valid(options))
        return -EINVAL;
    if (!has_room(engine, strlen(spec->title) + options->len + detail->len))
        return -ENOBUFS;
    int r = digest_of(spec->kind, spec->title, options, detail, digest);
    if (r < 0)
        return r;
    return make_question(engine,
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
    int r = read_val(engine, spec->options, &options);
    if (r >= 0)
        r = read_val(engine, spec->detail, &detail);
    if (r >= 0)
        r = ask_question(engine, spec, weft_doc_root(options), weft_doc_root(detail), &question);
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
