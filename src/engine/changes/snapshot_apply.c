/* Taking the steps of an undo, on the thread: all of them or none.
 *
 *   1. What is to be there is written into a folder of ours, and what is there now is looked at once more.
 *   2. Files change places with it, one rename after the other. If one is not possible, those before it are taken back.
 *   3. What was there is thrown away; it is in the safety snapshot.
 *
 * No link is followed: every folder is opened beneath the project's (beneath.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "beneath.h"
#include "snapshots_private.h"

#define EXCHANGE 2u /* RENAME_EXCHANGE, RENAME_NOREPLACE of <linux/fs.h> */
#define NO_REPLACE 1u

typedef enum moved { NOT_MOVED, TAKEN_AWAY, PUT_THERE, EXCHANGED } moved;

typedef struct place_of_step {
    moved moved;
    struct stat was; /* of what is there, when it was looked at */
} place_of_step;

typedef struct applying {
    snap *s;
    const snap_plan *plan;
    snap_conflicts *conflicts;
    int folder; /* the project's */
    int room;   /* ours */
    place_of_step *places;
} applying;

static void name_in_room(size_t i, char ret[24]) {
    snprintf(ret, 24, "%zu", i);
}

/* ---- the folder of ours ---- */

/* What is in it is in a snapshot: of this undo, or of one that was interrupted. */
static void empty_room(int room) {
    int fd = openat(room, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (*entry->d_name != '.')
            unlinkat(room, entry->d_name, 0);
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
}

static bool open_room(applying *a) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/changes/undo", a->s->own->state);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return weft__snap_fail(a->s, -errno);
    a->room = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    a->folder = open(a->s->own->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (a->room < 0 || a->folder < 0)
        return weft__snap_fail(a->s, -errno);
    empty_room(a->room);
    return true;
}

/* ---- 1. what is to be there ---- */

static int write_all(int fd, weft_bytes text) {
    for (size_t done = 0; done < text.len;) {
        ssize_t n = write(fd, text.data + done, text.len - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t) n : 0;
    }
    return 0;
}

/* A file that stays keeps its permissions, but for those to run it if these are what changes. */
static mode_t mode_of(const applying *a, const snap_step *step, const struct stat *was) {
    bool runs = step->new_mode & 0100;
    if (!was || !S_ISREG(was->st_mode))
        return (runs ? 0777 : 0666) & ~a->s->own->umask;
    mode_t mode = was->st_mode & 07777;
    if (((step->old_mode & 0100) != 0) == runs)
        return mode;
    return runs ? mode | ((mode & 0444) >> 2) : mode & ~(mode_t) 0111;
}

static int make_file(const applying *a, const char *name, weft_bytes content, mode_t mode) {
    int fd = openat(a->room, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, content);
    if (r == 0 && fchmod(fd, mode) < 0)
        r = -errno;
    if (r == 0 && fdatasync(fd) < 0)
        r = -errno;
    close(fd);
    return r;
}

static int make_symlink(const applying *a, const char *name, weft_bytes target) {
    char text[PATH_MAX];
    if (target.len >= sizeof text)
        return -ENAMETOOLONG;
    memcpy(text, target.data, target.len);
    text[target.len] = '\0';
    return symlinkat(text, a->room, name) < 0 ? -errno : 0;
}

static bool prepare_content(applying *a, size_t i, const struct stat *was) {
    const snap_step *step = &a->plan->steps[i];
    char name[24];
    if (!step->new_mode)
        return true;
    name_in_room(i, name);
    if (!weft__snap_blob(a->s, step->new_hex))
        return false;
    weft_bytes content = weft__snap_output(a->s);
    int r =
        step->new_mode == SNAP_SYMLINK ? make_symlink(a, name, content) : make_file(a, name, content, mode_of(a, step, was));
    return r == 0 || weft__snap_fail(a->s, r);
}

static int open_parent_of(const applying *a, const char *path, char name[NAME_MAX + 1]) {
    return weft__beneath_parent(a->folder, path, 0, name);
}

static bool prepare_step(applying *a, size_t i) {
    const snap_step *step = &a->plan->steps[i];
    place_of_step *place = &a->places[i];
    char name[NAME_MAX + 1];
    if (!step->old_mode)
        return prepare_content(a, i, NULL);
    int parent = open_parent_of(a, step->path, name);
    bool found = parent >= 0 && fstatat(parent, name, &place->was, AT_SYMLINK_NOFOLLOW) == 0;
    if (parent >= 0)
        close(parent);
    if (!found)
        return weft__snap_conflict(a->s, a->conflicts, step->path, "changed");
    return prepare_content(a, i, &place->was);
}

/* Everything was looked at by now; whatever changed since the plan was made shows here. */
static bool check_once_more(applying *a) {
    char tree[WEFT_SNAPSHOT_HEX];
    snap_entries since = {0};
    bool good = weft__snap_take(a->s, tree) && weft__snap_entries(a->s, a->plan->from, tree, &since);
    for (size_t i = 0; good && i < a->plan->count; i++)
        if (weft__snap_entry(&since, a->plan->steps[i].path))
            good = weft__snap_conflict(a->s, a->conflicts, a->plan->steps[i].path, "changed");
    weft__snap_entries_done(a->s, &since);
    return good;
}

/* ---- 2. changing places ---- */

static int rename_with(int from, const char *name, int to, const char *as, unsigned how) {
    return (int) syscall(SYS_renameat2, from, name, to, as, how) < 0 ? -errno : 0;
}

static bool is_as_it_was(int folder, const char *name, const struct stat *was) {
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == was->st_ino && st.st_dev == was->st_dev &&
           st.st_size == was->st_size && st.st_mode == was->st_mode && st.st_mtim.tv_sec == was->st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

/* Folders on the way to a path that are missing. */
static int make_parents(const applying *a, const char *path) {
    char room[PATH_MAX], name[NAME_MAX + 1];
    if (strlen(path) >= sizeof room)
        return -ENAMETOOLONG;
    memcpy(room, path, strlen(path) + 1);
    for (char *slash = strchr(room, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int parent = open_parent_of(a, room, name);
        mode_t mode = 0777 & ~a->s->own->umask;
        if (parent < 0)
            return parent;
        int r = mkdirat(parent, name, mode) < 0 ? -errno : 0;
        if (r == 0)
            (void) !fchmodat(parent, name, mode, 0);
        close(parent);
        if (r < 0 && r != -EEXIST)
            return r;
        *slash = '/';
    }
    return 0;
}

/* Folders above a path that have nothing in them any more. */
static void remove_empty_parents(const applying *a, const char *path) {
    char room[PATH_MAX], name[NAME_MAX + 1];
    if (strlen(path) >= sizeof room)
        return;
    memcpy(room, path, strlen(path) + 1);
    for (char *slash; (slash = strrchr(room, '/'));) {
        *slash = '\0';
        int parent = open_parent_of(a, room, name);
        bool removed = parent >= 0 && unlinkat(parent, name, AT_REMOVEDIR) == 0;
        if (parent >= 0)
            close(parent);
        if (!removed)
            return;
    }
}

static int take_away(applying *a, size_t i, int parent, const char *name) {
    char mine[24];
    name_in_room(i, mine);
    int r = is_as_it_was(parent, name, &a->places[i].was) ? rename_with(parent, name, a->room, mine, NO_REPLACE) : -ESTALE;
    if (r == 0)
        a->places[i].moved = TAKEN_AWAY;
    return r;
}

/* A folder that is empty is not in the way. */
static int put_there(applying *a, size_t i, int parent, const char *name) {
    char mine[24];
    name_in_room(i, mine);
    int r = rename_with(a->room, mine, parent, name, NO_REPLACE);
    if (r == -EEXIST && unlinkat(parent, name, AT_REMOVEDIR) == 0)
        r = rename_with(a->room, mine, parent, name, NO_REPLACE);
    if (r == 0)
        a->places[i].moved = PUT_THERE;
    return r;
}

/* What came out is looked at: somebody may have written it in the last moment. */
static int exchange(applying *a, size_t i, int parent, const char *name) {
    char mine[24];
    name_in_room(i, mine);
    int r = is_as_it_was(parent, name, &a->places[i].was) ? rename_with(a->room, mine, parent, name, EXCHANGE) : -ESTALE;
    if (r == 0)
        a->places[i].moved = EXCHANGED;
    return r == 0 && !is_as_it_was(a->room, mine, &a->places[i].was) ? -ESTALE : r;
}

static int take_step(applying *a, size_t i) {
    const snap_step *step = &a->plan->steps[i];
    char name[NAME_MAX + 1];
    int r = step->old_mode ? 0 : make_parents(a, step->path);
    int parent = r < 0 ? r : open_parent_of(a, step->path, name);
    if (parent < 0)
        return parent;
    r = !step->new_mode   ? take_away(a, i, parent, name)
        : !step->old_mode ? put_there(a, i, parent, name)
                          : exchange(a, i, parent, name);
    close(parent);
    return r;
}

/* Nothing stood in the way a moment ago, so nothing does now; if something does, it is in our folder and in a snapshot. */
static void take_back(applying *a, size_t i) {
    const char *path = a->plan->steps[i].path;
    char name[NAME_MAX + 1], mine[24];
    moved how = a->places[i].moved;
    if (how == NOT_MOVED)
        return;
    name_in_room(i, mine);
    if (how == TAKEN_AWAY)
        (void) make_parents(a, path);
    int parent = open_parent_of(a, path, name);
    if (parent < 0)
        return;
    if (how == TAKEN_AWAY)
        (void) rename_with(a->room, mine, parent, name, NO_REPLACE);
    else if (how == EXCHANGED)
        (void) rename_with(a->room, mine, parent, name, EXCHANGE);
    else
        (void) rename_with(parent, name, a->room, mine, NO_REPLACE);
    close(parent);
    if (how == PUT_THERE)
        remove_empty_parents(a, path);
    a->places[i].moved = NOT_MOVED;
}

static const char *reason_of(int r) {
    return r == -ESTALE || r == -ENOENT ? "changed" : "inTheWay";
}

static bool is_conflict(int r) {
    return r == -ESTALE || r == -ENOENT || r == -EEXIST || r == -ENOTDIR || r == -EISDIR || r == -ENOTEMPTY || r == -ELOOP ||
           r == -EACCES;
}

static bool fail_step(applying *a, size_t i, int r) {
    const char *path = a->plan->steps[i].path;
    if (r == -EINVAL || r == -ENOSYS)
        return weft__snap_refuse(a->s, -EOPNOTSUPP, "this file system cannot exchange two files in one step");
    if (r == -EXDEV)
        return weft__snap_refuse(a->s, -EXDEV, "%s is on another file system than the hub's own folder", path);
    if (!is_conflict(r))
        return weft__snap_refuse(a->s, r, "%s: %s", path, weft_strerror(r));
    return weft__snap_conflict(a->s, a->conflicts, path, reason_of(r));
}

/* What goes first, so that it is not in the way of what comes. */
static bool take_steps(applying *a) {
    int r = 0;
    size_t i = 0;
    for (int there = 0; r == 0 && there < 2; there++)
        for (i = 0; r == 0 && i < a->plan->count; i++)
            if ((a->plan->steps[i].new_mode != 0) == there) {
                r = take_step(a, i);
                if (r == 0 && !there)
                    remove_empty_parents(a, a->plan->steps[i].path);
            }
    if (r == 0)
        return true;
    size_t failed = i - 1;
    for (int there = 1; there >= 0; there--)
        for (i = a->plan->count; i-- > 0;)
            if ((a->plan->steps[i].new_mode != 0) == there)
                take_back(a, i);
    return fail_step(a, failed, r);
}

/* ---- all of it ---- */

bool weft__snap_apply(snap *s, const snap_plan *plan, snap_conflicts *conflicts) {
    applying a = {.s = s, .plan = plan, .conflicts = conflicts, .folder = -1, .room = -1};
    a.places = weft__zalloc(s->own->alloc, (plan->count + 1) * sizeof *a.places);
    bool good = a.places ? open_room(&a) : weft__snap_fail(s, -ENOMEM);
    for (size_t i = 0; good && i < plan->count; i++)
        good = prepare_step(&a, i);
    if (good && !conflicts->count)
        good = check_once_more(&a);
    if (good && !conflicts->count)
        good = take_steps(&a);
    if (a.room >= 0) {
        empty_room(a.room);
        close(a.room);
    }
    if (a.folder >= 0)
        close(a.folder);
    weft__free(s->own->alloc, a.places);
    return good;
}

/* As in the tree where it was to go: done. As in the one where it came from, or not there at all: still to be done. */
static bool add_if_open(snap *s, const snap_step *step, const snap_entries *from, const snap_entries *to, snap_plan *rest,
                        size_t *left) {
    const snap_entry *since_to = weft__snap_entry(to, step->path), *since_from = weft__snap_entry(from, step->path);
    snap_step open = *step;
    if (!since_to)
        return true;
    if (since_from && since_from->new_mode) {
        ++*left;
        return true;
    }
    if (since_from)
        open.old_mode = 0;
    return weft__snap_plan_add(s, rest, &open);
}

/* Of a deletion that was the last thing that was done. */
static void remove_left_parents(snap *s, const snap_plan *plan) {
    applying a = {.s = s, .plan = plan, .folder = open(s->own->folder, O_PATH | O_DIRECTORY | O_CLOEXEC), .room = -1};
    for (size_t i = 0; a.folder >= 0 && i < plan->count; i++)
        if (!plan->steps[i].new_mode)
            remove_empty_parents(&a, plan->steps[i].path);
    if (a.folder >= 0)
        close(a.folder);
}

bool weft__snap_finish(snap *s, const snap_plan *plan, size_t *ret_left) {
    snap_plan rest = {0};
    snap_entries from = {0}, to = {0};
    snap_conflicts conflicts = {0};
    *ret_left = 0;
    bool good = weft__snap_take(s, rest.from) && weft__snap_entries(s, plan->from, rest.from, &from) &&
                weft__snap_entries(s, plan->to, rest.from, &to);
    for (size_t i = 0; good && i < plan->count; i++)
        good = add_if_open(s, &plan->steps[i], &from, &to, &rest, ret_left);
    if (good && rest.count)
        good = weft__snap_apply(s, &rest, &conflicts);
    if (good)
        remove_left_parents(s, plan);
    *ret_left += conflicts.count;
    weft__snap_conflicts_done(s, &conflicts);
    weft__snap_entries_done(s, &from);
    weft__snap_entries_done(s, &to);
    weft__snap_plan_done(s, &rest);
    return good;
}
