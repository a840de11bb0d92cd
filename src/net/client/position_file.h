/* The position of a subscription in a file: which stream, which journal, which seq, in one line of JSON with a checksum. */
#ifndef WEFT_POSITION_FILE_H
#define WEFT_POSITION_FILE_H

#include <weft/subscribe.h>

/* A name and a journal with every byte escaped, and the rest. */
#define WEFT_POSITION_TEXT 4096

typedef struct weft_position {
    uint64_t seq;
    char journal[WEFT_SUB_JOURNAL + 1];
} weft_position;

/* params is the text of the stream's params; only its hash is kept. */
int weft__position_write(const char *name, const char *params, const weft_position *position, const weft_alloc *alloc,
                         char **ret, size_t *ret_len);
/* -EBADMSG: damaged; -EEXIST: it is another stream's; -ENOMEM. */
int weft__position_parse(const char *text, size_t len, const char *name, const char *params, const weft_alloc *alloc,
                         weft_position *ret);

/* Likewise from a file; also -ENOENT and what open(2) says. Nothing is read through a link, from another user's file or from
 * what is no regular file. */
int weft__position_load(const char *path, const char *name, const char *params, const weft_alloc *alloc, weft_position *ret);
/* Replace the file: another one is written, synced and renamed. */
int weft__position_save(const char *path, const char *name, const char *params, const weft_position *position,
                        const weft_alloc *alloc);

#endif
