/* tinyvex/mutate_result for those who were not there any more when their change was done. It is told to every connection of
 * the same caller that speaks tinyvex; if there is none, it is kept until one comes. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "hub_clients_private.h"
#include "reply.h"
#include "tinyvex_change.h"
#include "write.h"

#define LATE 256                      /* that are kept: who comes back soon has few */
#define LATE_BYTES ((size_t) 4 << 20) /* of all of them */

struct late {
    weft_link link;
    size_t len;
    char *params; /* JSON */
    char by[];
};

struct weft_tinyvex_late {
    weft_hub_wait wait;
    weft_hub *hub;
    weft_link list; /* the oldest first */
    size_t count, bytes;
};

static void drop_late(struct weft_tinyvex_late *all, struct late *old) {
    weft__list_remove(&old->link);
    all->count--;
    all->bytes -= old->len;
    weft__free(all->hub->alloc, old->params);
    weft__free(all->hub->alloc, old);
}

static void free_all_late(weft_hub_wait *wait) {
    struct weft_tinyvex_late *all = WEFT_CONTAINER(wait, struct weft_tinyvex_late, wait);
    weft_hub *hub = all->hub;
    while (!weft__list_empty(&all->list))
        drop_late(all, WEFT_CONTAINER(all->list.next, struct late, link));
    hub->tinyvex_late = weft__free(hub->alloc, all);
}

static struct weft_tinyvex_late *all_late(weft_hub *hub) {
    if (hub->tinyvex_late)
        return hub->tinyvex_late;
    struct weft_tinyvex_late *all = weft__zalloc(hub->alloc, sizeof *all);
    if (!all)
        return NULL;
    all->hub = hub;
    all->wait.on_end = free_all_late;
    weft__list_init(&all->list);
    weft__hub_wait(hub->clients, &all->wait);
    return hub->tinyvex_late = all;
}

static void keep_late(weft_hub *hub, const char *by, weft_val params) {
    struct weft_tinyvex_late *all = all_late(hub);
    size_t size = strlen(by) + 1;
    struct late *made = all ? weft__zalloc(hub->alloc, sizeof *made + size) : NULL;
    if (!made)
        return;
    memcpy(made->by, by, size);
    if (weft_to_text(params, hub->alloc, &made->params, &made->len) < 0) {
        weft__free(hub->alloc, made);
        return;
    }
    weft__list_push(&all->list, &made->link);
    all->count++;
    all->bytes += made->len;
    while (all->count > LATE || (all->bytes > LATE_BYTES && all->count > 1))
        drop_late(all, WEFT_CONTAINER(all->list.next, struct late, link));
}

static bool is_of(const weft_hub_client *client, const char *by) {
    char who[WEFT_WHO];
    const weft_identity *identity = weft_peer_identity(client->peer);
    return client->speaks_tinyvex && !client->lost && strcmp(weft__who(identity, who), by) == 0;
}

void weft__tinyvex_tell_late(weft_hub *hub, const char *by, weft_val params) {
    bool told = false;
    if (!hub->clients)
        return;
    for (weft_link *link = hub->clients->list.next, *next; link != &hub->clients->list; link = next) {
        weft_hub_client *client = WEFT_CONTAINER(link, weft_hub_client, link);
        next = link->next;
        if (is_of(client, by) && weft_notify(client->peer, "tinyvex/mutate_result", params) >= 0)
            told = true;
    }
    if (!told)
        keep_late(hub, by, params);
}

void weft__tinyvex_came(weft_hub *hub, weft_hub_client *client) {
    struct weft_tinyvex_late *all = hub->tinyvex_late;
    char who[WEFT_WHO];
    if (client)
        client->speaks_tinyvex = true;
    if (!all || !client)
        return;
    weft__who(weft_peer_identity(client->peer), who);
    for (weft_link *link = all->list.next, *next; link != &all->list; link = next) {
        struct late *kept = WEFT_CONTAINER(link, struct late, link);
        next = link->next;
        if (strcmp(kept->by, who) == 0 &&
            weft_notify(client->peer, "tinyvex/mutate_result", weft_raw(kept->params, kept->len)) >= 0)
            drop_late(all, kept);
    }
}
