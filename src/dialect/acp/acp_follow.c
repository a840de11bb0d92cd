/* A client follows sessions: each by a subscription in ACP's words, with the position that it has there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "acp.h"
#include "alloc.h"

/* What there is something to say about. */
static const char *const types[] = {"session.",    "task.queued",    "task.started",  "task.completed",
                                    "task.failed", "task.cancelled", "question.asked"};

/* No id of a session is longer; a client's own subscription has another id. */
#define FOLLOW_ID 96

static const char *follow_id(const char *session, char text[FOLLOW_ID]) {
    snprintf(text, FOLLOW_ID, "session/update %s", session);
    return text;
}

/* Somebody waits until the past was told. */
struct following {
    weft_hub_client *client;
    const weft_alloc *alloc;
    int gap;
    weft_acp_followed *done;
    void *ctx;
    char session[];
};

static void finish_following(struct following *following, int r) {
    weft_acp_followed *done = following->done;
    void *ctx = following->ctx;
    weft__free(following->alloc, following);
    done(ctx, r);
}

static void on_past_told(void *ctx, int r) {
    struct following *following = ctx;
    finish_following(following, r < 0 ? r : following->gap);
}

static int wait_until_told(struct following *following) {
    char id[FOLLOW_ID];
    weft_subscription *subscription = weft__hub_client_subscription(following->client, follow_id(following->session, id));
    return subscription ? weft__subscription_catch_up(subscription, on_past_told, following) : -ECANCELED;
}

static void on_live(void *ctx, int r, uint64_t head) {
    struct following *following = ctx;
    (void) head;
    if (r == 0)
        r = wait_until_told(following);
    if (r != 0)
        finish_following(following, r);
}

/* The position may be one of a journal that is gone, or have been trimmed: then it goes on from now. */
static void on_subscribed(void *ctx, int r, uint64_t head) {
    struct following *following = ctx;
    char id[FOLLOW_ID];
    if (r <= 0) {
        on_live(ctx, r, head);
        return;
    }
    weft_subscription *subscription = weft__hub_client_subscription(following->client, follow_id(following->session, id));
    following->gap = r;
    r = subscription ? weft__subscription_go_live(subscription, on_live, following) : -ECANCELED;
    if (r < 0)
        finish_following(following, r);
}

static weft_subscription_spec subscription_spec(const char *session, const char *id) {
    return (weft_subscription_spec){.id = id,
                                    .session = session,
                                    .types = types,
                                    .type_count = sizeof types / sizeof types[0],
                                    .words = true,
                                    .of = "acp"};
}

int weft__acp_follow(weft_hub_client *client, const char *session) {
    char id[FOLLOW_ID];
    weft_subscription_spec spec = subscription_spec(session, follow_id(session, id));
    spec.live = true;
    return weft__hub_client_subscription(client, id) ? 0 : weft__hub_client_subscribe(client, &spec, NULL, NULL);
}

int weft__acp_follow_from(weft_hub_client *client, const char *session, const char *epoch, uint64_t after, bool whole,
                          weft_acp_followed *done, void *ctx) {
    const weft_alloc *alloc = weft__hub_client_alloc(client);
    char id[FOLLOW_ID];
    size_t size = strlen(session) + 1;
    struct following *following = weft__zalloc(alloc, sizeof *following + size);
    if (!following)
        return -ENOMEM;
    *following = (struct following){.client = client, .alloc = alloc, .done = done, .ctx = ctx};
    memcpy(following->session, session, size);
    weft_subscription_spec spec = subscription_spec(session, follow_id(session, id));
    spec.epoch = epoch;
    spec.after = after;
    spec.oldest = whole;
    int r = weft__hub_client_subscribe(client, &spec, on_subscribed, following);
    if (r < 0)
        weft__free(alloc, following);
    return r;
}

void weft__acp_ask_open(weft_hub_client *client, const char *session, bool told) {
    char id[FOLLOW_ID];
    weft_subscription *subscription = weft__hub_client_subscription(client, follow_id(session, id));
    if (subscription)
        weft__subscription_call_open(subscription, session, told ? ACP_OPEN_QUESTION : "question.asked");
}

void weft__acp_unfollow(weft_hub_client *client, const char *session) {
    char id[FOLLOW_ID];
    weft__hub_client_unsubscribe(client, follow_id(session, id));
}

void weft__acp_when_told(weft_hub_client *client, const char *session, weft_caught_up *done, void *ctx) {
    char id[FOLLOW_ID];
    weft_subscription *subscription = client ? weft__hub_client_subscription(client, follow_id(session, id)) : NULL;
    if (!subscription || weft__subscription_catch_up(subscription, done, ctx) < 0)
        done(ctx, -ECANCELED);
}

bool weft__acp_follows(const weft_hub_client *client, const char *session) {
    char id[FOLLOW_ID];
    return weft__hub_client_subscription(client, follow_id(session, id)) != NULL;
}
