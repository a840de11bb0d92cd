/* Params as people type them: name=value pairs, one JSON text, @file, or - for standard input. */
#ifndef WEFT_CLI_PARAMS_H
#define WEFT_CLI_PARAMS_H

#include "app.h"
#include "connection.h"

/* From the arguments; NULL in *ret: there are none. A mistake is explained. Owned. */
weft_exit weft__params_read(const weft_app *app, char **args, weft_doc **ret);
/* How to write them to a call: none when doc is NULL. */
weft_val weft__params_val(const weft_doc *doc);

/* [URL] METHOD [params] from the command line: read, connected, handed to say; the method is then app->args[0]. */
weft_exit weft__params_run(weft_app *app,
                           weft_exit (*say)(weft_connection *connection, weft_app *app, const weft_doc *params));

/* Does this hub's method have params of these names? For what was typed as name=value. *ret_for_relay: one of them is "hub",
 * which only a relay understands. */
weft_exit weft__params_check(const weft_app *app, const char *method, const weft_doc *params, bool *ret_for_relay);

#endif
