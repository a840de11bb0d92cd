/* The sockets of TCP: dialling, and what both ends of a connection set. */
#ifndef WEFT_TCP_H
#define WEFT_TCP_H

#include <netdb.h>

/* Answers leave at once, and a peer that vanishes without a word is noticed by the system within 35 s: lines and HTTP have
 * no pings of their own. Does nothing on other sockets. */
void weft__tcp_tune(int fd);
/* A socket that is connected to this address, or is about to be. */
int weft__tcp_dial(const struct addrinfo *address, int *ret);
/* It has ended its half: find out sooner whether it has gone altogether, without a byte of ours on the wire. */
void weft__tcp_probe(int fd);

#endif
