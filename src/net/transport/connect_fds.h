/* A client's peer over descriptors that somebody else opened: the stdio of a process that is looked after elsewhere. */
#ifndef WEFT_CONNECT_FDS_H
#define WEFT_CONNECT_FDS_H

#include <weft/net.h>

/* Like weft_connect_on(), over a pair of descriptors (or one socket, given twice) that can be waited for. They are taken,
 * also on failure. There is no second connection: opts->reconnect does not count. */
int weft__connect_fds(weft_loop *loop, int in, int out, const weft_connect_opts *opts, weft_peer **ret);

#endif
