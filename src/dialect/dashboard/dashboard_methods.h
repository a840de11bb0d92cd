/* Methods that the dashboard needed and nobody had: long lists in pages, the history of a file, connections, the messages of
 * others, and figures of the last minutes. Any client may use them. The table is in dashboard_methods.c. */
#ifndef WEFT_DASHBOARD_METHODS_H
#define WEFT_DASHBOARD_METHODS_H

#include "buf.h"
#include "hub_clients.h"

/* ---- task_page.c ---- */
weft_handler weft__dashboard_page, weft__dashboard_seen;
extern const weft_param weft__dashboard_page_params[], weft__dashboard_seen_params[];

/* ---- git_history.c ---- */
weft_handler weft__dashboard_log;
extern const weft_param weft__dashboard_log_params[];

/* ---- session_find.c ---- */
weft_handler weft__dashboard_find;
extern const weft_param weft__dashboard_find_params[];

/* ---- connections.c ---- */
weft_handler weft__dashboard_connections;

/* ---- traffic.c ---- */
weft_handler weft__dashboard_watch, weft__dashboard_unwatch;
extern const weft_param weft__dashboard_watch_params[];

/* ---- health.c ---- */
weft_handler weft__dashboard_health;
/* Take figures from now on, every five seconds. -ENOMEM. */
int weft__health_new(weft_hub *hub);
void weft__health_free(weft_hub *hub);

#endif
