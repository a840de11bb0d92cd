/* Whose files these are. SQLite follows links and truncates its shared memory file, and a clone or an archive can bring
 * links, hard links and pipes under all of these names; so they are looked at before anything is opened. The folder is the
 * caller's: who can write there can do worse than change a file between looking and opening. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sqlite_store.h"

/* 0, or what is wrong with it. */
static int judge_file(const struct stat *info) {
    if (S_ISLNK(info->st_mode))
        return -ELOOP;
    if (!S_ISREG(info->st_mode))
        return -EISDIR;
    if (info->st_uid != geteuid())
        return -EPERM;
    return info->st_nlink > 1 ? -EMLINK : 0;
}

static const char *verdict_text(int r) {
    return r == -ELOOP    ? "is a link, and links are not followed here"
           : r == -EISDIR ? "is not a regular file"
           : r == -EPERM  ? "belongs to another user"
                          : "has a second name (a hard link), so it may be somebody else's";
}

int weft__sq_check_files(const char *path, char *ret_why) {
    static const char *const parts[] = {"", "-wal", "-shm", "-journal", "-mark"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char name[4096];
        struct stat info;
        if (snprintf(name, sizeof name, "%s%s", path, parts[i]) >= (int) sizeof name)
            return -ENAMETOOLONG;
        if (lstat(name, &info) < 0) {
            if (errno != ENOENT)
                return -errno;
            continue;
        }
        int r = judge_file(&info);
        if (r < 0) {
            snprintf(ret_why, WEFT_STORE_WHY, "%.300s %s", name, verdict_text(r));
            return r;
        }
    }
    return 0;
}
