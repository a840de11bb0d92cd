/* What a terminal printed: however the bytes are cut, the same text is kept; it is UTF-8 without NUL, at most as long as the
 * limit, and it is the end of what a limit without end keeps. The first two bytes are the limit, the third the pieces. */
#include "scrollback.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static weft_scrollback keep(const char *data, size_t size, size_t piece, size_t limit) {
    weft_scrollback it;
    weft__scrollback_init(&it, NULL, limit);
    for (size_t at = 0; at < size; at += piece) {
        size_t n = piece < size - at ? piece : size - at;
        char *copy = malloc(n); /* of exactly this size, so that a step too far is seen */
        require(copy);
        memcpy(copy, data + at, n);
        weft__scrollback_feed(&it, copy, n);
        free(copy);
    }
    weft__scrollback_end(&it);
    return it;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4)
        return 0;
    size_t limit = (size_t) data[0] * 16 + data[1] % 16, piece = 1 + data[2] % 64;
    const char *bytes = (const char *) data + 3;
    bool cut, cut_pieces, cut_whole;
    size -= 3;
    weft_scrollback whole = keep(bytes, size, size, SIZE_MAX / 8), one = keep(bytes, size, size, limit),
                    pieces = keep(bytes, size, piece, limit);
    weft_bytes all = weft__scrollback_text(&whole, SIZE_MAX, &cut_whole), text = weft__scrollback_text(&one, SIZE_MAX, &cut),
               same = weft__scrollback_text(&pieces, SIZE_MAX, &cut_pieces);
    require(!cut_whole && weft__utf8_valid(all.data, all.len) && !memchr(all.data, 0, all.len));
    require(text.len <= limit && weft__utf8_valid(text.data, text.len));
    require(text.len == same.len && memcmp(text.data, same.data, same.len) == 0);
    require(text.len <= all.len && memcmp(all.data + all.len - text.len, text.data, text.len) == 0);
    require(cut == cut_pieces && cut == (text.len < all.len));
    require(all.len <= limit || text.len + 3 >= limit); /* no more is dropped than a begun character */
    weft__scrollback_done(&whole);
    weft__scrollback_done(&one);
    weft__scrollback_done(&pieces);
    return 0;
}
