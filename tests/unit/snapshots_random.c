/* Random edits by two tasks, which may work at the same time, and by a person; then undo and redo in any order. After each
 * the files are what a model says, or a conflict was reported where the model has one and nothing was touched. A seed that
 * fails is printed; WEFT_SNAPSHOT_SEED repeats it. */
#include <errno.h>

#include "slot_files.h"
#include "snapshot_world.h"

#define SEEDS 12

typedef struct taken {
    slot_model files;
    char tree[WEFT_SNAPSHOT_HEX];
} taken;

typedef struct play {
    snapshot_world s;
    slot_chance chance;
    slot_model now;
} play;

/* ---- what everybody does ---- */

static void edit(play *p) {
    slot_write(&p->s.w, "repo", &p->now, slot_edit(&p->chance, &p->now));
}

static void edit_some(play *p, unsigned most) {
    for (unsigned n = pick(&p->chance, most + 1); n > 0; n--)
        edit(p);
}

static void take_model(play *p, const char *name, taken *ret) {
    ret->files = p->now;
    CHECK_INT(snapshot_world_take(&p->s, name, ret->tree), 0);
}

/* ---- what undo is to do ---- */

/* From after back to before. A file that another task has changed meanwhile may be its work. */
static bool undo_file(const slot_file *before, const slot_file *after, const slot_file *now, bool shared, slot_file *ret) {
    *ret = *now;
    if (slot_is_same(before, after) || slot_is_same(now, before))
        return true;
    return !shared && slot_merge(after, now, before, ret);
}

typedef struct span {
    const taken *from, *to;
} span;

/* Try it on both. true: it was done. */
static bool undo(play *p, const taken *before, const taken *after, const span *shared) {
    slot_model goal = p->now;
    bool good = true;
    for (int i = 0; i < SLOT_FILES; i++) {
        bool may_be_theirs = shared && !slot_is_same(&shared->from->files.files[i], &shared->to->files.files[i]);
        good &= undo_file(&before->files.files[i], &after->files.files[i], &p->now.files[i], may_be_theirs, &goal.files[i]);
    }
    const char *const pairs[] = {shared ? shared->from->tree : NULL, shared ? shared->to->tree : NULL, NULL};
    CHECK_INT(UNDO(&p->s, .before = before->tree, .after = after->tree, .shared = shared ? pairs : NULL), 0);
    CHECK((p->s.conflicts == 0) == good);
    if (good)
        p->now = goal;
    slot_check_disk(&p->s.w, "repo", &p->now);
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
        int i = (int) pick(&p->chance, 2);
        taken was = {.files = p->now};
        bool done = undone[i] ? undo(p, &from[i], &to[i], NULL) : undo(p, &before[i], &after[i], together ? &shared : NULL);
        if (done) {
            undone[i] = !undone[i];
            from[i] = was;
            to[i].files = p->now;
            memcpy(from[i].tree, p->s.from, sizeof from[i].tree);
            memcpy(to[i].tree, p->s.to, sizeof to[i].tree);
        }
        if (pick(&p->chance, 3) == 0)
            edit(p);
    }
}

static void play_seed(uint64_t seed) {
    play *p = calloc(1, sizeof *p);
    taken before[2], after[2];
    p->chance = slot_chance_of(seed);
    snapshot_world_begin(&p->s);
    p->now = slot_begin(&p->chance, &p->s.w, "repo");
    bool together = pick(&p->chance, 2);
    (together ? play_together : play_apart)(p, before, after);
    undo_in_any_order(p, before, after, together);
    snapshot_world_end(&p->s);
    free(p);
}

TEST(seeds) {
    slot_play_seeds(SEEDS, play_seed);
}

TEST_MAIN(CASE(seeds))
