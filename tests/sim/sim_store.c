/* A store whose disk the simulation holds: the kind in memory, but its jobs wait until the scheduler lets them be done, may
 * fail, and what was done survives the death of the hub.
 *
 * Writes are done in order and reads in order, as by one writer and one reader beside each other. An append that failed may
 * turn out to be there after a kill, if nothing was written behind it (store.h says so). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "sim.h"

static struct {
    weft_store *store; /* the disk: kept while the hub is down */
    weft_link writes, reads;
    size_t write_count, read_count;
    weft_append_job *ghost; /* failed, and yet perhaps on the disk */
    bool lost, killed;
} disk;

static void hand_back(weft_job *job, int r) {
    weft_link jobs;
    weft__list_init(&jobs);
    job->r = r;
    weft__list_push(&jobs, &job->link);
    weft__completions_put(&disk.store->completions, &jobs);
}

/* ---- ghosts ---- */

static void forget_ghost(void) {
    disk.ghost = weft__free(sim_alloc(), disk.ghost);
}

/* The strings of a job lie behind it, so a copy's are as far from it as the original's. */
static void moved(const char **text, const weft_append_job *from, weft_append_job *to) {
    if (*text)
        *text = (char *) to + (*text - (const char *) from);
}

static void keep_ghost(const weft_append_job *job) {
    forget_ghost();
    sim_fail_memory(0);
    weft_append_job *copy = weft__alloc(sim_alloc(), job->job.bytes);
    memcpy(copy, job, job->job.bytes);
    weft__list_init(&copy->job.link);
    copy->done = NULL;
    copy->job.ctx = NULL;
    moved(&copy->key, job, copy);
    moved(&copy->counter, job, copy);
    copy->documents = (weft_document *) (void *) (copy->events + copy->count);
    copy->removals = (uint64_t *) (void *) (copy->documents + copy->document_count);
    for (size_t i = 0; i < copy->document_count; i++) {
        moved(&copy->documents[i].key, job, copy);
        moved(&copy->documents[i].data.data, job, copy);
    }
    for (size_t i = 0; i < copy->count; i++) {
        moved(&copy->events[i].stream, job, copy);
        moved(&copy->events[i].type, job, copy);
        moved(&copy->events[i].data.data, job, copy);
    }
    disk.ghost = copy;
}

/* ---- the work ---- */

static void do_append(weft_append_job *job, int fail) {
    if (fail) {
        keep_ghost(job);
        sim_saw(SAW_WRITE_FAULT);
        hand_back(&job->job, fail);
        return;
    }
    weft__memory.append(disk.store, job);
    if (job->job.r >= 0 && !job->repeat) {
        forget_ghost();
        truth_remove(job->removals, job->removal_count);
        truth_append(job->events, job->count);
    }
}

/* Read everything behind the owner's back: the job is taken off the completions before anybody sees it. */
static weft_read_job *read_all(void) {
    sim_fail_memory(0);
    weft_read_job *job = weft__zalloc(sim_alloc(), sizeof *job);
    weft_link jobs;
    weft__list_init(&job->job.link);
    job->job.type = WEFT_JOB_READ;
    job->arena.alloc = sim_alloc();
    job->query = (weft_query){.oldest = true, .max_events = (size_t) truth_head() + 1, .max_bytes = SIZE_MAX};
    weft__memory.read(disk.store, job);
    weft__completions_take(&disk.store->completions, &jobs);
    weft__list_remove(&job->job.link);
    weft__completions_put(&disk.store->completions, &jobs);
    return job;
}

static void do_trim(weft_trim_job *job, int fail) {
    if (fail) {
        hand_back(&job->job, fail);
        return;
    }
    weft__memory.trim(disk.store, job);
    weft_read_job *left = read_all();
    uint64_t gone = truth_keep(&left->page);
    weft__arena_done(&left->arena);
    weft__free(sim_alloc(), left);
    sim_say("disk    %llu events trimmed", (unsigned long long) gone);
    if (job->removed != gone)
        sim_broken("wrong trim: %llu events went and %llu were counted", (unsigned long long) gone,
                   (unsigned long long) job->removed);
}

static weft_job *taken(weft_link *list, size_t *count) {
    weft_job *job = WEFT_CONTAINER(list->next, weft_job, link);
    weft__list_remove(&job->link);
    --*count;
    return job;
}

void store_write(int fail) {
    if (!disk.write_count)
        return;
    void *whole = taken(&disk.writes, &disk.write_count);
    weft_job *job = whole;
    if (fail)
        sim_say("disk    write fails: %d", fail);
    if (job->type == WEFT_JOB_APPEND)
        do_append(whole, fail);
    else
        do_trim(whole, fail);
}

void store_read(int fail) {
    if (!disk.read_count)
        return;
    void *whole = taken(&disk.reads, &disk.read_count);
    if (fail) {
        sim_say("disk    read fails: %d", fail);
        sim_saw(SAW_READ_FAULT);
        hand_back(whole, fail);
    } else
        weft__memory.read(disk.store, whole);
}

size_t store_writes(void) {
    return disk.write_count;
}

size_t store_reads(void) {
    return disk.read_count;
}

/* ---- the kind ---- */

static void wait_write(weft_job *job) {
    weft__list_push(&disk.writes, &job->link);
    disk.write_count++;
}

static void sim_append(weft_store *store, weft_append_job *job) {
    (void) store;
    wait_write(&job->job);
}

static void sim_trim(weft_store *store, weft_trim_job *job) {
    (void) store;
    wait_write(&job->job);
}

static void sim_read(weft_store *store, weft_read_job *job) {
    (void) store;
    weft__list_push(&disk.reads, &job->job.link);
    disk.read_count++;
}

static bool revive_ghost(void) {
    weft_append_job *ghost = disk.ghost;
    if (!ghost || !sim_chance(50))
        return false;
    sim_say("disk    the append that failed turns out to be there");
    sim_saw(SAW_GHOST);
    disk.ghost = NULL;
    disk.store->queued += ghost->job.bytes; /* as if it had just been given to us */
    weft__memory.append(disk.store, ghost);
    if (ghost->job.r >= 0 && !ghost->repeat) {
        truth_remove(ghost->removals, ghost->removal_count);
        truth_append(ghost->events, ghost->count);
    }
    return true;
}

/* After a kill a part of what waited is durable, in order; nobody hears of it any more. */
static void sim_close(weft_store *store) {
    (void) store;
    size_t durable = disk.write_count;
    if (disk.killed)
        durable = revive_ghost() ? 0 : sim_below((uint32_t) disk.write_count + 1);
    for (; durable > 0; durable--)
        store_write(0);
    while (disk.write_count)
        hand_back(taken(&disk.writes, &disk.write_count), -ECANCELED);
    while (disk.read_count)
        hand_back(taken(&disk.reads, &disk.read_count), -ECANCELED);
    forget_ghost();
}

static void sim_free(weft_store *store) {
    (void) store; /* the disk stays */
}

static int new_disk(const weft_store_opts *opts, char *ret_why) {
    int r = weft__memory.open(opts, &disk.store, ret_why);
    if (r < 0)
        return r;
    /* Random in earnest, which would make every run another. */
    for (size_t i = 0; i < WEFT_EPOCH; i++)
        disk.store->epoch[i] = "0123456789abcdef"[sim_below(16)];
    truth_close();
    truth_open(disk.store->epoch);
    driver_forget();
    plans_forget();
    gated_forget();
    runners_forget();
    return 0;
}

static int sim_open(const weft_store_opts *opts, weft_store **ret, char *ret_why) {
    if (disk.lost)
        disk.store = (weft__memory.free(disk.store), NULL);
    disk.lost = disk.killed = false;
    int r = disk.store ? 0 : new_disk(opts, ret_why);
    if (r < 0)
        return r;
    disk.store->closing = disk.store->dispatching = false;
    disk.store->queued = 0;
    disk.store->told = truth_head();
    *ret = disk.store;
    return 0;
}

const weft_store_kind *store_kind(void) {
    static weft_store_kind kind;
    kind = weft__memory;
    kind.name = "sim";
    kind.open = sim_open;
    kind.append = sim_append;
    kind.read = sim_read;
    kind.trim = sim_trim;
    kind.close = sim_close;
    kind.free = sim_free;
    return &kind;
}

/* ---- life ---- */

void store_open_disk(void) {
    memset(&disk, 0, sizeof disk);
    weft__list_init(&disk.writes);
    weft__list_init(&disk.reads);
}

void store_close_disk(void) {
    if (disk.store)
        weft__memory.free(disk.store);
    disk.store = NULL;
    truth_close();
}

void store_lose_disk(void) {
    disk.lost = disk.store != NULL;
    sim_saw(SAW_LOST_DISK);
}

void store_set_killed(bool killed) {
    disk.killed = killed;
}
