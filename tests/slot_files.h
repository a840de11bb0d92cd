/* Files that tests change by chance, and a model of them: each has lines that are edited ("slots"), so far from each other
 * that git can always merge edits of different ones, and what else it says in is its own, so that no file looks like another
 * one renamed. Everything is static and inline. */
#ifndef SLOT_FILES_H
#define SLOT_FILES_H

#include "git_world.h"

#define SLOT_FILES 5
#define SLOTS 4

typedef struct slot_file {
    bool exists, runs;
    int slots[SLOTS];
} slot_file;
typedef struct slot_model {
    slot_file files[SLOT_FILES];
} slot_model;

/* Chance, and text that nobody wrote before. */
typedef struct slot_chance {
    uint64_t random;
    int next;
} slot_chance;

static const char *const slot_names[SLOT_FILES] = {"plain", "sub/deep", "with \"quotes\"\n", "-dash", "\xff\xfe"};

static inline slot_chance slot_chance_of(uint64_t seed) {
    return (slot_chance){.random = seed * 7919 + 1, .next = 1000};
}

static inline unsigned pick(slot_chance *c, unsigned n) {
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned) (c->random >> 33) % n;
}

/* ---- the disk ---- */

static inline const char *slot_path(const git_world *w, const char *folder, int i) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, slot_names[i]);
    return at(w, path);
}

static inline void slot_write(const git_world *w, const char *folder, const slot_model *model, int i) {
    const slot_file *file = &model->files[i];
    char text[1024] = "", path[512];
    if (!file->exists) {
        unlink(slot_path(w, folder, i));
        return;
    }
    for (int k = 0; k < SLOTS; k++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%d%s\n%d\n%d\n%d\n%d\n%d\n%d\n", file->slots[k], i == 2 ? "\r" : "", i, i,
                 i, i, i, i);
    }
    snprintf(path, sizeof path, "%s/sub", folder);
    mkdir(at(w, path), 0755);
    snprintf(path, sizeof path, "%s/%s", folder, slot_names[i]);
    put(w, path, text);
    CHECK_INT(chmod(at(w, path), file->runs ? 0755 : 0644), 0);
}

static inline bool slot_is_on_disk(const git_world *w, const char *folder, const slot_model *model, int i) {
    const slot_file *file = &model->files[i];
    char text[1024], *at_text = text;
    struct stat st;
    if (lstat(slot_path(w, folder, i), &st) < 0)
        return !file->exists;
    if (!file->exists || ((st.st_mode & 0100) != 0) != file->runs)
        return false;
    small_file(slot_path(w, folder, i), text, sizeof text);
    for (int k = 0; k < SLOTS; k++, at_text = strchr(at_text, '\n') + 13)
        if (!strchr(at_text, '\n') || strlen(at_text) < 14 || atoi(at_text) != file->slots[k])
            return false;
    return true;
}

static inline bool slot_check_disk(const git_world *w, const char *folder, const slot_model *model) {
    bool same = true;
    for (int i = 0; i < SLOT_FILES; i++)
        same &= slot_is_on_disk(w, folder, model, i);
    return CHECK(same);
}

/* ---- edits ---- */

/* New text everywhere. */
static inline void slot_fill(slot_chance *c, slot_file *file) {
    file->exists = true;
    for (int k = 0; k < SLOTS; k++)
        file->slots[k] = c->next++;
}

/* Mostly a line; now and then a file comes, goes, or may be run. Returns which file. */
static inline int slot_edit(slot_chance *c, slot_model *model) {
    int i = (int) pick(c, SLOT_FILES);
    slot_file *file = &model->files[i];
    unsigned what = pick(c, 10);
    if (!file->exists || what == 0) {
        bool gone = file->exists;
        slot_fill(c, file);
        file->exists = !gone;
        file->runs = false;
    } else if (what == 1)
        file->runs = !file->runs;
    else
        file->slots[pick(c, SLOTS)] = c->next++;
    return i;
}

/* Most of them are there at the beginning. */
static inline slot_model slot_begin(slot_chance *c, const git_world *w, const char *folder) {
    slot_model model = {0};
    for (int i = 0; i < SLOT_FILES; i++)
        if (pick(c, 4)) {
            slot_fill(c, &model.files[i]);
            slot_write(w, folder, &model, i);
        }
    return model;
}

/* ---- what merging does ---- */

static inline bool slot_is_same(const slot_file *a, const slot_file *b) {
    if (!a->exists || !b->exists)
        return a->exists == b->exists;
    return a->runs == b->runs && memcmp(a->slots, b->slots, sizeof a->slots) == 0;
}

static inline bool slot_merge_value(int base, int ours, int theirs, int *ret) {
    *ret = ours == base ? theirs : ours;
    return ours == base || theirs == base || ours == theirs;
}

/* false: they conflict, and *ret is ours. */
static inline bool slot_merge(const slot_file *base, const slot_file *ours, const slot_file *theirs, slot_file *ret) {
    *ret = *ours;
    if (slot_is_same(base, theirs) || slot_is_same(ours, theirs))
        return true;
    if (slot_is_same(ours, base)) {
        *ret = *theirs;
        return true;
    }
    slot_file merged = *ours;
    int runs = 0;
    bool good =
        base->exists && ours->exists && theirs->exists && slot_merge_value(base->runs, ours->runs, theirs->runs, &runs);
    for (int k = 0; good && k < SLOTS; k++)
        good = slot_merge_value(base->slots[k], ours->slots[k], theirs->slots[k], &merged.slots[k]);
    merged.runs = runs;
    if (good)
        *ret = merged;
    return good;
}

/* A seed that fails is printed. "WEFT_SNAPSHOT_SEED=N" repeats it, "WEFT_SNAPSHOT_SEEDS=N" tries more. */
static inline void slot_play_seeds(uint64_t count, void (*play)(uint64_t seed)) {
    const char *only = getenv("WEFT_SNAPSHOT_SEED"), *many = getenv("WEFT_SNAPSHOT_SEEDS");
    uint64_t first = only ? strtoull(only, NULL, 10) : 0;
    count = only ? 1 : many ? strtoull(many, NULL, 10) : count;
    for (uint64_t seed = first; seed < first + count; seed++) {
        char row[32];
        snprintf(row, sizeof row, "seed %llu", (unsigned long long) seed);
        test_row(row);
        play(seed);
    }
    test_row(NULL);
}

#endif
