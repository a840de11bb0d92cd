/* Judging: what of the project we stand in is on record. */
#include "trust.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static weft_trust_folder judge_folder(const weft_trust *trust, bool found) {
    if (found && strcmp(trust->entry.folder, trust->folder_id) == 0)
        return WEFT_FOLDER_KNOWN;
    return *trust->moved_from ? WEFT_FOLDER_MOVED : found ? WEFT_FOLDER_REPLACED : WEFT_FOLDER_NEW;
}

void weft__trust_look(const weft_layout *layout, weft_trust *ret) {
    char here[PATH_MAX];
    *ret = (weft_trust){.layout = layout};
    int r = getcwd(here, sizeof here) ? weft__trust_id(layout->home, ret->folder_id) : -errno;
    if (r == -ENOENT || r == -ENOTDIR)
        return;
    if (r == 0)
        r = weft__trust_find(here, layout->aiwg, ret->folder_id, &ret->entry, ret->moved_from, ret->why);
    if (r < 0) {
        if (!*ret->why)
            snprintf(ret->why, sizeof ret->why, "%s: %s", layout->home, weft_strerror(r));
        ret->failed = r;
        ret->folder = WEFT_FOLDER_NEW;
        return;
    }
    ret->folder = judge_folder(ret, r == 1);
}

bool weft__trust_has_config(const weft_trust *trust, const char *text, size_t len) {
    char digest[WEFT_TRUST_DIGEST];
    weft__trust_digest(text, len, digest);
    return trust->folder == WEFT_FOLDER_KNOWN && strcmp(trust->entry.config, digest) == 0;
}

/* Is there such a file, with anything in it, and is it another than that on record? */
static bool is_strange(const weft_trust *trust, const char *path, const char *suffix, const char *recorded) {
    char name[PATH_MAX + 16], id[WEFT_TRUST_ID];
    struct stat info;
    snprintf(name, sizeof name, "%s%s", path, suffix);
    if (lstat(name, &info) < 0 || (S_ISREG(info.st_mode) && info.st_size == 0))
        return false;
    return trust->folder != WEFT_FOLDER_KNOWN || weft__trust_id(name, id) < 0 || strcmp(id, recorded) != 0;
}

/* The log and a journal of SQLite's own kind are read into the database by whoever opens it next, so they count like the
 * database itself. One that was about to be opened when the machine stopped is as that left it. */
bool weft__trust_has_strange_journal(const weft_trust *trust, const char *path) {
    if (trust->folder == WEFT_FOLDER_KNOWN && trust->entry.opening)
        return false;
    return is_strange(trust, path, "", trust->entry.journal) || is_strange(trust, path, "-wal", trust->entry.log) ||
           is_strange(trust, path, "-journal", "");
}

bool weft__trust_has_strange_token(const weft_trust *trust) {
    return is_strange(trust, trust->layout->token, "", trust->entry.token);
}
