/* What programs write, cleaned: however the bytes are cut, the same text comes out; it is UTF-8 without NUL, and bytes that
 * were such before come out as they are. The first byte says how long the pieces are, and whether the program is silent
 * between them; the second repeats the rest, so that lines become too long. */
#include "output.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"
#include "utf8_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_text(void *ctx, weft_bytes text) {
    require(text.len && weft__utf8_valid(text.data, text.len) && !memchr(text.data, 0, text.len));
    require(weft__buf_put(ctx, NULL, text.data, text.len) == 0);
}

static weft_buf clean(const char *data, size_t size, size_t piece, bool silent) {
    weft_buf heard = {0};
    weft_output output;
    weft__output_init(&output, NULL, on_text, &heard);
    for (size_t at = 0; at < size; at += piece) {
        size_t n = piece < size - at ? piece : size - at;
        char *copy = malloc(n); /* of exactly this size, so that a step too far is seen */
        require(copy);
        memcpy(copy, data + at, n);
        require(weft__output_feed(&output, copy, n) == 0);
        free(copy);
        if (silent)
            weft__output_flush(&output);
        require(!silent || !weft__output_holds(&output));
    }
    require(weft__output_end(&output) == 0);
    require(!weft__output_holds(&output));
    weft__output_done(&output);
    return heard;
}

static bool same(const weft_buf *a, const char *text, size_t len) {
    return weft__buf_len(a) == len && (!len || memcmp(weft__buf_head(a), text, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    size_t piece = 1 + data[0] % 64, times = data[1] > 250 ? 1 + 2 * WEFT_OUTPUT_LINE / size : 1;
    const char *bytes = (const char *) data + 2;
    size -= 2;
    char *all = malloc(times * size);
    require(all);
    for (size_t i = 0; i < times; i++)
        memcpy(all + i * size, bytes, size);
    weft_buf whole = clean(all, times * size, SIZE_MAX / 2, false);
    weft_buf pieces = clean(all, times * size, times > 1 ? 4093 : piece, data[0] & 64);
    require(same(&whole, weft__buf_head(&pieces), weft__buf_len(&pieces)));
    if (times == 1 && weft__utf8_valid(bytes, size) && !memchr(bytes, 0, size))
        require(same(&whole, bytes, size));
    weft__buf_done(&whole, NULL);
    weft__buf_done(&pieces, NULL);
    free(all);
    return 0;
}
