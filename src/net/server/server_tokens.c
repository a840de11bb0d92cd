/* Tokens that come and go while a server runs: replacing them, their expiry, and the end of those who showed one that does
 * not count any more. */
#include <errno.h>
#include <time.h>

#include "link.h"
#include "login.h"

/* A wall clock can be set: an expiry is looked at again after this long, however far away it seems. */
#define MAX_WATCH_S 60
/* RFC 6455 section 7.4.1: "policy violation", which clients do not take for a reason to try again at once. */
#define CLOSE_REFUSED 1008

int64_t weft__wall_now(void) {
    return (int64_t) time(NULL);
}

/* ---- ids ---- */

static uint64_t id_of_same(const weft_server *server, const weft_auth *row) {
    for (size_t i = 0; i < server->endpoint_count; i++) {
        const weft_auths *auths = &server->endpoints[i]->tokens;
        for (size_t j = 0; j < auths->count; j++)
            if (weft__auth_same(&auths->rows[j], row))
                return auths->rows[j].id;
    }
    return 0;
}

void weft__tokens_number(weft_server *server, weft_auths *auths) {
    for (size_t i = 0; i < auths->count; i++) {
        uint64_t id = id_of_same(server, &auths->rows[i]);
        auths->rows[i].id = id ? id : ++server->last_auth;
    }
}

/* ---- expiry ---- */

static int64_t next_expiry(const weft_server *server, int64_t now) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < server->endpoint_count; i++) {
        const weft_auths *auths = &server->endpoints[i]->tokens;
        for (size_t j = 0; j < auths->count; j++)
            if (auths->rows[j].expires_at > now && auths->rows[j].expires_at < next)
                next = auths->rows[j].expires_at;
    }
    return next;
}

void weft__tokens_watch(weft_server *server) {
    int64_t now = weft__wall_now(), next = next_expiry(server, now), due = weft__logins_due(server);
    int64_t seconds = next == INT64_MAX || next - now < MAX_WATCH_S ? next - now : MAX_WATCH_S;
    int64_t by_wall = next == INT64_MAX ? INT64_MAX : weft__after(weft__loop_fresh_now(server->loop), seconds * 1000);
    weft__timer_stop(server->loop, &server->expiry);
    if (by_wall != INT64_MAX || due != INT64_MAX)
        weft__timer_set(server->loop, &server->expiry, by_wall < due ? by_wall : due);
}

void weft__tokens_expired(weft_timer *timer) {
    weft_server *server = WEFT_CONTAINER(timer, weft_server, expiry);
    weft__later(server->loop, &server->revoke);
    weft__tokens_watch(server);
}

/* ---- the end of those who showed them ---- */

static void close_refused(weft_conn *conn) {
    if (conn->peer)
        weft_peer_close(conn->peer, CLOSE_REFUSED, "the token does not count any more");
    weft__conn_close(conn, -EACCES, true);
}

void weft__tokens_revoke(weft_later *later) {
    weft_server *server = WEFT_CONTAINER(later, weft_server, revoke);
    int64_t now = weft__wall_now();
    weft__server_ref(server);
    for (weft_link *at = server->conns.next; at != &server->conns; at = at->next) {
        weft_conn *conn = WEFT_CONTAINER(at, weft_conn, link);
        bool gone = conn->auth && !weft__auths_with_id(&conn->endpoint->tokens, conn->auth, now);
        if (gone || (conn->session && !weft__login_lives(server, conn->session)))
            close_refused(conn);
    }
    weft__server_unref(server);
}

/* ---- replacing ---- */

static int64_t seen_with_id(const weft_auths *auths, uint64_t id) {
    for (size_t i = 0; i < auths->count; i++)
        if (auths->rows[i].id == id)
            return auths->rows[i].seen_at;
    return 0;
}

static bool has_connection(const weft_server *server, uint64_t id) {
    for (const weft_link *at = server->conns.next; at != &server->conns; at = at->next)
        if (WEFT_CONTAINER(at, weft_conn, link)->auth == id)
            return true;
    return false;
}

int64_t weft__server_token_seen(const weft_server *server, const char *name) {
    int64_t seen = 0;
    for (size_t i = 0; i < server->endpoint_count; i++) {
        const weft_auths *auths = &server->endpoints[i]->tokens;
        for (size_t j = 0; j < auths->count; j++) {
            const weft_auth *row = &auths->rows[j];
            if (strcmp(row->name, name) != 0 || !row->seen_at)
                continue;
            if (has_connection(server, row->id))
                return weft__wall_now();
            seen = row->seen_at > seen ? row->seen_at : seen;
        }
    }
    return seen;
}

/* The lists are copies of one: a token has one id on all of them. */
static void put_in_place(weft_server *server, weft_auths *lists) {
    if (server->endpoint_count)
        weft__tokens_number(server, &lists[0]);
    for (size_t i = 1; i < server->endpoint_count; i++)
        for (size_t j = 0; j < lists[i].count; j++)
            lists[i].rows[j].id = lists[0].rows[j].id;
    for (size_t i = 0; i < server->endpoint_count; i++) {
        weft_auths old = server->endpoints[i]->tokens;
        if (!old.asked)
            continue;
        for (size_t j = 0; j < lists[i].count; j++)
            lists[i].rows[j].seen_at = seen_with_id(&old, lists[i].rows[j].id);
        server->endpoints[i]->tokens = lists[i];
        lists[i] = old;
    }
}

/* All copies are made before the first is put in place. */
int weft_server_tokens(weft_server *server, const weft_token *tokens) {
    static const weft_token nobody[] = {{0}};
    const weft_alloc *alloc = server->alloc;
    size_t count = server->endpoint_count;
    int r = 0;
    weft_auths *lists = weft__zalloc(alloc, (count + 1) * sizeof *lists);
    if (!lists)
        return -ENOMEM;
    for (size_t i = 0; i < count && r >= 0; i++)
        r = weft__auths_copy(&lists[i], tokens ? tokens : nobody, alloc);
    if (r >= 0)
        put_in_place(server, lists);
    for (size_t i = 0; i < count; i++)
        weft__auths_done(&lists[i], alloc);
    weft__free(alloc, lists);
    if (r < 0)
        return r;
    weft__later(server->loop, &server->revoke);
    weft__tokens_watch(server);
    return 0;
}
