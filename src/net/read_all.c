/* Reading until the end. A signal is no end. */
#include "read_all.h"

#include <errno.h>
#include <unistd.h>

#define CHUNK (64 * 1024)

int weft__read_all(int fd, char *to, size_t size, size_t *ret_len) {
    size_t len = 0;
    ssize_t n = 1;
    while (len < size && n != 0) {
        n = read(fd, to + len, size - len);
        if (n < 0 && errno != EINTR)
            return -errno;
        len += n > 0 ? (size_t) n : 0;
    }
    *ret_len = len;
    return 0;
}

int weft__read_text(int fd, size_t most, const weft_alloc *alloc, weft_buf *ret) {
    for (size_t n = CHUNK; n == CHUNK;) {
        int r = weft__buf_reserve(ret, alloc, CHUNK);
        if (r >= 0)
            r = weft__read_all(fd, weft__buf_tail(ret), CHUNK, &n);
        if (r < 0)
            return r;
        ret->end += n;
        if (weft__buf_len(ret) > most)
            return -EFBIG;
    }
    return 0;
}
