/* Texts with holes: "look at {{payload.path}}". A hole that names nothing is filled with nothing; strings are put in as they
 * are, everything else as JSON. What is put in is never looked at again: a file called "{{payload.x}}" stays that. */
#ifndef WEFT_TEMPLATE_H
#define WEFT_TEMPLATE_H

#include <weft/json.h>

typedef enum weft_template_use {
    WEFT_TEMPLATE_TEXT,
    WEFT_TEMPLATE_URL,  /* what fills a hole is percent-encoded, but for slashes: it cannot become a query or another host */
    WEFT_TEMPLATE_AIWG, /* a hole that names nothing stays as it is, null is "null", and only whole names count: AIWG's way
                         */
} weft_template_use;

/* Fill the holes. Owned, NUL-terminated; NULs in what is put in are left out. -EMSGSIZE: over max bytes. */
int weft__template_fill(const char *text, const weft_json *event, weft_template_use use, size_t max, const weft_alloc *alloc,
                        char **ret);
/* The same for a text with secrets (secret.h): their names stay as they are, and every other "$" is written twice, so that
 * nothing an event says can be the name of one. */
int weft__template_fill_guarded(const char *text, const weft_json *event, weft_template_use use, size_t max,
                                const weft_alloc *alloc, char **ret);
/* Where the first hole is; NULL: there is none. */
const char *weft__template_hole(const char *text);

#endif
