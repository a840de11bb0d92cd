/* The conformance suite of the stores on PostgreSQL, which is started for it. Each journal is in a schema of its own. */
#include "copy.h"
#include "store/postgres_server.h"
#include "suites/store.h"

static postgres_server server;

static void prepare_postgres(store_world *world) {
    static int number;
    char sql[64], more[64], url[256];
    snprintf(sql, sizeof sql, "CREATE SCHEMA w%d", ++number);
    snprintf(more, sizeof more, "&options=-csearch_path%%3Dw%d", number);
    postgres_url(&server, "", url, sizeof url);
    CHECK(postgres_sql(url, sql, NULL, 0));
    postgres_url(&server, more, world->url, sizeof world->url);
    world->opts.url = world->url;
}

static void prepare_shared(store_world *world) {
    prepare_postgres(world);
    world->opts.shared = true;
}

static bool have_server(void) {
    if (server.pid)
        return true;
    if (!postgres_bin())
        test_skip("PostgreSQL is not installed");
    else
        return CHECK(postgres_make(&server, NULL) && postgres_start(&server));
    return false;
}

TEST(alone) {
    static const store_case which = {.kind = &weft__postgres, .one_writer = true, .prepare = prepare_postgres};
    if (have_server())
        store_suite(&which);
}

TEST(shared) {
    static const store_case which = {.kind = &weft__postgres, .prepare = prepare_shared};
    if (have_server())
        store_suite(&which);
}

/* ---- copying a journal of SQLite ---- */

static int copy_to(const store_world *from, const store_world *to, weft_copied *ret, char *why) {
    return weft__store_copy(&from->opts, &to->opts, (weft_copy_progress){0}, ret, why);
}

/* Hubs that take turns wait for whoever had the journal last, unless that has said that it is done. */
static void check_left(const store_world *world) {
    char owner[64] = "?";
    CHECK(postgres_sql(world->url, "SELECT owner FROM weft_state", owner, sizeof owner));
    CHECK_TEXT(owner, strlen(owner), "");
}

/* Everything that a reader can see of it, in one text. */
static void show_journal(store_world *world, char *ret, size_t size) {
    static const char *const streams[] = {"a", "b", "c", NULL};
    store_outcome outcome;
    size_t n = (size_t) snprintf(ret, size, "%s", weft__store_epoch(world->store));
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        CHECK_INT(world_read(world, &(weft_query){.stream = streams[i], .oldest = true}, &outcome), 0);
        n += (size_t) snprintf(ret + n, size - n, "\n%s %llu %llu: %s", streams[i] ? streams[i] : "all",
                               (unsigned long long) outcome.trimmed, (unsigned long long) outcome.head, outcome.text);
    }
    CHECK_INT(world_read(world, &(weft_query){.documents = true}, &outcome), 0);
    snprintf(ret + n, size - n, "\n%s", outcome.text);
}

TEST(copied) {
    store_world from, to;
    store_outcome outcome, first;
    weft_copied copied = {0};
    char before[8192], after[8192], why[WEFT_STORE_WHY];
    const weft_document documents[] = {{"x", {"one", 3}}, {"y", {"two", 3}}, {"z", {"", 0}}}, gone = {"x", {NULL, 0}};
    if (!have_server())
        return;
    world_init(&from, &weft__sqlite);
    world_init(&to, &weft__postgres);
    prepare_postgres(&to);
    CHECK_INT(copy_to(&from, &to, &copied, why), -ENOENT);
    REQUIRE(world_open(&from));
    CHECK_INT(copy_to(&from, &to, &copied, why), -EBUSY);
    world_fill(&from, "a", 1500);
    CHECK_INT(world_append_key(&from, "b", "said", "key", &first), 0);
    CHECK_INT(world_append(&from, "c", ""), 0);
    CHECK_INT(world_trim(&from, &(weft_trim){.stream = "c", .upto = UINT64_MAX}, &outcome), 0);
    CHECK_INT(world_trim(&from, &(weft_trim){.stream = "a", .rows = 20}, &outcome), 0);
    outcome = (store_outcome){0};
    CHECK_INT(weft__store_append(from.store, &(weft_append){.documents = documents, .document_count = 3}, world_appended,
                                 &outcome),
              0);
    CHECK_INT(
        weft__store_append(from.store, &(weft_append){.documents = &gone, .document_count = 1}, world_appended, &outcome),
        0);
    world_wait(&from, &outcome.times, 2);
    show_journal(&from, before, sizeof before);
    from.store = weft__store_close(from.store);
    CHECK_INT(copy_to(&from, &to, &copied, why), 0);
    CHECK(copied.events == 21 && copied.documents == 2);
    check_left(&to);
    REQUIRE(world_open(&to));
    show_journal(&to, after, sizeof after);
    CHECK_TEXT(after, strlen(after), before);
    /* It goes on as it would have. */
    CHECK_INT(world_append_key(&to, "b", "said", "key", &outcome), 0);
    CHECK(outcome.repeat && outcome.gseq == first.gseq);
    CHECK_INT(world_append_key(&to, "c", "x", NULL, &outcome), 0);
    CHECK(outcome.seq == 2 && outcome.gseq == 1503);
    CHECK_INT(world_trim(&to, &(weft_trim){.rows = 5}, &outcome), 0);
    CHECK_INT(outcome.removed, 17);
    to.store = weft__store_close(to.store);
    CHECK_INT(copy_to(&from, &to, &copied, why), -EEXIST);
    CHECK(strstr(why, "1503 events already"));
    check_left(&to);
    world_done(&from);
    world_done(&to);
}

static void note_rows(void *ctx, uint64_t done, uint64_t of) {
    uint64_t *told = ctx;
    CHECK(done <= of && done >= *told);
    *told = done;
}

/* There and back: the file is what it was. */
TEST(copied_back) {
    store_world from, between, to;
    store_outcome outcome, first;
    weft_copied copied = {0};
    char before[8192], after[8192], why[WEFT_STORE_WHY], epoch[WEFT_EPOCH + 1], large[300000];
    uint64_t told = 0;
    const weft_document documents[] = {{"x", {"one", 3}}, {"y", {"two", 3}}, {"z", {"", 0}}};
    if (!have_server())
        return;
    world_init(&from, &weft__sqlite);
    world_init(&between, &weft__postgres);
    world_init(&to, &weft__sqlite);
    prepare_postgres(&between);
    REQUIRE(world_open(&from));
    world_fill(&from, "a", 2500);
    CHECK_INT(world_append_key(&from, "b", "said", "key", &first), 0);
    CHECK_INT(world_append(&from, "c", ""), 0);
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    for (int i = 0; i < 20; i++) /* more than is read at once */
        CHECK_INT(world_append(&from, "d", large), 0);
    CHECK_INT(world_trim(&from, &(weft_trim){.stream = "c", .upto = UINT64_MAX}, &outcome), 0);
    CHECK_INT(world_trim(&from, &(weft_trim){.stream = "a", .rows = 20}, &outcome), 0);
    outcome = (store_outcome){0};
    weft__store_append(from.store, &(weft_append){.documents = documents, .document_count = 3}, world_appended, &outcome);
    world_wait(&from, &outcome.times, 1);
    show_journal(&from, before, sizeof before);
    memcpy(epoch, weft__store_epoch(from.store), sizeof epoch);
    from.store = weft__store_close(from.store);
    CHECK_INT(copy_to(&from, &between, &copied, why), 0);
    CHECK_INT(weft__store_copy_back(&between.opts, &from.opts, (weft_copy_progress){0}, &copied, why), -EEXIST);
    if (!CHECK_INT(weft__store_copy_back(&between.opts, &to.opts, (weft_copy_progress){note_rows, &told}, &copied, why), 0))
        printf("  %s\n", why);
    CHECK(copied.events == 41 && copied.documents == 3);
    check_left(&between);
    CHECK_INT(told, 44);
    CHECK_STR(copied.epoch, epoch);
    to.opts.check = WEFT_CHECK_ALWAYS;
    REQUIRE(world_open(&to));
    CHECK_STR(weft__store_epoch(to.store), epoch);
    CHECK_STR(to.why, "");
    show_journal(&to, after, sizeof after);
    CHECK_TEXT(after, strlen(after), before);
    CHECK_INT(world_append_key(&to, "b", "said", "key", &outcome), 0);
    CHECK(outcome.repeat && outcome.gseq == first.gseq);
    CHECK_INT(world_append_key(&to, "c", "x", NULL, &outcome), 0);
    CHECK_INT(outcome.seq, 2);
    world_done(&from);
    world_done(&between);
    world_done(&to);
}

/* A database that lost its end while nobody looked is not taken for one that never had it. */
TEST(marked) {
    store_world world;
    char mark[120], url[300];
    if (!have_server())
        return;
    world_init(&world, &weft__postgres);
    prepare_postgres(&world);
    snprintf(mark, sizeof mark, "%s/postgres", world.folder);
    world.opts.mark = mark;
    REQUIRE(world_open(&world));
    world_fill(&world, "a", 10);
    world_reopen(&world);
    CHECK_INT(weft__store_head(world.store), 10);
    world.store = weft__store_close(world.store);
    snprintf(url, sizeof url, "%s", world.opts.url);
    CHECK(postgres_sql(url, "DELETE FROM weft_event WHERE gseq > 8", NULL, 0));
    CHECK(postgres_sql(url, "UPDATE weft_state SET head = 8", NULL, 0));
    CHECK(postgres_sql(url, "UPDATE weft_stream SET head = 8", NULL, 0));
    CHECK(!world_open(&world));
    CHECK(strstr(world.why, "lost its end: event 10") != NULL);
    snprintf(mark + strlen(mark), 8, "-mark");
    unlink(mark);
    *strrchr(mark, '-') = '\0';
    REQUIRE(world_open(&world)); /* on purpose */
    world_fill(&world, "a", 1);
    world.store = weft__store_close(world.store);
    CHECK(postgres_sql(url, "UPDATE weft_state SET epoch = 'ffffffffffffffffffffffffffffffff'", NULL, 0));
    CHECK(!world_open(&world));
    CHECK(strstr(world.why, "another journal") != NULL);
    world_done(&world);
}

int main(int argc, char **argv) {
    static const test_case cases[] = {CASE(alone) CASE(shared) CASE(copied) CASE(copied_back) CASE(marked)};
    int status = test_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
    postgres_done(&server);
    return status;
}
