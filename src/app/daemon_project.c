/* Finding the project's folder, as git finds its own. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"

/* It holds a few URLs. */
#define MAX_ENDPOINT (64 * 1024)

/* Somebody else's folder in one that everybody may write to is not the one that is meant. */
static bool is_ours(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

int weft__daemon_project(void) {
    char folder[PATH_MAX], home[PATH_MAX + sizeof WEFT_HOME + 1];
    if (!getcwd(folder, sizeof folder))
        return -errno;
    for (;;) {
        snprintf(home, sizeof home, "%s/" WEFT_HOME, strcmp(folder, "/") == 0 ? "" : folder);
        if (is_ours(home))
            return chdir(folder) < 0 ? -errno : 1;
        char *slash = strrchr(folder, '/');
        if (!slash || !folder[1])
            return 0;
        slash[slash == folder] = '\0';
    }
}

weft_doc *weft__daemon_endpoint(void) {
    static char text[MAX_ENDPOINT];
    weft_doc *doc = NULL;
    int fd = open(WEFT_HOME_ENDPOINT, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    return n > 0 && weft_doc_parse(text, (size_t) n, NULL, &doc) == 0 ? doc : NULL;
}
