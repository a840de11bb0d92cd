/* Whom a process descends from, and which process holds a connection, both by what /proc says. See descent.h. */
#include "descent.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"

/* More generations than that are a mistake in reading. */
#define MAX_GENERATIONS 1024
/* An ancestor may end while the chain is read; then the child has another parent. */
#define DESCENT_TRIES 8
/* Sockets with the same address and port on this side: connected to several of our ports. */
#define MAX_SOCKETS 16
#define CONNECTION_TRIES 3

/* ---- ancestors ---- */

typedef struct parentage {
    bool guard;
    pid_t parent;
} parentage;

/* "PID (NAME) STATE PARENT ..." */
static int read_parentage(pid_t pid, parentage *ret) {
    char path[64], text[512];
    int parent;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long) pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -ESRCH;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *name = strchr(text, '('), *rest = strrchr(text, ')');
    if (!name || !rest || sscanf(rest, ") %*c %d", &parent) != 1)
        return -ESRCH;
    size_t len = (size_t) (rest - name) - 1;
    ret->guard = len == strlen(WEFT_GUARD_NAME) && memcmp(name + 1, WEFT_GUARD_NAME, len) == 0;
    ret->parent = parent;
    return 0;
}

static int descends_from_us(pid_t pid) {
    pid_t self = getpid();
    parentage at;
    for (int i = 0; i < MAX_GENERATIONS && pid > 0; i++) {
        if (pid == self)
            return 1;
        int r = read_parentage(pid, &at);
        if (r < 0)
            return r;
        if (at.guard)
            return 1;
        pid = at.parent;
    }
    return 0;
}

int weft__descends_from_guard(pid_t pid) {
    parentage first;
    int r = -ESRCH;
    for (int i = 0; i < DESCENT_TRIES && r == -ESRCH && read_parentage(pid, &first) == 0; i++)
        r = descends_from_us(pid);
    return r;
}

/* ---- the other end of a connection ---- */

typedef struct sockets {
    unsigned long inodes[MAX_SOCKETS];
    unsigned uids[MAX_SOCKETS];
    size_t count;
    bool loopback;
} sockets;

/* An address as /proc/net/tcp (one word) and tcp6 (four) write it: words in the machine's order. */
static bool write_words(const char *address, char v4[9], char v6[33], bool *ret_loopback) {
    uint32_t words[4] = {0, 0, htonl(0xffff), 0};
    char plain[64];
    snprintf(plain, sizeof plain, "%.*s", (int) strcspn(address, "%"), address); /* without the interface */
    const char *mapped = strncasecmp(plain, "::ffff:", 7) == 0 && strchr(plain, '.') ? plain + 7 : plain;
    *v4 = '\0';
    *ret_loopback = strcmp(plain, "::1") == 0;
    if (inet_pton(AF_INET, mapped, &words[3]) == 1) {
        snprintf(v4, 9, "%08X", words[3]);
        *ret_loopback = (ntohl(words[3]) >> 24) == 127;
    } else if (inet_pton(AF_INET6, plain, words) != 1)
        return false;
    snprintf(v6, 33, "%08X%08X%08X%08X", words[0], words[1], words[2], words[3]);
    return true;
}

/* "  N: LOCAL:PORT REMOTE:PORT STATE QUEUES TIMER RETRANSMITS UID TIMEOUT INODE ...". The other end of a connection that we
 * have not closed is not in TIME_WAIT: that is an earlier connection from the same port, to somebody else. */
static int find_sockets(const char *table, const char *address, int64_t port, sockets *ret) {
    char line[512], local[40];
    unsigned local_port, state, uid;
    unsigned long inode;
    FILE *file = fopen(table, "re");
    if (!file)
        return -errno;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, " %*d: %39[0-9A-F]:%x %*s %x %*s %*s %*s %u %*s %lu", local, &local_port, &state, &uid, &inode) ==
                5 &&
            state != TCP_TIME_WAIT && local_port == (unsigned) port && strcmp(local, address) == 0 &&
            ret->count < MAX_SOCKETS) {
            ret->uids[ret->count] = uid;
            ret->inodes[ret->count++] = inode;
        }
    fclose(file);
    return 0;
}

static bool holds_socket(const char *pid, const sockets *which) {
    char path[64], link[64];
    struct dirent *entry;
    bool found = false;
    unsigned long inode;
    snprintf(path, sizeof path, "/proc/%.16s/fd", pid);
    DIR *dir = opendir(path);
    while (dir && !found && (entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        if (sscanf(link, "socket:[%lu]", &inode) != 1)
            continue;
        for (size_t i = 0; i < which->count; i++)
            found |= which->inodes[i] == inode;
    }
    if (dir)
        closedir(dir);
    return found;
}

/* A socket that nobody holds any more was closed behind its request: who that was is not known. */
static int judge_holders(const sockets *which) {
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int r = 0;
    if (!dir)
        return -errno;
    while (r == 0 && (entry = readdir(dir)))
        if (isdigit((unsigned char) entry->d_name[0]) && holds_socket(entry->d_name, which))
            r = weft__descends_from_guard((pid_t) atoi(entry->d_name));
    closedir(dir);
    return r;
}

static int find_other_end(const char *address, int64_t port, sockets *ret) {
    char v4[9], v6[33];
    if (!write_words(address, v4, v6, &ret->loopback))
        return -EINVAL;
    int r = *v4 ? find_sockets("/proc/net/tcp", v4, port, ret) : 0;
    if (r == 0)
        r = find_sockets("/proc/net/tcp6", v6, port, ret);
    return r < 0 && r != -ENOENT ? r : 0; /* a kernel without IPv6 has no such table */
}

static int judge_connection(const char *address, int64_t port) {
    sockets which = {0};
    int r = find_other_end(address, port, &which);
    if (r < 0)
        return r;
    if (!which.count)
        return which.loopback ? -ESRCH : 0;
    for (size_t i = 0; i < which.count; i++)
        if (which.inodes[i] == 0)
            return -ESRCH;
    return judge_holders(&which);
}

/* The tables are read in pieces, while connections and processes come and go: one that is there may be passed over. */
int weft__connection_of_agent(const char *address, int64_t port) {
    int r = -ESRCH;
    for (int i = 0; i < CONNECTION_TRIES && r == -ESRCH; i++)
        r = judge_connection(address, port);
    return r;
}

/* Of two, the last: a connection is behind the listener that it came to. */
int64_t weft__connection_user(const char *address, int64_t port) {
    sockets which = {0};
    int r = find_other_end(address, port, &which);
    return r < 0 ? r : which.count ? (int64_t) which.uids[which.count - 1] : -ESRCH;
}

/* A port that two users have on one address, on a listener of the one and a connection of the other, proves nothing. */
bool weft__connection_of_user(const char *address, int64_t port, uid_t uid) {
    for (int i = 0; i < CONNECTION_TRIES; i++) {
        sockets which = {0};
        if (find_other_end(address, port, &which) < 0 || !which.loopback)
            return false;
        bool all = which.count > 0;
        for (size_t n = 0; n < which.count; n++)
            all &= which.uids[n] == uid && which.inodes[n] != 0;
        if (which.count)
            return all;
    }
    return false;
}
