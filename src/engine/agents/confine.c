/* Landlock, by its system calls: the C library has no names for them, and its header may be older than the kernel. */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same numbers on every architecture but alpha. */
#define CREATE_RULESET 444
#define ADD_RULE 445
#define RESTRICT_SELF 446
#define ASK_VERSION 1u
#define RULE_PATH_BENEATH 1

/* Accesses to files, in the order of their bits. */
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    ALL_OF_1 = (1 << 13) - 1,
    REFER = 1 << 13,
    TRUNCATE = 1 << 14,
    IOCTL_DEV = 1 << 15,
};
#define OF_FILES ((uint64_t) (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV))
#define NET_TCP 3u /* bind and connect */
#define SCOPES 3u  /* abstract sockets and signals */

typedef struct ruleset {
    uint64_t files, net, scoped;
} ruleset;

typedef struct __attribute__((packed)) rule {
    uint64_t allowed;
    int32_t parent;
} rule;

static int landlock_version(void) {
    return (int) syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
}

bool weft__confine_possible(void) {
    return landlock_version() > 0;
}

/* What this version can refuse: all of it is refused unless a rule allows it. */
static ruleset handled_by(int version) {
    ruleset all = {.files = ALL_OF_1};
    if (version >= 2)
        all.files |= REFER;
    if (version >= 3)
        all.files |= TRUNCATE;
    if (version >= 4)
        all.net = NET_TCP;
    if (version >= 5)
        all.files |= IOCTL_DEV;
    if (version >= 6)
        all.scoped = SCOPES;
    return all;
}

static size_t size_for(int version) {
    return version >= 6 ? sizeof(ruleset) : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

static int allow_path(int rules, const char *path, uint64_t accesses) {
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0 && !S_ISDIR(st.st_mode))
        accesses &= OF_FILES; /* the kernel refuses a rule about a file that speaks of folders */
    rule one = {.allowed = accesses, .parent = fd};
    if (r == 0 && syscall(ADD_RULE, rules, RULE_PATH_BENEATH, &one, 0) < 0)
        r = -errno;
    close(fd);
    return r;
}

static int allow_all(int rules, char *const *list, uint64_t handled) {
    int r = 0;
    for (; r == 0 && *list; list++) {
        uint64_t accesses = **list == WEFT_CONFINE_WRITE ? handled : (uint64_t) (EXECUTE | READ_FILE | READ_DIR);
        r = allow_path(rules, *list + 1, accesses);
    }
    return r;
}

int weft__confine(char *const *list) {
    int version = landlock_version();
    if (version <= 0)
        return 0;
    ruleset handled = handled_by(version);
    int rules = (int) syscall(CREATE_RULESET, &handled, size_for(version), 0);
    if (rules < 0)
        return -errno;
    int r = allow_all(rules, list, handled.files);
    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0 && syscall(RESTRICT_SELF, rules, 0) < 0)
        r = -errno;
    close(rules);
    return r;
}
