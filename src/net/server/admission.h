/* Places for connections, so that nobody who has not shown who he is can keep out somebody who has, or who need not.
 *
 *   local     Unix sockets, stdio and mem: counted by themselves, and by user
 *   strangers connections to listeners that ask for a token or a certificate, until one is shown: few in all and per
 *             address; when their places are taken the oldest goes and the newcomer, who may have a token, comes in
 *   the rest  all network connections, strangers too, up to max_connections; strangers go first
 *
 * And memory: what all connections hold in their buffers is counted; over max_memory the largest go, strangers first. */
#ifndef WEFT_ADMISSION_H
#define WEFT_ADMISSION_H

#include "server.h"

typedef struct weft_refusal {
    int status;
    const char *message;
    const char *reason;
} weft_refusal;

/* NULL: welcome, *ret is the place. A stranger may have had to go for it. */
const weft_refusal *weft__admit(weft_listener *listener, const weft_origin *origin, weft_conn_place *ret);
/* Nobody came after all, or he has gone: the place is free. Harmless when it is already. */
void weft__place_leave(weft_server *server, weft_conn_place *place);
/* It has shown who it is: no stranger any more, but still a network connection. */
void weft__place_known(weft_server *server, weft_conn_place *place);
/* Close the stranger that has been here longest. false: there is none. */
bool weft__drop_stranger(weft_server *server);

/* Count what the connection holds. Whoever has to go for it goes before the loop waits again, not in here. */
void weft__memory_count(weft_conn *conn);
/* Runs when there was too much. */
void weft__memory_relieve(weft_later *later);

#endif
