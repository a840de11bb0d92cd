/* The table behind http1_bytes.h: one row for 16 bytes, in the order of their codes. Each number is the sum
 * of what the byte may be: 1 HTTP_TOKEN, 2 HTTP_TARGET, 4 HTTP_VALUE, 8 HTTP_HOST. */
#include "http1_bytes.h"

/* clang-format off */
const unsigned char weft__http_bytes[256] = {
     0,  0,  0,  0,  0,  0,  0,  0,  0,  4,  0,  0,  0,  0,  0,  0, /* controls; HTAB may stand in a value */
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, /* controls */
     4, 15,  6,  5, 15, 15, 15, 15, 14, 14, 15, 15,  6, 15, 15,  6, /* !"#$%&'()*+,-./ */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 14, 14,  6, 14,  6,  6, /* 0123456789:;<=>? */
     6, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, /* @ABCDEFGHIJKLMNO */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 14,  6, 14,  7, 15, /* PQRSTUVWXYZ[\]^_ */
     7, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, /* `abcdefghijklmno */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,  6,  7,  6, 15,  0, /* pqrstuvwxyz{|}~ */
    /* obs-text: what is not ASCII may stand in values */
     4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
     4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
     4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
     4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
     4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
     4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
     4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
     4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
};
/* clang-format on */

bool weft__http_is(const char *text, unsigned char class) {
    for (; *text; text++)
        if (!(weft__http_bytes[(unsigned char) *text] & class))
            return false;
    return true;
}
