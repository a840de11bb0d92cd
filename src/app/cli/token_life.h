/* How long a token lasts, as people type it. */
#ifndef WEFT_TOKEN_LIFE_H
#define WEFT_TOKEN_LIFE_H

#include <stdint.h>

/* "30d", "12h", "45m", "90s", "2w": in seconds. 0: "never", or NULL. -EINVAL: it is none of these. */
int64_t weft__token_life(const char *text);

#endif
