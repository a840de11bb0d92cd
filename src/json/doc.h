/* The inside of a document, for the layers above: a message's spans are read in place, decoded strings go to its arena. */
#ifndef WEFT_DOC_H
#define WEFT_DOC_H

#include <weft/json.h>

#include "arena.h"

/* Where the members of an object lie, for one that is looked into again and again. */
#define WEFT_INDEXED 24
typedef struct weft_members {
    size_t count;
    struct {
        weft_bytes name; /* as it stands between its quotes; none has escapes */
        const char *value, *end;
    } of[WEFT_INDEXED];
} weft_members;

struct weft_doc {
    weft_arena arena;
    weft_json root;
    const weft_alloc *alloc;
    char *text;                  /* a copy, in the same block behind this; NULL: the text is borrowed */
    const weft_members *members; /* of the root; NULL: they are looked for each time */
};

/* From now on members of the root are found by an index in this memory, which is borrowed for as long as the document is
 * used. Nothing changes where there are more than WEFT_INDEXED, or names with escapes. */
void weft__doc_index(weft_doc *doc, weft_members *memory);

/* Decode the inside of a validated string (raw is between the quotes) to at least raw_len + 1 bytes of memory;
 * NUL-terminated. The decoded length. A lone surrogate escape becomes U+FFFD. */
size_t weft__unescape(const char *raw, size_t raw_len, char *ret);

/* Does the raw string (with its quotes, validated) say this name? Decodes escapes. */
bool weft__raw_is(weft_bytes raw, const char *name, size_t name_len);

/* weft_get() for so many names in one walk over the object; what is absent is so in ret. Quickest when the members come in
 * the order of the names, as they do in what we wrote ourselves. */
void weft__get_all(const weft_json *object, const char *const *names, size_t count, weft_json *ret);

#endif
