/* See number_text.h. */
#include "number_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *weft__grouped(char ret[WEFT_GROUPED], int64_t number) {
    char digits[WEFT_GROUPED];
    size_t len = (size_t) snprintf(digits, sizeof digits, "%" PRId64, number), at = 0;
    for (size_t i = 0; i < len; i++) {
        if (i && digits[i - 1] != '-' && (len - i) % 3 == 0)
            ret[at++] = ',';
        ret[at++] = digits[i];
    }
    ret[at] = '\0';
    return ret;
}
