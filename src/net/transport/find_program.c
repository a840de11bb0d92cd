/* Where a program is, by its name and a PATH. The guard uses this too, so it stands alone. */
#include "find_program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_executable(const char *file) {
    struct stat st;
    if (stat(file, &st) < 0)
        return -ENOENT;
    if (!S_ISREG(st.st_mode) || access(file, X_OK) < 0)
        return -EACCES;
    return 0;
}

int weft__find_program(const char *name, const char *path, char *ret, size_t size) {
    if (strchr(name, '/')) {
        int n = snprintf(ret, size, "%s", name);
        return n < 0 || (size_t) n >= size ? -ENAMETOOLONG : check_executable(name);
    }
    int found = -ENOENT;
    for (const char *folder = path; folder && *name; folder = *folder ? folder + 1 : NULL) {
        size_t len = strcspn(folder, ":");
        /* An empty or relative folder in PATH means the current directory, where anybody may have put a program. */
        bool absolute = *folder == '/';
        int n = absolute ? snprintf(ret, size, "%.*s/%s", (int) len, folder, name) : -1;
        folder += len;
        if (n < 0 || (size_t) n >= size)
            continue;
        int r = check_executable(ret);
        if (r == 0)
            return 0;
        if (r == -EACCES)
            found = r;
    }
    return found;
}
