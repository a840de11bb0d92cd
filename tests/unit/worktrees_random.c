/* Random edits, stages and commits by a person in the project and by agents in two worktrees; the work of the worktrees is
 * merged in each of the three ways, conflicts are solved, and merges are undone, in any order. After each step all files,
 * the index and the branch are what a model says. A seed that fails is printed; WEFT_SNAPSHOT_SEED repeats it. */
#include <errno.h>

#include "merge_world.h"
#include "slot_files.h"

#define SEEDS 8
#define STEPS 30
#define TREES 2

/* A worktree and its branch. */
typedef struct tree_model {
    const char *owner, *folder;
    bool made;
    slot_model disk, tip;      /* tip: what is committed */
    slot_model base;           /* where the project's branch and this one met last */
    slot_model commits[STEPS]; /* since then */
    size_t count;
    bool merging;     /* conflicts were left in it */
    bool merged_ours; /* a merge of the project's branch is among the commits */
} tree_model;

typedef struct play {
    merge_world m;
    slot_chance chance;
    slot_model disk, index, head;
    tree_model trees[TREES];
    bool can_undo;
    slot_model undo_before, undo_after;
    char undo_trees[2][WEFT_SNAPSHOT_HEX];
} play;

/* ---- the person ---- */

static void person_edits(play *p) {
    slot_write(&p->m.s.w, "repo", &p->disk, slot_edit(&p->chance, &p->disk));
}

static void person_stages(play *p) {
    int i = (int) pick(&p->chance, SLOT_FILES);
    if (!p->disk.files[i].exists && !p->index.files[i].exists)
        return;
    GIT(&p->m.s.w, "add", "-A", "--", slot_names[i]);
    p->index.files[i] = p->disk.files[i];
}

static void person_commits(play *p) {
    if (pick(&p->chance, 2)) {
        GIT(&p->m.s.w, "add", "-A", ".");
        p->index = p->disk;
    }
    GIT(&p->m.s.w, "commit", "-q", "--allow-empty", "-m", "person");
    p->head = p->index;
}

/* ---- the agents ---- */

static void add_commit(tree_model *t) {
    CHECK(t->count < STEPS);
    t->commits[t->count++] = t->tip = t->disk;
    t->merging = false;
}

static void agent_edits(play *p, tree_model *t) {
    for (unsigned n = 1 + pick(&p->chance, 3); n > 0; n--)
        slot_write(&p->m.s.w, t->folder, &t->disk, slot_edit(&p->chance, &t->disk));
}

static void agent_commits(play *p, tree_model *t) {
    CHECK_INT(git_in(&p->m.s.w, t->folder, "add", "-A", ".", NULL), 0);
    CHECK_INT(git_in(&p->m.s.w, t->folder, "commit", "-q", "--allow-empty", "-m", "agent", NULL), 0);
    add_commit(t);
}

static void make_worktree(play *p, tree_model *t) {
    bool changes = pick(&p->chance, 3) == 0;
    merge_world_make(&p->m, t->owner, changes);
    t->made = true;
    t->base = t->tip = p->head;
    t->disk = changes ? p->disk : p->head;
}

/* ---- what a merge is to do ---- */

/* Every file by three; how many conflict. */
static int merge_models(const slot_model *base, const slot_model *project, const slot_model *worktree, slot_model *ret,
                        bool conflicts[SLOT_FILES]) {
    int count = 0;
    for (int i = 0; i < SLOT_FILES; i++) {
        conflicts[i] = !slot_merge(&base->files[i], &project->files[i], &worktree->files[i], &ret->files[i]);
        count += conflicts[i];
    }
    return count;
}

static bool can_rebase(const tree_model *t, const slot_model *head) {
    slot_model now = *head, next;
    const slot_model *parent = &t->base;
    bool conflicts[SLOT_FILES];
    for (size_t i = 0; i < t->count; parent = &t->commits[i++], now = next)
        if (merge_models(parent, &now, &t->commits[i], &next, conflicts))
            return false;
    return !t->merged_ours;
}

/* What the person has staged, or changed to something else, stays as it is. */
static int find_in_the_way(const play *p, const slot_model *result, bool ret[SLOT_FILES]) {
    int count = 0;
    for (int i = 0; i < SLOT_FILES; i++) {
        const slot_file *head = &p->head.files[i], *disk = &p->disk.files[i], *to = &result->files[i];
        bool is_staged = !slot_is_same(&p->index.files[i], head), is_changed = !slot_is_same(disk, head);
        ret[i] = !slot_is_same(head, to) && (is_staged || (is_changed && !slot_is_same(disk, to)));
        count += ret[i];
    }
    return count;
}

static void check_listed(const play *p, const bool want[SLOT_FILES]) {
    int count = 0, listed = *p->m.said != '\0';
    for (const char *at = p->m.said; (at = strchr(at, '|')); at++)
        listed++;
    for (int i = 0; i < SLOT_FILES; i++) {
        char word[64];
        snprintf(word, sizeof word, "%s ", slot_names[i]);
        count += want[i];
        CHECK(!want[i] || strstr(p->m.said, word));
    }
    CHECK_INT(listed, count);
}

/* Conflicts are left in the worktree, and somebody solves them: anew, or by taking a side. */
static void solve(play *p, tree_model *t, const slot_model *merged, const bool conflicts[SLOT_FILES]) {
    CHECK(p->m.in_worktree);
    check_listed(p, conflicts);
    t->disk = *merged;
    for (int i = 0; i < SLOT_FILES; i++)
        if (conflicts[i]) {
            if (pick(&p->chance, 2))
                slot_fill(&p->chance, &t->disk.files[i]);
            else
                t->disk.files[i] = pick(&p->chance, 2) ? t->tip.files[i] : p->head.files[i];
            slot_write(&p->m.s.w, t->folder, &t->disk, i);
        }
    t->base = p->head;
    t->count = 0;
    t->merging = t->merged_ours = true;
}

static void land(play *p, tree_model *t, const slot_model *result) {
    p->undo_before = p->disk;
    for (int i = 0; i < SLOT_FILES; i++)
        if (!slot_is_same(&p->head.files[i], &result->files[i]))
            p->disk.files[i] = p->index.files[i] = result->files[i];
    p->head = *result;
    p->undo_after = p->disk;
    memcpy(p->undo_trees[0], p->m.before, sizeof p->m.before);
    memcpy(p->undo_trees[1], p->m.after, sizeof p->m.after);
    p->can_undo = true;
    t->base = t->tip;
    t->count = 0;
    t->merged_ours = false;
}

static void merge(play *p, tree_model *t) {
    weft_merge_how how = (weft_merge_how) pick(&p->chance, WEFT_MERGE_HOWS);
    slot_model result;
    if (pick(&p->chance, 3))
        agent_edits(p, t);
    bool listed[SLOT_FILES], to_commit = t->merging || memcmp(&t->disk, &t->tip, sizeof t->disk) != 0;
    int r = merge_world_merge(&p->m, t->owner, how);
    if (to_commit)
        add_commit(t);
    if (t->count == 0) {
        CHECK_INT(r, -EALREADY);
        return;
    }
    if (merge_models(&t->base, &p->head, &t->tip, &result, listed)) {
        CHECK_INT(r, 0);
        solve(p, t, &result, listed);
    } else if (how == WEFT_MERGE_REBASE && !can_rebase(t, &p->head))
        CHECK_INT(r, -EREMOTEIO);
    else {
        CHECK_INT(r, 0);
        CHECK(!p->m.in_worktree);
        bool is_free = find_in_the_way(p, &result, listed) == 0;
        check_listed(p, listed);
        if (is_free)
            land(p, t, &result);
    }
}

static void undo_merge(play *p) {
    slot_model goal = p->disk;
    bool good = true;
    for (int i = 0; i < SLOT_FILES; i++) {
        const slot_file *before = &p->undo_before.files[i], *after = &p->undo_after.files[i], *now = &p->disk.files[i];
        if (!slot_is_same(before, after) && !slot_is_same(now, before))
            good &= slot_merge(after, now, before, &goal.files[i]);
    }
    CHECK_INT(UNDO(&p->m.s, .before = p->undo_trees[0], .after = p->undo_trees[1]), 0);
    CHECK_INT(p->m.s.conflicts == 0, good);
    if (good)
        p->disk = goal;
    p->can_undo = false;
}

/* ---- one play ---- */

/* The index and the branch are looked at by writing them out. */
static void check_written(play *p, const char *what, const slot_model *model) {
    test_remove(at(&p->m.s.w, "out"));
    dir(&p->m.s.w, "out");
    CHECK_INT(git_in(&p->m.s.w, "out", "init", "-q", NULL), 0);
    CHECK_INT(git_in(&p->m.s.w, "out", "fetch", "-q", at(&p->m.s.w, "repo"), what, NULL), 0);
    CHECK_INT(git_in(&p->m.s.w, "out", "checkout", "-q", "-f", "FETCH_HEAD", NULL), 0);
    slot_check_disk(&p->m.s.w, "out", model);
}

static void check_everything(play *p) {
    slot_check_disk(&p->m.s.w, "repo", &p->disk);
    for (int i = 0; i < TREES; i++)
        if (p->trees[i].made)
            slot_check_disk(&p->m.s.w, p->trees[i].folder, &p->trees[i].disk);
    test_remove(at(&p->m.s.w, "index"));
    dir(&p->m.s.w, "index");
    GIT(&p->m.s.w, "checkout-index", "-q", "-a", "--prefix=../index/");
    slot_check_disk(&p->m.s.w, "index", &p->index);
}

static void step(play *p) {
    tree_model *t = &p->trees[pick(&p->chance, TREES)];
    unsigned what = pick(&p->chance, 16);
    if (what < 2)
        person_edits(p);
    else if (what == 2)
        person_stages(p);
    else if (what < 5)
        person_commits(p);
    else if (what == 5 && p->can_undo)
        undo_merge(p);
    else if (!t->made)
        make_worktree(p, t);
    else if (what < 9)
        agent_edits(p, t);
    else if (what < 11 && t->count < STEPS - 2)
        agent_commits(p, t);
    else
        merge(p, t);
}

static void play_seed(uint64_t seed) {
    play *p = calloc(1, sizeof *p);
    p->trees[0].owner = "task-0001";
    p->trees[0].folder = "state/worktrees/task-0001";
    p->trees[1].owner = "task-0002";
    p->trees[1].folder = "state/worktrees/task-0002";
    p->chance = slot_chance_of(seed);
    snapshot_world_begin(&p->m.s);
    p->disk = slot_begin(&p->chance, &p->m.s.w, "repo");
    GIT(&p->m.s.w, "add", "-A", ".");
    GIT(&p->m.s.w, "commit", "-q", "--allow-empty", "-m", "files");
    p->index = p->head = p->disk;
    for (int n = 0; n < STEPS; n++) {
        step(p);
        check_everything(p);
    }
    check_written(p, "main", &p->head);
    snapshot_world_end(&p->m.s);
    free(p);
}

TEST(seeds) {
    slot_play_seeds(SEEDS, play_seed);
}

TEST_MAIN(CASE(seeds))
