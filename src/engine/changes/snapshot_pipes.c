/* Does git wait for a pipe? In each folder of the project it reads .gitignore and .gitattributes, whatever they are, and one
 * that is a named pipe, to which nobody writes, has it wait for ever. Looked for only when git has run for a while: it is a
 * walk through all folders. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshots_private.h"

#define FOLDERS_MAX 200000
#define DEPTH_MAX 256

typedef struct pipe_search {
    char *path; /* PATH_MAX bytes; ends with "/", or is "" */
    size_t folders;
} pipe_search;

/* A pipe or a device, and not only a link to one, which git does not follow here. */
static bool is_endless(int folder, const char *name) {
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode));
}

static bool has_pipe(pipe_search *search, int folder, size_t len) {
    static const char *const names[] = {".gitignore", ".gitattributes"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_endless(folder, names[i])) {
            snprintf(search->path + len, PATH_MAX - len, "%s", names[i]);
            return true;
        }
    return false;
}

static bool is_other(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0 || strcmp(name, ".weft") == 0;
}

/* The folder is closed. */
static bool search_folder(pipe_search *search, int folder, size_t len, int depth) {
    bool found = has_pipe(search, folder, len);
    DIR *dir = found || ++search->folders > FOLDERS_MAX ? NULL : fdopendir(folder);
    if (!dir)
        close(folder);
    for (struct dirent *entry; !found && dir && (entry = readdir(dir));) {
        size_t more = strlen(entry->d_name) + 1;
        if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) || is_other(entry->d_name) || depth == DEPTH_MAX ||
            len + more + sizeof ".gitattributes" > PATH_MAX)
            continue;
        int inner = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0)
            continue;
        snprintf(search->path + len, PATH_MAX - len, "%s/", entry->d_name);
        found = search_folder(search, inner, len + more, depth + 1);
    }
    if (dir)
        closedir(dir);
    return found;
}

bool weft__snap_find_pipe(int root, char ret[PATH_MAX]) {
    pipe_search search = {.path = ret};
    int folder = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret = '\0';
    return folder >= 0 && search_folder(&search, folder, 0, 0);
}
