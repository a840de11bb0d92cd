/* Reading the few files that say where a repository is; see repository.h. */
#include "repository.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One line of a small file, without its end. -EINVAL: it is not a regular file, or too long. */
static int read_line(const char *folder, const char *name, char ret[PATH_MAX]) {
    char path[2 * PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, ret, PATH_MAX) : PATH_MAX;
    close(fd);
    if (n < 0 || n >= PATH_MAX)
        return -EINVAL;
    while (n > 0 && (ret[n - 1] == '\n' || ret[n - 1] == '\r'))
        n--;
    ret[n] = '\0';
    return strlen(ret) == (size_t) n ? 0 : -EINVAL;
}

static bool exists_in_folder(const char *folder, const char *name) {
    char path[2 * PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &st) == 0;
}

/* Where a path that is written in a folder leads. */
static int resolve_in_folder(const char *folder, const char *path, char ret[PATH_MAX]) {
    char joined[2 * PATH_MAX];
    snprintf(joined, sizeof joined, "%s%s%s", *path == '/' ? "" : folder, *path == '/' ? "" : "/", path);
    return realpath(joined, ret) ? 0 : -errno;
}

/* As git sees it: what lacks these is not one, and the search goes on above. */
static bool is_git_folder(const char *path) {
    return exists_in_folder(path, "HEAD") &&
           ((exists_in_folder(path, "objects") && exists_in_folder(path, "refs")) || exists_in_folder(path, "commondir"));
}

static bool is_top(const weft_repository *found, const char *path) {
    char real[PATH_MAX];
    return realpath(path, real) && strcmp(real, found->top) == 0;
}

bool weft__repository_is_worktree(const weft_repository *repository, const char *worktree) {
    char real[PATH_MAX];
    return resolve_in_folder(repository->dir, worktree, real) == 0 && is_top(repository, real);
}

/* A worktree's folder says where the worktree is: the path of its .git. */
static bool points_back(const weft_repository *found) {
    char line[PATH_MAX], path[PATH_MAX];
    if (read_line(found->dir, "gitdir", line) < 0)
        return false;
    char *slash = strrchr(line, '/');
    if (!slash || strcmp(slash, "/.git") != 0)
        return false;
    *slash = '\0';
    return resolve_in_folder(found->dir, *line ? line : "/", path) == 0 && is_top(found, path);
}

static int find_common(weft_repository *found) {
    char line[PATH_MAX];
    int r = read_line(found->dir, "commondir", line);
    if (r == -ENOENT) {
        memcpy(found->common, found->dir, sizeof found->common);
        return 0;
    }
    return r < 0 ? -EXDEV : resolve_in_folder(found->dir, line, found->common);
}

/* .git as a folder: the usual one. */
static int take_folder(weft_repository *found, const char *path) {
    if (!is_git_folder(path))
        return 0;
    if (exists_in_folder(path, "commondir"))
        return -EXDEV;
    if (!realpath(path, found->dir))
        return -errno;
    memcpy(found->common, found->dir, sizeof found->common);
    found->knows_us = true;
    return 1;
}

/* .git as a link, or as a file that says "gitdir: ...". */
static int take_elsewhere(weft_repository *found, const char *path, bool link) {
    static const char word[] = "gitdir: ";
    char line[PATH_MAX];
    int r = link ? 0 : read_line(found->top, ".git", line);
    if (r == 0 && !link && strncmp(line, word, sizeof word - 1) != 0)
        r = -EINVAL;
    if (r == 0)
        r = link ? (realpath(path, found->dir) ? 0 : -errno)
                 : resolve_in_folder(found->top, line + sizeof word - 1, found->dir);
    if (r < 0 || !is_git_folder(found->dir))
        return -EXDEV;
    found->knows_us = points_back(found);
    if (!found->knows_us && exists_in_folder(found->dir, "commondir"))
        return -EXDEV; /* somebody else's worktree */
    r = find_common(found);
    return r < 0 ? r : 1;
}

/* 1 it is here, 0 it is not. */
static int look_for_dot_git(weft_repository *found) {
    char path[PATH_MAX + 8];
    struct stat st;
    snprintf(path, sizeof path, "%s/.git", found->top);
    if (lstat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
    if (S_ISDIR(st.st_mode))
        return take_folder(found, path);
    return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? take_elsewhere(found, path, S_ISLNK(st.st_mode)) : 0;
}

int weft__repository_find(const char *folder, weft_repository *ret) {
    weft_repository found = {0};
    size_t len = strlen(folder);
    if (len >= PATH_MAX - 1 || *folder != '/')
        return *folder != '/' ? -EINVAL : -ENAMETOOLONG;
    memcpy(found.top, folder, len + 1);
    for (;;) {
        int r = look_for_dot_git(&found);
        char *slash = strrchr(found.top, '/');
        if (r < 0)
            return r;
        if (r > 0)
            break;
        if (slash == found.top && !slash[1])
            return -ENOENT;
        slash[slash == found.top] = '\0';
    }
    size_t top = strcmp(found.top, "/") == 0 ? 0 : strlen(found.top);
    if (len > top + 1)
        snprintf(found.prefix, sizeof found.prefix, "%s/", folder + top + 1);
    *ret = found;
    return 0;
}
