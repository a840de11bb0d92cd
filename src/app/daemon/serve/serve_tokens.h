/* The daemon's tokens: the one of the first start and those that were given out by name, and the methods token.add,
 * token.list and token.revoke that change them while it runs. */
#ifndef WEFT_SERVE_TOKENS_H
#define WEFT_SERVE_TOKENS_H

#include "token_file.h"

typedef struct weft_serve_tokens {
    const weft_layout *layout;
    const char *first; /* borrowed; NULL: none is asked for */
    weft_server *server;
    weft_method methods[3]; /* the service borrows them */
    weft_token_list list;
    weft_token tokens[WEFT_TOKENS_MAX + 2]; /* the same as the server wants them, and the first; ends with an empty one */
} weft_serve_tokens;

/* Read them. What cannot be read lets nobody in, and why is a sentence for people; the first one counts all the same. */
int weft__serve_tokens_load(weft_serve_tokens *self, char ret_why[WEFT_TRUST_WHY]);
/* The methods. */
int weft__serve_tokens_offer(weft_serve_tokens *self, weft_server *server);
/* The rows; a name of NULL ends them. */
extern const weft_method weft__token_rows[];
/* Read them again and put them in force. */
int weft__serve_tokens_apply(weft_serve_tokens *self, char ret_why[WEFT_TRUST_WHY]);

#endif
