/* Verbs whose data is a text that somebody else reads: a manual page, a script, help. With --json the text is a member of an
 * object.
 *
 *     weft__text_output_begin(app, &output);
 *     ...                                  writes to app->out.file
 *     return weft__text_output_end(app, &output, status); */
#ifndef WEFT_TEXT_OUTPUT_H
#define WEFT_TEXT_OUTPUT_H

#include "app.h"

typedef struct weft_text_output {
    FILE *before; /* NULL: the text goes out as it is */
    char *text;
    size_t len;
} weft_text_output;

void weft__text_output_begin(weft_app *app, weft_text_output *output);
/* The status is handed on; a text that could not be kept is a failure. */
weft_exit weft__text_output_end(weft_app *app, weft_text_output *output, weft_exit status);

#endif
