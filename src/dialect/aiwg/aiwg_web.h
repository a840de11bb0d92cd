/* AIWG's web interface (interface.web): what its operators' pages and programs fetch over HTTP, on a port of its own.
 *
 *   GET  /api/status  /api/loops  /api/history?limit=N  /api/resources
 *   POST /api/submit  /api/cancel/LOOP
 *   GET  /sse/events  /sse/output/LOOP      server-sent events
 *
 * AIWG's own clients show no token. Without one, a request counts only if the process at the other end of the connection is
 * this user's, on this machine, as the kernel says; a page of another origin is refused by the server it comes through. With
 * a token, it must be shown as everywhere. An agent may look and submit, not cancel. */
#ifndef WEFT_AIWG_WEB_H
#define WEFT_AIWG_WEB_H

#include "aiwg_loops.h"

typedef struct weft_aiwg_web weft_aiwg_web;

/* Streams at a time; more are answered 503. */
#define WEFT_AIWG_WEB_STREAMS 64

/* Add the routes to a server that has nothing else. hub, with its loops, is borrowed until this is freed, and so is the
 * server. token: one must be shown, and the server asks for it. -ENOMEM. */
int weft__aiwg_web_new(const weft_hub *hub, weft_server *server, bool token, weft_aiwg_web **ret);
/* Ends the streams. Before the server is freed. Returns NULL. */
weft_aiwg_web *weft__aiwg_web_free(weft_aiwg_web *web);

/* For whoever follows: what weft_aiwg_loops_opts tells. */
void weft__aiwg_web_event(weft_aiwg_web *web, const char *name, const char *data, size_t len);
void weft__aiwg_web_output(weft_aiwg_web *web, const char *loop, weft_bytes text);

#endif
