/* The files a store stands on, while it runs: whether they are still the ones that were opened.
 *
 * A file that is deleted or replaced stays readable and writable for those who have it open, and everything that is written
 * to it is gone with them. So names are compared with what was opened before anything is acknowledged. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store_kind.h"

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

int weft__file_look(const weft_store_file *file, struct stat *ret) {
    if (stat(file->path, ret) < 0)
        return errno == ENOENT || errno == ENOTDIR ? -ESTALE : -errno;
    bool same = ret->st_dev == file->device && ret->st_ino == file->inode && ret->st_size >= atomic_load(&file->size);
    return same ? 0 : -ESTALE;
}

static bool is_as_we_left_it(const weft_store_file *file, const struct stat *info) {
    return !file->ours_alone ||
           (info->st_mtim.tv_sec == file->changed.tv_sec && info->st_mtim.tv_nsec == file->changed.tv_nsec);
}

int weft__files_look(const weft_store *store) {
    struct stat info;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < store->file_count; i++)
        r = weft__file_look(&store->files[i], &info);
    return r;
}

int weft__files_compare(const weft_store *store) {
    struct stat info;
    int r = 0;
    bool touched = false;
    for (size_t i = 0; r >= 0 && i < store->file_count; i++) {
        r = weft__file_look(&store->files[i], &info);
        touched |= r >= 0 && !is_as_we_left_it(&store->files[i], &info);
    }
    return r < 0 ? r : touched;
}

int weft__files_note(weft_store *store) {
    struct stat info;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < store->file_count; i++) {
        r = weft__file_look(&store->files[i], &info);
        if (r < 0)
            break;
        atomic_store(&store->files[i].size, info.st_size);
        store->files[i].changed = info.st_mtim;
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
