/* A table for people: columns as wide as what is in them, the last one cut to the terminal. Every cell is one line, whatever
 * somebody wrote into it. For programs there is --json. */
#ifndef WEFT_TABLE_H
#define WEFT_TABLE_H

#include "buf.h"
#include "screen.h"

#define WEFT_TABLE_COLUMNS 8

typedef struct weft_table {
    const char *const *heads; /* NULL-terminated; at most WEFT_TABLE_COLUMNS. All "": no line of them */
    weft_buf cells;           /* for each its ink and its text, each with its NUL, row after row */
    size_t count;             /* of cells */
} weft_table;

/* Add the next cell; after as many as there are heads a new row begins. NULL is "". -ENOMEM: it is empty. */
int weft__table_add(weft_table *table, const char *text);
/* The same in a colour (WEFT_INK_...); NULL: none. */
int weft__table_add_ink(weft_table *table, const char *text, const char *ink);
void weft__table_put(const weft_table *table, const weft_screen *screen);
void weft__table_done(weft_table *table);

#endif
