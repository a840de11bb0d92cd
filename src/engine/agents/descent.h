/* Does a process belong to an agent? An agent runs as the user that the daemon runs as, so that neither a socket's mode nor
 * a token that lies in a file tells the two apart. What does is whom the process descends from: a guard, of this daemon or
 * of another one, or this daemon itself, whose children are guards and what lost theirs.
 *
 * A process that some other service of the same user starts on an agent's behalf (systemd-run, at, tmux) descends from that
 * service: docs/security.md says so. */
#ifndef WEFT_DESCENT_H
#define WEFT_DESCENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* 1 it does, 0 it does not, <0 not known: it has ended. */
int weft__descends_from_guard(pid_t pid);
/* The same for whoever holds the other end of a TCP connection that came from this address and port. 0 also when that is on
 * another machine, or belongs to another user. Reads the tables of all connections and of this user's processes: some
 * milliseconds. */
int weft__connection_of_agent(const char *address, int64_t port);
/* The user whose connection that is. -ESRCH: it is not found on this machine. */
int64_t weft__connection_user(const char *address, int64_t port);
/* Does the other end of a connection of this machine, by a loopback address, belong to this user? The kernel says so. false
 * also when that cannot be known. */
bool weft__connection_of_user(const char *address, int64_t port, uid_t uid);

#endif
