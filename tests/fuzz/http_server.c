/* The HTTP server with routes, event streams, WebSockets and the peer behind it, sent anything in pieces of any size.
 *
 * The first byte chooses whether tokens are asked for and memory is short, the second seeds how the rest is cut and what
 * else happens. In the rest the byte 0x01 becomes a line end, because a fuzzer finds CRLF by itself only rarely. */
#include "fuzz_world.h"

static size_t write_out(const uint8_t *data, size_t size, char *ret) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] == 1)
            ret[n++] = '\r';
        ret[n++] = data[i] == 1 ? '\n' : (char) data[i];
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_world w;
    int last;
    if (size < 2)
        return 0;
    char *bytes = malloc(2 * size);
    size_t len = write_out(data + 2, size - 2, bytes);
    fuzz_begin(&w, data[0] & 1, data[0] & 4, data[1]);
    unsigned most = data[0] & 2 ? 2000 : 40;
    for (size_t at = 0, n; at < len; at += n) {
        n = 1 + fuzz_pick(&w, most);
        n = n < len - at ? n : len - at;
        fuzz_send(&w, bytes + at, n);
    }
    fuzz_end(&w);
    fuzz_check_answers(&w, &last);
    fuzz_done(&w);
    free(bytes);
    return 0;
}
