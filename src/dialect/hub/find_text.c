/* See find_text.h. */
#include "find_text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

const char *weft__find_text(weft_bytes text, const char *part) {
    size_t len = strlen(part);
    int first = tolower((unsigned char) *part);
    if (len == 0)
        return text.data;
    for (size_t i = 0; text.len >= len && i <= text.len - len; i++)
        if (tolower((unsigned char) text.data[i]) == first && strncasecmp(text.data + i, part, len) == 0)
            return text.data + i;
    return NULL;
}
