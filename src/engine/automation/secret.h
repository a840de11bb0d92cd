/* Secrets in the texts of a webhook: "Bearer ${env:TOKEN}", "${file:/run/secrets/url}". They are put in when it is sent and
 * not before: what is rendered, shown, asked about and stored has the names alone.
 *
 * What comes from an event can name none: where a rule has secrets, every other "$" of its rendered texts is written twice.
 */
#ifndef WEFT_SECRET_H
#define WEFT_SECRET_H

#include <weft/json.h>

#define WEFT_SECRET_VALUE (8 * 1024) /* bytes of one */
#define WEFT_SECRET_WHY 256

/* The first name of a secret, and its length with the braces; NULL: there is none. */
const char *weft__secret_find(const char *text, size_t *ret_len);
/* Does one begin here? */
bool weft__secret_at(const char *text, size_t *ret_len);
/* 0, or -EINVAL with a sentence: one of them is not closed or names nothing. */
int weft__secret_check(const char *text, char why[WEFT_SECRET_WHY]);

typedef enum weft_secret_use {
    WEFT_SECRET_TEXT,
    WEFT_SECRET_LINE, /* of a header or a URL: without control characters and blanks */
    WEFT_SECRET_JSON, /* within the strings of a JSON text */
} weft_secret_use;

/* Put them in. Owned; wipe it with weft__secret_free(). -ENOKEY with a sentence that has no secret in it, -EMSGSIZE: over
 * max bytes, -ENOMEM. */
int weft__secret_fill(weft_bytes text, weft_secret_use use, size_t max, const weft_alloc *alloc, char **ret, size_t *ret_len,
                      char why[WEFT_SECRET_WHY]);
void weft__secret_free(char *text, size_t len, const weft_alloc *alloc);

#endif
