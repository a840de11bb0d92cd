/* Asking the hub one thing: found, connected, called, and a refusal explained with what to do about it. For verbs whose
 * arguments are words and ids, so that a URL is an option of theirs and not the first argument. */
#ifndef WEFT_HUB_CALL_H
#define WEFT_HUB_CALL_H

#include "connection.h"

/* The option by which such a verb is sent elsewhere. */
#define WEFT_URL_OPTION(settings)                                                                                           \
    WEFT_OPTION(settings, url, text, "url", 'u', "URL", "another hub than this folder's; or its name (weft hubs)")

/* Where to: url, or the daemon of this folder when it is NULL. The arguments are left alone. Failures are explained; free
 * with weft__target_done(). */
weft_exit weft__hub_call_target(weft_app *app, const char *url, weft_target *ret);
/* Connect there. End with weft__connection_done(), also after a failure. */
weft_exit weft__hub_call_open(weft_app *app, const char *url, weft_connection *ret);
/* Call and wait; a failure or a refusal is explained. */
weft_exit weft__hub_call(weft_connection *connection, const char *method, weft_val params, weft_answer *ret);
/* All of it, for one call. */
weft_exit weft__hub_call_once(weft_app *app, const char *url, const char *method, weft_val params, weft_answer *ret);

/* Is this a relay? A hub itself does not know what was typed ("--hub") and would do the work; that is explained. */
weft_exit weft__hub_call_check_relay(weft_connection *connection, const char *typed);

/* Explain what the hub refused. */
weft_exit weft__hub_call_refused(const weft_app *app, const char *method, const weft_error *error);

#endif
