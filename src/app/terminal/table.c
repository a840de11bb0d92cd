/* Tables. */
#include "table.h"

#include "text_width.h"

#define GAP 2
/* What is longer is cut, but on a wide terminal nobody wants to read across all of it either. */
#define MIN_LAST 10
/* Where there is no terminal: a prompt may be a megabyte, and a table is for people. --json has all of it. */
#define MAX_LAST 1000

static size_t columns_of(const weft_table *table) {
    size_t n = 0;
    while (n < WEFT_TABLE_COLUMNS && table->heads[n])
        n++;
    return n;
}

int weft__table_add(weft_table *table, const char *text) {
    return weft__table_add_ink(table, text, NULL);
}

/* The ink's text lies before the cell's, "" for none. */
int weft__table_add_ink(weft_table *table, const char *text, const char *ink) {
    text = text ? text : "";
    ink = ink ? ink : "";
    size_t len = strlen(text);
    int r = weft__buf_reserve(&table->cells, NULL, strlen(ink) + 1 + len + 1);
    if (r < 0)
        return r;
    weft__buf_put(&table->cells, NULL, ink, strlen(ink) + 1);
    weft__buf_put(&table->cells, NULL, text, len + 1);
    char *cell = weft__buf_tail(&table->cells) - len - 1;
    for (char *c = cell; *c; c++)
        if (*c == '\n' || *c == '\r' || *c == '\t')
            *c = ' ';
    table->count++;
    return 0;
}

static void measure_columns(const weft_table *table, size_t columns, size_t ret[WEFT_TABLE_COLUMNS]) {
    const char *cell = weft__buf_head(&table->cells);
    for (size_t i = 0; i < columns; i++)
        ret[i] = weft__text_width(table->heads[i]);
    for (size_t i = 0; i < table->count; i++, cell += strlen(cell) + 1) {
        cell += strlen(cell) + 1; /* over the ink */
        size_t width = weft__text_width(cell);
        if (width > ret[i % columns])
            ret[i % columns] = width;
    }
}

static void put_inked(const weft_screen *screen, const char *cell, size_t len, const char *ink) {
    weft_screen filtered = *screen;
    filtered.terminal = true; /* a row stays a row */
    if (*ink)
        weft__ink(screen, ink);
    weft__put_text(&filtered, cell, len);
    if (*ink)
        weft__plain(screen);
}

static void put_cell(const weft_screen *screen, const char *cell, const char *ink, size_t width, bool last, size_t room) {
    size_t is = weft__text_width(cell);
    if (!last) {
        put_inked(screen, cell, strlen(cell), ink);
        fprintf(screen->file, "%*s", (int) (width - is + GAP), "");
        return;
    }
    bool whole = is <= room;
    put_inked(screen, cell, whole ? strlen(cell) : weft__text_fit(cell, room - 1), ink);
    fputs(whole ? "\n" : "…\n", screen->file);
}

void weft__table_put(const weft_table *table, const weft_screen *screen) {
    size_t widths[WEFT_TABLE_COLUMNS], columns = columns_of(table), used = 0;
    const char *cell = weft__buf_head(&table->cells);
    measure_columns(table, columns, widths);
    for (size_t i = 0; i + 1 < columns; i++)
        used += widths[i] + GAP;
    size_t all = (size_t) weft__screen_width(screen);
    size_t room = all > used + MIN_LAST ? all - used : MIN_LAST;
    if (!screen->terminal)
        room = MAX_LAST;
    bool named = false; /* pairs of a name and a value need no line above them */
    for (size_t i = 0; i < columns; i++)
        named |= *table->heads[i] != '\0';
    weft__ink(screen, WEFT_INK_DIM);
    for (size_t i = 0; named && i < columns; i++)
        put_cell(screen, table->heads[i], "", widths[i], i + 1 == columns, room);
    weft__plain(screen);
    for (size_t i = 0; i < table->count; i++, cell += strlen(cell) + 1) {
        const char *ink = cell;
        cell += strlen(cell) + 1;
        put_cell(screen, cell, ink, widths[i % columns], i % columns + 1 == columns, room);
    }
}

void weft__table_done(weft_table *table) {
    weft__buf_done(&table->cells, NULL);
}
