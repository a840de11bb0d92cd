/* Calls from the hub to a client: somebody is asked what an agent wants to know. The question itself is the engine's, is
 * stored, and anybody may answer it by question.answer as well. So a call is only one way to show it: when the question is
 * settled elsewhere, or the subscription that showed it ends, the call is withdrawn and the client is told. */
#include <errno.h>
#include <string.h>

#include "hub_clients_private.h"

struct open_call {
    weft_link link; /* in its subscription */
    weft_link all;  /* in clients->calls */
    weft_subscription *subscription;
    int64_t id;
    weft_on_reply *on_reply;
    char question[];
};

static void end_call(struct open_call *call) {
    weft_hub_client *client = call->subscription->client;
    weft__list_remove(&call->link);
    weft__list_remove(&call->all);
    client->call_count--;
}

static void finish_call(struct open_call *call, int r, const weft_answer *answer) {
    weft_hub_client *client = call->subscription->client;
    weft_hub_clients *clients = client->clients;
    end_call(call);
    call->on_reply(clients->hub, client, call->question, r, answer);
    weft__free(clients->alloc, call);
}

static void on_call_answered(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer;
    finish_call(ctx, r, answer);
}

int weft__subscription_call(weft_subscription *subscription, const char *question, const char *method, weft_val params,
                            weft_on_reply *on_reply) {
    weft_hub_client *client = subscription->client;
    weft_hub_clients *clients = client->clients;
    if (client->call_count == WEFT_CLIENT_CALLS)
        return -ENOBUFS;
    size_t size = strlen(question) + 1;
    struct open_call *call = weft__alloc(clients->alloc, sizeof *call + size);
    if (!call)
        return -ENOMEM;
    *call = (struct open_call){.subscription = subscription, .on_reply = on_reply};
    memcpy(call->question, question, size);
    weft_call_opts opts = {.on_answer = on_call_answered, .ctx = call, .timeout_ms = -1};
    int r = weft_call_start(client->peer, method, params, &opts, &call->id);
    if (r < 0) {
        weft__free(clients->alloc, call);
        return r;
    }
    weft__list_push(&subscription->calls, &call->link);
    weft__list_push(&clients->calls, &call->all);
    client->call_count++;
    return 0;
}

/* ---- what is open when a client comes ---- */

static bool is_called(const weft_subscription *subscription, const char *question) {
    for (const weft_link *at = subscription->calls.next; at != &subscription->calls; at = at->next)
        if (strcmp(WEFT_CONTAINER(at, struct open_call, link)->question, question) == 0)
            return true;
    return false;
}

static weft_val json_or_none(const char *text) {
    return text ? weft_raw(text, strlen(text)) : weft_none();
}

static int call_about(weft_subscription *subscription, const weft_question *question, const char *type) {
    weft_hub_clients *clients = subscription->client->clients;
    weft_doc *doc;
    char *text;
    size_t len;
    int r = weft_to_text(WEFT_OBJ({"questionId", weft_str(question->id)}, {"taskId", weft_str_or_none(question->task)},
                                  {"sessionId", weft_str_or_none(question->session)}, {"kind", weft_str(question->kind)},
                                  {"title", weft_str(question->title)}, {"options", json_or_none(question->options)},
                                  {"detail", json_or_none(question->detail)}),
                         clients->alloc, &text, &len);
    if (r < 0)
        return r;
    r = weft_doc_parse(text, len, clients->alloc, &doc);
    if (r >= 0) {
        weft_event event = {.stream = WEFT_STREAM_HUB,
                            .type = type,
                            .gseq = clients->told,
                            .time_ms = question->created_ms,
                            .data = {text, len}};
        r = weft__rendering_alone(subscription, &event, weft_doc_root(doc));
        weft_doc_free(doc);
    }
    weft_text_free(text, clients->alloc);
    return r;
}

void weft__subscription_call_open(weft_subscription *subscription, const char *session, const char *type) {
    weft_hub_client *client = subscription->client;
    const weft_engine *engine = client->clients->hub->engine;
    int r = 0;
    for (const weft_question *question = weft__question_first(engine, false); r >= 0 && question;
         question = weft__question_next(engine, question, false))
        if (question->session && strcmp(question->session, session) == 0 && !is_called(subscription, question->id))
            r = call_about(subscription, question, type);
    if (r < 0) {
        client->failing = client->clients->failing = true;
        weft__hub_clients_lose_failing(client->clients);
    }
}

/* ---- when it is settled ---- */

/* weft_cancel() tells the client and completes the call. A connection that is being torn down may not know it any more. */
static void withdraw_call(struct open_call *call) {
    if (weft_cancel(call->subscription->client->peer, call->id) < 0)
        finish_call(call, -ECANCELED, NULL);
}

/* From the start each time: a completion may end others. */
void weft__calls_withdraw(weft_hub_clients *clients, const char *question) {
    for (weft_link *at = clients->calls.next; at != &clients->calls;) {
        struct open_call *call = WEFT_CONTAINER(at, struct open_call, all);
        bool settled = strcmp(call->question, question) == 0;
        if (settled)
            withdraw_call(call);
        at = settled ? clients->calls.next : at->next;
    }
}

void weft__calls_end(weft_subscription *subscription) {
    while (!weft__list_empty(&subscription->calls))
        withdraw_call(WEFT_CONTAINER(subscription->calls.next, struct open_call, link));
}
