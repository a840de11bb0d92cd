/* Moving a journal from SQLite to PostgreSQL or back, with all of its positions: epoch, seq and gseq, keys, documents and
 * their places, and what was trimmed. Nobody may use either meanwhile. */
#ifndef WEFT_STORE_COPY_H
#define WEFT_STORE_COPY_H

#include "store.h"

typedef struct weft_copied {
    uint64_t events, documents;
    char epoch[WEFT_EPOCH + 1];
} weft_copied;

/* Told now and then: so many events and documents of so many. on_rows NULL: nobody is. */
typedef struct weft_copy_progress {
    void (*on_rows)(void *ctx, uint64_t done, uint64_t of);
    void *ctx;
} weft_copy_progress;

/* from: a path; to: a URL, whose database has no events yet. All of it is there afterwards, or nothing. Besides the failures
 * of weft__store_open(): -ENOENT there is no journal at the path, -EEXIST the database has events, -EUCLEAN a row is not as
 * it was written; each with a sentence. */
int weft__store_copy(const weft_store_opts *from, const weft_store_opts *to, weft_copy_progress progress, weft_copied *ret,
                     char *ret_why);
/* copy_back.c: from: a URL; to: a path, where there is nothing yet. Likewise. */
int weft__store_copy_back(const weft_store_opts *from, const weft_store_opts *to, weft_copy_progress progress,
                          weft_copied *ret, char *ret_why);

#endif
