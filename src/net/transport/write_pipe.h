/* Writing to a pipe whose reader may have left, without the signal that kills programs. */
#ifndef WEFT_WRITE_PIPE_H
#define WEFT_WRITE_PIPE_H

#include <sys/types.h>

/* As write(): errno is EPIPE when nobody reads any more, and SIGPIPE was not raised. */
ssize_t weft__write_pipe(int fd, const char *data, size_t len);

#endif
