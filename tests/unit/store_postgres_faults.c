/* What can happen to a journal on PostgreSQL: the hub, the primary, the standby and the connections are killed, in every
 * phase of an append. Nothing that was acknowledged is lost, no position is missing, nothing is there twice. */
#include "store/history.h"
#include "store/postgres_server.h"
#include "store/proxy.h"

#define WRITERS 16
#define KILLS 5
#define ROUNDS 3 /* failovers */

static unsigned next_content;

/* ---- many writers on one store ---- */

typedef struct load {
    store_world world;
    char url[256];
    bool stop;
    int under_way, failed, r;
    struct load_writer {
        struct load *load;
        int number;
        unsigned turn;
    } writers[WRITERS];
} load;

static void load_next(struct load_writer *w);

static void load_stored(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    struct load_writer *w = ctx;
    load *l = w->load;
    l->under_way--;
    l->failed += r < 0;
    l->r = r < 0 ? r : l->r;
    CHECK(!repeat);
    for (size_t i = 0; r >= 0 && i < count; i++) {
        char line[96];
        snprintf(line, sizeof line, "%s %llu %.24s\n", events[i].stream, (unsigned long long) events[i].seq,
                 events[i].data.data);
        history_note(line);
    }
    if (!l->stop && r >= 0)
        load_next(w);
}

static void load_next(struct load_writer *w) {
    char stream[3][16], data[3][32], key[32], name[16];
    weft_event events[3];
    size_t count = 1 + ++w->turn % 3;
    for (size_t i = 0; i < count; i++) {
        snprintf(stream[i], sizeof stream[i], "w%d", i == 2 ? 99 : w->number);
        snprintf(data[i], sizeof data[i], "%024u", ++next_content);
        events[i] = (weft_event){.stream = stream[i], .type = "t", .data = {data[i], 24}, .time_ms = 1};
    }
    snprintf(key, sizeof key, "%d-%u", w->number, w->turn);
    snprintf(name, sizeof name, "d%d", w->number);
    const weft_document document = {name, {data[0], 24}};
    weft_append append = {.events = events,
                          .count = count,
                          .key = w->turn % 4 ? NULL : key,
                          .documents = &document,
                          .document_count = w->turn % 2};
    if (CHECK_INT(weft__store_append(w->load->world.store, &append, load_stored, w), 0))
        w->load->under_way++;
}

static bool load_open(load *l, const char *url, int standbys) {
    char line[64];
    *l = (load){.world = {.kind = &weft__postgres}};
    snprintf(l->url, sizeof l->url, "%s", url);
    l->world.opts = (weft_store_opts){.url = l->url, .standbys = standbys};
    if (!CHECK(world_open(&l->world))) {
        printf("  %s\n", l->world.why);
        return false;
    }
    snprintf(line, sizeof line, "epoch %s\n", weft__store_epoch(l->world.store));
    history_note(line);
    return true;
}

static void load_begin(load *l) {
    for (int i = 0; i < WRITERS; i++) {
        l->writers[i] = (struct load_writer){.load = l, .number = i, .turn = (unsigned) (next_content * WRITERS)};
        load_next(&l->writers[i]);
    }
}

static bool load_turn(load *l, int wait_ms) {
    struct pollfd ready = {.fd = weft__store_fd(l->world.store), .events = POLLIN};
    int n = poll(&ready, 1, wait_ms);
    if (n == 1)
        weft__store_dispatch(l->world.store);
    return n == 1;
}

/* Until so many more events are acknowledged. */
static bool load_more(load *l, long count) {
    long until = history_acknowledged + count;
    while (history_acknowledged < until && l->r == 0)
        if (!load_turn(l, WORLD_PATIENCE_MS))
            return test_check(false, __FILE__, __LINE__, "nothing is acknowledged any more");
    return CHECK_INT(l->r, 0);
}

static void load_end(load *l) {
    l->stop = true;
    while (l->under_way > 0 && load_turn(l, WORLD_PATIENCE_MS))
        continue;
    CHECK_INT(l->under_way, 0);
    l->world.store = weft__store_close(l->world.store);
}

/* Every event once, and all positions, over all and in every stream. */
static void check_journal(const char *url) {
    char answer[64];
    CHECK(postgres_sql(url,
                       "SELECT CASE WHEN count(*) = max(gseq) AND count(*) = count(DISTINCT data) AND count(*) = (SELECT "
                       "sum(head)::int8 FROM weft_stream) AND count(*) = (SELECT head FROM weft_state) THEN 'whole' ELSE "
                       "'broken' END FROM weft_event",
                       answer, sizeof answer));
    CHECK(strcmp(answer, "whole") == 0);
    weft_store_opts opts = {.url = url};
    history_audit(&weft__postgres, &opts);
}

/* ---- servers ---- */

static postgres_server primary, standby;

static bool have_primary(void) {
    if (!postgres_bin()) {
        test_skip("PostgreSQL is not installed");
        return false;
    }
    history_forget();
    return CHECK(postgres_make(&primary, NULL) && postgres_start(&primary));
}

static bool have_standby(void) {
    char url[256];
    postgres_url(&primary, "", url, sizeof url);
    return CHECK(postgres_make(&standby, &primary) && postgres_start(&standby)) &&
           CHECK(postgres_await(url, "SELECT state FROM pg_stat_replication", "streaming"));
}

/* Before a standby is copied it may be told whom to wait for, and so may the standby that becomes the primary. */
static bool wait_for_standby(const postgres_server *server, const char *names) {
    char url[256], sql[96];
    postgres_url(server, "", url, sizeof url);
    snprintf(sql, sizeof sql, "ALTER SYSTEM SET synchronous_standby_names = '%s'", names);
    return CHECK(postgres_sql(url, sql, NULL, 0)) && CHECK(postgres_sql(url, "SELECT pg_reload_conf()", NULL, 0)) &&
           CHECK(postgres_await(url, "SHOW synchronous_standby_names", names));
}

static bool promote(const postgres_server *server) {
    char url[256];
    postgres_url(server, "&target_session_attrs=any", url, sizeof url);
    /* It is asked again: it may not be ready to hear it, and waits for its own disk for a minute at most if it is told to
     * wait. */
    for (int tries = 0; tries < 100 && !postgres_sql(url, "SELECT pg_promote(false)", NULL, 0); tries++)
        postgres_nap();
    return CHECK(postgres_await(url, "SELECT pg_is_in_recovery()::text", "false"));
}

static void done_servers(void) {
    postgres_done(&primary);
    postgres_done(&standby);
}

/* Our writer's sessions that wait for the standby. */
#define WAITING "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'weft'"
/* The connections of postgres_sql() have the same name, and do not wait. */

/* Until an append of the load waits: what was acknowledged just before must be answered, or nobody appends again. */
static bool load_await_waiting(load *l, const char *url) {
    char answer[64];
    for (int tries = 0; tries < WORLD_PATIENCE_MS / 20; tries++) {
        if (postgres_sql(url, WAITING, answer, sizeof answer) && strcmp(answer, "1") == 0)
            return true;
        load_turn(l, 20);
    }
    return false;
}

/* ---- the tests ---- */

static void run_and_kill(const char *url, unsigned seed) {
    char program[512], number[16];
    int ends[2], status = 0;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 32);
    REQUIRE(n > 0 && pipe2(ends, O_CLOEXEC) == 0);
    program[n] = '\0';
    memcpy(strrchr(program, '/'), "/store_writer", sizeof "/store_writer");
    snprintf(number, sizeof number, "%u", seed);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(program, program, url, number, (char *) NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    char line[256];
    for (unsigned lines = 0, after = 100 + seed % 2000; fgets(line, sizeof line, from); lines++) {
        if (strchr(line, '\n'))
            history_note(line);
        if (lines == after)
            kill(pid, SIGKILL);
    }
    fclose(from);
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Its journal is trimmed now and then, so its positions are looked at by the audit alone. */
TEST(the_hub_is_killed) {
    char url[256];
    if (!have_primary())
        return;
    postgres_url(&primary, "", url, sizeof url);
    srand(1);
    for (int i = 0; i < KILLS; i++) {
        run_and_kill(url, (unsigned) rand());
        weft_store_opts opts = {.url = url};
        history_audit(&weft__postgres, &opts);
    }
    CHECK(history_acknowledged > 100 * KILLS);
    done_servers();
}

/* The standby becomes the primary. It was copied with the setting, so it waits for a standby of its own, and nothing is
 * acknowledged before there is one. */
static bool fail_over(void) {
    char url[256];
    load l;
    postgres_server next;
    snprintf(url, sizeof url, "postgresql:///postgres?host=%s,%s&user=weft", primary.folder, standby.folder);
    if (!load_open(&l, url, 1))
        return false;
    load_begin(&l);
    load_more(&l, 500);
    postgres_kill(&primary);
    promote(&standby);
    postgres_url(&standby, "", url, sizeof url);
    CHECK(load_await_waiting(&l, url));
    bool ok = CHECK(postgres_make(&next, &standby) && postgres_start(&next));
    load_more(&l, 500);
    load_end(&l);
    check_journal(url);
    postgres_done(&primary);
    primary = standby;
    standby = next;
    return ok;
}

TEST(the_primary_is_killed) {
    bool ok = have_primary() && wait_for_standby(&primary, "*") && have_standby();
    for (int round = 0; ok && round < ROUNDS; round++)
        ok = fail_over();
    done_servers();
}

/* Nothing is acknowledged while the standby is away, whoever cancels the wait; and what was cancelled is there once. */
TEST(the_standby_is_killed) {
    char url[256];
    load l;
    if (!have_primary() || !wait_for_standby(&primary, "*") || !have_standby())
        return;
    postgres_url(&primary, "", url, sizeof url);
    REQUIRE(load_open(&l, url, 1));
    load_begin(&l);
    load_more(&l, 300);
    postgres_kill(&standby);
    CHECK(load_await_waiting(&l, url));
    while (load_turn(&l, 100))
        continue;
    long before = history_acknowledged;
    for (int i = 0; i < 3; i++) {
        CHECK(postgres_sql(url,
                           i == 1 ? "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                                  : "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                           NULL, 0));
        /* The next connection waits as well. */
        CHECK(load_await_waiting(&l, url));
        load_turn(&l, 0);
        CHECK_INT(history_acknowledged, before);
    }
    /* A page that has seen what is not durable does not come either. */
    store_outcome page = {0};
    CHECK_INT(weft__store_read(l.world.store, &(weft_query){.oldest = true, .max_events = 1}, world_read_done, &page), 0);
    load_turn(&l, 300);
    CHECK_INT(page.times, 0);
    CHECK(postgres_start(&standby));
    load_more(&l, 300);
    world_wait(&l.world, &page.times, 1);
    CHECK_INT(page.r, 0);
    load_end(&l);
    check_journal(url);
    done_servers();
}

/* The database stops to wait for a standby, though it must. */
TEST(the_setting_is_taken_back) {
    char url[256], why[WEFT_STORE_WHY];
    load l;
    weft_store *store;
    if (!have_primary() || !wait_for_standby(&primary, "*") || !have_standby())
        return;
    postgres_url(&primary, "", url, sizeof url);
    CHECK_INT(weft__store_open(&weft__postgres, &(weft_store_opts){.url = url, .standbys = 2}, &store, why), -ENOLINK);
    CHECK(strstr(why, "store.standbys is 2"));
    REQUIRE(load_open(&l, url, 1));
    load_begin(&l);
    load_more(&l, 100);
    CHECK_INT(weft__store_look(l.world.store), 0);
    wait_for_standby(&primary, "");
    for (int turns = 0; weft__store_look(l.world.store) == 0 && turns < WORLD_PATIENCE_MS; turns++)
        load_turn(&l, 20);
    CHECK_INT(weft__store_look(l.world.store), -ENOTCONN);
    while (load_turn(&l, 100))
        continue;
    long before = history_acknowledged;
    CHECK(!load_turn(&l, 500));
    CHECK_INT(history_acknowledged, before);
    wait_for_standby(&primary, "*");
    load_more(&l, 100);
    CHECK_INT(weft__store_look(l.world.store), 0);
    load_end(&l);
    check_journal(url);
    done_servers();
}

/* A standby that was not waited for becomes the primary and does not have everything. */
TEST(the_database_has_lost_something) {
    char url[256], both[256];
    load l;
    if (!have_primary() || !have_standby())
        return;
    snprintf(both, sizeof both, "postgresql:///postgres?host=%s,%s&user=weft", primary.folder, standby.folder);
    REQUIRE(load_open(&l, both, 0));
    load_begin(&l);
    load_more(&l, 200);
    postgres_url(&primary, "", url, sizeof url);
    CHECK(postgres_await(url, "SELECT (replay_lsn > '0/0')::text FROM pg_stat_replication", "true"));
    postgres_kill(&standby);
    load_more(&l, 200);
    postgres_kill(&primary);
    CHECK(postgres_start(&standby) && promote(&standby));
    while (l.r == 0)
        REQUIRE(load_turn(&l, WORLD_PATIENCE_MS));
    CHECK_INT(l.r, -ESTALE);
    CHECK_INT(weft__store_look(l.world.store), -ESTALE);
    l.stop = true;
    l.world.store = weft__store_close(l.world.store);
    done_servers();
}

/* ---- connections ---- */

static proxy cutter;

static bool open_through_proxy(store_world *world) {
    *world = (store_world){.kind = &weft__postgres};
    snprintf(world->url, sizeof world->url, "postgresql:///postgres?host=%s&user=weft", cutter.folder);
    world->opts.url = world->url;
    if (!CHECK(world_open(world)))
        return false;
    memcpy(history_epoch, weft__store_epoch(world->store), sizeof history_epoch);
    return true;
}

struct phase {
    const char *name;
    int events, key, documents;
    bool trim;
};

/* One append, or trim, whose connection is cut behind so many bytes of it, to the database or from it. */
static bool cut_at(store_world *world, const struct phase *phase, long at, bool from, uint64_t *next) {
    store_outcome outcome = {0};
    weft_event events[3];
    char data[3][32], key[32];
    int cuts = atomic_load(&cutter.cuts), events_now = phase->trim ? 0 : phase->events;
    for (int i = 0; i < events_now; i++) {
        snprintf(data[i], sizeof data[i], "%024u", ++next_content);
        events[i] = world_event(i ? "b" : "a", data[i]);
    }
    snprintf(key, sizeof key, "key-%u", next_content);
    const weft_document document = {"d", {data[0], 24}};
    atomic_store(&cutter.to, 0);
    atomic_store(&cutter.from, 0);
    atomic_store(from ? &cutter.cut_from : &cutter.cut_to, at);
    weft_append append = {.events = events,
                          .count = (size_t) events_now,
                          .key = phase->key ? key : NULL,
                          .documents = &document,
                          .document_count = (size_t) phase->documents};
    if (phase->trim)
        CHECK_INT(weft__store_trim(world->store, &(weft_trim){.upto = 1}, world_trimmed, &outcome), 0);
    else
        CHECK_INT(weft__store_append(world->store, &append, world_appended, &outcome), 0);
    world_wait(world, &outcome.times, 1);
    atomic_store(&cutter.cut_to, -1);
    atomic_store(&cutter.cut_from, -1);
    CHECK_INT(outcome.r, 0);
    if (!phase->trim) {
        CHECK(!outcome.repeat);
        CHECK_INT(outcome.gseq, *next);
        *next += (uint64_t) events_now;
        CHECK_INT(weft__store_head(world->store), *next - 1);
    }
    return atomic_load(&cutter.cuts) > cuts;
}

/* At every step of a few bytes until the whole went through. */
static void cut_everywhere(const struct phase *phase, bool from) {
    store_world world;
    char url[256];
    uint64_t next;
    int cuts = 0;
    if (!open_through_proxy(&world))
        return;
    next = weft__store_head(world.store) + 1;
    for (long at = 0; cut_at(&world, phase, at, from, &next); cuts++)
        at += from ? 13 : 61;
    CHECK(cuts >= 5);
    world.store = weft__store_close(world.store);
    postgres_url(&primary, "", url, sizeof url);
    if (!phase->trim)
        check_journal(url);
}

TEST(the_connection_is_cut) {
    static const struct phase phases[] = {
        {"one event", 1, 0, 0, false},
        {"several with a key and a document", 3, 1, 1, false},
        {"a trim", 1, 0, 0, true},
    };
    if (!have_primary() || !CHECK(proxy_start(&cutter, primary.folder)))
        return;
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        test_row(phases[i].name);
        cut_everywhere(&phases[i], false);
        cut_everywhere(&phases[i], true);
    }
    proxy_done(&cutter);
    done_servers();
}

/* While its connection is away another hub opens the journal: then it is that one's. */
TEST(another_takes_the_journal) {
    store_world one, two = {.kind = &weft__postgres};
    store_outcome outcome = {0};
    if (!have_primary() || !CHECK(proxy_start(&cutter, primary.folder)))
        return;
    if (!open_through_proxy(&one))
        return;
    CHECK_INT(world_append(&one, "a", "1"), 0);
    proxy_close(&cutter, true);
    postgres_url(&primary, "", two.url, sizeof two.url);
    two.opts.url = two.url;
    REQUIRE(world_open(&two));
    CHECK_STR(weft__store_epoch(two.store), weft__store_epoch(one.store));
    CHECK_INT(world_append(&two, "a", "2"), 0);
    weft_event event = world_event("a", "3");
    CHECK_INT(weft__store_append(one.store, &(weft_append){&event, 1, NULL}, world_appended, &outcome), 0);
    two.store = weft__store_close(two.store);
    proxy_close(&cutter, false);
    world_wait(&one, &outcome.times, 1);
    CHECK_INT(outcome.r, -ESTALE);
    CHECK_INT(weft__store_look(one.store), -ESTALE);
    CHECK_INT(world_append(&one, "a", "4"), -ESTALE);
    one.store = weft__store_close(one.store);
    proxy_done(&cutter);
    done_servers();
}

/* Closing does not wait for ever for a database that is gone; what is not stored is not said to be. */
TEST(it_closes_without_the_database) {
    store_world one;
    store_outcome outcome = {0}, page = {0};
    if (!have_primary() || !CHECK(proxy_start(&cutter, primary.folder)))
        return;
    if (!open_through_proxy(&one))
        return;
    proxy_close(&cutter, true);
    weft_event event = world_event("a", "1");
    CHECK_INT(weft__store_append(one.store, &(weft_append){&event, 1, NULL}, world_appended, &outcome), 0);
    CHECK_INT(weft__store_read(one.store, &(weft_query){0}, world_read_done, &page), 0);
    one.store = weft__store_close(one.store);
    CHECK(outcome.times == 1 && outcome.r == -ECANCELED);
    CHECK(page.times == 1 && page.r == -ECANCELED);
    proxy_done(&cutter);
    done_servers();
}

TEST_MAIN(CASE(the_hub_is_killed) CASE(the_primary_is_killed) CASE(the_standby_is_killed) CASE(the_setting_is_taken_back)
              CASE(the_database_has_lost_something) CASE(the_connection_is_cut) CASE(another_takes_the_journal)
                  CASE(it_closes_without_the_database))
