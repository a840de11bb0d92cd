/* Moving a journal from SQLite to PostgreSQL, with all of its positions: epoch, seq and gseq, keys, documents and their
 * places, and what was trimmed. Nobody may use either meanwhile. */
#ifndef WEFT_STORE_COPY_H
#define WEFT_STORE_COPY_H

#include "store.h"

typedef struct weft_copied {
    uint64_t events, documents;
    char epoch[WEFT_EPOCH + 1];
} weft_copied;

/* from: a path; to: a URL, whose database has no events yet. All of it is there afterwards, or nothing. Besides the failures
 * of weft__store_open(): -ENOENT there is no journal at the path, -EEXIST the database has events, -EUCLEAN a row is not as
 * it was written; each with a sentence. */
int weft__store_copy(const weft_store_opts *from, const weft_store_opts *to, weft_copied *ret, char *ret_why);

#endif
