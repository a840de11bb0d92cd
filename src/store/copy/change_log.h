/* What changed in a journal lately, kept in memory for those who copy it: each change has a number, and is there until it is
 * too old. Whoever has a number that is no longer there copies what is in the journal again. A log has a name, and its
 * numbers mean nothing in another one. */
#ifndef WEFT_CHANGE_LOG_H
#define WEFT_CHANGE_LOG_H

#include "buf.h"
#include "store.h"

typedef struct weft_change_log weft_change_log;

typedef struct weft_change_log_opts {
    const weft_alloc *alloc;
    weft_store *store;
    size_t max_bytes; /* of texts; 0: 32 MiB. The newest change is kept however large it is */
    void (*on_change)(void *ctx);
    void *ctx;
} weft_change_log_opts;

/* Listen to the store from now on: weft__store_tap(), and its failures. -EIO: the system has no random bytes. */
int weft__change_log_new(const weft_change_log_opts *opts, weft_change_log **ret);
weft_change_log *weft__change_log_free(weft_change_log *log);
const char *weft__change_log_name(const weft_change_log *log);
/* The number of the last change; the first is 1. */
uint64_t weft__change_log_last(const weft_change_log *log);

/* Are the changes after this number there? */
bool weft__change_log_has(const weft_change_log *log, uint64_t after);
/* Add the changes after this number to out, as a JSON array of about so many bytes at most, one at least if there is one.
 * ret_last: the number of the last of them. -ERANGE: some of them are not there any more, or there never was such a number.
 */
int weft__change_log_read(const weft_change_log *log, uint64_t after, size_t max_bytes, weft_buf *out, uint64_t *ret_last);

/* What is in the journal already is copied by pages, part by part in this order: a log that was begun before has what
 * changed meanwhile. */
typedef enum weft_copy_part {
    WEFT_COPY_EVENTS,
    WEFT_COPY_STREAMS,
    WEFT_COPY_REMOVED,
    WEFT_COPY_DOCUMENTS,
    WEFT_COPY_PARTS
} weft_copy_part;
extern const char *const weft__copy_parts[WEFT_COPY_PARTS + 1];
/* What to ask the store for. */
weft_query weft__copy_query(weft_copy_part part, uint64_t after);
/* The answer as a JSON object: rows, last, more, head, trimmed. */
int weft__copy_write_page(weft_buf *out, const weft_alloc *alloc, weft_copy_part part, const weft_page *page);

#endif
