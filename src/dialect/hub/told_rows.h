/* What the hub tells its clients, and what it asks them, in the words of each dialect: notifications and requests as rows,
 * each with an example. The protocol reference (docs/protocol.md) is written from them; a test compares them with what the
 * source sends. */
#ifndef WEFT_TOLD_ROWS_H
#define WEFT_TOLD_ROWS_H

#include <stdbool.h>

typedef struct weft_told_row {
    const char *dialect; /* as in weft_dialect.name, or of the rows that belong to no dialect */
    const char *name;    /* NULL ends the table */
    const char *params;  /* an example, JSON */
    const char *help;    /* when it comes; of a request: how to answer */
    bool request;        /* the client answers it */
} weft_told_row;

extern const weft_told_row weft__told_rows[];

#endif
