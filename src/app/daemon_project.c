/* Finding the project's folder, as git finds its own. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "private_file.h"

/* It holds a few URLs. */
#define MAX_ENDPOINT (64 * 1024)

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

static bool has_daemon(const weft_layout *layout) {
    pid_t pid;
    return weft__layout_is_in(layout, ".", false) && weft__daemon_holder(layout, &pid) == 1;
}

/* AIWG itself makes a folder like that; the lock in it is only ever ours. */
static bool was_daemon(const weft_layout *layout, const char *folder) {
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, layout->lock);
    return weft__layout_is_in(layout, folder, false) && access(path, F_OK) == 0;
}

int weft__daemon_find(weft_app *app) {
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder))
        return -errno;
    do {
        bool own = weft__layout_is_in(&weft__layout_weft, folder, false), other = was_daemon(&weft__layout_aiwg, folder);
        if (!own && !other)
            continue;
        if (chdir(folder) < 0)
            return -errno;
        if (!own || (other && !has_daemon(&weft__layout_weft) && has_daemon(&weft__layout_aiwg)))
            app->layout = &weft__layout_aiwg;
        return 1;
    } while (weft__layout_up(folder));
    return 0;
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
