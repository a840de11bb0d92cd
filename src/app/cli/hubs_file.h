/* The hubs that a person works with, by name: in the user's state folder, beside the trust record, so that no clone can
 * bring one along. A token is not kept in it, only where it is, and so with the certificates to trust. */
#ifndef WEFT_HUBS_FILE_H
#define WEFT_HUBS_FILE_H

#include "app.h"

#define WEFT_HUBS_MAX 64
#define WEFT_HUBS_NAME 64
#define WEFT_HUBS_URL 1024
#define WEFT_HUBS_PATH 1024

typedef struct weft_hub_row {
    char name[WEFT_HUBS_NAME + 1], url[WEFT_HUBS_URL + 1];
    char token_file[WEFT_HUBS_PATH + 1], cacert[WEFT_HUBS_PATH + 1]; /* absolute; "": none */
} weft_hub_row;

typedef struct weft_hub_rows {
    size_t count;
    weft_hub_row rows[WEFT_HUBS_MAX];
} weft_hub_rows;

/* 1 to 64 letters, digits, dashes and underscores: no URL looks like that. */
bool weft__hubs_is_name(const char *name);
/* Failures are explained. No file: none. */
weft_exit weft__hubs_load(const weft_app *app, weft_hub_rows *ret);
weft_exit weft__hubs_save(const weft_app *app, const weft_hub_rows *rows);
/* NULL: there is none of this name. */
weft_hub_row *weft__hubs_find(weft_hub_rows *rows, const char *name);
/* How to get in there, where nothing else was typed. Borrowed from the row. */
void weft__hubs_reach(const weft_hub_row *row, weft_reach *reach);

#endif
