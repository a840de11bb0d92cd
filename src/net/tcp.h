/* What both ends of a TCP connection set on their socket. */
#ifndef WEFT_TCP_H
#define WEFT_TCP_H

/* Answers leave at once, and a peer that vanishes without a word is noticed by the system within 35 s: lines and HTTP have
 * no pings of their own. Does nothing on other sockets. */
void weft__tcp_tune(int fd);
/* It has ended its half: find out sooner whether it has gone altogether, without a byte of ours on the wire. */
void weft__tcp_probe(int fd);

#endif
