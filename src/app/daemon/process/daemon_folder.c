/* The daemon's folder. Files appear whole (written beside, then moved) and private (0600 from their first instant). */
#include "daemon_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aiwg_config.h"
#include "failure.h"
#include "private_file.h"
#include "trust.h"

/* 256 bits: as many as the hash it is compared by. */
#define TOKEN_BYTES 32

/* A new file of ours; -EEXIST when there is one. */
static int write_new(const char *path, const char *text, size_t len) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int r = weft__private_write(fd, text, len);
    close(fd);
    if (r < 0)
        unlink(path);
    return r;
}

static void path_beside(const char *path, char ret[64]) {
    snprintf(ret, 64, "%s.%ld", path, (long) getpid());
    unlink(ret); /* of an earlier process with our number */
}

/* A project may come with a .weft of its own, and a link there would have us change and fill a folder somewhere else. Others
 * may look into the folder around it, but it is ours as well. */
static int check_folder(const char *path, bool is_private) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 || fstat(fd, &info) < 0 ? -errno : 0;
    if (r == 0 && info.st_uid != geteuid())
        r = -EPERM; /* whoever owns it could put a token of theirs there */
    if (r == 0 && is_private && (info.st_mode & 077) && fchmod(fd, 0700) < 0)
        r = -errno;
    if (fd >= 0)
        close(fd);
    return r;
}

static int make_home_folder(const char *path, mode_t mode) {
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return -errno;
    return check_folder(path, mode == 0700);
}

weft_exit weft__daemon_folder_check(const weft_app *app) {
    const char *home = app->layout->home;
    struct stat info;
    if (lstat(home, &info) < 0 || !S_ISDIR(info.st_mode) || info.st_uid == geteuid())
        return WEFT_DONE;
    const struct passwd *owner = getpwuid(info.st_uid);
    return weft__fail(app, app->verb->reaches ? WEFT_UNREACHABLE : WEFT_FAILED,
                      "A hub works for the user who owns its folder. Be that user, or go to a folder of your own.",
                      "the %s in this folder belongs to %s", home, owner ? owner->pw_name : "another user");
}

int weft__daemon_folder_fill(const weft_layout *layout) {
    static const char ignore[] = "*\n";
    char path[64];
    snprintf(path, sizeof path, "%s/.gitignore", layout->home);
    int r = layout->outer ? make_home_folder(layout->outer, 0755) : 0;
    if (r == 0)
        r = make_home_folder(layout->home, 0700);
    if (r == 0)
        r = write_new(path, ignore, strlen(ignore));
    return r == -EEXIST ? 0 : r;
}

weft_exit weft__daemon_folder_make(const weft_app *app) {
    static const char elsewhere[] = "It is made where the hub is started: go to a folder that you may write to.";
    const char *home = app->layout->home;
    char why[WEFT_TRUST_WHY] = "";
    int r = weft__trust_enter(app->layout, weft__daemon_folder_fill, why);
    if (r == -EKEYREJECTED)
        return weft__fail(app, WEFT_UNAUTHORISED, WEFT_TRUST_NEXT, "%s", why);
    bool here = strncmp(why, home, strlen(home)) == 0, forbidden = r == -EACCES || r == -EROFS;
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, !here ? WEFT_TRUST_PLACE : forbidden ? elsewhere : NULL, "%s", why);
    return WEFT_DONE;
}

/* Recorded, and then given its name: a token that is there is either on record or not ours. */
static int name_token(const weft_layout *layout, const char *temporary, char why[WEFT_TRUST_WHY]) {
    char id[WEFT_TRUST_ID];
    struct stat info;
    int lock = weft__trust_lock(why);
    if (lock < 0)
        return lock;
    int r = 0;
    if (lstat(layout->token, &info) < 0) { /* of two daemons that start at once, the second uses the first one's */
        r = weft__trust_id(temporary, id);
        if (r >= 0)
            r = weft__trust_token(layout, id, why);
        if (r >= 0 && link(temporary, layout->token) < 0)
            r = -errno;
    }
    weft__trust_unlock(lock);
    return r;
}

static int make_token(const weft_layout *layout, char why[WEFT_TRUST_WHY]) {
    unsigned char bytes[TOKEN_BYTES];
    char text[2 * TOKEN_BYTES + 2], temporary[64];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < TOKEN_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    memcpy(text + 2 * TOKEN_BYTES, "\n", 2);
    path_beside(layout->token, temporary);
    int r = write_new(temporary, text, strlen(text));
    if (r == 0)
        r = name_token(layout, temporary, why);
    unlink(temporary);
    return r;
}

/* A token that came with the project is known to whoever made the project. Others may not know it either. */
static weft_exit check_home_token(const weft_app *app) {
    const char *path = app->layout->token;
    char next[256], why[WEFT_TRUST_WHY] = "";
    struct stat info;
    weft_trust trust;
    int fd = weft__private_open(path, O_RDONLY);
    int r = fd < 0 ? fd : fstat(fd, &info) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    snprintf(next, sizeof next, "Remove it, and the next start makes a new one; or, if you made it yourself: chmod 600 %s",
             path);
    if (r < 0 || (info.st_mode & 077))
        return weft__fail(app, WEFT_FAILED, next, "%s: it is not a private file of yours, so others may know the token%s%s",
                          path, r < 0 ? ": " : "", r < 0 ? weft__private_why(r) : "");
    int lock = weft__trust_lock(why); /* another may be making one */
    if (lock < 0)
        return weft__fail(app, WEFT_FAILED, WEFT_TRUST_PLACE, "%s", why);
    weft__trust_look(app->layout, &trust);
    bool strange = weft__trust_has_strange_token(&trust);
    weft__trust_unlock(lock);
    if (trust.failed < 0)
        return weft__fail(app, WEFT_FAILED, WEFT_TRUST_PLACE, "%s", trust.why);
    if (strange)
        return weft__fail(app, WEFT_UNAUTHORISED,
                          "Remove it, and the next start makes a new one; or, if you made it yourself: weft trust",
                          "%s was not made by your Weft, so others may know the token", path);
    return WEFT_DONE;
}

weft_exit weft__daemon_folder_token(const weft_app *app, char **ret) {
    const char *path = app->layout->token;
    char why[WEFT_TRUST_WHY] = "";
    struct stat info;
    weft_exit status = weft__daemon_folder_make(app);
    if (status)
        return status;
    int r = lstat(path, &info) < 0 && errno == ENOENT ? make_token(app->layout, why) : 0;
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s: %s", path, *why ? why : weft_strerror(r));
    status = check_home_token(app);
    return status ? status : weft__token_read(app, path, ret);
}

int weft__daemon_folder_put(const char *path, const char *text, size_t len) {
    char temporary[64];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    unlink(temporary); /* of one that was killed between the two steps */
    int r = write_new(temporary, text, len);
    if (r == 0 && rename(temporary, path) < 0) {
        r = -errno;
        unlink(temporary);
    }
    return r;
}

/* As other files of the project: for everybody whom the umask lets read it. */
int weft__daemon_folder_default_config(const weft_layout *layout) {
    size_t len = strlen(weft__aiwg_default_config);
    if (!layout->aiwg || access(layout->config, F_OK) == 0)
        return 0;
    int fd = open(layout->config, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return errno == EEXIST ? 0 : -errno;
    int r = write(fd, weft__aiwg_default_config, len) == (ssize_t) len ? 1 : -EIO;
    close(fd);
    if (r < 0)
        unlink(layout->config);
    return r;
}

int weft__daemon_folder_publish(const weft_layout *layout, weft_val endpoint) {
    char *text;
    size_t len;
    int r = weft_to_text(endpoint, NULL, &text, &len);
    if (r < 0)
        return r;
    r = weft__daemon_folder_put(layout->endpoint, text, len);
    weft_text_free(text, NULL);
    return r;
}

void weft__daemon_folder_withdraw(const weft_layout *layout) {
    unlink(layout->endpoint);
}
