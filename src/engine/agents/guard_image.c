/* The guard's image and the file in memory that it is run from. See guard_image.h. */
#include "guard_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Newer than some headers. Kernels that do not know it need not be told. */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#ifdef WEFT_GUARD_IMAGE
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        "weft__guard_image_begin:\n"
        ".incbin \"" WEFT_GUARD_IMAGE "\"\n"
        "weft__guard_image_end:\n"
        ".popsection\n");
extern const char weft__guard_image_begin[] __attribute__((visibility("hidden")));
extern const char weft__guard_image_end[] __attribute__((visibility("hidden")));
#define IMAGE weft__guard_image_begin
#define IMAGE_SIZE ((size_t) (weft__guard_image_end - weft__guard_image_begin))
#else
#define IMAGE ""
#define IMAGE_SIZE ((size_t) 0)
#endif

static int image_fd = -1;
static bool refused;

static int write_image(int fd) {
    for (size_t done = 0; done < IMAGE_SIZE;) {
        ssize_t n = write(fd, &IMAGE[done], IMAGE_SIZE - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t) n : 0;
    }
    return 0;
}

/* Sealed, because an agent is the same user and can open our descriptors by /proc: what it could write would be run as the
 * next agent's guard. Without the seals there is no image. */
static int seal_image(int fd) {
    return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0 ? -errno : 0;
}

static int open_image(void) {
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create("weft-guard", flags | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("weft-guard", flags);
    return fd < 0 ? -errno : fd;
}

static int make_image(int lowest) {
    int fd = open_image();
    if (fd < 0)
        return fd;
    int r = write_image(fd);
    if (r == 0)
        r = seal_image(fd);
    int high = r == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, lowest) : -1;
    if (r == 0 && high < 0)
        r = -errno;
    close(fd);
    return r < 0 ? r : high;
}

int weft__guard_image(int lowest) {
    if (refused || !IMAGE_SIZE)
        return -ENOENT;
    if (image_fd < 0) {
        int r = make_image(lowest);
        if (r < 0)
            return r;
        image_fd = r;
    }
    return image_fd;
}

void weft__guard_image_refuse(void) {
    refused = true;
    if (image_fd >= 0)
        close(image_fd);
    image_fd = -1;
}
