/* Where replay and live meet, with reads that take as long as the test wants. */
#include "store/world.h"
#include "store_kind.h"

static weft_read_job *slow_read; /* the one that is under way */

static void take_slow_read(weft_store *store, weft_read_job *job) {
    (void) store;
    slow_read = job;
}

static void end_slow_read(store_world *world) {
    weft_read_job *job = slow_read;
    slow_read = NULL;
    weft__memory.read(world->store, job);
    weft__store_dispatch(world->store);
}

typedef struct heard {
    uint64_t last;
    int starts, lives, doubles;
} heard;

static void hear_start(void *ctx, const weft_page *page) {
    (void) page;
    ((heard *) ctx)->starts++;
}

static void hear_events(void *ctx, const weft_event *events, size_t count) {
    heard *h = ctx;
    for (size_t i = 0; i < count; i++) {
        h->doubles += events[i].gseq != h->last + 1;
        h->last = events[i].gseq;
    }
}

static void hear_live(void *ctx) {
    ((heard *) ctx)->lives++;
}

static const weft_follower listener = {.on_start = hear_start, .on_events = hear_events, .on_live = hear_live};

static void open_slow(store_world *world) {
    static weft_store_kind kind;
    kind = weft__memory;
    kind.read = take_slow_read;
    world_init(world, &kind);
    REQUIRE(world_open(world));
}

static void append_now(store_world *world) {
    weft_event event = world_event("a", "x");
    CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, NULL}, NULL, NULL), 0);
}

/* The first page of an empty journal is read when something has been stored and nobody was told of it yet. */
TEST(the_first_events_are_heard_once) {
    store_world world;
    weft_follow *follow;
    heard h = {0};
    open_slow(&world);
    CHECK_INT(weft__store_follow(world.store, &(weft_query){0}, &listener, &h, &follow), 0);
    append_now(&world);
    append_now(&world);
    /* Both are stored; the page comes back first. */
    weft_link told;
    weft__completions_take(&world.store->completions, &told);
    end_slow_read(&world);
    CHECK(h.starts == 1 && h.lives == 1 && h.last == 0);
    weft__completions_put(&world.store->completions, &told);
    weft__store_dispatch(world.store);
    CHECK(h.last == 2 && h.doubles == 0);
    weft__follow_free(follow);
    world_done(&world);
}

/* And when they were told of while it was read, they are read. */
TEST(what_was_told_meanwhile_is_read) {
    store_world world;
    weft_follow *follow;
    heard h = {0};
    open_slow(&world);
    CHECK_INT(weft__store_follow(world.store, &(weft_query){0}, &listener, &h, &follow), 0);
    append_now(&world);
    weft__store_dispatch(world.store);
    CHECK_INT(h.last, 0);
    end_slow_read(&world);
    CHECK(h.starts == 1 && h.lives == 0 && slow_read);
    append_now(&world);
    weft__store_dispatch(world.store);
    end_slow_read(&world);
    CHECK(h.last == 1 && h.lives == 0 && slow_read);
    end_slow_read(&world);
    CHECK(h.last == 2 && h.lives == 1 && h.doubles == 0);
    append_now(&world);
    weft__store_dispatch(world.store);
    CHECK(h.last == 3 && h.doubles == 0);
    weft__follow_free(follow);
    world_done(&world);
}

TEST_MAIN(CASE(the_first_events_are_heard_once) CASE(what_was_told_meanwhile_is_read))
