/* tinyvex's vocabulary, for its files: streams that a client can leave and come back to, beside ACP on the same connection.
 * The table is in tinyvex.c. */
#ifndef WEFT_TINYVEX_H
#define WEFT_TINYVEX_H

#include "hub_clients.h"

/* A value whose text is longer is sent in pieces of at most so many bytes. tinyvex/connect announces it. */
#define TINYVEX_CHUNK 65536

/* ---- tinyvex_connect.c ---- */
weft_handler weft__tinyvex_on_connect, weft__tinyvex_on_ping, weft__tinyvex_on_set_token;
extern const weft_param weft__tinyvex_connect_params[], weft__tinyvex_ping_params[], weft__tinyvex_set_token_params[];

/* ---- tinyvex_change.c ---- */
weft_handler weft__tinyvex_on_mutation, weft__tinyvex_on_action;
extern const weft_param weft__tinyvex_change_params[];

/* ---- tinyvex_subscribe.c ---- */
weft_handler weft__tinyvex_on_subscribe, weft__tinyvex_on_unsubscribe;
extern const weft_param weft__tinyvex_subscribe_params[], weft__tinyvex_unsubscribe_params[];

/* ---- tinyvex_streams.c ---- */

/* The streams that there are, each in a file of its own; ends with NULL. */
extern const weft_stream_kind *const weft__tinyvex_streams[];
const weft_stream_kind *weft__tinyvex_stream(const char *name);

/* ---- tinyvex_history.c ---- */
weft_handler weft__tinyvex_on_updates, weft__tinyvex_on_timeline, weft__tinyvex_on_recent, weft__tinyvex_on_set_title,
    weft__tinyvex_on_get_title, weft__tinyvex_on_clear_title, weft__tinyvex_on_delete_session;
extern const weft_param weft__tinyvex_updates_params[], weft__tinyvex_timeline_params[], weft__tinyvex_recent_params[],
    weft__tinyvex_title_params[], weft__tinyvex_session_params[];

/* ---- tinyvex_error.c ---- */

/* The names of what can go wrong with a stream or a change (Errors.md of the original). */
#define TVX_NOT_SUBSCRIBED "TVX001"
#define TVX_REJECTED "TVX002"
#define TVX_MUTATION_FAILED "TVX003"
#define TVX_RESUME_FAILED "TVX004"
#define TVX_BACKPRESSURE "TVX005"
#define TVX_UNAUTHORIZED "TVX006"
#define TVX_TIMEOUT "TVX007"
/* Answer an error with one of these names in data.code. path may be NULL. req may be NULL: a notification. */
int weft__tinyvex_refuse(weft_req *req, int code, const char *name, const char *reason, const char *path, const char *format,
                         ...) WEFT_PRINTF(6, 7);

#endif
