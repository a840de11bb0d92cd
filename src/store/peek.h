/* A look at a journal that nobody has vouched for: what is in it, without running, changing or locking anything. It works
 * on a copy, with a limit on its size and on the work it may cause, and believes nothing it finds. */
#ifndef WEFT_PEEK_H
#define WEFT_PEEK_H

#include "store.h"

#define WEFT_PEEK_PROMPTS 5  /* shown of the tasks that wait */
#define WEFT_PEEK_PROMPT 160 /* bytes of each */

typedef struct weft_peek {
    char epoch[WEFT_EPOCH + 1]; /* "": it has none */
    int64_t events;
    int64_t
        tasks; /* that a daemon would run or have to deal with: queued, waiting for another try, or running when it ended */
    struct {
        char agent[64];
        char prompt[WEFT_PEEK_PROMPT];
    } first[WEFT_PEEK_PROMPTS];
    size_t shown;
} weft_peek;

/* folder: a private one of the caller's for the copy, which is removed again. -EFBIG too large to be looked at, -EINVAL not
 * a journal of Weft, or the system's error. */
int weft__peek(const char *path, const char *folder, weft_peek *ret);

#endif
