/* From an event to notifications and calls. A dialect renders it once for all who are live, or for one who catches up. What
 * is rendered for all is encoded once per framing and sent to each; so is the event itself, for those who subscribed. */
#include <errno.h>
#include <string.h>

#include "hub_clients_private.h"
#include "reply.h"
#include "shared.h"

int weft__forgive(int r) {
    return r == -ENOTSUP || r == -EPIPE ? 0 : r;
}

/* ---- who hears it ---- */

/* Somebody live who watches this. The same session is asked for line after line. */
static bool anybody_watches(weft_rendering *rendering, const char *session) {
    weft_hub_clients *clients = rendering->clients;
    if (rendering->asked && strcmp(rendering->asked, session) == 0)
        return rendering->answer;
    rendering->asked = weft__free(clients->alloc, rendering->asked);
    rendering->answer = false;
    for (weft_link *at = rendering->live.next; at != &rendering->live && !rendering->answer; at = at->next)
        rendering->answer = weft__subscription_hears(WEFT_CONTAINER(at, weft_subscription, live), session, rendering->gseq);
    rendering->asked = weft__strndup(clients->alloc, session, strlen(session));
    return rendering->answer;
}

static bool has_flags(const weft_hub_client *client, unsigned have, unsigned lack) {
    return (client->flags & have) == have && (!lack || (client->flags & lack) != lack);
}

bool weft__render_wanted(weft_rendering *rendering, const char *session) {
    if (rendering->only)
        return has_flags(rendering->only->client, rendering->have, rendering->lack) &&
               weft__subscription_hears(rendering->only, session, rendering->gseq);
    return !session || anybody_watches(rendering, session);
}

size_t weft__render_variant(const weft_rendering *rendering) {
    return rendering->variant;
}

uint64_t weft__render_beat(const weft_rendering *rendering) {
    return rendering->beat;
}

void weft__render_for(weft_rendering *rendering, unsigned have, unsigned lack) {
    rendering->have = have;
    rendering->lack = lack;
}

/* ---- what a renderer says ---- */

static int make_room_for_item(weft_rendering *rendering) {
    if (rendering->count < rendering->cap)
        return 0;
    size_t cap = rendering->cap ? rendering->cap * 2 : 4;
    weft_rendered *items = weft__resize(rendering->clients->alloc, rendering->items, cap * sizeof *items);
    if (!items)
        return -ENOMEM;
    rendering->items = items;
    rendering->cap = cap;
    return 0;
}

static void free_item(const weft_alloc *alloc, weft_rendered *item) {
    weft_shared_free(item->shared);
    weft__free(alloc, item->session);
    weft__free(alloc, item->question);
    weft__free(alloc, item->method);
    weft__free(alloc, item->params);
}

static int keep_item(weft_rendering *rendering, weft_rendered *item, const char *session, int r) {
    const weft_alloc *alloc = rendering->clients->alloc;
    item->have = rendering->have;
    item->lack = rendering->lack;
    if (r >= 0)
        r = weft__copy_or_null(alloc, session, &item->session);
    if (r >= 0)
        r = make_room_for_item(rendering);
    if (r < 0)
        free_item(alloc, item);
    else
        rendering->items[rendering->count++] = *item;
    return r < 0 ? r : 0;
}

static int keep_notification(weft_rendering *rendering, const char *session, uint64_t but, const char *method,
                             weft_val params) {
    weft_rendered item = {.but = but};
    int r = weft_shared_new(rendering->clients->hub->service, method, params, &item.shared);
    return keep_item(rendering, &item, session, r);
}

/* A call has an id of its own on each connection, so what is kept is its parts. */
static int keep_call(weft_rendering *rendering, const char *session, const char *question, const char *method,
                     weft_val params, weft_on_reply *on_reply) {
    const weft_alloc *alloc = rendering->clients->alloc;
    weft_rendered item = {.on_reply = on_reply};
    int r = weft__copy_or_null(alloc, question, &item.question);
    if (r >= 0)
        r = weft__copy_or_null(alloc, method, &item.method);
    if (r >= 0)
        r = weft_to_text(params, alloc, &item.params, &item.params_len);
    return keep_item(rendering, &item, session, r);
}

void weft__render_fail(weft_rendering *rendering, int r) {
    if (rendering->r >= 0)
        rendering->r = r;
}

const char *weft__render_text(weft_rendering *rendering, const weft_json *object, const char *name, const char *fallback) {
    weft_json value = weft_get(object, name);
    weft_bytes bytes;
    const char *text = weft_str_of(&value, NULL);
    if (text || weft_typeof(&value) != WEFT_STRING)
        return text ? text : fallback;
    if (weft_bytes_of(&value, &bytes) < 0 || !memchr(bytes.data, '\0', bytes.len))
        weft__render_fail(rendering, -ENOMEM);
    return fallback;
}

void weft__render_notify_others(weft_rendering *rendering, const char *session, uint64_t but, const char *method,
                                weft_val params) {
    const weft_subscription *only = rendering->only;
    bool knows = only && only->client->number == but && rendering->gseq > only->since;
    if (rendering->r < 0 || knows || !weft__render_wanted(rendering, session))
        return;
    rendering->r = only ? weft__forgive(weft_notify(only->client->peer, method, params))
                        : keep_notification(rendering, session, but, method, params);
}

void weft__render_notify(weft_rendering *rendering, const char *session, const char *method, weft_val params) {
    weft__render_notify_others(rendering, session, 0, method, params);
}

static int keep_message(weft_rendering *rendering, const char *session, weft_val message) {
    weft_rendered item = {0};
    int r = weft__shared_message(rendering->clients->hub->service, message, &item.shared);
    return keep_item(rendering, &item, session, r);
}

static int send_message(const weft_rendering *rendering, weft_val message) {
    const weft_alloc *alloc = rendering->clients->alloc;
    char *text;
    size_t len;
    int r = weft_to_text(message, alloc, &text, &len);
    if (r < 0)
        return r;
    r = weft_peer_send_raw(rendering->only->client->peer, (weft_bytes){text, len}, false);
    weft_text_free(text, alloc);
    return weft__forgive(r == -ENOTCONN ? -EPIPE : r);
}

void weft__render_message(weft_rendering *rendering, const char *session, weft_val message) {
    if (rendering->r < 0 || !weft__render_wanted(rendering, session))
        return;
    rendering->r = rendering->only ? send_message(rendering, message) : keep_message(rendering, session, message);
}

/* Who has too many open calls finds the question in question.list: that is no reason to close its connection. */
static int call_client(weft_subscription *subscription, const char *question, const char *method, weft_val params,
                       weft_on_reply *on_reply) {
    int r = weft__subscription_call(subscription, question, method, params, on_reply);
    return r == -ENOBUFS ? 0 : weft__forgive(r);
}

void weft__render_call(weft_rendering *rendering, const char *session, const char *question, const char *method,
                       weft_val params, weft_on_reply *on_reply) {
    const weft_question *known = weft__question_find(rendering->clients->hub->engine, question);
    if (rendering->r < 0 || !known || known->state != WEFT_QUESTION_OPEN || !weft__render_wanted(rendering, session))
        return;
    rendering->r = rendering->only ? call_client(rendering->only, question, method, params, on_reply)
                                   : keep_call(rendering, session, question, method, params, on_reply);
}

/* ---- rendering ---- */

static void render_event(weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    rendering->done = rendering->clients->rendered = true;
    rendering->have = rendering->lack = 0;
    rendering->gseq = event->gseq;
    if (rendering->dialect->render)
        rendering->dialect->render(rendering->clients->hub, rendering, event, data);
}

bool weft__rendering_render(weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    if (!rendering->done)
        render_event(rendering, event, data);
    return rendering->count || rendering->r < 0;
}

static int send_item(const weft_rendered *item, weft_subscription *subscription) {
    if (item->shared)
        return weft__forgive(weft_shared_send(item->shared, subscription->client->peer));
    return call_client(subscription, item->question, item->method, weft_raw(item->params, item->params_len), item->on_reply);
}

int weft__rendering_send(const weft_rendering *rendering, weft_subscription *subscription) {
    int r = rendering->r;
    for (size_t i = 0; r >= 0 && i < rendering->count; i++) {
        const weft_rendered *item = &rendering->items[i];
        if (item->but != subscription->client->number && has_flags(subscription->client, item->have, item->lack) &&
            weft__subscription_hears(subscription, item->session, rendering->gseq))
            r = send_item(item, subscription);
    }
    return r;
}

int weft__rendering_alone(weft_subscription *subscription, const weft_event *event, const weft_json *data) {
    const weft_rendering *form = subscription->rendering;
    weft_rendering alone = {
        .clients = form->clients, .only = subscription, .dialect = form->dialect, .variant = form->variant};
    render_event(&alone, event, data);
    return alone.r;
}

void weft__rendering_reset(weft_rendering *rendering) {
    const weft_alloc *alloc = rendering->clients->alloc;
    for (size_t i = 0; i < rendering->count; i++)
        free_item(alloc, &rendering->items[i]);
    rendering->asked = weft__free(alloc, rendering->asked);
    rendering->count = 0;
    rendering->have = rendering->lack = 0;
    rendering->done = false;
    rendering->r = 0;
}

/* A beat is no event: who does not listen at the moment does not need it later. The same holds for whatever is told so. */
static void tell_variant(weft_hub_clients *clients, weft_rendering *rendering, weft_hub_tell *tell, void *ctx) {
    weft__rendering_reset(rendering);
    rendering->gseq = clients->told;
    tell(clients->hub, rendering, ctx);
    for (weft_link *at = rendering->live.next; at != &rendering->live; at = at->next) {
        weft_subscription *subscription = WEFT_CONTAINER(at, weft_subscription, live);
        if (!weft_peer_full(subscription->client->peer))
            weft__rendering_send(rendering, subscription);
    }
    weft__rendering_reset(rendering);
}

static bool has_listener(const weft_rendering *rendering) {
    return !weft__list_empty(&rendering->live);
}

static void tell_beat(const weft_hub *hub, weft_rendering *rendering, void *ctx) {
    rendering->beat = *(const uint64_t *) ctx;
    rendering->dialect->beat(hub, rendering);
}

static void tell_variants(weft_hub_clients *clients, size_t dialect, weft_hub_tell *tell, void *ctx) {
    for (size_t v = 0; v < WEFT_VARIANTS; v++)
        if (has_listener(&clients->renderings[dialect][v]))
            tell_variant(clients, &clients->renderings[dialect][v], tell, ctx);
}

void weft__rendering_beat(weft_hub_clients *clients, size_t dialect) {
    uint64_t beat = ++clients->beats[dialect].count;
    tell_variants(clients, dialect, tell_beat, &beat);
}

static size_t index_of(const weft_hub_clients *clients, const weft_dialect *dialect) {
    size_t index = 0;
    const weft_dialect *known;
    while ((known = weft__dialects_at(clients->dialects, index)) && known != dialect)
        index++;
    return known ? index : SIZE_MAX;
}

void weft__hub_clients_tell(weft_hub_clients *clients, const weft_dialect *dialect, weft_hub_tell *tell, void *ctx) {
    size_t index = index_of(clients, dialect);
    if (index != SIZE_MAX)
        tell_variants(clients, index, tell, ctx);
}

bool weft__hub_clients_listen(const weft_hub_clients *clients, const weft_dialect *dialect) {
    size_t index = index_of(clients, dialect);
    for (size_t v = 0; index != SIZE_MAX && v < WEFT_VARIANTS; v++)
        if (has_listener(&clients->renderings[index][v]))
            return true;
    return false;
}

/* ---- the event itself ---- */

#define EVENT(event, time, id)                                                                                              \
    WEFT_OBJ({"gseq", weft_uint((event)->gseq)}, {"seq", weft_uint((event)->seq)}, {"stream", weft_str((event)->stream)},   \
             {"type", weft_str((event)->type)}, {"time", weft_str(weft__stamp((event)->time_ms, time))},                    \
             {"data", weft_raw((event)->data.data, (event)->data.len)}, {"subscription", weft_str_or_none(id)})

int weft__event_share(weft_hub_clients *clients, const weft_event *event, const char *id, weft_shared **ret) {
    char time[WEFT_STAMP];
    return weft_shared_new(clients->hub->service, "event", EVENT(event, time, id), ret);
}

int weft__event_form(weft_hub_clients *clients, const weft_event *event, const char *id, weft_shared **ret) {
    size_t i = 0;
    for (; i < clients->form_count; i++) {
        const char *other = clients->forms[i].id;
        if (other == id || (other && id && strcmp(other, id) == 0))
            break;
    }
    *ret = NULL;
    if (i == WEFT_EVENT_FORMS)
        return 0;
    int r = i < clients->form_count ? 0 : weft__event_share(clients, event, id, &clients->forms[i].shared);
    if (r < 0)
        return r;
    if (i == clients->form_count) {
        clients->forms[i].id = id;
        clients->form_count++;
    }
    *ret = clients->forms[i].shared;
    return 0;
}

void weft__event_forms_reset(weft_hub_clients *clients) {
    while (clients->form_count)
        weft_shared_free(clients->forms[--clients->form_count].shared);
}

int weft__event_tell(weft_subscription *subscription, const weft_event *event) {
    char time[WEFT_STAMP];
    int r = weft__subscription_mark(subscription, event->gseq);
    if (r < 0)
        return r;
    return weft__forgive(weft_notify(subscription->client->peer, "event", EVENT(event, time, subscription->id)));
}
