/* Questions of an ACP agent: session/request_permission, handed to the host and answered later. The agent may have several
 * open, and may give one up. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "acp_private.h"
#include "visible.h"

/* An agent that asks more than this at a time asks nobody. */
#define MOST_ASKS 64
/* Four are usual. */
#define MOST_OPTIONS 32
/* Bytes of what is shown of a question. What is longer is cut with a mark, and is whole in the detail. */
#define LONGEST_TITLE 4096
#define LONGEST_NAME 256
/* An id cannot be cut: an option with a longer one cannot be chosen. */
#define LONGEST_ID 1024
#define LONGEST_KIND 64

typedef struct ask {
    weft_link link;
    weft_driver_session *session;
    weft_req *req;
    char key[24];
} ask;

static void forget_ask(ask *one) {
    weft__list_remove(&one->link);
    one->session->ask_count--;
    weft__free(one->session->process->alloc, one);
}

static void answer_ask(ask *one, const char *option) {
    weft_req *req = one->req;
    weft_req_on_cancel(req, NULL, NULL);
    forget_ask(one);
    weft_val outcome = option ? WEFT_OBJ({"outcome", weft_str("selected")}, {"optionId", weft_str(option)})
                              : WEFT_OBJ({"outcome", weft_str("cancelled")});
    weft_reply(req, WEFT_OBJ({"outcome", outcome}));
}

/* $/cancel_request, or the connection is gone. In the second case the turn is about to end, and its questions with it. */
static void on_cancel(weft_req *req, int why, void *ctx) {
    ask *one = ctx;
    weft_driver_session *session = one->session;
    char key[sizeof one->key];
    memcpy(key, one->key, sizeof key);
    weft__acp_session_hold(session);
    forget_ask(one);
    weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
    if (why == -ECANCELED && !session->closed && session->turn == WEFT_ACP_PROMPTING)
        session->host->on_unask(session->ctx, key);
    weft__acp_session_release(session);
}

/* ---- asking ---- */

typedef struct options {
    size_t count;
    size_t dropped; /* that cannot be chosen */
    weft_val list[MOST_OPTIONS];
    weft_member members[MOST_OPTIONS][3];
    weft_buf names[MOST_OPTIONS];
} options;

/* An id goes back to the agent as it came, so it must be one that we can keep. */
static const char *usable_id(const weft_json *option, const options *before) {
    const char *id = weft_get_str(option, "optionId", "");
    if (!*id || strlen(id) > LONGEST_ID)
        return NULL;
    for (size_t i = 0; i < before->count; i++)
        if (strcmp(before->members[i][0].value.as.s, id) == 0)
            return NULL;
    return id;
}

/* A kind that we do not know is the host's to judge; one that is no word is none. */
static const char *option_kind(const weft_json *option) {
    const char *kind = weft_get_str(option, "kind", "");
    return strlen(kind) <= LONGEST_KIND && kind[strspn(kind, "abcdefghijklmnopqrstuvwxyz_")] == '\0' ? kind : "";
}

static int add_option(weft_driver_session *session, const weft_json *option, const char *id, options *ret) {
    weft_member *members = ret->members[ret->count];
    weft_buf *name = &ret->names[ret->count];
    weft_json given = weft_get(option, "name");
    weft_bytes text;
    if (weft_text(&given, &text) < 0 || !text.len)
        text = (weft_bytes){id, strlen(id)};
    int r = weft__visible_put(name, session->process->alloc, text, LONGEST_NAME);
    if (r < 0)
        return r;
    members[0] = (weft_member){"id", weft_str(id)};
    members[1] = (weft_member){"name", weft_strn(weft__buf_head(name), weft__buf_len(name))};
    members[2] = (weft_member){"kind", weft_str(option_kind(option))};
    ret->list[ret->count++] = weft_obj(members, 3);
    return 0;
}

static void options_done(const weft_driver_session *session, options *old) {
    for (size_t i = 0; i < MOST_OPTIONS; i++)
        weft__buf_done(&old->names[i], session->process->alloc);
}

/* Those that can be chosen. */
static int read_options(weft_driver_session *session, const weft_json *list, options *ret) {
    int r = 0;
    *ret = (options){0};
    for (weft_iter it = weft_iterate(list); r >= 0 && weft_next(&it);) {
        const char *id = ret->count < MOST_OPTIONS ? usable_id(&it.value, ret) : NULL;
        if (id)
            r = add_option(session, &it.value, id, ret);
        else
            ret->dropped++;
    }
    if (r < 0)
        options_done(session, ret);
    return r;
}

/* What was not asked as the agent wanted is said where its output is, so that whoever watches knows. */
static void note_in_output(weft_driver_session *session, const char *format, ...) {
    char text[200];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!session->closed && session->turn != WEFT_ACP_IDLE)
        session->host->on_output(session->ctx, WEFT_RUN_STDERR,
                                 (weft_bytes){text, n < (int) sizeof text ? (size_t) n : sizeof text - 1});
}

static int keep_ask(weft_driver_session *session, weft_req *req, ask **ret) {
    ask *one = weft__zalloc(session->process->alloc, sizeof *one);
    if (!one)
        return -ENOMEM;
    one->session = session;
    one->req = req;
    snprintf(one->key, sizeof one->key, "%llu", (unsigned long long) ++session->process->last_ask);
    weft__list_push(&session->asks, &one->link);
    session->ask_count++;
    weft_req_on_cancel(req, on_cancel, one);
    *ret = one;
    return 0;
}

/* One line, of which a person sees every character. The detail has it as it came. */
static int make_title(weft_driver_session *session, const weft_json *call, weft_buf *ret) {
    static const char untitled[] = "The agent asks for permission";
    weft_json title = weft_get(call, "title");
    weft_bytes text;
    if (weft_text(&title, &text) < 0 || !text.len)
        text = (weft_bytes){untitled, sizeof untitled - 1};
    return weft__visible_put(ret, session->process->alloc, text, LONGEST_TITLE);
}

static int tell_host_of_ask(weft_driver_session *session, const char *key, const weft_json *params, const options *choices) {
    weft_json call = weft_get(params, "toolCall");
    weft_val detail = weft_typeof(&call) == WEFT_OBJECT ? weft_copy(&call) : weft_obj(NULL, 0);
    weft_buf title = {0};
    int r = make_title(session, &call, &title);
    if (r >= 0)
        session->host->on_ask(session->ctx, key,
                              WEFT_OBJ({"kind", weft_str("permission")},
                                       {"title", weft_strn(weft__buf_head(&title), weft__buf_len(&title))},
                                       {"options", weft_arr(choices->list, choices->count)}, {"detail", detail}));
    weft__buf_done(&title, session->process->alloc);
    return r;
}

static int reply_cancelled(weft_req *req) {
    return weft_reply(req, WEFT_OBJ({"outcome", WEFT_OBJ({"outcome", weft_str("cancelled")})}));
}

static int ask_host(weft_driver_session *session, weft_req *req, const weft_json *params, const options *choices) {
    ask *one;
    if (choices->dropped)
        note_in_output(session, "weft: %zu of the options that the agent offers cannot be shown\n", choices->dropped);
    if (session->closed || session->cancelling)
        return reply_cancelled(req);
    int r = keep_ask(session, req, &one);
    if (r < 0)
        return r;
    char key[sizeof one->key]; /* the host may answer at once */
    memcpy(key, one->key, sizeof key);
    if (tell_host_of_ask(session, key, params, choices) < 0)
        weft__acp_answer(session, key, NULL);
    return 0;
}

static int refuse_ask(weft_driver_session *session, weft_req *req, int code, const char *why, const char *reason) {
    note_in_output(session, "weft: a question of the agent was refused: %s\n", why);
    return weft_refuse(req, code, why, reason);
}

static int ask_with_options(weft_driver_session *session, weft_req *req, const weft_json *params, const options *choices) {
    if (session->turn != WEFT_ACP_PROMPTING || session->cancelling)
        return reply_cancelled(req);
    if (!choices->count)
        return refuse_ask(session, req, WEFT_INVALID_PARAMS, "There is nothing to choose from", "invalidParams");
    if (session->ask_count >= MOST_ASKS)
        return refuse_ask(session, req, WEFT_INTERNAL_ERROR, "Too many questions are open", "tooManyQuestions");
    return ask_host(session, req, params, choices);
}

int weft__acp_ask(weft_req *req, const weft_json *params, void *ctx) {
    weft_driver_session *session = weft__acp_session_of(ctx, params);
    weft_json list = weft_get(params, "options");
    options choices;
    if (weft_req_is_notification(req)) /* it cannot be answered, and is gone when we return */
        return 0;
    if (!session)
        return reply_cancelled(req);
    int r = read_options(session, &list, &choices);
    if (r < 0)
        return r;
    weft__acp_session_hold(session);
    r = ask_with_options(session, req, params, &choices);
    options_done(session, &choices);
    weft__acp_session_release(session);
    return r;
}

/* ---- answering ---- */

int weft__acp_answer(weft_driver_session *session, const char *key, const char *option) {
    for (weft_link *link = session->asks.next; link != &session->asks; link = link->next) {
        ask *one = WEFT_CONTAINER(link, ask, link);
        if (strcmp(one->key, key) == 0) {
            answer_ask(one, option);
            return 0;
        }
    }
    return -ENOENT;
}

void weft__acp_asks_cancel(weft_driver_session *session) {
    while (!weft__list_empty(&session->asks))
        answer_ask(WEFT_CONTAINER(session->asks.next, ask, link), NULL);
}
