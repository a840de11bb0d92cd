/* Which file this is, in a way that survives a restart of the machine and that nobody who sends files can choose. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "trust.h"

/* Numbers of devices change when disks are found in another order, so they count only where there is no time of birth. */
static void write_id(const struct statx *info, char ret[WEFT_TRUST_ID]) {
    if (info->stx_mask & STATX_BTIME)
        snprintf(ret, WEFT_TRUST_ID, "%llu@%lld.%09u", (unsigned long long) info->stx_ino,
                 (long long) info->stx_btime.tv_sec, info->stx_btime.tv_nsec);
    else
        snprintf(ret, WEFT_TRUST_ID, "%llu:%llu", (unsigned long long) makedev(info->stx_dev_major, info->stx_dev_minor),
                 (unsigned long long) info->stx_ino);
}

int weft__trust_id(const char *path, char ret[WEFT_TRUST_ID]) {
    struct statx info;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &info) < 0)
        return -errno;
    write_id(&info, ret);
    return 0;
}

int weft__trust_id_of(int fd, char ret[WEFT_TRUST_ID]) {
    struct statx info;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &info) < 0)
        return -errno;
    write_id(&info, ret);
    return 0;
}

void weft__trust_digest(const char *text, size_t len, char ret[WEFT_TRUST_DIGEST]) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *) text, len, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}
