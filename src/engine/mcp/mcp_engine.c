/* The host of MCP servers that the engine is: events go into the journal, asks become questions that anybody may answer. */
#include "mcp_engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "list.h"

#define QUESTION_ID 64

struct weft_mcp_engine {
    weft_engine *engine;
    const weft_alloc *alloc;
    weft_mcp *mcp;
    weft_link asked;
};

/* An ask as the engine knows it. It lives until its question is over, also when nobody waits for the answer any more. */
typedef struct asked_question {
    weft_link link;
    weft_mcp_engine *self;
    weft_mcp_ask *ask;    /* NULL: it was taken back */
    char id[QUESTION_ID]; /* "": not stored yet */
} asked_question;

static void free_asked(asked_question *asked) {
    weft__list_remove(&asked->link);
    weft__free(asked->self->alloc, asked);
}

static weft_mcp_ask *take_ask(asked_question *asked) {
    weft_mcp_ask *ask = asked->ask;
    asked->ask = NULL;
    return ask;
}

static void on_mcp_asked(void *ctx, int r, const weft_question *question) {
    asked_question *asked = ctx;
    if (r < 0) {
        weft_mcp_ask *ask = take_ask(asked);
        free_asked(asked);
        if (ask)
            weft__mcp_answered(ask, NULL, NULL);
        return;
    }
    snprintf(asked->id, sizeof asked->id, "%s", question->id);
    if (!asked->ask)
        (void) weft__question_withdraw(asked->self->engine, asked->id, "serverWithdrew");
}

static void on_mcp_answer(void *ctx, int r, const weft_question *question) {
    asked_question *asked = ctx;
    weft_mcp_ask *ask = take_ask(asked);
    const weft_alloc *alloc = asked->self->alloc;
    WEFT_AUTO(weft_doc) content = NULL;
    const char *option = r >= 0 && question ? question->option : NULL;
    if (ask && option && question->content)
        r = weft_doc_parse(question->content, strlen(question->content), alloc, &content);
    free_asked(asked);
    if (ask)
        weft__mcp_answered(ask,
                           r < 0 || !option                ? NULL
                           : strcmp(option, "accept") == 0 ? option
                                                           : "decline",
                           content ? weft_doc_root(content) : NULL);
}

static int ask_person(void *ctx, weft_mcp_ask *ask, const char *title, weft_val detail) {
    weft_mcp_engine *self = ctx;
    asked_question *asked = weft__zalloc(self->alloc, sizeof *asked);
    if (!asked)
        return -ENOMEM;
    asked->self = self;
    asked->ask = ask;
    weft_val options[] = {
        WEFT_OBJ({"id", weft_str("accept")}, {"name", weft_str("Accept")}, {"kind", weft_str("allow_once")}),
        WEFT_OBJ({"id", weft_str("decline")}, {"name", weft_str("Decline")}, {"kind", weft_str("reject_once")})};
    weft_question_spec spec = {.kind = "elicitation", .title = title, .options = weft_arr(options, 2), .detail = detail};
    weft__list_push(&self->asked, &asked->link);
    int r = weft__question_ask(self->engine, &spec, on_mcp_asked, on_mcp_answer, asked);
    if (r < 0)
        free_asked(asked);
    else
        *weft__mcp_ask_data(ask) = asked;
    return r;
}

static void unask_person(void *ctx, weft_mcp_ask *ask) {
    weft_mcp_engine *self = ctx;
    asked_question *asked = *weft__mcp_ask_data(ask);
    asked->ask = NULL;
    if (*asked->id)
        (void) weft__question_withdraw(self->engine, asked->id, "serverWithdrew");
}

/* What cannot be stored is not kept: no answer depends on it. */
static void store_event(void *ctx, const char *type, weft_val data) {
    weft_mcp_engine *self = ctx;
    (void) weft__engine_append(self->engine, WEFT_STREAM_MCP, type, data, NULL, NULL);
}

/* The servers that asked are gone, and their calls with them. */
static void withdraw_old_questions(weft_mcp_engine *self) {
    const weft_question *question = weft__question_first(self->engine, false);
    while (question) {
        const weft_question *next = weft__question_next(self->engine, question, false);
        WEFT_AUTO(weft_doc) detail = NULL;
        bool ours = !question->task && !question->session && !question->rule && strcmp(question->kind, "elicitation") == 0;
        if (ours && question->detail &&
            weft_doc_parse(question->detail, strlen(question->detail), self->alloc, &detail) >= 0 &&
            weft_get(weft_doc_root(detail), "server").text)
            (void) weft__question_withdraw(self->engine, question->id, "daemonRestarted");
        question = next;
    }
}

static const weft_mcp_host engine_host = {.on_event = store_event, .ask = ask_person, .unask = unask_person};

int weft__mcp_engine_new(weft_engine *engine, const weft_mcp_specs *specs, bool no_sampling, weft_mcp_engine **ret) {
    const weft_alloc *alloc = weft__engine_alloc(engine);
    weft_mcp_engine *self = weft__zalloc(alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->engine = engine;
    self->alloc = alloc;
    weft__list_init(&self->asked);
    weft_mcp_opts opts = {.loop = weft__engine_loop(engine),
                          .alloc = alloc,
                          .folder = weft__engine_folder(engine),
                          .host = &engine_host,
                          .ctx = self,
                          .no_sampling = no_sampling,
                          .grace_ms = weft__engine_limits(engine)->grace_ms};
    int r = weft__mcp_new(&opts, &self->mcp);
    if (r >= 0)
        r = weft__mcp_set(self->mcp, specs, no_sampling);
    if (r < 0) {
        weft__mcp_free(self->mcp);
        weft__free(alloc, self);
        return r;
    }
    withdraw_old_questions(self);
    *ret = self;
    return 0;
}

weft_mcp *weft__mcp_engine_mcp(const weft_mcp_engine *self) {
    return self->mcp;
}

void weft__mcp_engine_stop(weft_mcp_engine *self) {
    if (self)
        weft__mcp_end(self->mcp);
}

void weft__mcp_engine_close(weft_mcp_engine *self) {
    if (self)
        self->mcp = weft__mcp_free(self->mcp);
}

weft_mcp_engine *weft__mcp_engine_free(weft_mcp_engine *self) {
    if (!self)
        return NULL;
    weft__mcp_engine_close(self);
    while (!weft__list_empty(&self->asked))
        free_asked(WEFT_CONTAINER(self->asked.next, asked_question, link));
    return weft__free(self->alloc, self);
}
