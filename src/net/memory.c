/* What all connections of a server hold in their buffers together, and who goes when it is too much.
 *
 * Counted are the memory of a message that has not come whole and of what has not been sent. What a handler keeps is its
 * program's business. */
#include <errno.h>

#include "admission.h"
#include "http_server.h"
#include "link.h"

/* RFC 6455's registry: "try again later". */
#define CLOSE_TRY_LATER 1013
/* So much may wait to be sent to who is told politely to go: telling him must not need the memory that is missing. */
#define MAX_FAREWELL 4096

static size_t buffer_memory(const weft_buf *buf) {
    return buf->lent ? 0 : buf->cap;
}

static size_t web_memory(const weft_web *web) {
    size_t held = buffer_memory(&web->in) + buffer_memory(&web->out) + buffer_memory(&web->body);
    if (web->http)
        held += weft_http_body(web->http).len;
    return held + (web->rpc ? weft__peer_memory(web->rpc) : 0);
}

static size_t conn_memory(const weft_conn *conn) {
    size_t held = conn->peer ? weft__peer_memory(conn->peer) : 0;
    if (conn->web)
        held += web_memory(conn->web);
    return held + (conn->last ? buffer_memory(conn->last) : 0);
}

void weft__memory_count(weft_conn *conn) {
    weft_server *server = weft__conn_server(conn);
    size_t held = weft__stream_closing(&conn->stream) ? 0 : conn_memory(conn);
    if (held == conn->held)
        return;
    server->held += held - conn->held;
    conn->held = held;
    if (server->held > server->opts.max_memory)
        weft__later(server->loop, &server->relief);
}

/* ---- relief ---- */

/* The larger the sooner, but strangers before all others and local users last. */
static int rank_conn(const weft_conn *conn) {
    return conn->place.stranger ? 2 : conn->place.local ? 0 : 1;
}

static weft_conn *find_largest(const weft_server *server) {
    weft_conn *found = NULL;
    for (weft_link *at = server->conns.next; at != &server->conns; at = at->next) {
        weft_conn *conn = WEFT_CONTAINER(at, weft_conn, link);
        bool before = !found || rank_conn(conn) > rank_conn(found) ||
                      (rank_conn(conn) == rank_conn(found) && conn->held > found->held);
        if (conn->held && before)
            found = conn;
    }
    return found;
}

static void say_farewell(weft_conn *conn) {
    if (conn->web && conn->web->state == WEFT_WEB_BODY)
        weft__web_refuse(conn, 503, "outOfMemory", NULL);
    else if (conn->peer && weft_peer_output(conn->peer).len <= MAX_FAREWELL) {
        weft_peer_close(conn->peer, CLOSE_TRY_LATER, "the server is short of memory");
        weft__conn_close(conn, -ENOBUFS, true);
    } else
        weft__conn_close(conn, -ENOBUFS, false);
}

/* Whatever it still holds once it is closing is given back now, not when the other side has taken notice. */
static void give_up_conn(weft_server *server, weft_conn *conn) {
    size_t held = conn->held;
    say_farewell(conn);
    if (conn->web) {
        weft__buf_done(&conn->web->in, server->alloc);
        weft__buf_done(&conn->web->body, server->alloc);
    }
    weft__memory_count(conn);
    if (conn->held && conn->held >= held)
        weft__conn_close(conn, -ENOBUFS, false);
}

void weft__memory_relieve(weft_later *later) {
    weft_server *server = WEFT_CONTAINER(later, weft_server, relief);
    weft_conn *conn;
    weft__server_ref(server);
    while (server->held > server->opts.max_memory && (conn = find_largest(server))) {
        weft__server_note(server, "all connections together hold %zu bytes: closed one that held %zu", server->held,
                          conn->held);
        give_up_conn(server, conn);
    }
    weft__server_unref(server);
}
