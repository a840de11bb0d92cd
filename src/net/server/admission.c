/* Who gets a place, and who has to go for it. */
#include "admission.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* A newcomer has this long to say what he wants before he has to go for the next, as long as there are not far too many. */
#define FRESH_MS 1000
#define FAR_TOO_MANY 4
/* One line in a log says it; a stranger must not be able to fill the log. */
#define NOTE_MS (60 * 1000)

static const weft_refusal too_many = {503, "Too many connections", "tooManyConnections"};
static const weft_refusal too_many_of_yours = {429, "Too many connections of yours", "tooManyConnections"};
static const weft_refusal other_user = {403, "This socket belongs to another user", "otherUser"};

/* ---- leaving ---- */

static void leave_strangers(weft_server *server, weft_conn_place *place) {
    weft__tally_drop(&server->strangers, place->count);
    weft__list_remove(&place->by_age);
    place->count = NULL;
    place->stranger = false;
    server->stranger_count--;
}

void weft__place_known(weft_server *server, weft_conn_place *place) {
    if (place->stranger)
        leave_strangers(server, place);
}

void weft__place_leave(weft_server *server, weft_conn_place *place) {
    weft__place_known(server, place);
    if (place->taken && place->local)
        server->local_count--;
    else if (place->taken)
        server->network_count--;
    weft__tally_drop(&server->by_uid, place->count);
    place->count = NULL;
    place->taken = false;
}

/* ---- having to go ---- */

static weft_conn *conn_at(weft_link *by_age) {
    return WEFT_CONTAINER(by_age, weft_conn, place.by_age);
}

static void note_full(weft_server *server, int64_t now) {
    if (server->full_noted_at && now - server->full_noted_at < NOTE_MS)
        return;
    server->full_noted_at = now ? now : 1;
    weft__server_note(server, "%zu connections have not shown a token; the oldest make room for new ones",
                      server->stranger_count);
}

/* Its place is free at once, although closing takes until the next turn of the loop. */
static void drop(weft_server *server, weft_conn *conn) {
    note_full(server, weft_loop_now(server->loop));
    weft__place_leave(server, &conn->place);
    weft__conn_close(conn, -EUSERS, false);
}

bool weft__drop_stranger(weft_server *server) {
    if (weft__list_empty(&server->strangers_by_age))
        return false;
    drop(server, conn_at(server->strangers_by_age.next));
    return true;
}

static weft_conn *oldest_of(const weft_server *server, const weft_tallied *count) {
    for (weft_link *at = server->strangers_by_age.next; at != &server->strangers_by_age; at = at->next)
        if (conn_at(at)->place.count == count)
            return conn_at(at);
    return NULL;
}

/* There is one more from this address. Who has only just come may be about to show a token, and stays if at all possible. */
static void make_room_at_address(weft_server *server, const weft_tallied *count) {
    size_t limit = server->opts.max_strangers_per_address;
    weft_conn *oldest = count->n > limit ? oldest_of(server, count) : NULL;
    if (!oldest)
        return;
    bool fresh = weft_loop_now(server->loop) - oldest->place.since < FRESH_MS;
    if (!fresh || count->n / FAR_TOO_MANY >= limit)
        drop(server, oldest);
}

/* ---- coming in ---- */

static const weft_refusal *admit_user(const weft_listener *listener, const weft_origin *origin, weft_conn_place *ret) {
    weft_server *server = listener->server;
    char key[32];
    if (!listener->endpoints->any_uid && origin->uid != (int64_t) geteuid() && origin->uid != 0)
        return &other_user;
    snprintf(key, sizeof key, "%lld", (long long) origin->uid);
    int r = weft__tally_add(&server->by_uid, key, server->opts.max_connections_per_uid, &ret->count);
    return r == -EUSERS ? &too_many_of_yours : r < 0 ? &too_many : NULL;
}

static const weft_refusal *admit_local(weft_listener *listener, const weft_origin *origin, weft_conn_place *ret) {
    weft_server *server = listener->server;
    if (server->local_count >= server->opts.max_connections)
        return &too_many;
    const weft_refusal *why =
        listener->endpoints->transport->flags & WEFT_KNOWS_USER ? admit_user(listener, origin, ret) : NULL;
    ret->local = true;
    server->local_count += why == NULL;
    return why;
}

/* Must those who come here show something? */
static bool asks_for_proof(const weft_listener *listener) {
    for (const weft_endpoint *at = listener->endpoints; at; at = at->next)
        if (at->tokens.asked)
            return true;
    return listener->demands_certificate;
}

static int admit_stranger(weft_server *server, const char *group, weft_conn_place *ret) {
    int r = weft__tally_add(&server->strangers, group, SIZE_MAX, &ret->count);
    if (r < 0)
        return r;
    make_room_at_address(server, ret->count);
    if (server->stranger_count >= server->opts.max_strangers)
        weft__drop_stranger(server);
    ret->stranger = true;
    server->stranger_count++;
    return 0;
}

static const weft_refusal *admit_network(weft_listener *listener, const weft_origin *origin, weft_conn_place *ret) {
    weft_server *server = listener->server;
    bool stranger = *origin->group && asks_for_proof(listener);
    if (server->network_count >= server->opts.max_connections && !weft__drop_stranger(server))
        return &too_many;
    if (stranger && admit_stranger(server, origin->group, ret) < 0)
        return &too_many;
    server->network_count++;
    return NULL;
}

const weft_refusal *weft__admit(weft_listener *listener, const weft_origin *origin, weft_conn_place *ret) {
    bool network = listener->endpoints->transport->flags & WEFT_NETWORK;
    *ret = (weft_conn_place){.since = weft_loop_now(listener->server->loop)};
    weft__list_init(&ret->by_age);
    const weft_refusal *why = network ? admit_network(listener, origin, ret) : admit_local(listener, origin, ret);
    ret->taken = why == NULL;
    return why;
}
