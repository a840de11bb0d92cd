/* A folder with files for tests of what lies beneath it, and something outside that must not be reached. */
#ifndef FILE_WORLD_H
#define FILE_WORLD_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "files.h"
#include "net_world.h"

typedef struct place {
    char folder[64]; /* holds "root" and what lies outside of it */
    int root;
} place;

static inline void full_path(const place *p, const char *path, char ret[PATH_MAX]) {
    snprintf(ret, PATH_MAX, "%s/root/%s", p->folder, path);
}

static inline void put(const place *p, const char *path, const char *text) {
    char full[PATH_MAX];
    full_path(p, path, full);
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (CHECK(fd >= 0)) {
        CHECK_INT(write(fd, text, strlen(text)), strlen(text));
        close(fd);
    }
}

static inline void dir(const place *p, const char *path) {
    char full[PATH_MAX];
    full_path(p, path, full);
    CHECK_INT(mkdir(full, 0755), 0);
}

static inline void link_to(const place *p, const char *target, const char *path) {
    char full[PATH_MAX];
    full_path(p, path, full);
    CHECK_INT(symlink(target, full), 0);
}

static inline void begin(place *p) {
    char full[PATH_MAX];
    snprintf(p->folder, sizeof p->folder, "/tmp/weft-files-XXXXXX");
    CHECK(mkdtemp(p->folder) != NULL);
    dir(p, "");
    dir(p, "../outside");
    put(p, "../outside/secret", "outside");
    full_path(p, "", full);
    p->root = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(p->root >= 0);
}

static inline void end(place *p) {
    close(p->root);
    test_remove(p->folder);
}

static inline weft_bytes bytes(const char *text) {
    return (weft_bytes){text, strlen(text)};
}

/* ret has room for what the tests write; "" when it failed. */
static inline int read_path(const place *p, const char *path, unsigned how, char ret[256]) {
    weft_file_content content;
    ret[0] = '\0';
    int r = weft__file_read(p->root, &(weft_file_read){.path = bytes(path), .max = 255}, how, NULL, &content);
    if (r < 0)
        return r;
    memcpy(ret, weft__buf_head(&content.content), weft__buf_len(&content.content));
    ret[weft__buf_len(&content.content)] = '\0';
    weft__file_content_done(&content, NULL);
    return 0;
}

static inline int write_path(const place *p, const char *path, const char *text, unsigned how) {
    bool created;
    return weft__file_write(p->root, &(weft_file_write){.path = bytes(path), .content = bytes(text), .umask = 022}, how,
                            &created);
}

static inline bool has(const place *p, const char *path, const char *text) {
    char full[PATH_MAX];
    size_t len = 0;
    full_path(p, path, full);
    char *is = test_file(full, &len);
    bool same = is && len == strlen(text) && memcmp(is, text, len) == 0;
    free(is);
    return same;
}

static inline int count_of(const place *p, const char *path) {
    char full[PATH_MAX];
    int count = 0;
    full_path(p, path, full);
    DIR *d = opendir(full);
    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count - 2;
}

static inline void make_readable(place *p) {
    char full[PATH_MAX], other[PATH_MAX];
    begin(p);
    put(p, "a", "A");
    put(p, "-rf", "R");
    put(p, "\xff\xfe", "X");
    put(p, ".gitignore", "I");
    dir(p, "d");
    dir(p, "d/e");
    put(p, "d/b", "B");
    dir(p, ".git");
    put(p, ".git/config", "hidden");
    dir(p, "d/.weft");
    put(p, "d/.weft/token", "hidden");
    put(p, "daemon", "D");
    dir(p, ".aiwg");
    dir(p, ".aiwg/notes");
    put(p, ".aiwg/notes/n", "N");
    dir(p, ".aiwg/daemon");
    put(p, ".aiwg/daemon/token", "hidden");
    link_to(p, "../daemon/token", ".aiwg/notes/to-token");
    link_to(p, ".aiwg", "to-aiwg");
    link_to(p, "a", "to-a");
    link_to(p, "../a", "d/to-a");
    link_to(p, "d", "to-d");
    link_to(p, "d/../to-d/", "to-to-d");
    link_to(p, "nothing", "to-nothing");
    link_to(p, "../outside", "to-outside");
    link_to(p, "to-outside/secret", "to-secret");
    link_to(p, "../..", "d/up");
    link_to(p, "/etc/passwd", "to-absolute");
    link_to(p, "to-self", "to-self");
    link_to(p, "pipe", "to-pipe");
    link_to(p, ".git", "to-git");
    link_to(p, "d/.weft/token", "to-token");
    full_path(p, "pipe", full);
    CHECK_INT(mkfifo(full, 0600), 0);
    full_path(p, "socket", full);
    CHECK_INT(mknod(full, S_IFSOCK | 0600, 0), 0);
    full_path(p, "a", full);
    full_path(p, "hard", other);
    CHECK_INT(link(full, other), 0);
}

#endif
