/* Several hubs, one journal on PostgreSQL: whose turn it is, and when it changes. A store that is closed without having
 * resigned is what a hub that was killed leaves behind: its session is gone, and the owner's name stays. */
#include "lead.h"
#include "store/postgres_server.h"
#include "store/proxy.h"
#include "store_kind.h"

#define LEASE_MS 2000
#define LONG_MS 3600000 /* nobody waits for this one */

static postgres_server server;
static proxy cutter;
static int schemas;

typedef struct hub {
    weft_lead *lead;
    weft_lead_view view;
    store_world world; /* of its store */
    weft_store_hub self;
    char url[256];
} hub;

static bool have_server(void) {
    if (server.pid)
        return true;
    if (!postgres_bin())
        test_skip("PostgreSQL is not installed");
    else
        return CHECK(postgres_make(&server, NULL) && postgres_start(&server));
    return false;
}

/* A journal of its own for each test; through: by the cutter. */
static void url_of(bool through, char *ret, size_t size) {
    snprintf(ret, size, "postgresql:///postgres?host=%s&user=weft&options=-csearch_path%%3Dlead%d",
             through ? cutter.folder : server.folder, schemas);
}

static bool begin_journal(void) {
    char url[256], sql[64];
    if (!have_server())
        return false;
    postgres_url(&server, "", url, sizeof url);
    snprintf(sql, sizeof sql, "CREATE SCHEMA lead%d", ++schemas);
    return CHECK(postgres_sql(url, sql, NULL, 0));
}

static bool sql_of(const char *sql, char *ret, size_t size) {
    char url[256];
    url_of(false, url, sizeof url);
    return CHECK(postgres_sql(url, sql, ret, size));
}

static bool begin_hub(hub *one, const char *name, int64_t lease_ms, bool through) {
    *one =
        (hub){.self = {.place = name, .name = name, .reach = "", .lease_ms = lease_ms}, .world = {.kind = &weft__postgres}};
    url_of(through, one->url, sizeof one->url);
    one->world.opts = (weft_store_opts){.url = one->url, .hub = &one->self};
    return CHECK_INT(weft__lead_new(&weft__postgres, &one->world.opts, &one->lead), 0);
}

/* Until there is something new. */
static void look(hub *one) {
    struct pollfd ready = {.fd = weft__lead_fd(one->lead), .events = POLLIN};
    CHECK_INT(poll(&ready, 1, WORLD_PATIENCE_MS), 1);
    weft__lead_look(one->lead, &one->view);
}

static bool await_state(hub *one, weft_lead_state state) {
    weft__lead_look(one->lead, &one->view);
    for (int i = 0; i < 1000 && one->view.state != state && one->view.state != WEFT_LEAD_FAILED; i++)
        look(one);
    if (one->view.state == state && state == WEFT_LEAD_OURS)
        one->world.store = weft__lead_take(one->lead);
    if (one->view.state != state)
        printf("  %d %s\n", (int) one->view.state, one->view.why);
    return CHECK_INT(one->view.state, state);
}

static bool await_turn(hub *one) {
    return await_state(one, WEFT_LEAD_OURS) && CHECK(one->world.store != NULL);
}

static void await_name(hub *one, const char *name, const char *reach) {
    weft__lead_look(one->lead, &one->view);
    for (int i = 0; i < 1000 && (strcmp(one->view.name, name) != 0 || strcmp(one->view.reach, reach) != 0); i++)
        look(one);
    CHECK_STR(one->view.name, name);
    CHECK_STR(one->view.reach, reach);
}

static void end_hub(hub *one, bool resign) {
    if (one->world.store && resign)
        weft__store_resign(one->world.store);
    if (one->world.store)
        one->world.store = weft__store_close(one->world.store);
    one->lead = weft__lead_free(one->lead);
}

TEST(one_has_it_and_hands_it_over) {
    hub a, b;
    char epoch[WEFT_EPOCH + 1], owner[64];
    if (!begin_journal() || !begin_hub(&a, "a", LONG_MS, false) || !await_turn(&a))
        return;
    snprintf(epoch, sizeof epoch, "%s", weft__store_epoch(a.world.store));
    CHECK_INT(world_append(&a.world, "s", "1"), 0);
    REQUIRE(begin_hub(&b, "b", LONG_MS, false));
    CHECK(await_state(&b, WEFT_LEAD_WAITING));
    await_name(&b, "a", "");
    CHECK_INT(weft__store_reach(a.world.store, "by this way"), 0);
    await_name(&b, "a", "by this way");
    CHECK(weft__store_lease_left(a.world.store) > 0);
    end_hub(&a, true);
    REQUIRE(await_turn(&b));
    CHECK_STR(weft__store_epoch(b.world.store), epoch);
    CHECK_INT(weft__store_head(b.world.store), 1);
    CHECK_INT(world_append(&b.world, "s", "2"), 0);
    end_hub(&b, true);
    sql_of("SELECT '<' || owner || '>' FROM weft_state", owner, sizeof owner);
    CHECK_TEXT(owner, strlen(owner), "<>");
}

/* What another waits for is counted from when it saw that nobody had the journal. */
TEST(one_that_was_killed_is_waited_for) {
    hub a, b;
    if (!begin_journal() || !begin_hub(&a, "a", LEASE_MS, false) || !await_turn(&a))
        return;
    REQUIRE(begin_hub(&b, "b", LEASE_MS, false) && await_state(&b, WEFT_LEAD_WAITING));
    CHECK_INT(world_append(&a.world, "s", "1"), 0);
    int64_t confirmed = weft__lease_now() - LEASE_MS + weft__store_lease_left(a.world.store);
    end_hub(&a, false);
    REQUIRE(await_turn(&b));
    CHECK(weft__lease_now() - confirmed >= LEASE_MS);
    CHECK_INT(world_append(&b.world, "s", "2"), 0);
    end_hub(&b, true);
}

/* The one that takes over owes the lease of the one before, and whoever takes over from it does too. */
TEST(a_lease_is_inherited) {
    hub a, b;
    char lease[64];
    if (!begin_journal() || !begin_hub(&a, "a", 3 * LEASE_MS, false) || !await_turn(&a))
        return;
    end_hub(&a, false);
    REQUIRE(begin_hub(&b, "b", LEASE_MS, false) && await_turn(&b));
    sql_of("SELECT (lease > 2000)::text FROM weft_hub WHERE name = 'b'", lease, sizeof lease);
    CHECK_TEXT(lease, strlen(lease), "true");
    end_hub(&b, true);
}

/* The folder's lock says that nothing of it runs. */
TEST(the_same_place_does_not_wait) {
    hub a;
    if (!begin_journal() || !begin_hub(&a, "a", LONG_MS, false) || !await_turn(&a))
        return;
    end_hub(&a, false);
    REQUIRE(begin_hub(&a, "a", LONG_MS, false) && await_turn(&a));
    CHECK_INT(world_append(&a.world, "s", "1"), 0);
    end_hub(&a, true);
}

TEST(a_broken_session_is_made_again) {
    hub a, b;
    char before[32], now[32] = "";
    static const char pid[] =
        "SELECT coalesce(max(l.pid), 0)::text FROM pg_locks l, pg_namespace n WHERE locktype = 'advisory' AND"
        " classid = 22912 AND granted AND n.nspname = current_schema() AND l.objid = n.oid";
    if (!begin_journal() || !begin_hub(&a, "a", 20 * LEASE_MS, false) || !await_turn(&a))
        return;
    REQUIRE(begin_hub(&b, "b", 20 * LEASE_MS, false) && await_state(&b, WEFT_LEAD_WAITING));
    sql_of(pid, before, sizeof before);
    sql_of("SELECT pg_terminate_backend(l.pid)::text FROM pg_locks l, pg_namespace n WHERE locktype = 'advisory' AND"
           " classid = 22912 AND granted AND n.nspname = current_schema() AND l.objid = n.oid",
           now, sizeof now);
    CHECK_TEXT(now, strlen(now), "true");
    CHECK_INT(world_append(&a.world, "s", "1"), 0);
    sql_of(pid, now, sizeof now);
    CHECK(strcmp(now, "0") != 0 && strcmp(now, before) != 0);
    await_name(&b, "a", "");
    CHECK_INT(b.view.state, WEFT_LEAD_WAITING);
    CHECK(weft__store_lease_left(a.world.store) > 0);
    end_hub(&b, true);
    end_hub(&a, true);
}

/* It hears nothing from the database: its lease runs out, another takes over, and what it says later is not stored. */
TEST(one_that_is_cut_off_has_lost_it) {
    hub a, b;
    store_outcome late = {0};
    const weft_event event = world_event("s", "late");
    if (!have_server() || !CHECK(proxy_start(&cutter, server.folder)))
        return;
    if (!begin_journal() || !begin_hub(&a, "a", LEASE_MS, true) || !await_turn(&a))
        return;
    REQUIRE(begin_hub(&b, "b", LEASE_MS, false) && await_state(&b, WEFT_LEAD_WAITING));
    CHECK_INT(world_append(&a.world, "s", "1"), 0);
    proxy_close(&cutter, true);
    CHECK_INT(weft__store_append(a.world.store, &(weft_append){&event, 1, NULL}, world_appended, &late), 0);
    REQUIRE(await_turn(&b));
    CHECK_INT(weft__store_lease_left(a.world.store), 0);
    CHECK_INT(world_append(&b.world, "s", "2"), 0);
    proxy_close(&cutter, false);
    /* While b has its session a cannot even connect; afterwards it finds another's name. */
    end_hub(&b, false);
    world_wait(&a.world, &late.times, 1);
    CHECK_INT(late.r, -ESTALE);
    CHECK_INT(weft__store_lease_left(a.world.store), 0);
    end_hub(&a, false);
    REQUIRE(begin_hub(&b, "b", LEASE_MS, false) && await_turn(&b));
    CHECK_INT(weft__store_head(b.world.store), 2);
    end_hub(&b, true);
    proxy_done(&cutter);
}

/* A hub that does not take turns promises nothing, so nobody takes over from it. */
TEST(one_without_a_lease_is_not_taken_over_from) {
    hub b;
    store_world alone = {.kind = &weft__postgres};
    char owner[64];
    if (!begin_journal())
        return;
    url_of(false, alone.url, sizeof alone.url);
    alone.opts.url = alone.url;
    REQUIRE(world_open(&alone));
    CHECK_INT(world_append(&alone, "s", "1"), 0);
    sql_of("SELECT owner FROM weft_state", owner, sizeof owner);
    alone.store = weft__store_close(alone.store);
    char sql[160];
    snprintf(sql, sizeof sql, "UPDATE weft_state SET owner = '%s'", owner); /* as if it had been killed */
    sql_of(sql, NULL, 0);
    REQUIRE(begin_hub(&b, "b", LEASE_MS, false) && await_state(&b, WEFT_LEAD_WAITING));
    for (int i = 0; i < 100 && !strstr(b.view.why, "keeps no lease"); i++)
        look(&b);
    CHECK(strstr(b.view.why, "keeps no lease") != NULL);
    REQUIRE(world_open(&alone));
    alone.store = weft__store_close(alone.store);
    REQUIRE(await_turn(&b));
    CHECK_INT(weft__store_head(b.world.store), 1);
    end_hub(&b, true);
}

/* One that does not take turns waits for who does. */
TEST(a_lease_holds_for_those_who_keep_none) {
    hub a;
    store_world alone = {.kind = &weft__postgres};
    if (!begin_journal() || !begin_hub(&a, "a", LEASE_MS, false) || !await_turn(&a))
        return;
    int64_t confirmed = weft__lease_now() - LEASE_MS + weft__store_lease_left(a.world.store);
    end_hub(&a, false);
    url_of(false, alone.url, sizeof alone.url);
    alone.opts.url = alone.url;
    REQUIRE(world_open(&alone));
    CHECK(weft__lease_now() - confirmed >= LEASE_MS);
    CHECK_INT(weft__store_lease_left(alone.store) == INT64_MAX, 1);
    alone.store = weft__store_close(alone.store);
}

/* Whoever waits, or is about to take over, can be told to stop. */
TEST(waiting_ends) {
    hub a, b;
    if (!begin_journal() || !begin_hub(&a, "a", LONG_MS, false) || !await_turn(&a))
        return;
    REQUIRE(begin_hub(&b, "b", LONG_MS, false) && await_state(&b, WEFT_LEAD_WAITING));
    end_hub(&b, false);
    end_hub(&a, false);
    REQUIRE(begin_hub(&b, "b", LONG_MS, false) && await_state(&b, WEFT_LEAD_WAITING));
    end_hub(&b, false);
}

TEST(what_cannot_be_opened_is_said) {
    hub one = {.self = {.place = "x", .name = "x", .reach = "", .lease_ms = LEASE_MS}};
    one.world.opts = (weft_store_opts){.url = "postgresql:///none?host=/nonexistent", .hub = &one.self};
    CHECK_INT(weft__lead_new(&weft__memory, &one.world.opts, &one.lead), -ENOTSUP);
    CHECK_INT(weft__lead_new(&weft__sqlite, &one.world.opts, &one.lead), -ENOTSUP);
    if (!have_server())
        return;
    REQUIRE(CHECK_INT(weft__lead_new(&weft__postgres, &one.world.opts, &one.lead), 0));
    while (one.view.state != WEFT_LEAD_FAILED)
        look(&one);
    CHECK(strstr(one.view.why, "the database says") != NULL);
    one.lead = weft__lead_free(one.lead);
}

TEST(they_are_listed) {
    hub a, b;
    weft_lead_hub found[WEFT_LEAD_HUBS];
    char why[WEFT_STORE_WHY], url[256];
    if (!begin_journal())
        return;
    url_of(false, url, sizeof url);
    CHECK_INT(weft__lead_list(url, found, why), 0);
    REQUIRE(begin_hub(&a, "a", LONG_MS, false) && await_turn(&a));
    REQUIRE(begin_hub(&b, "b", LONG_MS, false) && await_state(&b, WEFT_LEAD_WAITING));
    await_name(&b, "a", "");
    CHECK_INT(weft__lead_list(url, found, why), 2);
    for (int i = 0; i < 2; i++)
        CHECK_INT(found[i].leads, strcmp(found[i].name, "a") == 0);
    CHECK(weft__lead_list("postgresql:///none?host=/nonexistent", found, why) < 0 && *why);
    end_hub(&b, true);
    end_hub(&a, true);
    postgres_done(&server);
}

TEST_MAIN(CASE(one_has_it_and_hands_it_over) CASE(one_that_was_killed_is_waited_for) CASE(a_lease_is_inherited)
              CASE(the_same_place_does_not_wait) CASE(a_broken_session_is_made_again) CASE(one_that_is_cut_off_has_lost_it)
                  CASE(one_without_a_lease_is_not_taken_over_from) CASE(a_lease_holds_for_those_who_keep_none)
                      CASE(waiting_ends) CASE(what_cannot_be_opened_is_said) CASE(they_are_listed))
