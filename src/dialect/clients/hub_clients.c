/* All clients of the hub: one listener at the engine, and everybody who is to hear of what it says.
 *
 * An event that nobody hears is not rendered; one that thousands hear is rendered and encoded once. Sending never ends a
 * connection here and now: a client that cannot be told something is closed before the loop waits again. So the walk over
 * the subscriptions that are live is safe. These are in one list for each way of saying it: of an event for which a dialect
 * has no words, its clients are not asked one by one. */
#include "hub_clients.h"

#include <errno.h>
#include <string.h>

#include "hub_clients_private.h"

/* Somebody who waits for a task. */
struct await {
    weft_link link;
    weft_on_task *on_event;
    void *ctx;
    char task[];
};

/* ---- figures ---- */

static void count_transport(weft_clients_figures *ret, const char *name) {
    size_t i = 0;
    while (i < ret->transport_count && strcmp(ret->transports[i].name, name) != 0)
        i++;
    if (i == WEFT_CLIENT_TRANSPORTS)
        return;
    if (i == ret->transport_count) {
        ret->transports[i].name = name;
        ret->transport_count++;
    }
    ret->transports[i].count++;
}

static void count_subscriptions(weft_clients_figures *ret, const weft_hub_client *client) {
    for (const weft_link *at = client->subscriptions.next; at != &client->subscriptions; at = at->next) {
        weft_subscription_state state = WEFT_CONTAINER(at, weft_subscription, link)->state;
        ret->live += state == WEFT_SUBSCRIPTION_LIVE;
        ret->replaying += state == WEFT_SUBSCRIPTION_PAUSED || state == WEFT_SUBSCRIPTION_REPLAYING;
    }
}

void weft__hub_clients_figures(const weft_hub_clients *clients, weft_clients_figures *ret) {
    *ret = (weft_clients_figures){.opened = clients->last_number};
    for (const weft_link *at = clients->list.next; at != &clients->list; at = at->next) {
        const weft_hub_client *client = WEFT_CONTAINER(at, weft_hub_client, link);
        count_transport(ret, weft_peer_identity(client->peer)->transport);
        count_subscriptions(ret, client);
    }
}

/* ---- waiting for a task ---- */

uint64_t weft__hub_clients_told(const weft_hub_clients *clients) {
    return clients->told;
}

int weft__hub_clients_await(weft_hub_clients *clients, const char *task, weft_on_task *on_event, void *ctx) {
    size_t size = strlen(task) + 1;
    struct await *await = weft__alloc(clients->alloc, sizeof *await + size);
    if (!await)
        return -ENOMEM;
    await->on_event = on_event;
    await->ctx = ctx;
    memcpy(await->task, task, size);
    weft__list_push(&clients->awaits, &await->link);
    return 0;
}

static void end_await(weft_hub_clients *clients, struct await *await) {
    weft__list_remove(&await->link);
    weft__free(clients->alloc, await);
}

static void tell_awaits(weft_hub_clients *clients, const weft_event *event, const weft_json *data) {
    const char *task = weft__list_empty(&clients->awaits) ? NULL : weft_get_str(data, "taskId", NULL);
    if (!task)
        return;
    for (weft_link *at = clients->awaits.next; at != &clients->awaits;) {
        struct await *await = WEFT_CONTAINER(at, struct await, link);
        bool more = strcmp(await->task, task) != 0 || await->on_event(await->ctx, event, data);
        at = at->next;
        if (!more)
            end_await(clients, await);
    }
}

/* ---- an event ---- */

/* Calls about a question that somebody has settled are of no use to anybody any more. */
static void withdraw_settled(weft_hub_clients *clients, const weft_event *event, const weft_json *data) {
    static const char *const ends[] = {"question.answered", "question.expired", "question.withdrawn"};
    if (weft__list_empty(&clients->calls))
        return;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(event->type, ends[i]) == 0)
            weft__calls_withdraw(clients, weft_get_str(data, "questionId", ""));
}

static void tell_subscription(weft_subscription *subscription, const weft_event *event, const weft_json *data) {
    weft_hub_client *client = subscription->client;
    int r = client->failing ? 0 : weft__subscription_wants(subscription, event, data);
    if (r > 0 && weft_peer_full(client->peer))
        weft__subscription_pause(subscription, event);
    else if (r > 0)
        r = weft__subscription_send(subscription, event);
    if (r < 0)
        client->failing = client->clients->failing = true;
}

/* Only after the walk, because losing a client takes all its subscriptions out of the list. */
void weft__hub_clients_lose_failing(weft_hub_clients *clients) {
    if (!clients->failing)
        return;
    clients->failing = false;
    for (weft_link *at = clients->list.next; at != &clients->list;) {
        weft_hub_client *client = WEFT_CONTAINER(at, weft_hub_client, link);
        at = at->next;
        if (client->failing)
            weft__hub_client_lose(client);
    }
}

static void reset_renderings(weft_hub_clients *clients) {
    for (size_t i = 0; clients->rendered && weft__dialects_at(clients->dialects, i); i++)
        for (size_t v = 0; v < WEFT_VARIANTS; v++)
            if (clients->renderings[i][v].done)
                weft__rendering_reset(&clients->renderings[i][v]);
    clients->rendered = false;
    weft__event_forms_reset(clients);
}

/* Most clients of a dialect are told nothing of most events, which is known from the first of them on. */
static bool says_nothing(const weft_rendering *rendering) {
    return rendering && rendering->done && !rendering->count && rendering->r >= 0;
}

/* Those who hear the same words; rendering NULL: who hear the event itself. */
static void tell_list(weft_link *live, const weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    for (weft_link *at = live->next; at != live && !says_nothing(rendering);) {
        weft_subscription *subscription = WEFT_CONTAINER(at, weft_subscription, live);
        at = at->next;
        tell_subscription(subscription, event, data);
    }
}

/* Of one dialect; false if nobody of it is live. */
static bool tell_dialect(weft_hub_clients *clients, size_t index, const weft_event *event, const weft_json *data) {
    bool heard = false;
    for (weft_rendering *rendering = clients->renderings[index]; rendering < clients->renderings[index] + WEFT_VARIANTS;
         rendering++)
        if (!weft__list_empty(&rendering->live)) {
            heard = true;
            tell_list(&rendering->live, rendering, event, data);
        }
    return heard;
}

/* Most have nobody, and there are many. */
static void tell_dialects(weft_hub_clients *clients, const weft_event *event, const weft_json *data) {
    for (size_t i = 0; clients->heard >> i; i++)
        if (clients->heard >> i & 1 && !tell_dialect(clients, i, event, data))
            clients->heard &= ~((uint32_t) 1 << i);
}

static void on_engine_event(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_hub_clients *clients = WEFT_CONTAINER(listener, weft_hub_clients, listener);
    clients->told = event->gseq;
    tell_awaits(clients, event, data);
    withdraw_settled(clients, event, data);
    weft__computations_event(clients, event, data);
    tell_dialects(clients, event, data);
    tell_list(&clients->live, NULL, event, data);
    weft__hub_clients_lose_failing(clients);
    reset_renderings(clients);
}

/* ---- clients that cannot be told everything ---- */

static void close_lost(weft_later *later) {
    weft_hub_clients *clients = WEFT_CONTAINER(later, weft_hub_clients, bury);
    while (!weft__list_empty(&clients->lost)) {
        weft_hub_client *client = WEFT_CONTAINER(clients->lost.next, weft_hub_client, link);
        weft_peer *peer = client->peer;
        weft_link left;
        weft__list_init(&left);
        weft__catch_ups_move(&client->left, &left);
        weft__hub_client_free(client);
        weft_peer_close(peer, WEFT_CLIENT_CLOSE, "reconnect and resume");
        weft_peer_free(peer);
        weft__catch_ups_tell(clients->alloc, &left, -ECANCELED);
    }
}

/* ---- beats ---- */

static void set_beat(struct weft_beat *beat) {
    weft_hub_clients *clients = beat->clients;
    weft_loop *loop = weft__engine_loop(clients->hub->engine);
    int64_t every = weft__dialects_at(clients->dialects, (size_t) (beat - clients->beats))->beat_ms;
    weft__timer_set(loop, &beat->timer, weft__loop_fresh_now(loop) + every);
}

static void on_beat(weft_timer *timer) {
    struct weft_beat *beat = WEFT_CONTAINER(timer, struct weft_beat, timer);
    weft__rendering_beat(beat->clients, (size_t) (beat - beat->clients->beats));
    set_beat(beat);
}

/* ---- life ---- */

static void init_dialect(weft_hub_clients *clients, size_t index, const weft_dialect *dialect) {
    for (size_t v = 0; v < WEFT_VARIANTS; v++) {
        clients->renderings[index][v] =
            (weft_rendering){.clients = clients, .dialect = dialect, .index = index, .variant = v};
        weft__list_init(&clients->renderings[index][v].live);
    }
    clients->beats[index].clients = clients;
    weft__timer_init(&clients->beats[index].timer, on_beat);
    if (dialect->beat && dialect->beat_ms > 0)
        set_beat(&clients->beats[index]);
}

int weft__hub_clients_new(weft_hub *hub, const weft_dialects *dialects, weft_hub_clients **ret) {
    const weft_dialect *dialect;
    weft_hub_clients *clients = weft__zalloc(hub->alloc, sizeof *clients);
    if (!clients)
        return -ENOMEM;
    clients->hub = hub;
    clients->dialects = dialects;
    clients->alloc = hub->alloc;
    clients->listener.on_event = on_engine_event;
    clients->told = weft__store_head(weft__engine_store(hub->engine));
    weft__list_init(&clients->list);
    weft__list_init(&clients->live);
    weft__list_init(&clients->lost);
    weft__list_init(&clients->awaits);
    weft__list_init(&clients->waits);
    weft__list_init(&clients->calls);
    weft__list_init(&clients->computations);
    clients->by_stream.alloc = hub->alloc;
    weft__later_init(&clients->bury, close_lost);
    for (size_t i = 0; (dialect = weft__dialects_at(dialects, i)); i++)
        init_dialect(clients, i, dialect);
    weft__engine_listen(hub->engine, &clients->listener);
    *ret = clients;
    return 0;
}

static void end_awaits(weft_hub_clients *clients) {
    while (!weft__list_empty(&clients->awaits)) {
        struct await *await = WEFT_CONTAINER(clients->awaits.next, struct await, link);
        await->on_event(await->ctx, NULL, NULL);
        end_await(clients, await);
    }
}

void weft__hub_wait(weft_hub_clients *clients, weft_hub_wait *wait) {
    weft__list_push(&clients->waits, &wait->link);
}

void weft__hub_wait_over(weft_hub_wait *wait) {
    weft__list_remove(&wait->link);
}

static void end_waits(weft_hub_clients *clients) {
    while (!weft__list_empty(&clients->waits)) {
        weft_hub_wait *wait = WEFT_CONTAINER(clients->waits.next, weft_hub_wait, link);
        weft__list_remove(&wait->link);
        wait->on_end(wait);
    }
}

weft_hub_clients *weft__hub_clients_free(weft_hub_clients *clients) {
    if (!clients)
        return NULL;
    weft_loop *loop = weft__engine_loop(clients->hub->engine);
    weft__engine_unlisten(&clients->listener);
    weft__later_cancel(&clients->bury);
    end_awaits(clients);
    end_waits(clients);
    while (!weft__list_empty(&clients->list))
        weft__hub_client_free(WEFT_CONTAINER(clients->list.next, weft_hub_client, link));
    while (!weft__list_empty(&clients->lost))
        weft__hub_client_free(WEFT_CONTAINER(clients->lost.next, weft_hub_client, link));
    for (size_t i = 0; weft__dialects_at(clients->dialects, i); i++) {
        weft__timer_stop(loop, &clients->beats[i].timer);
        for (size_t v = 0; v < WEFT_VARIANTS; v++)
            weft__free(clients->alloc, clients->renderings[i][v].items);
    }
    weft__map_done(&clients->by_stream);
    weft__free(clients->alloc, clients);
    return NULL;
}
