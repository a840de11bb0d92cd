/* Questions of an ACP agent: handed to the host and answered later. The agent may have several open, and may give one up.
 * session/request_permission is here, the others are in acp_elicit.c and acp_login.c. */
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
    weft_acp_ask_kind kind;
    weft_req *req; /* NULL: of ours */
    char key[24];
    char elicitation[]; /* its id; "": none */
} ask;

static void forget_ask(ask *one) {
    weft__list_remove(&one->link);
    one->session->ask_count--;
    weft__free(one->session->process->alloc, one);
}

static int reply_permission(weft_req *req, const char *option) {
    weft_val outcome = option ? WEFT_OBJ({"outcome", weft_str("selected")}, {"optionId", weft_str(option)})
                              : WEFT_OBJ({"outcome", weft_str("cancelled")});
    return weft_reply(req, WEFT_OBJ({"outcome", outcome}));
}

static void answer_ask(ask *one, const char *option, const weft_json *content) {
    weft_driver_session *session = one->session;
    weft_req *req = one->req;
    weft_acp_ask_kind kind = one->kind;
    weft_member members[2];
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    forget_ask(one);
    if (kind == WEFT_ACP_LOGIN)
        weft__acp_login_answer(session, option);
    else if (kind == WEFT_ACP_PERMISSION)
        reply_permission(req, option);
    else
        weft_reply(req, weft__acp_elicit_answer(option, content, members));
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
    if (why == -ECANCELED && !session->closed && session->turn != WEFT_ACP_IDLE)
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
    if (weft_bytes_of(&given, &text) < 0 || !text.len)
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

static int keep_ask(weft_driver_session *session, const weft_acp_asking *asking, ask **ret) {
    const char *elicitation = asking->elicitation ? asking->elicitation : "";
    size_t size = strlen(elicitation) + 1;
    ask *one = weft__zalloc(session->process->alloc, sizeof *one + size);
    if (!one)
        return -ENOMEM;
    one->session = session;
    one->kind = asking->kind;
    one->req = asking->req;
    memcpy(one->elicitation, elicitation, size);
    snprintf(one->key, sizeof one->key, "%llu", (unsigned long long) ++session->process->last_ask);
    weft__list_push(&session->asks, &one->link);
    session->ask_count++;
    if (one->req)
        weft_req_on_cancel(one->req, on_cancel, one);
    *ret = one;
    return 0;
}

/* The title is one line, of which a person sees every character. The detail has it as it came. */
static int tell_host_of_ask(weft_driver_session *session, const char *key, const weft_acp_asking *asking) {
    weft_bytes text = asking->title.len ? asking->title : (weft_bytes){asking->fallback, strlen(asking->fallback)};
    weft_buf title = {0};
    int r = weft__visible_put(&title, session->process->alloc, text, LONGEST_TITLE);
    if (r >= 0)
        session->host->on_ask(session->ctx, key,
                              WEFT_OBJ({"kind", weft_str(asking->name)},
                                       {"title", weft_strn(weft__buf_head(&title), weft__buf_len(&title))},
                                       {"options", asking->options}, {"detail", asking->detail}));
    weft__buf_done(&title, session->process->alloc);
    return r;
}

int weft__acp_ask_host(weft_driver_session *session, const weft_acp_asking *asking) {
    ask *one;
    int r = keep_ask(session, asking, &one);
    if (r < 0)
        return r;
    char key[sizeof one->key]; /* the host may answer at once */
    memcpy(key, one->key, sizeof key);
    weft__acp_session_hold(session);
    if (tell_host_of_ask(session, key, asking) < 0)
        weft__acp_answer(session, key, NULL);
    weft__acp_session_release(session);
    return 0;
}

bool weft__acp_asks_full(const weft_driver_session *session) {
    return session->ask_count >= MOST_ASKS;
}

static int ask_permission(weft_driver_session *session, weft_req *req, const weft_json *params, const options *choices) {
    weft_json call = weft_get(params, "toolCall"), title = weft_get(&call, "title");
    weft_acp_asking asking = {.kind = WEFT_ACP_PERMISSION,
                              .req = req,
                              .name = "permission",
                              .title = {"", 0},
                              .fallback = "The agent asks for permission",
                              .options = weft_arr(choices->list, choices->count),
                              .detail = weft_typeof(&call) == WEFT_OBJECT ? weft_copy(&call) : weft_obj(NULL, 0)};
    (void) weft_bytes_of(&title, &asking.title); /* without one it has the fallback */
    if (choices->dropped)
        note_in_output(session, "weft: %zu of the options that the agent offers cannot be shown\n", choices->dropped);
    if (session->closed || session->cancelling)
        return reply_permission(req, NULL);
    return weft__acp_ask_host(session, &asking);
}

int weft__acp_refuse_ask(weft_driver_session *session, weft_req *req, int code, const char *why, const char *reason) {
    note_in_output(session, "weft: a question of the agent was refused: %s\n", why);
    return weft_refuse(req, code, why, reason);
}

static int ask_with_options(weft_driver_session *session, weft_req *req, const weft_json *params, const options *choices) {
    if (session->turn != WEFT_ACP_PROMPTING || session->cancelling)
        return reply_permission(req, NULL);
    if (!choices->count)
        return weft__acp_refuse_ask(session, req, WEFT_INVALID_PARAMS, "The agent offers no answer to choose",
                                    "invalidParams");
    if (weft__acp_asks_full(session))
        return weft__acp_refuse_ask(session, req, WEFT_INTERNAL_ERROR, "Too many questions are open", "tooManyQuestions");
    return ask_permission(session, req, params, choices);
}

int weft__acp_ask(weft_req *req, const weft_json *params, void *ctx) {
    weft_driver_session *session = weft__acp_session_of(ctx, params);
    weft_json list = weft_get(params, "options");
    options choices;
    if (weft_req_is_notification(req)) /* it cannot be answered, and is gone when we return */
        return 0;
    if (!session)
        return reply_permission(req, NULL);
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

static int answer_key(weft_driver_session *session, const char *key, const char *option, const weft_json *content) {
    for (weft_link *link = session->asks.next; link != &session->asks; link = link->next) {
        ask *one = WEFT_CONTAINER(link, ask, link);
        if (strcmp(one->key, key) == 0) {
            answer_ask(one, option, content);
            return 0;
        }
    }
    return -ENOENT;
}

int weft__acp_answer(weft_driver_session *session, const char *key, const char *option) {
    return answer_key(session, key, option, NULL);
}

int weft__acp_accept(weft_driver_session *session, const char *key, const weft_json *content) {
    return answer_key(session, key, "accept", content);
}

/* From the start each time: the host may do anything. */
void weft__acp_asks_elicited(weft_driver_session *session, const char *elicitation) {
    weft_link *link = session->asks.next;
    weft__acp_session_hold(session);
    while (!session->closed && link != &session->asks) {
        ask *one = WEFT_CONTAINER(link, ask, link);
        link = link->next;
        if (one->kind != WEFT_ACP_URL || strcmp(one->elicitation, elicitation) != 0)
            continue;
        char key[sizeof one->key];
        memcpy(key, one->key, sizeof key);
        answer_ask(one, "accept", NULL);
        if (session->turn != WEFT_ACP_IDLE)
            session->host->on_unask(session->ctx, key);
        link = session->asks.next;
    }
    if (!session->closed && session->turn != WEFT_ACP_IDLE && session->host->on_elicited)
        session->host->on_elicited(session->ctx, elicitation);
    weft__acp_session_release(session);
}

/* Of ours nobody waits any more: whoever ends the turn says how it ended. */
void weft__acp_asks_cancel(weft_driver_session *session) {
    while (!weft__list_empty(&session->asks)) {
        ask *one = WEFT_CONTAINER(session->asks.next, ask, link);
        if (one->kind == WEFT_ACP_LOGIN)
            forget_ask(one);
        else
            answer_ask(one, NULL, NULL);
    }
}
