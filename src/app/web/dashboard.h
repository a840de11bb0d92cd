/* The dashboard over HTTP: "/" is its page, /assets/VERSION/... are its files, /preview is the host page of the preview. The
 * files are those that the build put into the program, or, for whoever changes them, those of a folder.
 *
 * Only who is logged in gets any of it; "/" sends others to the login page. Nothing here knows what the page does: it is a
 * client like any other. */
#ifndef WEFT_DASHBOARD_H
#define WEFT_DASHBOARD_H

#include <weft/net.h>

typedef struct weft_dashboard weft_dashboard;

/* Add the routes. folder: serve its files (those of web/ in the source) and not the program's own; NULL: the program's.
 * -ENOENT and others: the folder cannot be opened. */
int weft__dashboard_new(weft_server *server, const char *folder, weft_dashboard **ret);
/* After the server. */
weft_dashboard *weft__dashboard_free(weft_dashboard *self);

#endif
