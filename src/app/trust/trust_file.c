/* The record of trust: one JSON file, written beside and moved into place, under a lock of its own.
 *
 * The folder and the file must be this user's alone. A file that cannot be read, or is no record, is an error that is told:
 * going on with an empty one would forget what the user decided. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "buf.h"
#include "clock.h"
#include "private_file.h"
#include "trust.h"
#include "write.h"

/* Projects of one user; when there are more, the ones that were not used for the longest time are forgotten. */
#define MAX_ENTRIES 4096
/* A record of so many projects with long paths. */
#define MAX_RECORD ((off_t) 8 << 20)
#define NEW_SUFFIX ".new"
#define LOCK_SUFFIX ".lock"

/* ---- where ---- */

/* A service may have neither variable; the system still knows where its user lives. */
static const char *home_folder(void) {
    const char *home = getenv("HOME");
    if (home && *home == '/')
        return home;
    const struct passwd *user = getpwuid(geteuid());
    return user && user->pw_dir && *user->pw_dir == '/' ? user->pw_dir : NULL;
}

int weft__trust_path(char ret[PATH_MAX]) {
    const char *state = getenv("XDG_STATE_HOME"), *home = home_folder();
    int n = -1;
    if (state && *state == '/') /* the XDG specification: a relative path is to be ignored */
        n = snprintf(ret, PATH_MAX, "%s/weft/trust.json", state);
    else if (home)
        n = snprintf(ret, PATH_MAX, "%s/.local/state/weft/trust.json", home);
    return n < 0 ? -ENOENT : n >= PATH_MAX - (int) sizeof LOCK_SUFFIX ? -ENAMETOOLONG : 0;
}

static int explain_record(int r, const char *path, const char *what, char ret_why[WEFT_TRUST_WHY]) {
    if (r == -ENOENT && !*path)
        snprintf(ret_why, WEFT_TRUST_WHY,
                 "there is no place for the record of what you trust: neither XDG_STATE_HOME nor HOME is set");
    else
        snprintf(ret_why, WEFT_TRUST_WHY, "%.300s, where it is recorded what you trust: %s", path,
                 what ? what : weft_strerror(r));
    return r;
}

/* "/a/b" of "/a/b/c". */
static void parent_of(const char *path, char ret[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    snprintf(ret, PATH_MAX, "%.*s", slash > path ? (int) (slash - path) : 1, path);
}

/* Folders above it are made too, as a new user has none of them. */
static int make_folders(const char *path) {
    char above[PATH_MAX];
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT || !path[1])
        return -errno;
    parent_of(path, above);
    int r = make_folders(above);
    return r < 0 ? r : mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

/* The folder, opened without following a link. Others may not even look into it. */
static int open_record_folder(const char *path, bool make, const char **ret_what) {
    char folder[PATH_MAX];
    struct stat info;
    parent_of(path, folder);
    int r = make ? make_folders(folder) : 0;
    if (r < 0)
        return r;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &info) < 0)
        r = -errno;
    else if (info.st_uid != geteuid()) {
        *ret_what = "its folder belongs to another user";
        r = -EPERM;
    } else if ((info.st_mode & 077) && fchmod(fd, 0700) < 0)
        r = -errno;
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

/* ---- reading ---- */

static int check_record(int fd, const char **ret_what) {
    struct stat info;
    if (fstat(fd, &info) < 0)
        return -errno;
    *ret_what = !S_ISREG(info.st_mode)                      ? "this is not a regular file"
                : info.st_uid != geteuid()                  ? "it belongs to another user"
                : info.st_nlink > 1                         ? "the file has a second name (a hard link)"
                : (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "others may write to it"
                                                            : NULL;
    if (*ret_what)
        return -EPERM;
    return info.st_size > MAX_RECORD ? -EFBIG : 0;
}

static int read_record_text(int fd, char **ret, size_t *ret_len) {
    size_t len = 0;
    ssize_t n = 1;
    char *text = weft__alloc(NULL, (size_t) MAX_RECORD + 1);
    if (!text)
        return -ENOMEM;
    while (n != 0 && len <= (size_t) MAX_RECORD) {
        n = read(fd, text + len, (size_t) MAX_RECORD + 1 - len);
        if (n < 0 && errno != EINTR) {
            int r = -errno;
            weft__free(NULL, text);
            return r;
        }
        len += n > 0 ? (size_t) n : 0;
    }
    *ret = text;
    *ret_len = len;
    return 0;
}

static int parse_record(int fd, weft_doc **ret, const char **ret_what) {
    char *text = NULL;
    size_t len = 0;
    int r = check_record(fd, ret_what);
    if (r == 0)
        r = read_record_text(fd, &text, &len);
    if (r < 0)
        return r;
    r = weft_doc_parse(text, len, NULL, ret);
    weft__free(NULL, text);
    if (r == -EBADMSG || (r >= 0 && weft_get_int(weft_doc_root(*ret), "version", 0) != 1)) {
        if (r >= 0)
            *ret = weft_doc_free(*ret);
        *ret_what = "this is no record of this version; if you move it away, nothing is trusted any more";
        return -EBADMSG;
    }
    return r;
}

/* 1 there is one, 0 there is none. */
static int load_record(weft_doc **ret, char ret_why[WEFT_TRUST_WHY]) {
    char path[PATH_MAX] = "";
    const char *what = NULL;
    int r = weft__trust_path(path);
    if (r < 0)
        return explain_record(r, path, NULL, ret_why);
    int folder = open_record_folder(path, false, &what);
    int fd = folder < 0 ? folder
                        : openat(folder, strrchr(path, '/') + 1, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    r = folder >= 0 && fd < 0 ? -errno : fd;
    if (folder >= 0)
        close(folder);
    if (r == -ENOENT)
        return 0;
    if (r >= 0) {
        r = parse_record(fd, ret, &what);
        close(fd);
    }
    return r < 0 ? explain_record(r, path, what, ret_why) : 1;
}

static void take_trust_text(const weft_json *from, const char *name, char *ret, size_t size) {
    snprintf(ret, size, "%s", weft_get_str(from, name, ""));
}

static void take_entry(const weft_json *from, weft_trust_entry *ret) {
    *ret = (weft_trust_entry){.aiwg = weft_get_bool(from, "aiwg", false),
                              .opening = weft_get_bool(from, "opening", false),
                              .confirmed = weft_get_bool(from, "confirmed", false)};
    take_trust_text(from, "path", ret->path, sizeof ret->path);
    take_trust_text(from, "folder", ret->folder, sizeof ret->folder);
    take_trust_text(from, "journal", ret->journal, sizeof ret->journal);
    take_trust_text(from, "log", ret->log, sizeof ret->log);
    take_trust_text(from, "epoch", ret->epoch, sizeof ret->epoch);
    take_trust_text(from, "token", ret->token, sizeof ret->token);
    take_trust_text(from, "config", ret->config, sizeof ret->config);
    take_trust_text(from, "at", ret->at, sizeof ret->at);
}

int weft__trust_each(int (*each)(void *ctx, const weft_trust_entry *entry), void *ctx, char ret_why[WEFT_TRUST_WHY]) {
    WEFT_AUTO(weft_doc) doc = NULL;
    weft_trust_entry entry;
    int r = load_record(&doc, ret_why);
    if (r <= 0)
        return r;
    weft_json projects = weft_get(weft_doc_root(doc), "projects");
    r = 0;
    for (weft_iter it = weft_iterate(&projects); r >= 0 && weft_next(&it);) {
        take_entry(&it.value, &entry);
        r = each(ctx, &entry);
    }
    return r < 0 ? r : 0;
}

typedef struct finding {
    const char *path, *folder_id;
    bool aiwg, found;
    weft_trust_entry *ret;
    char *moved_from;
} finding;

static int compare_entry(void *ctx, const weft_trust_entry *entry) {
    finding *self = ctx;
    if (entry->aiwg != self->aiwg)
        return 0;
    if (strcmp(entry->path, self->path) == 0) {
        *self->ret = *entry;
        self->found = true;
    } else if (self->moved_from && *self->folder_id && strcmp(entry->folder, self->folder_id) == 0)
        snprintf(self->moved_from, PATH_MAX, "%s", entry->path);
    return 0;
}

int weft__trust_find(const char *path, bool aiwg, const char *folder_id, weft_trust_entry *ret, char moved_from[PATH_MAX],
                     char ret_why[WEFT_TRUST_WHY]) {
    finding self = {.path = path, .folder_id = folder_id, .aiwg = aiwg, .ret = ret, .moved_from = moved_from};
    if (moved_from)
        *moved_from = '\0';
    int r = weft__trust_each(compare_entry, &self, ret_why);
    return r < 0 ? r : self.found;
}

/* ---- writing ---- */

int weft__trust_lock(char ret_why[WEFT_TRUST_WHY]) {
    char path[PATH_MAX] = "";
    const char *what = NULL;
    int r = weft__trust_path(path);
    int folder = r < 0 ? r : open_record_folder(path, true, &what);
    if (folder < 0)
        return explain_record(folder, path, what, ret_why);
    int fd = openat(folder, "trust.json" LOCK_SUFFIX, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    r = fd < 0 ? -errno : 0;
    close(folder);
    while (r == 0 && flock(fd, LOCK_EX) < 0)
        r = errno == EINTR ? 0 : -errno;
    if (r == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return explain_record(r, path, NULL, ret_why);
}

void weft__trust_unlock(int lock) {
    close(lock);
}

static int write_entry(weft_buf *out, const weft_trust_entry *entry) {
    char now[WEFT_STAMP];
    weft_val value = WEFT_OBJ({"path", weft_str(entry->path)}, {"aiwg", weft_bool(entry->aiwg)},
                              {"folder", weft__text_or_none(entry->folder)}, {"journal", weft__text_or_none(entry->journal)},
                              {"log", weft__text_or_none(entry->log)}, {"epoch", weft__text_or_none(entry->epoch)},
                              {"opening", entry->opening ? weft_bool(true) : weft_none()},
                              {"token", weft__text_or_none(entry->token)}, {"config", weft__text_or_none(entry->config)},
                              {"confirmed", weft_bool(entry->confirmed)}, {"at", weft_str(weft__clock_text(now))});
    return weft__write_val(out, NULL, &value);
}

static bool is_entry(const weft_json *value, const weft_trust_entry *entry) {
    return weft_get_bool(value, "aiwg", false) == entry->aiwg && strcmp(weft_get_str(value, "path", ""), entry->path) == 0;
}

/* The other entries as they are, in their order, and the new one last. *ret_found: there was one for this project. */
static int write_record(weft_buf *out, const weft_json *projects, const weft_trust_entry *entry, bool remove,
                        bool *ret_found) {
    static const char begin[] = "{\"version\":1,\"projects\":[\n", end[] = "\n]}\n";
    size_t count = weft_count(projects), skip = count >= MAX_ENTRIES ? count - MAX_ENTRIES + 1 : 0, written = 0;
    int r = weft__buf_put(out, NULL, begin, strlen(begin));
    for (weft_iter it = weft_iterate(projects); r >= 0 && weft_next(&it);) {
        bool same = is_entry(&it.value, entry);
        *ret_found |= same;
        if (same || (skip && skip--))
            continue;
        r = written++ ? weft__buf_put(out, NULL, ",\n", 2) : 0;
        if (r >= 0)
            r = weft__buf_put(out, NULL, it.value.text, it.value.len);
    }
    if (r >= 0 && !remove && written)
        r = weft__buf_put(out, NULL, ",\n", 2);
    if (r >= 0 && !remove)
        r = write_entry(out, entry);
    return r < 0 ? r : weft__buf_put(out, NULL, end, strlen(end));
}

/* In place of the old one, durable before anything is made that relies on it. */
static int replace_record(const char *path, const weft_buf *text) {
    const char *what;
    int folder = open_record_folder(path, true, &what);
    if (folder < 0)
        return folder;
    unlinkat(folder, "trust.json" NEW_SUFFIX, 0); /* of one that was killed between the two steps */
    int fd = openat(folder, "trust.json" NEW_SUFFIX, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : weft__private_write_synced(fd, weft__buf_head(text), weft__buf_len(text));
    if (fd >= 0)
        close(fd);
    if (r == 0 && renameat(folder, "trust.json" NEW_SUFFIX, folder, "trust.json") < 0)
        r = -errno;
    if (r == 0 && fsync(folder) < 0)
        r = -errno;
    close(folder);
    return r;
}

int weft__trust_put(const weft_trust_entry *entry, bool remove, char ret_why[WEFT_TRUST_WHY]) {
    WEFT_AUTO(weft_doc) doc = NULL;
    char path[PATH_MAX] = "";
    weft_buf text = {0};
    bool found = false;
    int r = load_record(&doc, ret_why);
    if (r < 0)
        return r;
    weft_json projects = doc ? weft_get(weft_doc_root(doc), "projects") : (weft_json){0};
    r = weft__trust_path(path);
    if (r >= 0)
        r = write_record(&text, &projects, entry, remove, &found);
    if (r >= 0 && (!remove || found))
        r = replace_record(path, &text);
    weft__buf_done(&text, NULL);
    return r < 0 ? explain_record(r, path, NULL, ret_why) : remove && found;
}
