/* Finding the project's folder, as git finds its own: the nearest one counts, whether its hub runs or not. Every verb finds
 * its hub here, so that "weft status" and "weft task" always mean the same one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "private_file.h"

/* It holds a few URLs. */
#define MAX_ENDPOINT (64 * 1024)
/* Whoever listens takes a connection at once. */
#define ANSWER_MS 5000

int weft__daemon_project(const weft_layout *layout) {
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder))
        return -errno;
    do {
        if (weft__layout_is_in(layout, folder, false))
            return chdir(folder) < 0 ? -errno : 1;
    } while (weft__layout_up(folder));
    return 0;
}

static bool has_daemon_here(const weft_layout *layout) {
    pid_t pid;
    return weft__layout_is_in(layout, ".", false) && weft__daemon_holder(layout, &pid) == 1;
}

static bool has_lock(const weft_layout *layout, const char *folder) {
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, layout->lock);
    return access(path, F_OK) == 0;
}

/* A hub's folder of ours, whether the hub runs or not; or root's while its socket is there. AIWG itself makes a folder like
 * ours: only the lock, which is never AIWG's, or a socket tells that there is a hub. */
static bool is_hub(const weft_layout *layout, const char *folder) {
    char socket[WEFT_SOCKET_PATH];
    if (weft__layout_socket(layout, folder, socket))
        return true;
    return weft__layout_is_in(layout, folder, false) && (!layout->aiwg || has_lock(layout, folder));
}

/* AIWG's own daemon holds no lock of ours. */
static bool is_served(const weft_layout *layout) {
    char socket[WEFT_SOCKET_PATH];
    return has_daemon_here(layout) || (layout->aiwg && !has_lock(layout, ".") && weft__layout_socket(layout, ".", socket));
}

int weft__daemon_find(weft_app *app) {
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder))
        return -errno;
    do {
        bool own = is_hub(&weft__layout_weft, folder), other = is_hub(&weft__layout_aiwg, folder);
        if (!own && !other)
            continue;
        if (chdir(folder) < 0)
            return -errno;
        if (!own || (other && !has_daemon_here(&weft__layout_weft) && is_served(&weft__layout_aiwg)))
            app->layout = &weft__layout_aiwg;
        return 1;
    } while (weft__layout_up(folder));
    return 0;
}

int weft__daemon_look(weft_app *app, char ret_folder[WEFT_FOLDER_PATH]) {
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = here < 0 ? -errno : weft__daemon_find(app);
    if (r == 1 && !getcwd(ret_folder, WEFT_FOLDER_PATH))
        r = -errno;
    if (here >= 0 && fchdir(here) < 0)
        r = -errno;
    if (here >= 0)
        close(here);
    return r;
}

bool weft__daemon_answers(const weft_layout *layout) {
    char socket[WEFT_SOCKET_PATH], url[128];
    weft_peer *peer = NULL;
    snprintf(url, sizeof url, "unix:%s", layout->socket);
    bool there = weft__layout_socket(layout, ".", socket) &&
                 weft_connect_with(url, &(weft_connect_opts){.timeout_ms = ANSWER_MS}, &peer, NULL) >= 0;
    weft_peer_free(peer);
    return there;
}

int weft__daemon_choose(weft_app *app, bool aiwg) {
    if (!aiwg)
        return weft__daemon_find(app);
    app->layout = &weft__layout_aiwg;
    return weft__daemon_project(app->layout);
}

weft_doc *weft__daemon_endpoint(const weft_layout *layout) {
    static char text[MAX_ENDPOINT];
    weft_doc *doc = NULL;
    int n = weft__private_read(layout->endpoint, text, sizeof text);
    return n > 0 && weft_doc_parse(text, (size_t) n, NULL, &doc) == 0 ? doc : NULL;
}
