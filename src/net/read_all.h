/* Reading until the end, from something that may block: files of our own and /proc. Sockets and pipes of strangers are not
 * read so. */
#ifndef WEFT_READ_ALL_H
#define WEFT_READ_ALL_H

#include "buf.h"

/* Up to size bytes; *ret_len is size when there may be more. */
int weft__read_all(int fd, char *to, size_t size, size_t *ret_len);
/* The same behind what is in the buffer. -EFBIG: there is more than most in it then; -ENOMEM. */
int weft__read_text(int fd, size_t most, const weft_alloc *alloc, weft_buf *ret);

#endif
