/* What the program says when something goes wrong: what, why, and what to do next. */
#ifndef WEFT_FAILURE_H
#define WEFT_FAILURE_H

#include "app.h"

/* "weft VERB: what" on standard error, and below it what to do next (NULL: nothing). With --json, standard output gets
 * {"error":{"exit":..., "message":...}} too. Returns the status, so that a verb can end with it. */
weft_exit weft__fail(const weft_app *app, weft_exit status, const char *next, const char *format, ...) WEFT_PRINTF(4, 5);
/* The command line was wrong: says how it should have been. Always WEFT_USAGE. */
weft_exit weft__misused(const weft_app *app, const char *format, ...) WEFT_PRINTF(2, 3);
/* A line of talk; with -v only. */
void weft__remark(const weft_app *app, const char *format, ...) WEFT_PRINTF(2, 3);
/* A line of talk that matters. */
/* A sentence that is neither data nor a mistake. */
void weft__say(const weft_app *app, const char *format, ...) WEFT_PRINTF(2, 3);
void weft__warn(const weft_app *app, const char *format, ...) WEFT_PRINTF(2, 3);

/* Our failure r at url (connecting, calling), explained. trouble is what the library says about it; may be "" or NULL. */
weft_exit weft__fail_at(const weft_app *app, const char *url, int r, const char *trouble);
/* Their refusal, explained; next: what to do about it; NULL: nothing. */
weft_exit weft__fail_refused(const weft_app *app, const char *method, const weft_error *error, const char *next);

/* The same in the words of the other side alone, where people did not name the method themselves; with -v all of it. */
weft_exit weft__fail_plainly(const weft_app *app, const char *method, const weft_error *error, const char *next);

#endif
