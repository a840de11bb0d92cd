/* The vocabulary of Wiggum: builds, the preview, and gated tasks (Ralph) for whoever sends several of them (Chief).
 *
 *   wiggum.c         the table                     wiggum_task.c     sendTask, cancelTask, awaitTask, gated.get, gated.list
 *   wiggum_build.c   build, buildBackend           wiggum_preview.c  fetch
 *   wiggum_page.c    what pages say and are told   wiggum_events.c   what happens, in these words; calls to clients
 *   wiggum_url.c     URLs of the preview */
#ifndef WEFT_WIGGUM_H
#define WEFT_WIGGUM_H

#include "hub_clients.h"

enum {
    WIGGUM_BUILD_FAILED = -32001,
    WIGGUM_GATE_FAILED = -32002,
    WIGGUM_PERMISSION_DENIED = -32003,
    WIGGUM_TASK_CANCELLED = -32004,
    WIGGUM_PREVIEW_LOAD_FAILED = -32005,
    WIGGUM_NAVIGATION_FAILED = -32006,
    WIGGUM_CONTEXT_OVERFLOW = -32008,
};

extern const weft_param weft__wiggum_send_params[], weft__wiggum_id_params[], weft__wiggum_list_params[],
    weft__wiggum_last_params[], weft__wiggum_fetch_params[], weft__wiggum_url_params[], weft__wiggum_console_params[],
    weft__wiggum_error_params[], weft__wiggum_state_params[];

weft_handler weft__wiggum_hello;
weft_handler weft__wiggum_send, weft__wiggum_cancel, weft__wiggum_await, weft__wiggum_get, weft__wiggum_list;
weft_handler weft__wiggum_build, weft__wiggum_build_backend, weft__wiggum_last;
weft_handler weft__wiggum_fetch;
weft_handler weft__wiggum_navigate, weft__wiggum_refresh, weft__wiggum_console, weft__wiggum_error, weft__wiggum_state;

void weft__wiggum_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data);

/* ---- wiggum_task.c ---- */

/* Which of the errors above a gated task that ended for this reason is; WEFT_INTERNAL_ERROR where there is none. */
int weft__wiggum_code(const char *reason);
/* What a gate found, as JSON: its diagnostics, or what it printed as one of them. -ENOMEM. */
int weft__wiggum_findings(const weft_gate_result *result, const weft_alloc *alloc, weft_buf *out);

/* ---- wiggum_url.c ---- */

/* A URL of the preview: a path, with or without a query and a fragment, and nothing before it. ret: the path without its
 * first slash, decoded and without dot segments; "" for the root, and with a slash at its end where that stands there.
 * -EXDEV: it names another origin; -EINVAL: it is none. */
#define WIGGUM_URL 2048
int weft__wiggum_path(const char *url, char ret[WIGGUM_URL]);
/* What a file of this name is. */
const char *weft__wiggum_mime(const char *path);
bool weft__wiggum_has_extension(const char *path);

#endif
