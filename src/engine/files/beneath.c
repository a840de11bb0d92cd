/* Two ways to the same file: the kernel's and ours; see beneath.h. */
#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_name(weft_bytes name, const char *which) {
    return name.len == strlen(which) && strncasecmp(name.data, which, name.len) == 0;
}

bool weft__beneath_closed(weft_bytes name) {
    return is_name(name, ".git") || is_name(name, ".weft");
}

/* Of a name in a folder, of which is known whether it is an .aiwg. */
static bool is_closed(weft_bytes name, bool in_aiwg) {
    return weft__beneath_closed(name) || (in_aiwg && is_name(name, "daemon"));
}

/* The next name of a path; false: there is none. */
static bool next_name(const char **at, weft_bytes *ret) {
    while (**at == '/')
        ++*at;
    size_t len = strcspn(*at, "/");
    *ret = (weft_bytes){*at, len};
    *at += len;
    return len > 0;
}

/* What the names say by themselves. Behind a ".." they do not say which folder they are in. */
static bool has_closed_name(const char *path) {
    weft_bytes name;
    bool in_aiwg = false;
    while (next_name(&path, &name)) {
        if (is_closed(name, in_aiwg))
            return true;
        if (!is_name(name, "."))
            in_aiwg = is_name(name, ".aiwg");
    }
    return false;
}

static bool goes_back(const char *path) {
    weft_bytes name;
    while (next_name(&path, &name))
        if (is_name(name, ".."))
            return true;
    return false;
}

int weft__beneath_check(weft_bytes path, char ret[PATH_MAX]) {
    if (!path.len || memchr(path.data, '\0', path.len))
        return -EINVAL;
    if (path.len >= PATH_MAX)
        return -ENAMETOOLONG;
    if (*path.data == '/')
        return -EXDEV;
    memcpy(ret, path.data, path.len);
    ret[path.len] = '\0';
    return has_closed_name(ret) ? -EACCES : 0;
}

/* ---- the kernel's way ---- */

/* A name with a link in it is refused here (-ELOOP), so that the names in the path are the names of what is opened. */
static int open_by_kernel(int root, const char *path, int flags) {
    struct open_how how = {
        .flags = (unsigned) flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
    };
    long fd;
    do
        fd = syscall(SYS_openat2, root, path, &how, sizeof how);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : (int) fd;
}

/* ---- our way ---- */

/* What is still to be walked, its end at the end of the room: a link's target is put before it. */
typedef struct walk {
    int folders[WEFT_BENEATH_DEPTH]; /* the first is the root, and not ours to close */
    bool aiwg[WEFT_BENEATH_DEPTH];   /* it has this name */
    int depth;
    int links;
    bool follow;
    char *rest;
    char room[2 * PATH_MAX];
} walk;

static void go_up_to(walk *w, int depth) {
    while (w->depth > depth)
        close(w->folders[--w->depth]);
}

static int put_link_before(walk *w, const char *text) {
    size_t len = strlen(text);
    if (len + 1 > (size_t) (w->rest - w->room))
        return -ENAMETOOLONG;
    if (*w->rest) /* a slash behind the last name would mean a folder */
        *--w->rest = '/';
    w->rest -= len;
    memcpy(w->rest, text, len);
    return 0;
}

static int follow_link(walk *w, const char *name) {
    char target[PATH_MAX];
    if (!w->follow || ++w->links > WEFT_BENEATH_LINKS_MAX)
        return -ELOOP;
    ssize_t n = readlinkat(w->folders[w->depth - 1], name, target, sizeof target - 1);
    if (n < 0)
        return errno == EINVAL ? -ELOOP : -errno; /* it is none any more */
    target[n] = '\0';
    if (*target == '/')
        return -EXDEV;
    return put_link_before(w, target);
}

static int enter_folder(walk *w, const char *name) {
    if (w->depth == WEFT_BENEATH_DEPTH)
        return -ENAMETOOLONG;
    int fd = openat(w->folders[w->depth - 1], name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    w->aiwg[w->depth] = strcasecmp(name, ".aiwg") == 0;
    w->folders[w->depth++] = fd;
    return 0;
}

static bool is_link(const walk *w, const char *name) {
    struct stat st;
    return fstatat(w->folders[w->depth - 1], name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static int step_to_parent(walk *w) {
    if (w->depth == 1)
        return -EXDEV;
    go_up_to(w, w->depth - 1);
    return 0;
}

/* One name that more follow behind, or that ends in a slash. */
static int walk_folder(walk *w, const char *name) {
    if (strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0)
        return step_to_parent(w);
    int r = enter_folder(w, name);
    return (r == -ENOTDIR || r == -ELOOP) && is_link(w, name) ? follow_link(w, name) : r;
}

/* The last name. 0: it was a link, there is more to walk. With O_PATH, O_NOFOLLOW opens the link itself, which is not what
 * was asked for. */
static int walk_last(walk *w, const char *name, int flags, int *ret) {
    bool path_only = flags & O_PATH;
    if (!path_only || !is_link(w, name)) {
        int fd = openat(w->folders[w->depth - 1], name, flags);
        if (fd >= 0) {
            *ret = fd;
            return 1;
        }
        if (errno != ELOOP && !(errno == ENOTDIR && is_link(w, name)))
            return -errno;
    }
    return follow_link(w, name);
}

/* 1 it is open, 0 go on. */
static int walk_one_name(walk *w, int flags, int *ret) {
    char name[NAME_MAX + 1];
    weft_bytes next;
    const char *at = w->rest;
    bool more = next_name(&at, &next);
    bool last = !more || *at == '\0';
    if (next.len > NAME_MAX)
        return -ENAMETOOLONG;
    if (is_closed(next, w->aiwg[w->depth - 1]))
        return -EACCES;
    memcpy(name, next.data, next.len);
    name[next.len] = '\0';
    w->rest += next.data + next.len - w->rest;
    if (!last || strcmp(name, "..") == 0)
        return walk_folder(w, name);
    return walk_last(w, more ? name : ".", flags, ret);
}

static int open_by_walking(int root, const char *path, int flags, bool follow) {
    walk w;
    int r, fd = -1;
    w.depth = 1;
    w.links = 0;
    w.follow = follow;
    w.folders[0] = root;
    w.aiwg[0] = false;
    w.rest = w.room + sizeof w.room - 1;
    *w.rest = '\0';
    size_t len = strlen(path);
    w.rest -= len;
    memcpy(w.rest, path, len);
    do
        r = walk_one_name(&w, flags, &fd);
    while (r == 0);
    go_up_to(&w, 1);
    return r < 0 ? r : fd;
}

/* ---- both ---- */

int weft__beneath_open(int root, const char *path, int flags, unsigned how) {
    bool follow = how & WEFT_BENEATH_LINKS;
    int r = -ENOSYS;
    flags |= O_CLOEXEC | O_NOFOLLOW;
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (*path == '/')
        return -EXDEV;
    if (has_closed_name(path))
        return -EACCES;
    if (!(how & WEFT_BENEATH_WALK) && !goes_back(path))
        r = open_by_kernel(root, path, flags);
    /* Kernels before 5.6 do not have it, and filters of system calls answer what they like. For a link to a folder the
     * kernel says -ENOTDIR. */
    bool refused = r == -ENOSYS || r == -EPERM || r == -EAGAIN || ((r == -ELOOP || r == -ENOTDIR) && follow);
    return refused ? open_by_walking(root, path, flags, follow) : r;
}

int weft__beneath_parent(int root, const char *path, unsigned how, char ret_name[NAME_MAX + 1]) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t len = (size_t) (name - path);
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EINVAL;
    if (strlen(name) > NAME_MAX || len >= sizeof folder)
        return -ENAMETOOLONG;
    if (has_closed_name(path))
        return -EACCES;
    memcpy(folder, path, len);
    folder[len] = '\0';
    int fd = weft__beneath_open(root, len ? folder : ".", O_PATH | O_DIRECTORY, how & ~(unsigned) WEFT_BENEATH_LINKS);
    if (fd >= 0)
        memcpy(ret_name, name, strlen(name) + 1);
    return fd;
}

int weft__beneath_root(int root, const char *folder, unsigned how) {
    const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
    if (is_name((weft_bytes){name, strlen(name)}, ".aiwg"))
        return -EACCES;
    return weft__beneath_open(root, folder, O_PATH | O_DIRECTORY, how & ~(unsigned) WEFT_BENEATH_LINKS);
}

/* ---- a folder's own path ---- */

/* An absolute path is one beneath root only if it is written so. NULL: it is not. */
static const char *path_below(const char *root, const char *path) {
    size_t len = strlen(root);
    while (len > 1 && root[len - 1] == '/')
        len--;
    if (*path != '/')
        return path;
    if (strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0' && len > 1))
        return NULL;
    path += len;
    while (*path == '/')
        path++;
    return path;
}

static int path_of_fd(int fd, char ret[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret, PATH_MAX - 1);
    if (n < 0)
        return -errno;
    ret[n] = '\0';
    return n == PATH_MAX - 1 ? -ENAMETOOLONG : 0;
}

/* What both are called now, without links. */
static int relate_folders(int root, int fd, char ret[WEFT_BENEATH_PATH]) {
    char above[PATH_MAX], below[PATH_MAX];
    int r = path_of_fd(root, above);
    if (r >= 0)
        r = path_of_fd(fd, below);
    const char *found = r < 0 ? NULL : path_below(above, below);
    if (r < 0 || !found)
        return r < 0 ? r : -EXDEV;
    if (strlen(found) >= WEFT_BENEATH_PATH)
        return -ENAMETOOLONG;
    memcpy(ret, found, strlen(found) + 1);
    return 0;
}

int weft__beneath_folder(const char *root, const char *path, bool links, char ret[WEFT_BENEATH_PATH]) {
    const char *below = path_below(root, path);
    if (!below)
        return -EXDEV;
    int top = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return -errno;
    int fd = weft__beneath_open(top, *below ? below : ".", O_PATH | O_DIRECTORY, links ? WEFT_BENEATH_LINKS : 0);
    int r = fd < 0 ? fd : relate_folders(top, fd, ret);
    if (fd >= 0)
        close(fd);
    close(top);
    return r;
}
