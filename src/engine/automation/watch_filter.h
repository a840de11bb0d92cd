/* Which changes of files are events: of each path that is watched, the kinds of change, the endings of names and what is
 * left out. The rows are those of automation.watches: {path, events?, extensions?, ignore?}. */
#ifndef WEFT_WATCH_FILTER_H
#define WEFT_WATCH_FILTER_H

#include <weft/json.h>

#include "changes.h"

typedef struct weft_watch_filter weft_watch_filter;

/* rows: an array, copied. What is not as it should be in a row counts as not given. -ENOMEM. */
int weft__watch_filter_new(const weft_json *rows, const weft_alloc *alloc, weft_watch_filter **ret);
weft_watch_filter *weft__watch_filter_free(weft_watch_filter *filter);
/* Is this change an event? NULL: all are. path is relative to the project's folder. */
bool weft__watch_filter_wants(const weft_watch_filter *filter, weft_change_kind kind, const char *path);

#endif
