/* The files a store stands on, while it runs: whether they are still the ones that were opened.
 *
 * A file that is deleted or replaced stays readable and writable for those who have it open, and everything that is written
 * to it is gone with them. So names are compared with what was opened before anything is acknowledged. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "store_kind.h"

/* Times of change are no finer than a tick of the system, which is up to so long: what somebody else does to a file so soon
 * after us has the same one. */
#define TICK_NS ((int64_t) 10 * 1000 * 1000)

int weft__files_watch(weft_store *store, const char *path, const char *suffix, bool ours_alone) {
    weft_store_file *file = &store->files[store->file_count];
    struct stat info;
    size_t len = strlen(path), more = strlen(suffix) + 1;
    char *name = weft__zalloc(store->alloc, len + more);
    if (!name)
        return -ENOMEM;
    memcpy(name, path, len);
    memcpy(name + len, suffix, more);
    if (stat(name, &info) < 0) {
        int r = -errno;
        weft__free(store->alloc, name);
        return r;
    }
    *file = (weft_store_file){.path = name, .device = info.st_dev, .inode = info.st_ino, .ours_alone = ours_alone};
    atomic_init(&file->size, info.st_size);
    file->changed = info.st_mtim;
    store->file_count++;
    return 0;
}

void weft__files_done(weft_store *store) {
    for (size_t i = 0; i < store->file_count; i++)
        weft__free(store->alloc, store->files[i].path);
    store->file_count = 0;
}

/* With or without the time of change. Who asks for that of a file that is written to again and again pays for it: since
 * Linux 6.13 the next write gets a time of its own, which is a change of the file's metadata, and a sync that followed took
 * 115 us instead of 82. */
static int look_at_file(const weft_store_file *file, bool time, struct stat *ret) {
    struct statx info;
    if (statx(AT_FDCWD, file->path, 0, STATX_INO | STATX_SIZE | (time ? STATX_MTIME : 0), &info) < 0)
        return errno == ENOENT || errno == ENOTDIR ? -ESTALE : -errno;
    ret->st_dev = makedev(info.stx_dev_major, info.stx_dev_minor);
    ret->st_ino = info.stx_ino;
    ret->st_size = (off_t) info.stx_size;
    ret->st_mtim = (struct timespec){.tv_sec = info.stx_mtime.tv_sec, .tv_nsec = info.stx_mtime.tv_nsec};
    bool same = ret->st_dev == file->device && ret->st_ino == file->inode && ret->st_size >= atomic_load(&file->size);
    return same ? 0 : -ESTALE;
}

int weft__file_look(const weft_store_file *file, struct stat *ret) {
    return look_at_file(file, false, ret);
}

/* Some file systems have no time within a second. */
static bool is_between(struct timespec time, struct timespec from, struct timespec until) {
    bool after =
        time.tv_sec > from.tv_sec || (time.tv_sec == from.tv_sec && (!time.tv_nsec || time.tv_nsec >= from.tv_nsec));
    return after && (time.tv_sec < until.tv_sec || (time.tv_sec == until.tv_sec && time.tv_nsec <= until.tv_nsec));
}

static bool is_as_we_left_it(const weft_store_file *file, const struct stat *info) {
    if (file->written)
        return is_between(info->st_mtim, file->from, file->until);
    return info->st_mtim.tv_sec == file->changed.tv_sec && info->st_mtim.tv_nsec == file->changed.tv_nsec;
}

int weft__files_look(const weft_store *store) {
    struct stat info;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < store->file_count; i++)
        r = look_at_file(&store->files[i], false, &info);
    return r;
}

int weft__files_compare(const weft_store *store) {
    struct stat info;
    int r = 0;
    bool touched = false;
    int64_t now = weft__clock_ns();
    for (size_t i = 0; r >= 0 && i < store->file_count; i++) {
        const weft_store_file *file = &store->files[i];
        bool time = file->ours_alone && (!file->written || now - file->wrote_ns >= TICK_NS);
        r = look_at_file(file, time, &info);
        touched |= r >= 0 && time && !is_as_we_left_it(file, &info);
    }
    return r < 0 ? r : touched;
}

int weft__files_note(weft_store *store, const struct timespec *began) {
    struct stat info;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < store->file_count; i++) {
        weft_store_file *file = &store->files[i];
        bool written = file->often && began;
        r = look_at_file(file, file->ours_alone && !written, &info);
        if (r < 0)
            break;
        atomic_store(&file->size, info.st_size);
        file->changed = info.st_mtim;
        file->written = written;
        if (!written)
            continue;
        file->from = *began;
        clock_gettime(CLOCK_REALTIME, &file->until);
        file->wrote_ns = weft__clock_ns();
    }
    return r;
}

bool weft__store_lasts(const weft_store_kind *kind) {
    return kind->files;
}

bool weft__store_has_files(const weft_store_kind *kind) {
    return kind->files && *kind->files;
}

bool weft__store_was_here(const weft_store_kind *kind, const char *path) {
    for (const char *const *suffix = kind->files; suffix && *suffix; suffix++) {
        char name[PATH_MAX];
        if (snprintf(name, sizeof name, "%s%s", path, *suffix) < (int) sizeof name && access(name, F_OK) == 0)
            return true;
    }
    return false;
}
