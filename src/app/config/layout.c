/* The two layouts, and finding one in a folder. */
#include "layout.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES(home_)                                                                                                        \
    .home = (home_), .socket = home_ "/daemon.sock", .lock = home_ "/daemon.lock", .log = home_ "/daemon.log",              \
    .log_old = home_ "/daemon.log.1", .endpoint = home_ "/endpoint.json", .token = home_ "/token",                          \
    .store = home_ "/weft.db"

const weft_layout weft__layout_weft = {
    FILES(".weft"),
    .pid = ".weft/daemon.pid",
    .pid_folder = ".weft",
    .config = ".weft/config.json",
};

/* AIWG's own lock, .aiwg/daemon/.lock, is made and respected so that either daemon sees the other. What excludes two of ours
 * is the lock on daemon.lock: AIWG's means something by being there, and one that was left behind is not believed. */
const weft_layout weft__layout_aiwg = {
    .outer = ".aiwg",
    FILES(".aiwg/daemon"),
    .pid = ".aiwg/daemon.pid",
    .pid_folder = ".aiwg",
    .foreign_lock = ".aiwg/daemon/.lock",
    .config = ".aiwg/daemon.json",
    .aiwg = true,
};

const weft_layout *const weft__layouts[] = {&weft__layout_weft, &weft__layout_aiwg, NULL};

static bool is_our_folder(const char *folder, const char *name, bool or_root) {
    char path[PATH_MAX + 64];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && (info.st_uid == geteuid() || (or_root && info.st_uid == 0));
}

bool weft__layout_is_in(const weft_layout *layout, const char *folder, bool or_root) {
    return (!layout->outer || is_our_folder(folder, layout->outer, or_root)) && is_our_folder(folder, layout->home, or_root);
}

bool weft__layout_socket(const weft_layout *layout, const char *folder, char ret[WEFT_SOCKET_PATH]) {
    struct stat info;
    snprintf(ret, WEFT_SOCKET_PATH, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, layout->socket);
    return weft__layout_is_in(layout, folder, true) && lstat(ret, &info) == 0 && S_ISSOCK(info.st_mode) &&
           (info.st_uid == geteuid() || info.st_uid == 0);
}

bool weft__layout_up(char *folder) {
    char *slash = strrchr(folder, '/');
    if (!slash || !folder[1])
        return false;
    slash[slash == folder] = '\0';
    return true;
}
