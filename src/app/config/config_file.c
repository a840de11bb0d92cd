/* The files of a configuration: where they are, and reading one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "doc.h"
#include "private_file.h"
#include "read_all.h"
#include "relaxed.h"
#include "trust.h"

/* People write these by hand; whatever is longer is some other file. */
#define MAX_FILE ((size_t) 1024 * 1024)

/* ---- where ---- */

void weft__config_user_path(char ret[WEFT_PATH_SIZE]) {
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    *ret = '\0';
    if (xdg && *xdg == '/') /* the XDG specification: a relative path is to be ignored */
        snprintf(ret, WEFT_PATH_SIZE, "%s/weft/config.json", xdg);
    else if (home && *home == '/')
        snprintf(ret, WEFT_PATH_SIZE, "%s/.config/weft/config.json", home);
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

void weft__config_project_path(const weft_layout *layout, char ret[WEFT_PATH_SIZE]) {
    char folder[PATH_MAX];
    snprintf(ret, WEFT_PATH_SIZE, "%s", layout->config);
    if (is_folder(layout->home) || !getcwd(folder, sizeof folder))
        return;
    while (weft__layout_up(folder)) {
        char path[PATH_MAX + 64];
        const char *root = strcmp(folder, "/") == 0 ? "" : folder;
        snprintf(path, sizeof path, "%s/%s", root, layout->home);
        if (!is_folder(path))
            continue;
        snprintf(path, sizeof path, "%s/%s", root, layout->config);
        if (strlen(path) < WEFT_PATH_SIZE)
            snprintf(ret, WEFT_PATH_SIZE, "%.*s", WEFT_PATH_SIZE - 1, path);
        return;
    }
}

/* ---- reading ---- */

/* With a group of one's own, files that the group may write are usual, and nobody else's. */
static bool is_own_group(gid_t group) {
    const struct passwd *user = getpwuid(geteuid());
    return user && user->pw_gid == group;
}

/* Who may write the file may run the daemon as they like. */
static int check_open_file(int fd) {
    struct stat info;
    if (fstat(fd, &info) < 0)
        return -errno;
    if (!S_ISREG(info.st_mode))
        return -EISDIR;
    if (info.st_uid != geteuid() && info.st_uid != 0)
        return -EPERM;
    if (info.st_mode & S_IWOTH)
        return -EACCES;
    if ((info.st_mode & S_IWGRP) && !is_own_group(info.st_gid))
        return -EKEYREJECTED;
    return info.st_size > (off_t) MAX_FILE ? -EFBIG : 0;
}

/* A file may grow while it is read; the byte beyond the limit tells. */
static int take_file_text(weft_config_file *file, int fd, const weft_alloc *alloc) {
    file->text = weft__alloc(alloc, MAX_FILE + 2);
    if (!file->text)
        return -ENOMEM;
    int r = weft__read_all(fd, file->text, MAX_FILE + 1, &file->len);
    if (r < 0)
        return r;
    if (file->len > MAX_FILE)
        return -EFBIG;
    char *fitting = weft__resize(alloc, file->text, file->len + 1);
    if (!fitting)
        return -ENOMEM;
    file->text = fitting;
    file->text[file->len] = '\0';
    return 0;
}

static const char *why_not(int r) {
    return r == -EISDIR         ? "this is not a regular file"
           : r == -EPERM        ? "this file belongs to somebody else"
           : r == -EACCES       ? "everybody may write to this file; chmod o-w makes it yours"
           : r == -EKEYREJECTED ? "a group of others may write to this file; chmod g-w makes it yours"
           : r == -EFBIG        ? "this is longer than 1 MiB"
                                : weft__private_why(r);
}

/* Opening must not wait for anything; so not for the writer of a pipe. */
static int open_config_file(const char *path, bool of_project, const char **ret_why) {
    int fd = of_project ? weft__private_open(path, O_RDONLY) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0)
        return fd;
    int r = of_project ? fd : -errno;
    *ret_why = why_not(r);
    return r == -ENOENT || r == -ENOTDIR ? -ENOENT : -EBADMSG;
}

/* -ENOENT; -EBADMSG with a sentence; -ENOMEM. */
static int load_text(weft_config_file *file, bool of_project, const weft_alloc *alloc, const char **ret_why) {
    int fd = open_config_file(file->path, of_project, ret_why);
    if (fd < 0)
        return fd;
    int r = check_open_file(fd);
    if (r >= 0)
        r = take_file_text(file, fd, alloc);
    close(fd);
    *ret_why = why_not(r);
    return r >= 0 || r == -ENOMEM ? r : -EBADMSG;
}

static int parse_config(weft_config_file *file, const weft_remarks *to, const weft_alloc *alloc) {
    weft_fault fault = {0};
    int r = weft__relaxed_parse(file->text, file->len, alloc, &file->doc, &fault);
    if (r == -EBADMSG)
        to->say(to->ctx, &(weft_remark){true, file->path, weft__place_of(file->text, fault.at), fault.why});
    if (r < 0)
        return r;
    const weft_json *root = weft_doc_root(file->doc);
    if (weft_typeof(root) == WEFT_OBJECT)
        return 1;
    weft__config_say(&(weft_checking){to, file, file->path}, root, true, "the file must be one JSON object");
    return -EBADMSG;
}

int weft__config_read(weft_config_file *file, const char *path, bool of_project, const weft_remarks *to,
                      const weft_alloc *alloc) {
    file->path = weft__strndup(alloc, path, strlen(path));
    if (!file->path)
        return -ENOMEM;
    const char *why;
    int r = load_text(file, of_project, alloc, &why);
    if (r == -EBADMSG)
        weft__config_say(&(weft_checking){.to = to, .where = path}, NULL, true, "%s", why);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    return parse_config(file, to, alloc);
}

void weft__config_file_done(weft_config_file *file, const weft_alloc *alloc) {
    weft_doc_free(file->doc);
    weft__free(alloc, file->text);
    weft__free(alloc, file->path);
    *file = (weft_config_file){0};
}

weft_place weft__config_file_place(const weft_config_file *file, const weft_json *value) {
    return weft__place_of(file->text, (size_t) (value->text - file->doc->text));
}

/* ---- what a daemon has read ---- */

/* A file that cannot be read is not told from one that is not there: the daemon could not read it either. */
static bool is_stale(const char *path, const char *digest) {
    weft_config_file file = {.path = (char *) (uintptr_t) path};
    char now[WEFT_TRUST_DIGEST] = "";
    const char *why;
    if (load_text(&file, *path != '/', NULL, &why) >= 0)
        weft__trust_digest(file.text, file.len, now);
    weft__free(NULL, file.text);
    return strcmp(now, digest) != 0;
}

const char *weft__config_stale_file(const weft_json *about) {
    weft_json files = weft_get(about, "files");
    for (weft_iter it = weft_iterate(&files); weft_next(&it);) {
        const char *path = weft_get_str(&it.value, "file", "");
        if (*path && is_stale(path, weft_get_str(&it.value, "digest", "")))
            return path;
    }
    return NULL;
}
