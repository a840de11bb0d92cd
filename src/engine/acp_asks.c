/* Questions of an ACP agent: session/request_permission, handed to the host and answered later. The agent may have several
 * open, and may give one up. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "acp_run.h"

/* An agent that asks more than this at a time asks nobody. */
#define MOST_ASKS 64
/* Four are usual. */
#define MOST_OPTIONS 16

typedef struct ask {
    weft_link link;
    weft_run *run;
    weft_req *req;
    char key[24];
} ask;

static void forget(ask *one) {
    weft__list_remove(&one->link);
    one->run->ask_count--;
    weft__free(one->run->alloc, one);
}

static void answer_one(ask *one, const char *option) {
    weft_req *req = one->req;
    weft_req_on_cancel(req, NULL, NULL);
    forget(one);
    weft_val outcome = option ? WEFT_OBJ({"outcome", weft_str("selected")}, {"optionId", weft_str(option)})
                              : WEFT_OBJ({"outcome", weft_str("cancelled")});
    weft_reply(req, WEFT_OBJ({"outcome", outcome}));
}

/* $/cancel_request, or the connection is gone. In the second case the run is about to end, and its questions with it. */
static void on_cancel(weft_req *req, int why, void *ctx) {
    ask *one = ctx;
    weft_run *run = one->run;
    char key[sizeof one->key];
    memcpy(key, one->key, sizeof key);
    weft__acp_hold(run);
    forget(one);
    weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
    if (why == -ECANCELED && !run->freed && run->state == WEFT_ACP_PROMPTING)
        run->host.on_unask(run->ctx, key);
    weft__acp_release(run);
}

/* ---- asking ---- */

typedef struct options {
    size_t count;
    weft_val list[MOST_OPTIONS];
    weft_member members[MOST_OPTIONS][3];
} options;

/* Those that can be chosen; a kind that we do not know is the host's to judge. */
static void read_options(const weft_json *list, options *ret) {
    ret->count = 0;
    for (weft_iter it = weft_iterate(list); weft_next(&it) && ret->count < MOST_OPTIONS;) {
        const char *id = weft_get_str(&it.value, "optionId", NULL);
        if (!id)
            continue;
        weft_member *members = ret->members[ret->count];
        members[0] = (weft_member){"id", weft_str(id)};
        members[1] = (weft_member){"name", weft_str(weft_get_str(&it.value, "name", id))};
        members[2] = (weft_member){"kind", weft_str(weft_get_str(&it.value, "kind", ""))};
        ret->list[ret->count++] = weft_obj(members, 3);
    }
}

static int keep(weft_run *run, weft_req *req, ask **ret) {
    ask *one = weft__zalloc(run->alloc, sizeof *one);
    if (!one)
        return -ENOMEM;
    one->run = run;
    one->req = req;
    snprintf(one->key, sizeof one->key, "%llu", (unsigned long long) ++run->last_ask);
    weft__list_push(&run->asks, &one->link);
    run->ask_count++;
    weft_req_on_cancel(req, on_cancel, one);
    *ret = one;
    return 0;
}

static void tell(weft_run *run, const char *key, const weft_json *params, const options *choices) {
    weft_json call = weft_get(params, "toolCall");
    weft_val detail = weft_typeof(&call) == WEFT_OBJECT ? weft_copy(&call) : weft_obj(NULL, 0);
    const char *title = weft_get_str(&call, "title", "The agent asks for permission");
    run->host.on_ask(run->ctx, key,
                     WEFT_OBJ({"kind", weft_str("permission")}, {"title", weft_str(title)},
                              {"options", weft_arr(choices->list, choices->count)}, {"detail", detail}));
}

int weft__acp_ask(weft_req *req, const weft_json *params, void *ctx) {
    weft_run *run = ctx;
    weft_json list = weft_get(params, "options");
    options choices;
    ask *one;
    read_options(&list, &choices);
    if (!choices.count)
        return weft_refuse(req, WEFT_INVALID_PARAMS, "There is nothing to choose from", "invalidParams");
    if (run->state != WEFT_ACP_PROMPTING || run->cancelling)
        return weft_reply(req, WEFT_OBJ({"outcome", WEFT_OBJ({"outcome", weft_str("cancelled")})}));
    if (run->ask_count >= MOST_ASKS)
        return weft_fail(req, WEFT_INTERNAL_ERROR, "Too many questions are open", weft_none());
    int r = keep(run, req, &one);
    if (r < 0)
        return r;
    char key[sizeof one->key]; /* the host may answer at once */
    memcpy(key, one->key, sizeof key);
    weft__acp_hold(run);
    tell(run, key, params, &choices);
    weft__acp_release(run);
    return 0;
}

/* ---- answering ---- */

int weft__acp_answer(weft_run *run, const char *key, const char *option) {
    for (weft_link *link = run->asks.next; link != &run->asks; link = link->next) {
        ask *one = WEFT_CONTAINER(link, ask, link);
        if (strcmp(one->key, key) == 0) {
            answer_one(one, option);
            return 0;
        }
    }
    return -ENOENT;
}

void weft__acp_asks_cancel(weft_run *run) {
    while (!weft__list_empty(&run->asks))
        answer_one(WEFT_CONTAINER(run->asks.next, ask, link), NULL);
}
