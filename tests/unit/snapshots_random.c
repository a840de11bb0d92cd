/* Random edits by two tasks, which may work at the same time, and by a person; then undo and redo in any order. After each
 * the files are what a model says, or a conflict was reported where the model has one and nothing was touched. A seed that
 * fails is printed; "test_snapshots_random SEED" as WEFT_SNAPSHOT_SEED repeats it. */
#include <errno.h>

#include "snapshot_world.h"

#define FILES 5
#define SLOTS 4
#define SEEDS 12

/* A file: lines that are edited, far from each other, so that edits of different ones can always be merged. */
typedef struct model_file {
    bool exists, runs;
    int slots[SLOTS];
} model_file;
typedef struct model {
    model_file files[FILES];
} model;

typedef struct taken {
    model files;
    char tree[WEFT_SNAPSHOT_HEX];
} taken;

typedef struct play {
    snapshot_world s;
    uint64_t random;
    int next; /* text that nobody wrote before */
    model now;
} play;

static unsigned pick(play *p, unsigned n) {
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned) (p->random >> 33) % n;
}

/* ---- the disk ---- */

static const char *const names[FILES] = {"repo/plain", "repo/sub/deep", "repo/with \"quotes\"\n", "repo/-dash",
                                         "repo/\xff\xfe"};

static void write_model_file(play *p, int i) {
    const model_file *file = &p->now.files[i];
    char text[1024] = "";
    if (!file->exists) {
        unlink(at(&p->s.w, names[i]));
        return;
    }
    for (int k = 0; k < SLOTS; k++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%d%s\n.\n.\n.\n.\n.\n.\n", file->slots[k], i == 2 ? "\r" : "");
    }
    mkdir(at(&p->s.w, "repo/sub"), 0755);
    put(&p->s.w, names[i], text);
    CHECK_INT(chmod(at(&p->s.w, names[i]), file->runs ? 0755 : 0644), 0);
}

static bool is_on_disk(play *p, int i) {
    const model_file *file = &p->now.files[i];
    char text[1024], *at_text = text;
    struct stat st;
    if (lstat(at(&p->s.w, names[i]), &st) < 0)
        return !file->exists;
    if (!file->exists || ((st.st_mode & 0100) != 0) != file->runs)
        return false;
    small_file(at(&p->s.w, names[i]), text, sizeof text);
    for (int k = 0; k < SLOTS; k++, at_text = strchr(at_text, '\n') + 13)
        if (!strchr(at_text, '\n') || atoi(at_text) != file->slots[k])
            return false;
    return true;
}

static bool check_disk(play *p) {
    bool same = true;
    for (int i = 0; i < FILES; i++)
        same &= is_on_disk(p, i);
    return CHECK(same);
}

/* ---- what everybody does ---- */

static void edit(play *p) {
    int i = (int) pick(p, FILES);
    model_file *file = &p->now.files[i];
    unsigned what = pick(p, 10);
    if (!file->exists || what == 0) {
        file->exists = !file->exists;
        for (int k = 0; k < SLOTS; k++)
            file->slots[k] = p->next++;
        file->runs = false;
    } else if (what == 1)
        file->runs = !file->runs;
    else
        file->slots[pick(p, SLOTS)] = p->next++;
    write_model_file(p, i);
}

static void edit_some(play *p, unsigned most) {
    for (unsigned n = pick(p, most + 1); n > 0; n--)
        edit(p);
}

static void take_model(play *p, const char *name, taken *ret) {
    ret->files = p->now;
    CHECK_INT(snapshot_world_take(&p->s, name, ret->tree), 0);
}

/* ---- what undo is to do ---- */

static bool is_same_file(const model_file *a, const model_file *b) {
    if (!a->exists || !b->exists)
        return a->exists == b->exists;
    return a->runs == b->runs && memcmp(a->slots, b->slots, sizeof a->slots) == 0;
}

/* base: after, ours: now, theirs: before. false: they conflict. */
static bool merge_values(int base, int ours, int theirs, int *ret) {
    *ret = ours == base ? theirs : ours;
    return ours == base || theirs == base || ours == theirs;
}

static bool undo_file(const model_file *before, const model_file *after, const model_file *now, bool shared,
                      model_file *ret) {
    *ret = *now;
    if (is_same_file(before, after) || is_same_file(now, before))
        return true;
    if (shared)
        return false;
    if (is_same_file(now, after)) {
        *ret = *before;
        return true;
    }
    int runs;
    bool good = before->exists && after->exists && now->exists && merge_values(after->runs, now->runs, before->runs, &runs);
    for (int k = 0; good && k < SLOTS; k++)
        good = merge_values(after->slots[k], now->slots[k], before->slots[k], &ret->slots[k]);
    if (good)
        ret->runs = runs;
    return good;
}

typedef struct span {
    const taken *from, *to;
} span;

/* Try it on both. true: it was done. */
static bool undo(play *p, const taken *before, const taken *after, const span *shared) {
    model goal = p->now;
    bool good = true;
    for (int i = 0; i < FILES; i++) {
        bool may_be_theirs = shared && !is_same_file(&shared->from->files.files[i], &shared->to->files.files[i]);
        good &= undo_file(&before->files.files[i], &after->files.files[i], &p->now.files[i], may_be_theirs, &goal.files[i]);
    }
    const char *const pairs[] = {shared ? shared->from->tree : NULL, shared ? shared->to->tree : NULL, NULL};
    CHECK_INT(UNDO(&p->s, .before = before->tree, .after = after->tree, .shared = shared ? pairs : NULL), 0);
    CHECK((p->s.conflicts == 0) == good);
    if (good)
        p->now = goal;
    check_disk(p);
    return good;
}

/* ---- one play ---- */

/* One after the other, with a person in between. */
static void play_apart(play *p, taken before[2], taken after[2]) {
    for (int i = 0; i < 2; i++) {
        take_model(p, i ? "task-0002.before" : "task-0001.before", &before[i]);
        edit_some(p, 5);
        take_model(p, i ? "task-0002.after" : "task-0001.after", &after[i]);
        edit_some(p, 2);
    }
}

/* The second begins while the first works, and ends before it. */
static void play_together(play *p, taken before[2], taken after[2]) {
    take_model(p, "task-0001.before", &before[0]);
    edit_some(p, 3);
    take_model(p, "task-0002.before", &before[1]);
    edit_some(p, 3);
    take_model(p, "task-0002.after", &after[1]);
    edit_some(p, 3);
    take_model(p, "task-0001.after", &after[0]);
    edit_some(p, 2);
}

static void undo_in_any_order(play *p, taken before[2], taken after[2], bool together) {
    span shared = {&before[1], &after[1]};
    bool undone[2] = {false, false};
    taken from[2], to[2];
    for (int n = 0; n < 5; n++) {
        int i = (int) pick(p, 2);
        taken was = {.files = p->now};
        bool done = undone[i] ? undo(p, &from[i], &to[i], NULL) : undo(p, &before[i], &after[i], together ? &shared : NULL);
        if (done) {
            undone[i] = !undone[i];
            from[i] = was;
            to[i].files = p->now;
            memcpy(from[i].tree, p->s.from, sizeof from[i].tree);
            memcpy(to[i].tree, p->s.to, sizeof to[i].tree);
        }
        if (pick(p, 3) == 0)
            edit(p);
    }
}

static void play_seed(uint64_t seed) {
    play *p = calloc(1, sizeof *p);
    taken before[2], after[2];
    p->random = seed * 7919 + 1;
    p->next = 1000;
    snapshot_world_begin(&p->s);
    for (int i = 0; i < FILES; i++)
        if (pick(p, 4)) {
            p->now.files[i].exists = true;
            for (int k = 0; k < SLOTS; k++)
                p->now.files[i].slots[k] = p->next++;
            write_model_file(p, i);
        }
    bool together = pick(p, 2);
    (together ? play_together : play_apart)(p, before, after);
    undo_in_any_order(p, before, after, together);
    snapshot_world_end(&p->s);
    free(p);
}

TEST(seeds) {
    const char *only = getenv("WEFT_SNAPSHOT_SEED"), *many = getenv("WEFT_SNAPSHOT_SEEDS");
    uint64_t first = only ? strtoull(only, NULL, 10) : 0, count = only ? 1 : many ? strtoull(many, NULL, 10) : SEEDS;
    for (uint64_t seed = first; seed < first + count; seed++) {
        char row[32];
        snprintf(row, sizeof row, "seed %llu", (unsigned long long) seed);
        test_row(row);
        play_seed(seed);
    }
}

TEST_MAIN(CASE(seeds))
