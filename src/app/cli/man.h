/* Manual pages as roff. Nothing is written twice: what they say is in the rows. */
#ifndef WEFT_MAN_H
#define WEFT_MAN_H

#include "app.h"

/* weft(1) */
void weft__man_page(FILE *to);
/* weft-VERB(1) */
void weft__man_verb_page(FILE *to, const weft_verb *verb);
/* weft-methods(7). A failure is explained. */
weft_exit weft__man_methods(const weft_app *app);
/* The part of docs/protocol.md that is made from rows, as Markdown. */
weft_exit weft__man_protocol(const weft_app *app);

/* Text of ours in roff: nothing in it is a request or an escape. */
void weft__man_text(FILE *to, const char *text);
/* The title line. name is in capitals. */
void weft__man_title(FILE *to, const char *name, int section);

#endif
