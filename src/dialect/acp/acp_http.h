/* ACP by Streamable HTTP: a connection that is no socket. The client POSTs messages and reads what it is told from two kinds
 * of event streams: one for the connection, and one for each session. In between stands a peer that nobody carries; what it
 * says waits here until a stream is there to take it. */
#ifndef WEFT_ACP_HTTP_H
#define WEFT_ACP_HTTP_H

#include "buf.h"
#include "hub_clients.h"
#include "loop.h"

#define ACP_CONNECTION_HEADER "Acp-Connection-Id"
#define ACP_SESSION_HEADER "Acp-Session-Id"

/* 32 hexadecimal digits, which nobody can guess. */
#define ACP_CONNECTION_ID 33

typedef struct weft_acp_http {
    weft_hub *hub;
    weft_link connections;
    size_t count;
} weft_acp_http;

typedef struct weft_acp_connection weft_acp_connection;

/* ---- acp_connection.c ---- */

/* who is copied. -ENOBUFS: there are too many; -ENOMEM. */
int weft__acp_connection_new(weft_acp_http *all, const weft_identity *who, weft_acp_connection **ret);
/* Its open streams end. Returns NULL. */
weft_acp_connection *weft__acp_connection_free(weft_acp_connection *connection);
/* All of them, with what was said to them. */
void weft__acp_connections_end(weft_acp_http *all);
/* Bytes that wait for a reader. */
size_t weft__acp_connection_waiting(const weft_acp_connection *connection);
const char *weft__acp_connection_id(const weft_acp_connection *connection);
/* One of this caller's; NULL: there is none of this id, or it is another's. */
weft_acp_connection *weft__acp_connection_find(const weft_acp_http *all, const char *id, const weft_identity *who);
/* Where the answer to a request goes. */
typedef struct weft_acp_asks {
    weft_bytes id;       /* as it is written; empty: no answer is expected */
    const char *session; /* to this session's stream; NULL: the connection's */
    bool if_read;        /* but only if somebody reads that one by then */
} weft_acp_asks;
/* A message from who. -ENOBUFS: too many answers are due; other <0: the connection must go. */
int weft__acp_connection_feed(weft_acp_connection *connection, const weft_identity *who, weft_bytes body,
                              const weft_acp_asks *asks);
/* What it says first is taken from here, and goes to no stream: the answer to initialize. Owned; NULL: nothing was said. */
int weft__acp_connection_first(weft_acp_connection *connection, char **ret, size_t *ret_len);
/* This request is a stream from now on, of a session, or (NULL) of the connection. -EBUSY: there is one; -ENOBUFS: the
 * connection has too many; then http is the caller's to answer. */
int weft__acp_connection_stream(weft_acp_connection *connection, const char *session, weft_http *http);

/* ---- acp_http.c ---- */

/* The routes of /acp. */
int weft__acp_http_new(weft_hub *hub, weft_server *server, weft_acp_http **ret);
/* Before the clients go. Returns NULL. */
weft_acp_http *weft__acp_http_free(weft_acp_http *all);

#endif
