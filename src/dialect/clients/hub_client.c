/* One client: a connection, the dialect it speaks, the sessions it watches and its subscriptions. */
#include <errno.h>
#include <string.h>

#include "hash.h"
#include "hub_clients_private.h"
#include "link.h"

/* ---- watching sessions ---- */

static weft_watched *find_watched(const weft_hub_client *client, const char *session) {
    uint32_t hash = weft__hash(session);
    for (size_t i = 0; i < client->watch_count; i++)
        if (client->watches[i].hash == hash && strcmp(client->watches[i].session, session) == 0)
            return &client->watches[i];
    return NULL;
}

static int make_room_for_watch(weft_hub_client *client) {
    if (client->watch_count < client->watch_cap)
        return 0;
    size_t cap = client->watch_cap ? client->watch_cap * 2 : 4;
    weft_watched *watches = weft__resize(client->clients->alloc, client->watches, cap * sizeof *watches);
    if (!watches)
        return -ENOMEM;
    client->watches = watches;
    client->watch_cap = cap;
    return 0;
}

int weft__hub_client_watch(weft_hub_client *client, const char *session) {
    if (find_watched(client, session))
        return 0;
    if (client->watch_count == WEFT_CLIENT_WATCHES)
        return -ENOSPC;
    char *copy = make_room_for_watch(client) < 0 ? NULL : weft__strndup(client->clients->alloc, session, strlen(session));
    if (!copy)
        return -ENOMEM;
    client->watches[client->watch_count++] =
        (weft_watched){.hash = weft__hash(session), .since = client->clients->told, .session = copy};
    return 0;
}

/* In the order in which they came, the oldest first. */
static void forget_watched(weft_hub_client *client, weft_watched *watched) {
    weft__free(client->clients->alloc, watched->session);
    size_t behind = (size_t) (client->watches + client->watch_count - (watched + 1));
    memmove(watched, watched + 1, behind * sizeof *watched);
    client->watch_count--;
}

void weft__hub_client_unwatch(weft_hub_client *client, const char *session) {
    weft_watched *watched = find_watched(client, session);
    if (watched)
        forget_watched(client, watched);
}

void weft__hub_client_unwatch_all(weft_hub_client *client) {
    while (client->watch_count)
        forget_watched(client, &client->watches[client->watch_count - 1]);
}

uint64_t weft__hub_client_watches_since(const weft_hub_client *client, const char *session) {
    const weft_watched *watched = find_watched(client, session);
    return watched ? watched->since : client->clients->told;
}

const char *weft__hub_client_watched(const weft_hub_client *client) {
    return client->watch_count ? client->watches[0].session : NULL;
}

bool weft__hub_client_hears(const weft_hub_client *client, const char *session, uint64_t gseq) {
    const weft_watched *watched = find_watched(client, session);
    return watched && (!gseq || gseq > watched->since);
}

bool weft__hub_client_watches(const weft_hub_client *client, const char *session) {
    return find_watched(client, session) != NULL;
}

int weft__hub_client_started(weft_hub_client *client, const char *session) {
    char *copy = weft__strndup(client->clients->alloc, session, strlen(session));
    if (!copy)
        return -ENOMEM;
    weft__free(client->clients->alloc, client->session);
    client->session = copy;
    if (client->watch_count == WEFT_CLIENT_WATCHES && !find_watched(client, session))
        forget_watched(client, client->watches);
    return weft__hub_client_watch(client, session);
}

uint64_t weft__hub_client_number(const weft_hub_client *client) {
    return client->number;
}

int64_t weft__hub_client_since(const weft_hub_client *client) {
    return client->since_ms;
}

size_t weft__hub_client_subscriptions(const weft_hub_client *client) {
    return client->subscription_count;
}

int weft__hub_client_use_agent(weft_hub_client *client, const char *agent) {
    const weft_alloc *alloc = client->clients->alloc;
    char *copy = weft__strndup(alloc, agent, strlen(agent));
    if (!copy)
        return -ENOMEM;
    weft__free(alloc, client->agent);
    client->agent = copy;
    return 0;
}

int weft__hub_client_set_name(weft_hub_client *client, const char *name) {
    const weft_alloc *alloc = client->clients->alloc;
    char *copy = weft__strndup(alloc, name, strlen(name));
    if (!copy)
        return -ENOMEM;
    weft__free(alloc, client->name);
    client->name = copy;
    return 0;
}

const char *weft__hub_client_name(const weft_hub_client *client) {
    return client->name;
}

weft_hub_client *weft__hub_clients_named(const weft_hub_clients *clients, const char *name) {
    for (const weft_link *at = clients->list.prev; at != &clients->list; at = at->prev) {
        weft_hub_client *client = WEFT_CONTAINER(at, weft_hub_client, link);
        if (client->name && strcmp(client->name, name) == 0)
            return client;
    }
    return NULL;
}

const char *weft__hub_client_agent(const weft_hub_client *client) {
    return client->agent;
}

weft_link *weft__hub_client_unstored(weft_hub_client *client) {
    return &client->unstored;
}

void weft__hub_client_add(weft_hub_client *client, weft_client_part *part) {
    weft__list_push(&client->parts, &part->link);
}

weft_client_part *weft__hub_client_part(const weft_hub_client *client, void (*on_gone)(weft_client_part *part)) {
    for (weft_link *at = client->parts.next; at != &client->parts; at = at->next)
        if (WEFT_CONTAINER(at, weft_client_part, link)->on_gone == on_gone)
            return WEFT_CONTAINER(at, weft_client_part, link);
    return NULL;
}

const weft_alloc *weft__hub_client_alloc(const weft_hub_client *client) {
    return client->clients->alloc;
}

const char *weft__hub_client_session(const weft_hub_client *client) {
    return client->session;
}

/* ---- its dialect ---- */

static int find_variant(const weft_dialect *dialect, const char *variant, size_t *ret) {
    *ret = 0;
    if (!variant)
        return 0;
    for (size_t i = 0; dialect->variants && dialect->variants[i]; i++)
        if (strcmp(dialect->variants[i], variant) == 0) {
            *ret = i;
            return 0;
        }
    return -EINVAL;
}

/* Its identity says what it speaks, for the rows that several dialects have. */
static int set_identity(weft_peer *peer, const char *dialect) {
    weft_identity who = *weft_peer_identity(peer);
    if (strcmp(who.dialect, dialect) == 0)
        return 0;
    who.dialect = dialect;
    return weft_peer_set_identity(peer, &who);
}

/* Where other words for the same events go on: one that is behind has not said everything yet. */
static uint64_t words_at(const weft_hub_client *client, const weft_rendering *next) {
    const weft_subscription *words = client->words;
    bool behind = words && next && words->rendering->dialect == next->dialect && words->state != WEFT_SUBSCRIPTION_LIVE;
    return behind ? words->at : client->clients->told;
}

static int replace_words(weft_hub_client *client, weft_rendering *rendering) {
    uint64_t at = words_at(client, rendering);
    weft_subscription *words = NULL;
    if (rendering) {
        int r = weft__subscription_new(client, NULL, NULL, &words);
        if (r < 0)
            return r;
        words->rendering = rendering;
    }
    weft__subscription_free(client->words);
    client->words = words;
    if (words) {
        weft__list_push(&client->subscriptions, &words->link);
        weft__subscription_begin(words, at);
    }
    return 0;
}

static const weft_dialect *find_dialect(const weft_hub_client *client, const char *name, size_t *ret_index) {
    const weft_dialect *known;
    size_t index = 0;
    while ((known = weft__dialects_at(client->clients->dialects, index)) && strcmp(known->name, name) != 0)
        index++;
    *ret_index = index;
    return known;
}

static bool speaks_dialect(const weft_hub_client *client, const char *name) {
    return strcmp(weft_peer_identity(client->peer)->dialect, name) == 0;
}

/* The one that its own has as well; NULL: none. */
static const weft_dialect *second_dialect(const weft_hub_client *client, size_t *ret_index) {
    const weft_dialect *own = find_dialect(client, weft_peer_identity(client->peer)->dialect, ret_index);
    return own && own->also ? find_dialect(client, own->also, ret_index) : NULL;
}

int weft__hub_client_speak(weft_hub_client *client, const char *dialect, const char *variant) {
    size_t index, which = 0;
    const weft_dialect *known = find_dialect(client, dialect, &index);
    int r = known ? find_variant(known, variant, &which) : 0;
    if (r >= 0)
        r = set_identity(client->peer, dialect);
    if (r < 0)
        return r;
    /* What happens is for those who may read it: prompts, what agents say, changes of files. */
    bool hears = known && (known->render || known->beat) && weft_has_scope(weft_peer_identity(client->peer), WEFT_READ);
    r = replace_words(client, hears ? &client->clients->renderings[index][which] : NULL);
    client->variant = r >= 0 ? which : client->variant;
    const weft_dialect *second = r >= 0 ? second_dialect(client, &index) : NULL;
    if (second)
        r = find_variant(second, known->also_variant, &client->form);
    /* Calls in the former dialect were withdrawn in its style. */
    if (r >= 0 && known)
        weft__peer_set_protocol(client->peer, known->style, known->no_batch);
    return r;
}

static bool has_as_well(const weft_dialect *dialect, const weft_dialect *other) {
    return dialect->also && strcmp(dialect->also, other->name) == 0;
}

int weft__hub_client_decide(weft_hub_client *client, const weft_dialect *dialect) {
    const weft_dialect *before = client->decided;
    if (before && (before == dialect || has_as_well(before, dialect)))
        return 0;
    bool widens = before && has_as_well(dialect, before);
    if (before && !widens)
        return dialect->joins ? 0 : -EBUSY;
    size_t form = weft__hub_client_variant(client);
    /* What it hears already stays as it is. */
    int r = speaks_dialect(client, dialect->name) ? 0 : weft__hub_client_speak(client, dialect->name, NULL);
    if (r >= 0 && widens)
        client->form = form;
    if (r >= 0)
        client->decided = dialect;
    return r;
}

size_t weft__hub_client_form(const weft_hub_client *client, const char *dialect) {
    size_t index;
    const weft_dialect *second = second_dialect(client, &index);
    if (speaks_dialect(client, dialect))
        return weft__hub_client_variant(client);
    return second && strcmp(second->name, dialect) == 0 ? client->form : 0;
}

int weft__hub_client_use_form(weft_hub_client *client, const char *dialect, const char *variant) {
    size_t index;
    const weft_dialect *second = second_dialect(client, &index);
    if (speaks_dialect(client, dialect))
        return weft__hub_client_speak(client, dialect, variant);
    return second && strcmp(second->name, dialect) == 0 ? find_variant(second, variant, &client->form) : 0;
}

size_t weft__hub_client_variant(const weft_hub_client *client) {
    return client->variant;
}

unsigned weft__hub_client_flags(const weft_hub_client *client) {
    return client->flags;
}

void weft__hub_client_set_flags(weft_hub_client *client, unsigned flags) {
    client->flags = flags;
}

/* ---- its subscriptions ---- */

static bool same_id(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static weft_subscription *find_subscription(const weft_hub_client *client, const char *id, bool stream) {
    for (weft_link *at = client->subscriptions.next; at != &client->subscriptions; at = at->next) {
        weft_subscription *subscription = WEFT_CONTAINER(at, weft_subscription, link);
        if (subscription != client->words && (subscription->computation != NULL) == stream && same_id(subscription->id, id))
            return subscription;
    }
    return NULL;
}

weft_subscription *weft__hub_client_subscription(const weft_hub_client *client, const char *id) {
    return find_subscription(client, id, false);
}

weft_subscription *weft__hub_client_stream(const weft_hub_client *client, const char *id) {
    return find_subscription(client, id, true);
}

/* Where the client begins. In a stream there is no number for "now": the store is asked first. */
static weft_query first_query(const weft_hub_client *client, const weft_subscription_spec *spec) {
    if (!spec->live)
        return (weft_query){
            .after = spec->after, .epoch = spec->epoch, .oldest = spec->oldest || (!spec->after && !spec->kind)};
    if (spec->kind && spec->kind->whole)
        return (weft_query){.oldest = true};
    if (spec->stream)
        return (weft_query){.oldest = true, .max_events = 1};
    return (weft_query){.after = weft__store_head(weft__engine_store(client->clients->hub->engine))};
}

/* NULL: nothing is said to it in words. */
static weft_rendering *rendering_for(const weft_hub_client *client, const weft_subscription_spec *spec) {
    size_t index;
    const weft_dialect *second = spec->of ? second_dialect(client, &index) : NULL;
    bool hears = weft_has_scope(weft_peer_identity(client->peer), WEFT_READ);
    if (second && strcmp(second->name, spec->of) == 0)
        return hears ? &client->clients->renderings[index][client->form] : NULL;
    return client->words ? client->words->rendering : NULL;
}

static int check_spec(const weft_hub_client *client, const weft_subscription_spec *spec) {
    if (spec->type_count > WEFT_CLIENT_WATCHES)
        return -ENOSPC;
    if ((spec->id && strlen(spec->id) > WEFT_SUBSCRIPTION_ID) || (spec->stream && strlen(spec->stream) > WEFT_STORE_NAME))
        return -EINVAL;
    if (spec->words && (!spec->session || !rendering_for(client, spec)))
        return spec->session ? -ENOTSUP : -EINVAL;
    if (client->lost)
        return -EPIPE;
    bool replaces = find_subscription(client, spec->id, spec->kind != NULL) != NULL;
    return !replaces && client->subscription_count == WEFT_CLIENT_SUBSCRIPTIONS ? -EMFILE : 0;
}

static int make_stream_subscription(weft_hub_client *client, const weft_subscription_spec *spec, weft_subscription **ret) {
    int r = weft__subscription_new(client, spec->id, NULL, ret);
    if (r < 0)
        return r;
    r = weft__computation_join(*ret, spec->kind, spec->params);
    if (r < 0)
        weft__subscription_free(*ret);
    return r;
}

static int make_subscription(weft_hub_client *client, const weft_subscription_spec *spec, weft_subscription **ret) {
    if (spec->kind)
        return make_stream_subscription(client, spec, ret);
    weft_event_source *source = weft__source_new(spec, client->clients->alloc);
    if (!source)
        return -ENOMEM;
    int r = weft__subscription_new(client, spec->id, source, ret);
    if (r < 0)
        return r;
    (*ret)->class = spec->class;
    (*ret)->marks = spec->marks;
    (*ret)->rendering = spec->words ? rendering_for(client, spec) : NULL;
    (*ret)->seeks = spec->live && spec->stream;
    /* It goes on from where it was: what it caused itself since then it knows. */
    if (spec->words && spec->after && !spec->oldest)
        (*ret)->since = spec->after;
    return 0;
}

static bool end_subscription(weft_hub_client *client, weft_subscription *subscription) {
    if (!subscription)
        return false;
    client->subscription_count--;
    weft__subscription_free(subscription);
    return true;
}

int weft__hub_client_subscribe(weft_hub_client *client, const weft_subscription_spec *spec, weft_subscribed *done,
                               void *ctx) {
    weft_subscription *made;
    int r = check_spec(client, spec);
    if (r >= 0)
        r = make_subscription(client, spec, &made);
    if (r < 0)
        return r;
    bool replaces = end_subscription(client, find_subscription(client, spec->id, spec->kind != NULL));
    weft_query query = first_query(client, spec);
    made->replaces = replaces;
    bool waits = made->computation && made->class == WEFT_CLASS_STATE;
    r = client->lost ? -EPIPE : waits ? weft__computation_await(made, spec) : weft__subscription_start(made, &query);
    if (r < 0) {
        weft__subscription_free(made);
        /* It has lost the subscription it had, and an error does not say so. */
        if (replaces)
            weft__hub_client_lose(client);
        return r;
    }
    made->done = done;
    made->done_ctx = ctx;
    weft__list_push(&client->subscriptions, &made->link);
    client->subscription_count++;
    return 0;
}

bool weft__hub_client_unsubscribe(weft_hub_client *client, const char *id) {
    return end_subscription(client, find_subscription(client, id, false));
}

bool weft__hub_client_unsubscribe_stream(weft_hub_client *client, const char *id) {
    return end_subscription(client, find_subscription(client, id, true));
}

/* ---- coming and going ---- */

weft_hub_client *weft__hub_client_of(const weft_hub_clients *clients, weft_peer *peer) {
    void *data = clients && clients->opened ? weft_peer_data(peer) : NULL;
    return data == (clients ? clients->peer_data : NULL) ? NULL : data;
}

weft_peer *weft__hub_client_peer(const weft_hub_client *client) {
    return client->peer;
}

/* Those that are lost have gone, as far as anybody who wants to tell them something is concerned. */
weft_hub_client *weft__hub_clients_find(const weft_hub_clients *clients, uint64_t number) {
    for (const weft_link *at = clients->list.next; at != &clients->list; at = at->next) {
        weft_hub_client *client = WEFT_CONTAINER(at, weft_hub_client, link);
        if (client->number == number)
            return client;
    }
    return NULL;
}

weft_hub_client *weft__hub_clients_next(const weft_hub_clients *clients, const weft_hub_client *before) {
    const weft_link *next = before ? before->link.next : clients->list.next;
    return next == &clients->list ? NULL : WEFT_CONTAINER(next, weft_hub_client, link);
}

/* They stay in the list: whoever loses the client may stand in the midst of one of them. */
void weft__hub_client_lose(weft_hub_client *client) {
    weft_hub_clients *clients = client->clients;
    if (client->lost)
        return;
    client->lost = true;
    for (weft_link *at = client->subscriptions.next; at != &client->subscriptions; at = at->next)
        weft__subscription_stop(WEFT_CONTAINER(at, weft_subscription, link));
    weft__list_remove(&client->link);
    weft__list_push(&clients->lost, &client->link);
    weft__later(weft__engine_loop(clients->hub->engine), &clients->bury);
}

void weft__hub_client_free(weft_hub_client *client) {
    const weft_alloc *alloc = client->clients->alloc;
    client->lost = true;
    weft_peer_set_data(client->peer, client->clients->peer_data);
    weft__list_remove(&client->link);
    while (!weft__list_empty(&client->subscriptions))
        weft__subscription_free(WEFT_CONTAINER(client->subscriptions.next, weft_subscription, link));
    weft__catch_ups_tell(alloc, &client->left, -ECANCELED);
    while (!weft__list_empty(&client->unstored))
        weft__list_remove(client->unstored.next);
    while (!weft__list_empty(&client->parts)) {
        weft_client_part *part = WEFT_CONTAINER(client->parts.next, weft_client_part, link);
        weft__list_remove(&part->link);
        part->on_gone(part);
    }
    while (client->watch_count)
        weft__free(alloc, client->watches[--client->watch_count].session);
    weft__free(alloc, client->watches);
    weft__free(alloc, client->session);
    weft__free(alloc, client->agent);
    weft__free(alloc, client->name);
    weft__free(alloc, client);
}

/* It would never hear anything, and never know. */
static void refuse_client(weft_peer *peer) {
    weft_peer_close(peer, WEFT_CLIENT_CLOSE, "out of memory");
    weft_peer_free(peer);
}

void weft__hub_clients_open(weft_hub_clients *clients, weft_peer *peer) {
    weft_hub_client *client = weft__zalloc(clients->alloc, sizeof *client);
    if (!client) {
        refuse_client(peer);
        return;
    }
    clients->peer_data = clients->opened ? clients->peer_data : weft_peer_data(peer);
    clients->opened = true;
    client->clients = clients;
    client->number = ++clients->last_number;
    client->since_ms = weft__engine_now(clients->hub->engine);
    client->peer = peer;
    weft__list_init(&client->subscriptions);
    weft__list_init(&client->left);
    weft__list_init(&client->unstored);
    weft__list_init(&client->parts);
    weft__list_push(&clients->list, &client->link);
    weft_peer_set_data(peer, client);
    if (weft__hub_client_speak(client, weft_peer_identity(peer)->dialect, NULL) < 0) {
        weft__hub_client_free(client);
        refuse_client(peer);
    }
}

void weft__hub_clients_close(weft_hub_clients *clients, weft_peer *peer) {
    weft_hub_client *client = weft__hub_client_of(clients, peer);
    if (client)
        weft__hub_client_free(client);
}

/* The rest of a value in pieces. A log goes on behind it. */
static void go_on_with_transfer(weft_hub_client *client) {
    weft_subscription *subscription = client->transfer;
    if (!subscription)
        return;
    uint64_t seq = subscription->sending->seq;
    int r = weft__transfer_go_on(subscription);
    if (r > 0 && subscription->class == WEFT_CLASS_LOG)
        subscription->at = seq;
    if (r < 0)
        weft__hub_client_lose(client);
}

static void go_on(weft_subscription *subscription) {
    if (subscription->computation && subscription->class == WEFT_CLASS_STATE)
        weft__computation_catch_up(subscription);
    else
        weft__subscription_resume(subscription);
}

/* A part may go when it is told, and nobody else's does. */
static void drain_parts(const weft_hub_client *client) {
    for (weft_link *at = client->parts.next, *next; at != &client->parts; at = next) {
        weft_client_part *part = WEFT_CONTAINER(at, weft_client_part, link);
        next = at->next;
        if (part->on_drain)
            part->on_drain(part);
    }
}

/* First those that have little to say: one that has much may fill the connection again. */
void weft__hub_clients_drain(weft_hub_clients *clients, weft_peer *peer) {
    static const weft_subscription_class order[] = {WEFT_CLASS_STATE, WEFT_CLASS_LOG};
    weft_hub_client *client = weft__hub_client_of(clients, peer);
    if (client && !client->lost)
        go_on_with_transfer(client);
    for (size_t i = 0; client && i < 2; i++)
        for (weft_link *at = client->subscriptions.next; at != &client->subscriptions && !client->lost; at = at->next) {
            weft_subscription *subscription = WEFT_CONTAINER(at, weft_subscription, link);
            if (subscription->class == order[i])
                go_on(subscription);
        }
    if (client && !client->lost)
        drain_parts(client);
}
