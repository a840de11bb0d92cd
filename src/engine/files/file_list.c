/* What is in one folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "files.h"

static weft_file_type type_of(mode_t mode) {
    return S_ISREG(mode)   ? WEFT_FILE_REGULAR
           : S_ISDIR(mode) ? WEFT_FILE_FOLDER
           : S_ISLNK(mode) ? WEFT_FILE_LINK
                           : WEFT_FILE_OTHER;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const weft_file_entry *) a)->name, ((const weft_file_entry *) b)->name);
}

static int grow_list(weft_file_list *list, size_t *cap, const weft_alloc *alloc) {
    if (list->count < *cap)
        return 0;
    size_t more = *cap ? *cap * 2 : 64;
    weft_file_entry *entries = weft__resize(alloc, list->entries, more * sizeof *entries);
    if (!entries)
        return -ENOMEM;
    list->entries = entries;
    *cap = more;
    return 0;
}

/* One that has gone meanwhile is left out. */
static int add_entry(weft_file_list *list, int folder, const char *name, size_t *cap, const weft_alloc *alloc) {
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    int r = grow_list(list, cap, alloc);
    char *copy = r < 0 ? NULL : weft__strndup(alloc, name, strlen(name));
    if (!copy)
        return -ENOMEM;
    list->entries[list->count++] = (weft_file_entry){
        .name = copy,
        .type = type_of(st.st_mode),
        .size = S_ISREG(st.st_mode) ? (uint64_t) st.st_size : 0,
        .mtime_ms = (int64_t) st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
    };
    return 0;
}

static bool is_shown(const char *name) {
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !weft__beneath_closed((weft_bytes){name, strlen(name)});
}

static int read_folder(DIR *dir, size_t max, const weft_alloc *alloc, weft_file_list *list) {
    size_t cap = 0;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry)
            return -errno;
        if (!is_shown(entry->d_name))
            continue;
        if (list->count == max) {
            list->truncated = true;
            return 0;
        }
        int r = add_entry(list, dirfd(dir), entry->d_name, &cap, alloc);
        if (r < 0)
            return r;
    }
}

int weft__file_list(int root, weft_bytes path, size_t max, unsigned how, const weft_alloc *alloc, weft_file_list *ret) {
    char checked[PATH_MAX];
    weft_file_list list = {0};
    int r = weft__beneath_check(path, checked);
    int fd = r < 0 ? r : weft__beneath_open(root, checked, O_RDONLY | O_DIRECTORY, how);
    if (fd < 0)
        return fd;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        r = -errno;
        close(fd);
        return r;
    }
    r = read_folder(dir, max && max < WEFT_FILE_ENTRIES ? max : WEFT_FILE_ENTRIES, alloc, &list);
    closedir(dir);
    if (r < 0) {
        weft__file_list_done(&list, alloc);
        return r;
    }
    if (list.count)
        qsort(list.entries, list.count, sizeof *list.entries, by_name);
    *ret = list;
    return 0;
}

void weft__file_list_done(weft_file_list *list, const weft_alloc *alloc) {
    for (size_t i = 0; i < list->count; i++)
        weft__free(alloc, list->entries[i].name);
    weft__free(alloc, list->entries);
    *list = (weft_file_list){0};
}
